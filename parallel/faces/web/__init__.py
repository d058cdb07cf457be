"""`psearch serve`: a page on this machine that shows a search (docs/guides/web.md). Everything goes through
`psearch.AsyncEngine`, `psearch.analyse_many` and `psearch.games`; there is no chess engine in here.

Begin with `server`: it listens, hands out the `page_files` of static/ to whom the `gate` lets in, and has a WebSocket
for each page. `pages` are those that are open. A `page` takes messages (`payloads`), whose `handlers` are in
`page_conversation`, and for two of the tabs in `workers_messages`, `game_messages` (a game of the user's) and
`laboratory_messages`; what goes on for a page shares a `context`: the
`game_tree` on its board, `analysing`, `playing` and `reviewing`. The `desk` has the engine, which all pages share.
"""
