"""What a page may say about its board, the engine, a game, a review. Each is a line or two: the parts know the rest."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable

import chess

from psearch.faces.uci.strength import MAX_ELO, MIN_ELO
from psearch.faces.web.analysing import PAGE_SETTINGS
from psearch.faces.web.game_tree import GameTree, games_in, move_in_words, move_of
from psearch.faces.web.messages import Payload, handles, setting_facts, text_of, texts_of, whole_of
from psearch.faces.web.page import Page, Shown
from psearch.results import PsearchError
from psearch.version import __version__

_POSITIONS_960 = 960
_LONGEST_PGN = 500_000
_LONGEST_FEN = 200
_LONGEST_LINE = 100
"""moves"""
_MOST_NUMBER = 2**31


@handles("page.facts")
async def tell_facts(page: Page, payload: Payload) -> None:
    """Tell what the page needs to know for its menus."""
    page.send(
        "page.facts",
        {
            "version": __version__,
            "settings": [setting_facts(option) for option in PAGE_SETTINGS],
            "elo": [MIN_ELO, MAX_ELO],
        },
    )


# -- the board ---------------------------------------------------------------------------------------------------------


@handles("board.move")
async def move(page: Page, payload: Payload) -> None:
    """Play the move of a piece: `from`, `to`, `promotion` (q, r, b, n or nothing), in the position `at`."""
    if whole_of(payload, "at", 0, _MOST_NUMBER) != page.tree.number:
        page.tell_position()  # it was meant for another position
        return
    words = [text_of(payload, name, 2) for name in ("from", "to", "promotion")]
    try:
        _play(page, move_of(page.tree.board(), *words))
    except PsearchError:
        page.tell_position()  # the page has moved the piece already
        raise


@handles("board.say")
async def say(page: Page, payload: Payload) -> None:
    """Play a move that was typed: `text`."""
    _play(page, move_in_words(page.tree.board(), text_of(payload, "text", 20)))


@handles("board.go")
async def go(page: Page, payload: Payload) -> None:
    """Look at another position of the game: `id`."""
    page.tree.go(whole_of(payload, "id", 0, _MOST_NUMBER))
    page.tell_position()
    page.analyst.follow()


@handles("board.line")
async def line(page: Page, payload: Payload) -> None:
    """Add a line to the game and go to its end: `moves` in UCI notation, from what stands on the board."""
    page.match.check_may_change()
    for word in texts_of(payload, "moves", _LONGEST_LINE):
        page.tree.play(move_of(page.tree.board(), word[:2], word[2:4], word[4:]))
    page.tell_game()
    page.analyst.follow()


@handles("board.peek")
async def peek(page: Page, payload: Payload) -> None:
    """Tell where a line leads: `moves` in UCI notation, from the position `at`."""
    board = page.board
    moves = texts_of(payload, "moves", _LONGEST_LINE)
    if whole_of(payload, "at", 0, _MOST_NUMBER) == page.tree.number:
        for word in moves:
            board.push(move_of(board, word[:2], word[2:4], word[4:]))
        page.send("board.peeked", {"fen": board.fen(), "last": moves[-1:]})


@handles("board.fen")
async def fen(page: Page, payload: Payload) -> None:
    """Set up another position: `text`."""
    page.match.check_may_change()
    _set_tree(page, GameTree.of_fen(text_of(payload, "text", _LONGEST_FEN)))


@handles("board.pgn")
async def pgn(page: Page, payload: Payload) -> None:
    """Read other games: `text`, of which the first is shown; there the position of number `here`, if it is given."""
    page.match.check_may_change()
    here = whole_of(payload, "here", 0, _MOST_NUMBER) if "here" in payload else 0
    # in a thread: long games take seconds, and others use the loop
    found = await asyncio.to_thread(games_in, text_of(payload, "text", _LONGEST_PGN))
    await _open_game(page, Shown(GameTree(), found, 0, {}, {}), here)


@handles("board.pick")
async def pick(page: Page, payload: Payload) -> None:
    """Show another game of the PGN that was given last: its `number`, from 0."""
    page.match.check_may_change()
    number = whole_of(payload, "number", 0, _MOST_NUMBER)
    if number >= len(page.games):
        raise PsearchError("there is no such game")
    await _open_game(page, Shown(GameTree(), page.games, number, page.opened, {}))


@handles("board.chess960")
async def chess960(page: Page, payload: Payload) -> None:
    """Set up a first position of Chess960: its `number`, or any."""
    page.match.check_may_change()
    if payload.get("number") is None:
        number = random.randrange(_POSITIONS_960)
    else:
        number = whole_of(payload, "number", 0, _POSITIONS_960 - 1)
    _set_tree(page, GameTree.of_board(chess.Board.from_chess960_pos(number)))


@handles("board.start")
async def start(page: Page, payload: Payload) -> None:
    """Set up the first position of chess."""
    page.match.check_may_change()
    _set_tree(page, GameTree())


@handles("board.remove")
async def remove(page: Page, payload: Payload) -> None:
    """Take away a move and what comes after it: `id`."""
    page.match.check_may_change()
    before = page.tree.copy()
    page.tree.remove(whole_of(payload, "id", 0, _MOST_NUMBER))
    page.keep(before)
    page.tell_game()
    page.analyst.follow()


@handles("board.promote")
async def promote(page: Page, payload: Payload) -> None:
    """Make the moves up to this one the main line: `id`."""
    page.match.check_may_change()
    page.tree.promote(whole_of(payload, "id", 0, _MOST_NUMBER))
    page.tell_game()


def _play(page: Page, found: chess.Move) -> None:
    """A legal move on the board: of the game that is played, or to look at."""
    if page.match.is_running:
        page.match.take_move(found)
        return
    page.tree.play(found)
    page.tell_game()
    page.analyst.follow()


async def _open_game(page: Page, found: Shown, here: int = 0) -> None:
    """Show the game of a number, as it was left if it was looked at before."""
    problem = ""
    if found.number in found.opened:
        tree = found.opened[found.number]
    else:
        tree, problem = await asyncio.to_thread(GameTree.of_pgn, found.games[found.number].text)
        with contextlib.suppress(PsearchError):  # a page may know of a move that its PGN has not yet
            tree.go(here)
    page.match.check_may_change()
    page.keep()
    page.put(found._replace(tree=tree, opened={**found.opened, found.number: tree}), opened=True)
    if problem:
        page.send("board.error", {"text": problem})


def _set_tree(page: Page, tree: GameTree) -> None:
    page.keep()
    page.put(Shown(tree, [], 0, {}, {}))


# -- the engine --------------------------------------------------------------------------------------------------------


@handles("analysis.start")
async def start_analysis(page: Page, payload: Payload) -> None:
    """Search what stands on the board."""
    page.match.check_may_change()
    page.analyst.start()


@handles("analysis.configure")
async def configure_analysis(page: Page, payload: Payload) -> None:
    """Set how to search: `multipv`, and every setting that `page.facts` has."""
    page.analyst.configure(payload)


@handles("engine.configure")
async def configure_engine(page: Page, payload: Payload) -> None:
    """Start other workers, for all pages: `threads`, `hash` in MiB."""
    bounds = page.shared_engine.bounds
    threads, hash_mb = whole_of(payload, "threads", 1, bounds.threads), whole_of(payload, "hash", 1, bounds.hash_mb)
    page.begin("engine", page.shared_engine.configure(threads, hash_mb))


# -- a game, a review --------------------------------------------------------------------------------------------------


@handles("play.start")
async def start_game(page: Page, payload: Payload) -> None:
    """Start a game: `color` (white, black, random), `elo` or null, `clock` in s or null, `increment`, `movetime`,
    `fromHere`."""
    page.match.start(payload)
    page.analyst.stop("a game is being played")
    page.review.change({})


@handles("play.back")
async def take_back(page: Page, payload: Payload) -> None:
    """Undo one's last move."""
    page.match.take_back()
    page.analyst.stop("a game is being played")
    page.review.stop()


@handles("review.start")
async def start_review(page: Page, payload: Payload) -> None:
    """Analyse the game: `kind` (time, nodes, depth) and `amount` for each position."""
    page.match.check_may_change()
    page.review.start(payload)


PLAIN: dict[str, Callable[[Page], object]] = {
    # put on the board what was there before another game took its place, or moves were taken away; undo that
    "board.undo": lambda page: page.step(back=True),
    "board.redo": lambda page: page.step(back=False),
    # the position as FEN, the game as PGN
    "board.export": lambda page: page.send("board.exported", page.tree.export()),
    "analysis.stop": lambda page: page.analyst.stop(),
    "engine.forget": lambda page: page.begin("engine", page.shared_engine.forget()),
    "play.resign": lambda page: page.match.resign(),
    "review.stop": lambda page: page.review.stop(),
}
"""Messages without a payload, and what each does."""


def _declare(type: str, act: Callable[[Page], object]) -> None:
    @handles(type)
    async def handle(page: Page, payload: Payload) -> None:
        act(page)


for _type, _act in PLAIN.items():
    _declare(_type, _act)
