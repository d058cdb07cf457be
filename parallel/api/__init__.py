"""The engine for Python programs, with python-chess's types and habits (docs/guides/api.md).

Begin with `blocking`: `psearch.Engine`, and `asynchronous`: the same on asyncio. What callers give becomes a checked
`question`, by `checked_arguments` (positions, moves, numbers) and `limits`; options are those of `psearch.options`, the
way to an answer is that of `psearch.searcher`. `infos` is what callers get back, `analysis_result` a search in the
background, `api_log` where they are told what was mended. `counting` needs no search: perft and the static evaluation.
"""
