"""Whose answer is taken, of all that machines report."""

from __future__ import annotations

from dataclasses import replace

import chess
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_vote import Voter as NaiveVoter
from naive_vote import naive_election

from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE
from psearch.remote.one_position.conductor import SameRoot, SameRootLines
from psearch.remote.one_position.machine_messages import MachineReport
from psearch.remote.one_position.machine_reports import info_of, report_of
from psearch.remote.one_position.machine_vote import Voter, elected

SCORES = st.one_of(st.integers(-60, 60), st.sampled_from([MATE - 5, 9 - MATE, 0]))


def said(machine: int, depth: int, score: int, move: str, line: int = 1, bound: int = BOUND_EXACT) -> MachineReport:
    return MachineReport(machine, depth, score, bound, (chess.Move.from_uci(move),), line=line)


def test_a_report_tells_of_the_mate_that_a_machine_has_found() -> None:
    """Each machine's score is worked out again where the answer is given."""
    for score in (MATE - 1, MATE - 5, 8 - MATE, 31):
        report = said(1, 9, score, "f1b5")
        assert report_of(info_of(report, chess.BLACK), 1) == report


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
        number: Voter(MachineReport(number, depth, score, bound, (chess.Move(move, move + 8),)), depth)
        for number, (move, score, depth, bound) in enumerate(votes)
    }
    winner = elected(voters)
    if not any(depth for _, _, depth, _ in votes):
        assert winner is None
    else:
        assert winner is not None and naive[winner] == naive[naive_election(naive)]
