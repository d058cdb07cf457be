"""Several machines in virtual time: the same each time, one of them as if alone, and an answer whatever is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import chess
import pytest

from psearch.core.chess.board.bridge import to_chess_move
from psearch.core.chess.chess_entries import EXCHANGE
from psearch.options import SearchOptions
from psearch.remote.one_position.virtual_machines import (
    FleetSample,
    Network,
    Trouble,
    VirtualMachines,
    exchanges_entries,
)
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import TICKS_PER_SECOND, Simulator

MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
MODES = ["root", "root+entries"]
NETWORK = Network().scaled(0.005)
SECONDS = 0.003


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels(VIRTUAL, EXCHANGE)


@pytest.fixture(scope="module")
def fleets() -> Iterator[dict[str, VirtualMachines]]:
    """Three machines of two workers in each mode."""
    made = {mode: VirtualMachines(3, 2, 1, exchanges_entries(mode), NETWORK) for mode in MODES}
    yield made
    for fleet in made.values():
        fleet.close()


def play(fleet: VirtualMachines, fen: str = MIDDLE_GAME, seconds: float = SECONDS, *troubles: Trouble) -> FleetSample:
    fleet.forget()
    return fleet.play(chess.Board(fen), seconds, troubles=troubles)


def assert_is_a_line(sample: FleetSample, fen: str) -> None:
    """Legal to its end."""
    assert sample.answer is not None and sample.answer.pv
    board = chess.Board(fen)
    for move in sample.answer.pv:
        assert move in board.legal_moves
        board.push(move)


@pytest.mark.parametrize("mode", MODES)
def test_twice_the_same(fleets: dict[str, VirtualMachines], mode: str) -> None:
    first = play(fleets[mode])
    play(fleets[mode], KIWIPETE)
    assert play(fleets[mode]) == first
    other = VirtualMachines(3, 2, 1, exchanges_entries(mode), NETWORK)
    assert play(other) == first
    other.close()


def test_a_seed_makes_other_machines() -> None:
    fleets = [VirtualMachines(2, 2, 1, exchanges_entries("root"), NETWORK, seed=seed) for seed in (1, 2)]
    one, two = (play(fleet) for fleet in fleets)
    alone = [[r for _, r in sample.reports if r.machine == 0] for sample in (one, two)]
    assert alone[0] == alone[1]
    assert one.reports != two.reports
    for fleet in fleets:
        fleet.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fen", [MIDDLE_GAME, KIWIPETE])
def test_one_machine_searches_as_if_there_were_no_others(mode: str, fen: str) -> None:
    fleet, simulator = VirtualMachines(1, 2, 1, exchanges_entries(mode), NETWORK), Simulator(2, 1, Costs())
    board = chess.Board(fen)
    for _ in range(3):  # with what is left of the moves before
        if not any(board.legal_moves):
            break
        here = fleet.play(board, SECONDS)
        there = simulator.play(board, SECONDS, SearchOptions())
        assert here.answer is not None
        assert (here.nodes, here.answer.score) == (there.nodes, there.score)
        assert here.answer.pv[0] == to_chess_move(there.bestmove, board)
        board.push(here.answer.pv[0])
    fleet.close()
    simulator.close()


@pytest.mark.parametrize("slices", [1, 7, 100])
def test_a_search_in_slices_is_the_search(slices: int) -> None:
    simulator = Simulator(3, 1, Costs())
    board = chess.Board(KIWIPETE)
    wanted = simulator.play(board, SECONDS, SearchOptions())
    simulator.forget()
    simulator.begin(board, SearchOptions(), SECONDS)
    end = round(SECONDS * TICKS_PER_SECOND)
    clocks = [end * number // slices for number in range(1, slices + 1)]
    assert not any(simulator.advance_to(clock) for clock in clocks[:-1])
    assert simulator.advance_to(2 * end)
    header = simulator.arena.header[0]
    assert int(simulator.arena.worker["nodes"].sum()) == wanted.nodes
    assert (int(header["score"]), int(header["best_move"])) == (wanted.score, wanted.bestmove)
    simulator.close()


def test_a_search_stops_when_it_is_told() -> None:
    simulator = Simulator(3, 1, Costs())
    simulator.begin(chess.Board(KIWIPETE), SearchOptions(), 1.0)
    clock = round(SECONDS * TICKS_PER_SECOND)
    assert clock <= simulator.stop_at(clock) < clock * 1.02
    assert simulator.advance_to(clock) and simulator.stop_at(clock) < clock * 1.02
    simulator.close()


@pytest.mark.parametrize("mode", MODES)
def test_all_machines_search_to_the_end(fleets: dict[str, VirtualMachines], mode: str) -> None:
    sample = play(fleets[mode])
    assert_is_a_line(sample, MIDDLE_GAME)
    assert sample.seconds == pytest.approx(SECONDS)
    alone = Simulator(2, 1, Costs())
    nodes = alone.play(chess.Board(MIDDLE_GAME), SECONDS, SearchOptions()).nodes
    assert 2 * nodes < sample.nodes < 3.5 * nodes
    assert (sample.sent > 0) == ("entries" in mode) == (sample.taken > 0)
    assert {report.machine for _, report in sample.reports} == {0, 1, 2}
    assert all(at <= 1.01 * SECONDS for at, _ in sample.reports)
    alone.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.99])
def test_the_answer_comes_when_machines_are_lost(fleets: dict[str, VirtualMachines], mode: str, at: float) -> None:
    lost = Trouble(1, at * SECONDS), Trouble(2, (at / 2 + 0.3) * SECONDS)
    sample = play(fleets[mode], KIWIPETE, SECONDS, *lost)
    assert_is_a_line(sample, KIWIPETE)
    assert sample.seconds == pytest.approx(SECONDS)
    assert play(fleets[mode], KIWIPETE, SECONDS, *lost) == sample
    assert play(fleets[mode], KIWIPETE).nodes > sample.nodes


@pytest.mark.parametrize("mode", MODES)
def test_a_silent_machine_is_not_waited_for(fleets: dict[str, VirtualMachines], mode: str) -> None:
    sample = play(fleets[mode], KIWIPETE, SECONDS, Trouble(1, SECONDS / 4, 2 * SECONDS))
    assert_is_a_line(sample, KIWIPETE)
    assert not [r for at, r in sample.reports if r.machine == 1 and at > SECONDS / 4 + NETWORK.latency / 1e9]


@pytest.mark.parametrize("mode", MODES)
def test_the_only_move_is_played_at_once(fleets: dict[str, VirtualMachines], mode: str) -> None:
    board = chess.Board("7k/8/5K2/8/8/8/8/6R1 b - - 0 1")
    assert board.legal_moves.count() == 1
    sample = fleets[mode].play(board, SECONDS)
    assert sample.answer is not None and sample.answer.pv[0] in board.legal_moves
    assert sample.seconds < SECONDS / 10


@pytest.mark.parametrize("mode", MODES)
def test_so_little_time_that_others_cannot_help(fleets: dict[str, VirtualMachines], mode: str) -> None:
    assert_is_a_line(play(fleets[mode], KIWIPETE, 30e-6), KIWIPETE)


def test_a_mate_is_found(fleets: dict[str, VirtualMachines]) -> None:
    for mode in MODES:
        sample = play(fleets[mode], "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1")
        assert sample.answer is not None and sample.answer.pv[0].uci() == "a1a8", mode


def test_messages_cost_what_they_are_said_to() -> None:
    network = Network(latency=1000.0, period=1e6, bytes_per_second=1e9)
    assert network.transfer(1000) == 10**6  # a microsecond
    assert network.room(2) == 10**6 // 16 and network.room(3) == network.room(2) // 2
    assert network.scaled(0.5) == replace(network, latency=500.0, period=5e5)
    assert replace(network, bytes_per_second=0.0).transfer(10**9) == 0


@pytest.mark.parametrize("text", ["", "x", "root+x", "root+entries+x", "root+", "tree", "entries"])
def test_modes_that_there_are_not(text: str) -> None:
    with pytest.raises(PsearchError):
        exchanges_entries(text)


def test_sixty_four_machines() -> None:
    fleet = VirtualMachines(64, 8, 1, exchanges_entries("root+entries"), NETWORK)
    sample: Any = play(fleet, MIDDLE_GAME, SECONDS / 10)
    assert_is_a_line(sample, MIDDLE_GAME)
    fleet.close()
