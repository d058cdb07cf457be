"""Several machines in virtual time: each a `Simulator` of its own, and a network between them.

What happens on the network happens in the order of virtual time: a machine begins, reports, sends a parcel, gets one,
is lost. Between such moments the machines know nothing of each other, so each is driven only as far as the next moment
that is its own. Everything is in ticks, and comes out the same each time.

Machine 0 is the one at which the question was asked: what it says takes no time, and it is not lost.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import chess

from psearch.arena.info_ring import InfoRing
from psearch.arena.perturbation import history_seed, perturb_history
from psearch.arena.table_exchange import TableExchange
from psearch.core.chess.board.bridge import to_chess_move
from psearch.options import SearchOptions
from psearch.remote.one_position.conductor import Answer, SameRoot
from psearch.remote.one_position.entry_sharing import Sharing, room_of
from psearch.remote.one_position.machine_messages import HEAD_BYTES, MachineReport, Parcel
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import TICKS_PER_SECOND, Simulator
from psearch.text.values import quoted

_TICKS_PER_NS = TICKS_PER_SECOND // 10**9
_STOPPING = 10_000 * _TICKS_PER_NS
"""Until all workers of a machine have noticed that they are to stop."""


@dataclass(frozen=True)
class Network:
    """What messages cost."""

    latency: float = 200_000.0
    """nanoseconds until a message without a byte is there"""
    period: float = 10_000_000.0
    """nanoseconds between the reports of a machine, and between its parcels"""
    bytes_per_second: float = 125e6
    """that a machine can send; 0: as many as one likes"""

    def scaled(self, factor: float) -> Network:
        """Return a network for moves that take so much of the time: what counts is how often machines hear of each
        other in a move. The bytes of a second stay, and so does what machines find in a second."""
        return replace(self, latency=self.latency * factor, period=self.period * factor)

    def transfer(self, size: int) -> int:
        """Return ticks that so many bytes keep the sender's line busy."""
        return round(size * TICKS_PER_SECOND / self.bytes_per_second) if self.bytes_per_second else 0

    def room(self, machines: int) -> int:
        """Return entries in a parcel of which each of so many machines sends one to each other in a period."""
        if self.bytes_per_second == 0:
            return 1 << 20
        return room_of(self.bytes_per_second, self.period / 1e9, machines)


_MODES = {"root": False, "root+entries": True}


def exchanges_entries(mode: str) -> bool:
    """Return whether machines exchange entries of their tables: `root` no, `root+entries` yes.

    Raises PsearchError for anything else.
    """
    if mode not in _MODES:
        raise PsearchError(f"machines search {' or '.join(_MODES)}, not {quoted(mode, 40)}")
    return _MODES[mode]


@dataclass(frozen=True)
class Trouble:
    """A machine is lost, or silent for a while."""

    machine: int
    at: float
    """seconds since the search began"""
    until: float | None = None
    """when its messages come through again; None: it is gone"""


@dataclass(frozen=True)
class FleetSample:
    """One search by all machines."""

    answer: Answer | None
    seconds: float
    nodes: int
    """of all machines, those that were lost included"""
    sent: int
    """entries, by each machine to each other, summed over machines"""
    taken: int
    """of those received, that said more than what was there"""
    reports: tuple[tuple[float, MachineReport], ...] = ()
    """what machine 0 has heard, and after how many seconds"""


class _Machine:
    """A simulator, and where its clock is."""

    def __init__(self, number: int, simulator: Simulator, sharing: Sharing) -> None:
        self.number = number
        self.simulator = simulator
        self.sharing = sharing
        self.began: int | None = None
        """a clock; None: it is at no search"""
        self.is_searching = False
        self.is_lost = False
        self.nodes = 0
        self.ring = InfoRing(simulator.arena)

    def run_to(self, clock: int) -> None:
        if self.is_searching and self.began is not None and self.simulator.advance_to(clock - self.began):
            self.is_searching = False

    def stop(self, clock: int) -> int:
        """Returns when it has stopped."""
        if self.is_searching and self.began is not None:
            clock = max(clock, self.began + self.simulator.stop_at(clock - self.began))
            self.is_searching = False
        return clock

    def count(self) -> None:
        """Count what the search that has stopped was worth in nodes."""
        if self.began is not None:
            self.nodes += int(self.simulator.arena.worker["nodes"].sum())
            self.began = None

    def reports(self, board: chess.Board) -> list[MachineReport]:
        """Return the news since the last time; board: the root."""
        if self.began is None:
            return []
        found = []
        for one in self.ring.unread():
            pv = tuple(to_chess_move(code, board) for code in one.pv)
            found.append(MachineReport(self.number, one.depth, one.score, one.bound, pv, one.nodes))
        return found


class VirtualMachines:
    """So many machines of so many workers, with a table of `hash_mb` MiB each. Close when done.

    entries: entries of the tables are exchanged; seed: of what makes machines that search the same position differ;
    machine 0 searches as it would alone.
    """

    def __init__(
        self,
        machines: int,
        workers: int,
        hash_mb: int,
        entries: bool,
        network: Network | None = None,
        costs: Costs | None = None,
        seed: int = 1,
    ) -> None:
        self.network = network or Network()
        self._seed = seed
        self.machines: list[_Machine] = []
        room = self.network.room(machines)
        for number in range(machines):
            simulator = Simulator(workers, hash_mb, costs or Costs())
            table = TableExchange(simulator.arena) if entries and machines > 1 else None
            self.machines.append(_Machine(number, simulator, Sharing(number, room, table)))
        self.forget()

    def forget(self) -> None:
        """Forget everything, as for another game."""
        for machine in self.machines:
            machine.simulator.forget()
            machine.sharing.forget()
            if machine.number:
                perturb_history(machine.simulator.arena, history_seed(self._seed, machine.number))

    def close(self) -> None:
        """Give the memory back."""
        for machine in self.machines:
            machine.simulator.close()

    def play(
        self,
        board: chess.Board,
        seconds: float,
        options: SearchOptions | None = None,
        troubles: tuple[Trouble, ...] = (),
    ) -> FleetSample:
        """Search for so much virtual time, with what is in tables and histories. The answer is that of then."""
        if board.legal_moves.count() == 1:
            return self._only_move(board, options or SearchOptions())
        return _MachinesSearch(self, board, seconds, options or SearchOptions(), troubles).run()

    def _only_move(self, board: chess.Board, options: SearchOptions) -> FleetSample:
        """The position has a single legal move, which machine 0 plays at once."""
        found = self.machines[0].simulator.play(board, 1.0, options)
        answer = Answer(0, found.score, found.depth, (to_chess_move(found.bestmove, board),))
        return FleetSample(answer, found.seconds, found.nodes, 0, 0)


class _MachinesSearch:
    """One search of a fleet."""

    def __init__(
        self,
        fleet: VirtualMachines,
        board: chess.Board,
        seconds: float,
        options: SearchOptions,
        troubles: tuple[Trouble, ...],
    ) -> None:
        self._fleet = fleet
        self._machines = fleet.machines
        self._network = fleet.network
        self._board = board
        self._end = max(1, round(seconds * TICKS_PER_SECOND))
        self._options = options
        self._latency = round(self._network.latency * _TICKS_PER_NS)
        self._period = max(1, round(self._network.period * _TICKS_PER_NS))
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._count = 0
        self._root = SameRoot()
        self._heard: list[tuple[float, MachineReport]] = []
        self._line_free = [0] * len(self._machines)
        self._gone_at: dict[int, int] = {}
        self._silent: dict[int, tuple[int, int]] = {}
        for trouble in troubles:
            at = round(trouble.at * TICKS_PER_SECOND)
            if trouble.until is None:
                self._gone_at[trouble.machine] = at
            else:
                self._silent[trouble.machine] = at, round(trouble.until * TICKS_PER_SECOND)

    # -- the order of events -----------------------------------------------------------------------------------------

    def _at(self, clock: int, what: Callable[[int], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (clock, self._count, what))

    def run(self) -> FleetSample:
        machines = self._machines
        for machine in machines:
            machine.is_lost = False
            machine.is_searching = False
            machine.nodes = 0
            machine.sharing.sent = machine.sharing.taken = 0
            machine.sharing.begin()
            machine.began = None
            first = self._period + self._period * machine.number // len(machines)
            self._at(first, partial(self._tick, machine))
            if machine.number:
                self._at(
                    self._end - self._latency - self._network.transfer(1024) - _STOPPING,
                    partial(self._finish, machine),
                )
        for number, at in self._gone_at.items():
            self._at(at, partial(self._lose, machines[number]))
        for machine in machines:
            self._deliver(0, machine.number, 0, HEAD_BYTES, partial(self._begin, machine))
        while self._events and self._events[0][0] < self._end:
            clock, _, what = heapq.heappop(self._events)
            what(clock)
        self._finish(machines[0], self._end)
        answer = self._root.answer() or self._first_move()
        for machine in machines:
            machine.stop(self._end)
            machine.count()
        return FleetSample(
            answer=answer,
            seconds=self._end / TICKS_PER_SECOND,
            nodes=sum(machine.nodes for machine in machines),
            sent=sum(machine.sharing.sent for machine in machines),
            taken=sum(machine.sharing.taken for machine in machines),
            reports=tuple(self._heard),
        )

    def _first_move(self) -> Answer | None:
        """Return any move for want of a report: the time is over before one iteration. Machine 0 has searched nothing
        else then."""
        header = self._machines[0].simulator.arena.header[0]
        move = to_chess_move(int(header["best_move"]), self._board)
        return Answer(0, int(header["score"]), 0, (move,)) if move in self._board.legal_moves else None

    # -- the network -------------------------------------------------------------------------------------------------

    def _deliver(self, sender: int, receiver: int, clock: int, size: int, what: Callable[[int], None]) -> None:
        """Send so many bytes; `what` is called where they arrive, if they do."""
        if sender == receiver:
            what(clock)
            return
        for number in (sender, receiver):
            if number in self._silent:
                begins, ends = self._silent[number]
                if begins <= clock < ends:
                    clock = ends
        sent = max(clock, self._line_free[sender]) + self._network.transfer(size)
        self._line_free[sender] = sent
        self._at(sent + self._latency, what)

    # -- a machine ---------------------------------------------------------------------------------------------------

    def _begin(self, machine: _Machine, clock: int) -> None:
        if machine.is_lost or clock >= self._end:
            return
        machine.began, machine.is_searching = clock, True
        machine.ring = InfoRing(machine.simulator.arena)
        machine.simulator.begin(self._board, self._options, (self._end - clock) / TICKS_PER_SECOND)

    def _tick(self, machine: _Machine, clock: int) -> None:
        """The end of a period."""
        if machine.is_lost:
            return
        machine.run_to(clock)
        self._report(machine, clock)
        if machine.began is not None:
            parcel = machine.sharing.pack()
            if parcel is not None:
                for other in self._machines:
                    if other is not machine:
                        self._send(machine, other, parcel, clock)
        self._at(clock + self._period, partial(self._tick, machine))

    def _send(self, machine: _Machine, other: _Machine, parcel: Parcel, clock: int) -> None:
        def take(clock: int) -> None:
            if not other.is_lost and other.began is not None:
                other.run_to(clock)
                other.sharing.take(parcel)

        self._deliver(machine.number, other.number, clock, parcel.bytes, take)

    def _report(self, machine: _Machine, clock: int) -> None:
        for report in machine.reports(self._board):

            def hear(clock: int, report: MachineReport = report) -> None:
                self._hear(report, clock)

            self._deliver(machine.number, 0, clock, report.bytes, hear)

    def _hear(self, report: MachineReport, clock: int) -> None:
        self._heard.append((clock / TICKS_PER_SECOND, report))
        self._root.report(report)

    def _finish(self, machine: _Machine, clock: int) -> None:
        """So that its last report is there in time."""
        if not machine.is_lost:
            clock = machine.stop(clock)
            self._report(machine, clock)
            machine.count()

    def _lose(self, machine: _Machine, clock: int) -> None:
        machine.stop(clock)
        machine.count()
        machine.is_lost = True
