"""`psearch serve`: a page on this machine that shows a search (docs/guides/web.md). Everything goes through
`psearch.AsyncEngine`, `psearch.analyse_many` and `psearch.games`; there is no chess engine in here.

Begin with `server`: it listens, hands out the files of static/ to whom `access` lets in, and has a WebSocket for each
page. `pages` are those that are open. What a `page` says are `messages`, with handlers in `page_conversation`, and for
two of the tabs in `workers_messages`, `game_messages` (a game of the user's) and `laboratory_messages`; what goes on
for a page shares a `context`: the `game_tree` on its board, `analysing`, `playing` and `reviewing`. All pages share one
engine, `shared_engine`.
"""
