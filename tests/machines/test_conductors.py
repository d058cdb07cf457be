"""Who searches what, and whose answer is taken: whatever is reported in whatever order, and whoever is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_vote import Voter as NaiveVoter
from naive_vote import naive_election

from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE
from psearch.machines.conductor import Conductor, SameRoot, SameRootLines
from psearch.machines.messages import Job, Report
from psearch.machines.tree import Tree
from psearch.machines.vote import Voter, elected

FEN = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
ENDING = "8/8/8/8/4k3/8/R7/4K3 w - - 0 1"
SCORES = st.one_of(st.integers(-60, 60), st.sampled_from([MATE - 5, 9 - MATE, 0]))
KINDS = st.sampled_from(["root", "tree", "pgpp"])


def conductor(kind: str, board: chess.Board) -> Conductor:
    return SameRoot() if kind == "root" else Tree(board, floors=kind == "tree")


class Machines:
    """So many that do what they are told, and are believed to search."""

    def __init__(self, kind: str, board: chess.Board, count: int) -> None:
        self.board = board
        self.conductor = conductor(kind, board)
        self.there = set(range(count))
        self.jobs: dict[int, Job] = {}
        self.told: dict[int, Job] = {}
        """by number"""
        self.take(self.conductor.begin(range(count)))
        assert set(self.jobs) == self.there

    def take(self, jobs: Mapping[int, Job]) -> None:
        for machine, job in jobs.items():
            assert machine in self.there
            board = self.at(job)
            legal = set(board.legal_moves)
            assert legal and set(job.only or legal) <= legal and job.only != ()
            before = self.told.get(job.number)
            if before is not None:
                assert (before.path, before.only) == (job.path, job.only) == self.key(self.jobs[machine])
            self.jobs[machine] = self.told[job.number] = job

    def key(self, job: Job) -> tuple[object, object]:
        return job.path, job.only

    def at(self, job: Job) -> chess.Board:
        board = self.board.copy()
        for move in job.path:
            assert move in board.legal_moves
            board.push(move)
        return board

    def line(self, job: Job, draw: st.DrawFn, length: int) -> tuple[chess.Move, ...]:
        board = self.at(job)
        line: list[chess.Move] = []
        while len(line) < length:
            legal = sorted(board.legal_moves, key=str) if line else list(job.only or sorted(board.legal_moves, key=str))
            if not legal:
                break
            line.append(draw(st.sampled_from(legal)))
            board.push(line[-1])
        return tuple(line)

    def check_answer(self) -> None:
        answer = self.conductor.answer()
        if answer is None:
            return
        board = self.board.copy()
        assert answer.pv
        for move in answer.pv:
            assert move in board.legal_moves
            board.push(move)


@settings(max_examples=60, deadline=None)
@given(st.data(), KINDS, st.integers(1, 6), st.sampled_from([FEN, ENDING]))
def test_any_order_of_reports_and_losses(data: st.DataObject, kind: str, count: int, fen: str) -> None:
    machines = Machines(kind, chess.Board(fen), count)
    heard = False
    for _ in range(data.draw(st.integers(1, 25))):
        machine = data.draw(st.sampled_from(sorted(machines.there)))
        if machine and data.draw(st.integers(0, 5)) == 0:
            machines.there.remove(machine)
            machines.jobs.pop(machine)
            machines.take(machines.conductor.lost(machine))
        else:
            job = machines.jobs[machine]
            if data.draw(st.integers(0, 5)) == 0:  # of a job that it was at before
                job = machines.told[data.draw(st.sampled_from(sorted(machines.told)))]
            pv = machines.line(job, data.draw, data.draw(st.integers(1, 5)))
            bound = data.draw(st.sampled_from([BOUND_EXACT, BOUND_EXACT, BOUND_LOWER, BOUND_UPPER]))
            report = Report(machine, job.number, data.draw(st.integers(1, 12)), data.draw(SCORES), bound, pv)
            heard |= (
                job.number == machines.jobs[machine].number
                and job.path == ()
                and job.only is None
                and bound == BOUND_EXACT
                and machine == 0
            )
            machines.take(machines.conductor.report(report))
        machines.check_answer()
    if heard:
        assert machines.conductor.answer() is not None


def first_report(machines: Machines, *moves: str, score: int = 20) -> None:
    pv = tuple(map(chess.Move.from_uci, moves))
    machines.take(machines.conductor.report(Report(0, machines.jobs[0].number, 6, score, BOUND_EXACT, pv)))


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
def test_the_parts_are_the_whole(count: int) -> None:
    """At every position that is divided: the best move, and each other one with one machine."""
    board = chess.Board(FEN)
    machines = Machines("tree", board, count)
    first_report(machines, "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7")
    parts = {(job.path, job.only) for job in machines.jobs.values()}
    assert len(parts) == count
    for path in {job.path for job in machines.jobs.values() if job.only}:
        rest = [move for job in machines.jobs.values() if job.path == path for move in job.only or ()]
        legal = set(machines.at(Job(0, path)).legal_moves)
        assert len(rest) == len(set(rest)) == len(legal) - 1
        best = (legal - set(rest)).pop()
        assert any(job.path[: len(path) + 1] == (*path, best) for job in machines.jobs.values())
    assert {job.floor for job in machines.jobs.values() if job.only} <= {20, -20}


def test_a_better_move_becomes_the_line() -> None:
    machines = Machines("tree", chess.Board(FEN), 2)
    first_report(machines, "f1b5", "a7a6")
    (scout,) = (machine for machine, job in machines.jobs.items() if job.only)
    job = machines.jobs[scout]
    pv = tuple(map(chess.Move.from_uci, ("d2d4", "e5d4", "f3d4")))
    # not from so far behind
    machines.take(machines.conductor.report(Report(scout, job.number, 2, 55, BOUND_EXACT, pv)))
    answer = machines.conductor.answer()
    assert answer is not None and answer.pv[0].uci() == "f1b5"
    machines.take(machines.conductor.report(Report(scout, job.number, 7, 55, BOUND_EXACT, pv)))
    answer = machines.conductor.answer()
    assert answer is not None and (answer.pv, answer.score, answer.machine) == (pv, 55, scout)
    assert sorted(len(job.path) for job in machines.jobs.values()) == [0, 1]
    assert machines.jobs[scout].path == pv[:1], "who has found it goes on with it"
    (rest,) = (job for job in machines.jobs.values() if job.only)
    assert rest.floor == 55 and chess.Move.from_uci("f1b5") in (rest.only or ())


def test_a_floor_follows_the_line() -> None:
    machines = Machines("tree", chess.Board(FEN), 2)
    first_report(machines, "f1b5", "a7a6")
    (leader,) = (machine for machine, job in machines.jobs.items() if not job.only)
    (scout,) = (machine for machine, job in machines.jobs.items() if job.only)
    pv = (chess.Move.from_uci("a7a6"), chess.Move.from_uci("b5a4"))
    number = machines.jobs[scout].number
    machines.take(machines.conductor.report(Report(leader, machines.jobs[leader].number, 6, -90, BOUND_EXACT, pv)))
    assert (machines.jobs[scout].number, machines.jobs[scout].floor) == (number, 90)


def test_what_a_lost_machine_had_goes_to_another() -> None:
    machines = Machines("tree", chess.Board(FEN), 4)
    first_report(machines, "f1b5", "a7a6", "b5a4")
    machines.there.remove(3)
    machines.jobs.pop(3)
    machines.take(machines.conductor.lost(3))
    rest = [move for job in machines.jobs.values() if job.path == () for move in job.only or ()]
    assert len(rest) == chess.Board(FEN).legal_moves.count() - 1


def said(machine: int, depth: int, score: int, move: str, line: int = 1, bound: int = BOUND_EXACT) -> Report:
    return Report(machine, machine, depth, score, bound, (chess.Move.from_uci(move),), line=line)


def test_who_has_finished_the_depth_that_was_wanted_has_the_answer() -> None:
    deep, better = said(0, 8, 10, "f1b5"), said(1, 7, 500, "d2d4")
    for depth, winner in ((None, 1), (8, 0), (9, 1)):
        root = SameRoot(depth)
        for report in (deep, better, replace(deep, depth=9, bound=BOUND_UPPER, score=-900)):
            root.report(report)
        answer = root.answer()
        assert answer is not None and answer.machine == winner
        assert answer.lines == ((deep, better)[winner],)


def test_who_is_far_behind_does_not_vote() -> None:
    root = SameRoot()
    first, late = said(0, 12, 10, "f1b5"), said(1, 9, 500, "d2d4")
    for report in (first, late):
        root.report(report)
    answer = root.answer()
    assert answer is not None and answer.machine == 0
    root.report(replace(late, depth=10))
    answer = root.answer()
    assert answer is not None and answer.machine == 1
    root.report(said(2, 3, MATE - 5, "f3e5"))
    answer = root.answer()
    assert answer is not None and answer.machine == 2, "a mate is one at any depth"


def test_of_several_lines_those_of_one_machine() -> None:
    conductor = SameRootLines(2)
    assert set(conductor.begin(range(3))) == {0, 1, 2}
    lines = [said(machine, 5, 30 - machine, "f1b5") for machine in range(2)]
    lines += [said(machine, 5, 20 - machine, "d2d4", 2) for machine in range(2)]
    conductor.report(lines[0])
    assert conductor.answer() is None, "half a depth is none"
    for report in lines[1:]:
        conductor.report(report)
    answer = conductor.answer()
    assert answer is not None and (answer.machine, answer.lines) == (0, (lines[0], lines[2]))
    # a deeper one counts when it is whole
    conductor.report(said(1, 6, 90, "d2d4"))
    conductor.report(said(1, 6, 80, "d2d4", 2, BOUND_LOWER))
    assert conductor.answer() == answer
    conductor.report(said(1, 6, 40, "f1b5", 2))
    deeper = conductor.answer()
    assert deeper is not None and (deeper.machine, deeper.depth, deeper.score) == (1, 6, 90)
    assert conductor.lost(1) == {} and conductor.answer() == deeper


VOTES = st.lists(
    st.tuples(st.integers(0, 3), SCORES, st.integers(0, 9), st.sampled_from([BOUND_EXACT, BOUND_LOWER, BOUND_UPPER])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(VOTES)
def test_the_vote_is_that_of_workers(votes: list[tuple[int, int, int, int]]) -> None:
    naive = [NaiveVoter(*vote) for vote in votes]
    voters = {
        number: Voter(Report(number, 0, depth, score, bound, (chess.Move(move, move + 8),)), depth)
        for number, (move, score, depth, bound) in enumerate(votes)
    }
    winner = elected(voters)
    if not any(depth for _, _, depth, _ in votes):
        assert winner is None
    else:
        assert winner is not None and naive[winner] == naive[naive_election(naive)]
