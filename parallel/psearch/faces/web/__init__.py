"""`psearch serve`: a local web page that shows a search (docs/guides/web.md). It searches only through
`psearch.AsyncEngine`, `psearch.analyse_many` and `psearch.games`.

Start reading at `server`, which serves the files of static/ and a WebSocket for each page. `page` is one open page, and
the set of all. Its `connection` passes `messages` to its parts: `game_board` with its `game_tree`, `analysing`,
`playing`, `reviewing`, and `watching_tabs` for the tabs Workers and Laboratory. All pages share one engine,
`shared_engine`.
"""
