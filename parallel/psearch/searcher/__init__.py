"""The one way from a request to a result: the command line, UCI, `Engine`, the page and batch work all take it.

`searcher` has the workers of the size that is wanted, or the next that the system grants; `notices` reports failures
once each. What users can set is in `psearch.settings`.
"""
