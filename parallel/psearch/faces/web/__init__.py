"""`psearch serve`: a page on this machine that shows a search (docs/guides/web.md). Everything goes through
`psearch.AsyncEngine`, `psearch.analyse_many` and `psearch.games`; there is no chess engine in here.

Begin with `server`: it listens, hands out the files of static/ to its own page, and has a WebSocket for each. `page` is
one that is open, and all of them. Its `connection` passes `messages` to its parts: `game_board`, with the `game_tree`
on it, `analysing`, `playing`, `reviewing`, and `watching_tabs` for workers and laboratory. All pages share one engine,
`shared_engine`.
"""
