"""The engine for Python programs, with python-chess's types and habits (docs/guides/api.md).

Begin with `blocking`: `psearch.Engine`, and `asynchronous`: its methods on asyncio. What callers give becomes a checked
`question`, by `checked_arguments` (positions, moves), which also makes what they get back; options are those of
`psearch.options`, the way to an answer is that of `psearch.searcher`. `analysis_result` is a search in the background,
`api_log` says what was mended. `counting` needs no search: perft and the static evaluation.
"""
