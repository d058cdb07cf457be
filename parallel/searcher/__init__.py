"""The one way from a request to a result: the command line, UCI, `Engine`, the page and batch work all take it.

`declared` has what users can set, each once; `settings` is what it is set to; `searcher` has the workers of the size
that is wanted or the next that the system grants, `notices` tells of failures once each.
"""
