"""The state machine of a `go`: every transition, alone and from several threads."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import chess
import chess.engine
import pytest
from uci_client import Talk

from psearch import settings
from psearch.faces.uci.go import _WORDS, Go, GoCommand, State, parse_go
from psearch.faces.uci.resources import Resources
from psearch.faces.uci.turn import Turn
from psearch.faces.uci.uci_conversation import HELP, CurrentPosition, Uci
from psearch.faces.uci.uci_options import OPTIONS, OptionValues
from psearch.results import Info, PsearchError, Result
from psearch.searcher.notices import Notices
from psearch.strength import LEVELS, MAX_ELO, MIN_ELO, choose_line, node_limit, noise_cp

WAITING, SEARCHING, MAY_ANSWER, ANSWERED = State
ROUNDS = 300


def make(words: str, say: Callable[[str], None] = lambda line: None) -> Go:
    return Go(parse_go(words.split(), chess.Board(), print), say)


def test_the_clock_starts_when_it_is_told_to() -> None:
    go = make("movetime 100")
    assert go.control.asked_at is None
    time.sleep(0.02)
    before = time.perf_counter()
    assert go.start_clock() >= 0.02
    assert go.control.asked_at is not None and go.control.asked_at >= before


def test_a_rest_ends_with_a_stop_and_is_no_longer_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the search took is part of the rest, by a fake clock."""
    waits: list[float] = []
    go = make("wtime 60000")
    monkeypatch.setattr(type(go), "clock_ran_s", property(lambda go: 1.5))
    monkeypatch.setattr(go._changed, "wait_for", lambda is_over, wait_s: waits.append(wait_s) or is_over())
    go.rest(4.0)
    assert waits == [2.5]
    monkeypatch.undo()
    go.begin()
    resting = threading.Thread(target=go.rest, args=(1e6,))
    resting.start()
    go.stop()
    resting.join(60)
    assert not resting.is_alive()


@pytest.mark.parametrize(
    ("words", "elo", "rests"),
    [
        ("wtime 60000 btime 60000", 1500, True),
        ("movetime 2000", 1500, True),
        ("wtime 6000000 btime 6000000 movetime 300", 1500, True),
        ("wtime 60000 btime 60000", None, False),
        ("wtime 60000 btime 60000 ponder", 1500, False),
        ("infinite", 1500, False),
        ("depth 5", 1500, False),
    ],
)
def test_only_a_weaker_move_of_a_game_is_delayed(words: str, elo: int | None, rests: bool) -> None:
    values, said, waited = OptionValues(), list[str](), list[float]()
    for name, value in (
        ("HumanDelay", "true"),
        ("UCI_LimitStrength", str(elo is not None)),
        ("UCI_Elo", str(elo or 1500)),
    ):
        values.set(name, value)
    go = make(words, said.append)
    go.begin()
    go.stop()
    go.rest = waited.append  # type: ignore[method-assign]
    turn = Turn(go, values, False, Resources(Notices(said.append)), lambda error: said.append(str(error)))
    info = Info(1, 1, MATE_IN_ONE, "exact", 80, 0.1, [chess.Move.from_uci("e2e4")])
    assert turn._finish(lambda request: Result(info.pv[0], info, lines=[info]))
    assert said[-1] == "bestmove e2e4"
    assert len(waited) == rests
    assert all(0 < seconds <= (0.27 if "movetime 300" in words else 3) for seconds in waited)


def call(go: Go, name: str) -> None:
    if name == "answer":
        go.answer("bestmove e2e4")
    else:
        getattr(go, name)()


def at_once(*functions: Callable[[], object]) -> None:
    """Run all of them, each in a thread, begun together."""
    barrier = threading.Barrier(len(functions))

    def run(function: Callable[[], object]) -> None:
        barrier.wait(60)
        function()

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("words", "calls", "state"),
    [
        ("depth 3", "", WAITING),
        ("depth 3", "begin", MAY_ANSWER),
        ("depth 3", "begin answer", ANSWERED),
        ("depth 3", "begin stop", MAY_ANSWER),
        ("depth 3", "begin ponderhit", MAY_ANSWER),
        ("depth 3", "stop", WAITING),
        ("depth 3", "stop begin", MAY_ANSWER),
        ("infinite", "", WAITING),
        ("infinite", "begin", SEARCHING),
        ("infinite", "begin ponderhit", SEARCHING),  # nobody ponders
        ("infinite", "begin stop", MAY_ANSWER),
        ("infinite", "begin stop stop", MAY_ANSWER),
        ("infinite", "begin stop answer", ANSWERED),
        ("infinite", "stop", WAITING),
        ("infinite", "stop begin", MAY_ANSWER),
        ("ponder wtime 5", "begin", SEARCHING),
        ("ponder wtime 5", "begin ponderhit", MAY_ANSWER),
        ("ponder wtime 5", "begin stop", MAY_ANSWER),
        ("ponder wtime 5", "ponderhit", WAITING),
        ("ponder wtime 5", "ponderhit begin", MAY_ANSWER),
        ("ponder infinite", "begin ponderhit", SEARCHING),
        ("ponder infinite", "begin ponderhit stop", MAY_ANSWER),
        ("perft 3", "begin", MAY_ANSWER),
        ("perft 3 infinite", "begin", MAY_ANSWER),  # there is nothing to hold back
        ("perft 3", "begin answer", ANSWERED),
        ("depth 3", "begin answer answer stop ponderhit give_up", ANSWERED),
        *(
            (words, f"{calls} {last}".strip(), ANSWERED)
            for words in ("depth 3", "infinite", "ponder wtime 5", "perft 3")
            for calls in ("", "begin", "begin stop", "stop")
            for last in ("give_up", "give_up give_up", "give_up stop ponderhit")
        ),
    ],
)
def test_transitions(words: str, calls: str, state: State) -> None:
    said: list[str] = []
    go = make(words, said.append)
    for name in calls.split():
        call(go, name)
    assert go.state is state
    assert go.is_answered == (state is ANSWERED)
    assert go.is_under_way == (state in (SEARCHING, MAY_ANSWER))
    assert go.control.is_stopped == ("stop" in calls or "give_up" in calls)
    assert said == ["bestmove e2e4"] * ("answer" in calls)


def test_begin_says_whether_there_is_something_to_do() -> None:
    assert make("depth 3").begin()
    assert make("infinite").begin()
    go = make("ponder wtime 5")
    go.give_up()
    assert not go.begin()


def test_begin_is_called_once() -> None:
    go = make("infinite")
    go.begin()
    with pytest.raises(AssertionError, match="cannot become SEARCHING when it is SEARCHING"):
        go.begin()


def test_no_answer_before_the_beginning() -> None:
    for words in ("depth 3", "infinite"):
        go = make(words)
        with pytest.raises(AssertionError, match="before"):
            go.answer("bestmove e2e4")
        assert go.state is WAITING


def test_pondering_ends_with_a_stop_a_ponderhit_or_the_search() -> None:
    for calls, is_pondering in (("", True), ("stop", False), ("ponderhit", False), ("give_up", False)):
        for first in ("", "begin"):
            go = make("ponder wtime 5")
            for name in f"{first} {calls}".split():
                call(go, name)
            assert go.is_pondering == is_pondering
    assert not make("infinite").is_pondering
    go = make("ponder infinite")
    go.ponderhit()
    assert go.is_pondering


def test_what_the_search_hears() -> None:
    go = make("ponder wtime 5")
    go.ponderhit()
    assert go.control.take_ponderhit() and not go.control.is_stopped
    began = go.asked_at
    go.ponderhit()  # again: the clock does not begin anew
    assert not go.control.take_ponderhit() and go.asked_at == began
    go = make("wtime 5")
    go.ponderhit()
    assert not go.control.take_ponderhit()


def test_nothing_is_said_after_the_answer() -> None:
    said: list[str] = []
    go = make("depth 3", said.append)
    go.say("info string book move e2e4")
    go.begin()
    go.say("info depth 1")
    go.answer("bestmove e2e4")
    go.say("info depth 2")
    go.answer("bestmove d2d4")
    assert said == ["info string book move e2e4", "info depth 1", "bestmove e2e4"]


def test_the_answer_goes_out_when_the_go_is_answered() -> None:
    """A client may send the next `go` as soon as it sees the answer."""
    states: list[State] = []
    go = make("depth 3", lambda line: states.append(go.state))
    go.begin()
    go.say("info depth 1")
    go.answer("bestmove e2e4")
    assert states == [MAY_ANSWER, ANSWERED]


@pytest.mark.parametrize(
    ("words", "release", "answers"),
    [
        ("infinite", "stop", 1),
        ("ponder wtime 5", "stop", 1),
        ("ponder wtime 5", "ponderhit", 1),
        ("infinite", "give_up", 0),
        ("ponder wtime 5", "give_up", 0),
    ],
)
def test_an_answer_is_held_back(words: str, release: str, answers: int) -> None:
    said: list[str] = []
    go = make(words, said.append)
    go.begin()
    thread = threading.Thread(target=go.answer, args=("bestmove e2e4",))
    thread.start()
    thread.join(0.05)
    assert thread.is_alive() and said == [] and go.state is SEARCHING
    go.say("info depth 1")  # while it is held back
    call(go, release)
    thread.join(60)
    assert not thread.is_alive()
    assert said == ["info depth 1", *["bestmove e2e4"] * answers]
    assert go.state is ANSWERED


# Several threads


def test_one_answer_of_many_is_said() -> None:
    for _ in range(ROUNDS):
        said: list[str] = []
        go = make("depth 3", said.append)
        go.begin()
        at_once(*(partial(go.answer, f"bestmove {number}") for number in range(4)))
        assert len(said) == 1
        assert go.state is ANSWERED


@pytest.mark.parametrize(("words", "release"), [("infinite", "stop"), ("ponder wtime 5", "ponderhit")])
def test_a_release_is_not_lost(words: str, release: str) -> None:
    """Whether it comes before the search begins, while it does, or while somebody waits to answer."""

    def search(go: Go) -> None:
        assert go.begin()
        go.answer("bestmove e2e4")

    for _ in range(ROUNDS):
        said: list[str] = []
        go = make(words, said.append)
        at_once(partial(search, go), partial(call, go, release))
        assert said == ["bestmove e2e4"]


def test_an_answer_or_a_surrender() -> None:
    """Given up while it is begun and answered: it is over, and at most one answer was said."""

    def search(go: Go) -> None:
        if go.begin():
            go.answer("bestmove e2e4")

    for _ in range(ROUNDS):
        said: list[str] = []
        go = make("depth 3", said.append)
        at_once(partial(search, go), go.give_up, go.stop)
        assert go.state is ANSWERED and go.control.is_stopped
        assert said in ([], ["bestmove e2e4"])


def test_the_answer_is_the_last_line() -> None:
    def report(go: Go) -> None:
        for number in range(200):
            go.say(f"info depth {number}")

    def answer(go: Go) -> None:
        time.sleep(0.0005)
        go.stop()
        go.answer("bestmove e2e4")

    for _ in range(20):
        said: list[str] = []
        go = make("infinite", said.append)
        go.begin()
        at_once(partial(report, go), partial(report, go), partial(answer, go))
        assert said[-1] == "bestmove e2e4" and said.count("bestmove e2e4") == 1


def test_a_stop_is_heard_while_a_line_waits_for_its_reader() -> None:
    is_saying, may_go_on = threading.Event(), threading.Event()
    said: list[str] = []

    def slow_reader(line: str) -> None:
        is_saying.set()
        assert may_go_on.wait(60)
        said.append(line)

    go = make("infinite", slow_reader)
    go.begin()
    thread = threading.Thread(target=go.say, args=("info depth 1",))
    thread.start()
    assert is_saying.wait(60)
    go.stop()  # would wait for ever
    assert go.state is MAY_ANSWER and said == []
    answering = threading.Thread(target=go.answer, args=("bestmove e2e4",))
    answering.start()
    answering.join(0.05)
    assert answering.is_alive()  # behind the line that came before
    may_go_on.set()
    thread.join(60)
    answering.join(60)
    assert said == ["info depth 1", "bestmove e2e4"]


def test_moves_tell_what_they_cost_beyond_their_time() -> None:
    """The clock's losses between two moves of a game count; a ponder search that is not played does not."""
    with Talk() as talk:
        talk.ready()
        resources = talk.uci._player._resources
        talk.go("wtime 1000 btime 1000", chess.STARTING_FEN)
        meter = resources.lag
        talk.go("wtime 400 btime 400", chess.STARTING_FEN)
        assert (meter._sum_s, meter._moves) == (0.05, 1)  # no more at once
        talk.go("movetime 1", chess.STARTING_FEN)
        talk.go("wtime 300 btime 300", chess.STARTING_FEN)
        assert meter._moves == 1  # nobody knows how long the clock ran
        talk.send("go ponder wtime 200 btime 200")
        talk.send("stop")
        talk.until("bestmove")
        assert meter._moves == 2
        talk.go("wtime 200 btime 200", chess.STARTING_FEN)
        assert meter._moves == 2
        talk.send("go ponder wtime 100 btime 100")
        talk.send("ponderhit")
        talk.until("bestmove")
        talk.go("wtime 1 btime 1", chess.STARTING_FEN)
        assert meter._moves == 4 and 0.1 <= meter._sum_s <= 0.2
        talk.go("wtime 1000 btime 1000", chess.STARTING_FEN)
        assert (meter._sum_s, meter._moves) == (0.0, 0)
        talk.send("ucinewgame")
        talk.ready()
        assert resources.lag is not meter


def test_go_words() -> None:
    warnings: list[str] = []
    board = chess.Board()

    def parse(words: str) -> GoCommand:
        return parse_go(words.split(), board, warnings.append)

    assert parse("").infinite
    assert parse("winc 5 movestogo 3").infinite  # no limit among them
    assert not parse("depth 3").infinite
    assert parse("infinite wtime 5").infinite
    assert not parse("ponder").infinite and parse("ponder").ponder
    assert parse("wtime -5").wtime == 0
    assert parse("depth 0").depth == 1
    assert parse("movestogo 0 wtime 1").movestogo is parse("movestogo -3 wtime 1").movestogo is None
    assert parse("wtime 5").own_ms == (5, 0)
    assert parse("btime 7 binc 2").own_ms == (7, 2)  # white to move, only black's clock known
    assert parse("wtime 5 btime 7 binc 2").own_ms == (5, 0)
    assert warnings == []
    assert parse("depth x nodes 5 quickly searchmoves e2e5").nodes == 5
    assert warnings == [
        "go depth: a whole number is missing",
        "go: 'quickly' is not known and was ignored",
        "go searchmoves: 'e2e5' is not a legal move and was ignored",
    ]


def test_a_number_that_is_missing_eats_no_word() -> None:
    warnings: list[str] = []
    command = parse_go(["depth", "nodes", "5", "movetime"], chess.Board(), warnings.append)
    assert (command.depth, command.nodes, command.movetime) == (None, 5, None)
    assert warnings == ["go depth: a whole number is missing", "go movetime: a whole number is missing"]


def test_the_initial_position_until_something_is_set_up() -> None:
    assert CurrentPosition().board(chess960=False).fen() == chess.STARTING_FEN


def test_a_position_that_goes_on_keeps_the_history() -> None:
    position = CurrentPosition()
    for words in ("startpos moves g1f3", "startpos moves g1f3 g8f6 f3g1 f6g8", "startpos moves g1f3 g8f6"):
        position.set_up(words.split(), chess960=False)
        assert [move.uci() for move in position.board(chess960=False).move_stack] == words.split()[2:]
    position.set_up(f"fen {chess.STARTING_FEN} moves e2e4".split(), chess960=False)
    assert [move.uci() for move in position.board(chess960=False).move_stack] == ["e2e4"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "startpos or fen is missing"),
        ("moves e2e4", "startpos or fen is missing"),
        ("startpos moves e2e4 e2e4", "move 2: 'e2e4' is not a legal move"),
        ("startpos moves d2d4 d7d5 0000", "move 3: '0000' is not a legal move"),
        ("startpos e2e4", "startpos must stand alone"),
        ("fen 8/8 w - -", "bad FEN"),
    ],
)
def test_after_a_bad_position_there_is_none(words: str, reason: str) -> None:
    position = CurrentPosition()
    position.set_up(["startpos", "moves", "d2d4"], chess960=False)
    with pytest.raises(PsearchError, match=reason):
        position.set_up(words.split(), chess960=False)
    assert not position.board(chess960=False).occupied
    position.set_up(["startpos", "moves", "d2d4", "d7d5"], chess960=False)
    assert position.board(chess960=False).ply() == 2


@pytest.mark.parametrize(
    ("chess960", "fen", "word", "move"),
    [
        (False, "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1h1", "e1g1"),
        (True, "r3k2r/8/8/8/8/8/8/R3K2R w HAha -", "e1g1", "e1h1"),
        (False, "r3k2r/8/8/8/8/8/8/R3K2R w HAha -", "O-O-O", "e1c1"),
        (False, "8/P6k/8/8/8/8/8/K7 w", "a8=Q", "a7a8q"),
    ],
)
def test_moves_are_understood_in_every_notation(chess960: bool, fen: str, word: str, move: str) -> None:
    """File letters do not make it Chess960 where the option is off: a GUI of standard chess expects e1g1."""
    position = CurrentPosition()
    position.set_up(f"fen {fen} moves {word}".split(), chess960)
    board = position.board(chess960)
    assert board.uci(board.pop()) == move


def test_a_board_is_a_copy() -> None:
    position = CurrentPosition()
    position.board(chess960=False).push_uci("e2e4")
    assert position.board(chess960=True).fen() == chess.STARTING_FEN
    assert position.board(chess960=True).chess960
    assert not position.board(chess960=False).chess960


def test_options_declare_what_they_take() -> None:
    values = OptionValues()
    for option in OPTIONS:
        assert option.declaration().startswith(f"option name {option.name} type {option.kind}")
        if option.kind == "spin":
            for good in (option.low, option.high):
                values.set(option.name, str(good))
                assert values[option.name] == good
            for bad in (option.low - 1, option.high + 1, "", "1.5"):
                with pytest.raises(ValueError, match=option.name):
                    values.set(option.name, str(bad))
            assert values[option.name] == option.high
        elif option.kind == "combo":
            for choice in option.choices:
                values.set(option.name, choice.upper())
                assert values[option.name] == choice
        elif option.kind == "check":
            values.set(option.name, "true")
            assert values[option.name]
            values.set(option.name, "false")
            assert not values[option.name]
    copy = values.copy()
    values.set("Hash", "77")
    assert copy["Hash"] != 77


def test_where_files_are_forbidden_a_policy_is_one_of_the_package_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that an installed package has declared is refused, too: its import is code as well."""
    values = OptionValues(files=False)
    values.set("Policy", "ybw")
    with pytest.raises(ValueError, match="Policy is not available: PSEARCH_NO_FILES forbids all files"):
        values.set("Policy", "/home/me/my_policy.py")
    monkeypatch.setattr(settings, "is_own_policy", lambda name: name == "installed")
    with pytest.raises(ValueError, match="Policy is not available"):
        values.set("Policy", "installed")
    assert values["Policy"] == "ybw"


def test_it_names_every_command_and_every_word_of_go() -> None:
    uci = Uci(print)
    said = HELP.replace(",", " ").split()
    protocol = {*uci._commands, *uci._own_commands} - {"uci", "register", "ponderhit", "help"}
    assert protocol <= set(said)
    assert set(_WORDS) <= set(said)


def test_it_is_printed_at_once() -> None:
    said: list[str] = []
    Uci(said.append).run(["help"])
    assert said == [HELP]


MATE_IN_ONE, MATE_IN_TWO = (chess.engine.PovScore(chess.engine.Mate(moves), chess.WHITE) for moves in (1, 2))


def line(number: int, score_cp: int) -> Info:
    return Info(
        7, 11, chess.engine.PovScore(chess.engine.Cp(score_cp), chess.WHITE), "exact", 1000, 0.25, multipv=number
    )


def test_levels_are_ordered() -> None:
    steps = range(MIN_ELO, MAX_ELO + 1, 50)
    limits = [node_limit(elo) for elo in steps]
    assert limits == sorted(set(limits))
    noises = [noise_cp(elo) for elo in steps]
    assert noises == sorted(noises, reverse=True)
    noisy = [noise for noise in noises if noise > 0]
    assert len(noisy) == len(set(noisy)) and noises[-1] == 0
    for level in LEVELS:
        assert (node_limit(level.elo), noise_cp(level.elo)) == (level.nodes, level.noise_cp)


def test_weak_levels_choose_worse_moves_now_and_then() -> None:
    lines = [line(number, score) for number, score in enumerate((40, -60, -160, -2000), start=1)]
    counts = {}
    for elo in (MIN_ELO, (MIN_ELO + MAX_ELO) // 2, MAX_ELO):
        dice = random.Random(elo)
        chosen = [choose_line(lines, elo, dice).multipv for _ in range(2000)]
        counts[elo] = [chosen.count(number) for number in (1, 2, 3, 4)]
        assert counts[elo] == sorted(counts[elo], reverse=True)
        assert counts[elo][3] <= (200 if elo == MIN_ELO else 2)  # only a beginner throws two queens away
    assert counts[MAX_ELO] == [2000, 0, 0, 0]
    assert counts[MIN_ELO][0] < counts[(MIN_ELO + MAX_ELO) // 2][0] < 2000


def test_a_mate_that_is_seen_is_played() -> None:
    lines = [replace(line(1, 0), score=MATE_IN_ONE), replace(line(2, 0), score=MATE_IN_TWO)]
    dice = random.Random(1)
    assert {choose_line(lines, MIN_ELO, dice).multipv for _ in range(50)} == {1}
