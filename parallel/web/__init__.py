"""`psearch serve`: a page on this machine that shows a search (docs/guides/web.md). Everything goes through
`psearch.AsyncEngine` and `psearch.analyse_many`; there is no chess engine in here.

Begin with `handlers`: what a message of the page runs, and what a page is to the code behind it. `payloads` checks what
messages say.
"""
