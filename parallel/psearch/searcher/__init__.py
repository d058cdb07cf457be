"""The one way from a request to a result, for the command line, UCI, `Engine`, the page and batch work.

`searcher` keeps workers of the wanted size, or of the largest that the system grants; `notices` reports each failure
once. `root` looks the root up in endgame tables and limits the strength. Settings of users are in `psearch.settings`.
"""
