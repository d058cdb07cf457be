"""The rules of chess: positions, legal moves, checks and draws.

Begin with `position` (making moves, incremental updates) and `movegen` (legal moves, perft). `attacks` has helpers on
squares and looks up attacks, with `magics` on processors without pext; `checks` finds checks and mates in one, `draws`
finds draws; `bridge` converts python-chess's boards and moves.
"""
