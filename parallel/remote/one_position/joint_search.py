"""One search by this machine and others: all search the same root, exchange table entries, and vote in the end.

Everything is done by the thread that searches, when the supervisor looks after its workers (`SearchRequest.on_look`):
reports go to the conductor, entries to the tables, and every period each machine gets an order. Nobody is waited for:
the answer is that of what has been heard when this machine's clock, or a limit, ends the search. So a machine that is
lost takes nothing with it but its time.
"""

from __future__ import annotations

import time
from dataclasses import replace

import chess

from psearch.core.constants import BOUND_EXACT
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.remote.one_position.conductor import SameRoot, SameRootLines
from psearch.remote.one_position.entry_sharing import room_of
from psearch.remote.one_position.joint_messages import News, Orders, Search
from psearch.remote.one_position.machine_messages import MachineReport
from psearch.remote.one_position.machine_reports import info_of, report_of
from psearch.remote.one_position.team import Heard, Member, MemberJoined, Team
from psearch.results import Info, Limits, MachineStats, Result, WorkerDied

_LEAST_PERIOD_S, _MOST_PERIOD_S = 0.01, 0.1
_PERIODS = 100
"""in the time since the search began, between those two: at first, news are worth more"""
_BYTES_PER_SECOND = 8e6
"""of entries that a machine may send in the shortest period. So what it is sent at once is less than the 100 KB that
go with a call to Ray; what is more goes by way of its store"""
_SILENCE_S = 1.0
"""A machine that has said nothing for so long is not waited for when all others have searched their nodes."""
_HISTORY = 100
"""Moves before the root that go along: more make no difference to repetitions."""


def search_together(supervisor: Supervisor, team: Team, request: SearchRequest) -> Result:
    """Search, as `Supervisor.search` does, with the help of the others who are ready, or get ready meanwhile."""
    board = request.board
    if not isinstance(board, chess.Board) or not any(board.legal_moves) or not team.is_there:
        return supervisor.search(request)
    return _JointSearch(supervisor, team, request, board).run()


class _JointSearch:
    def __init__(self, supervisor: Supervisor, team: Team, request: SearchRequest, board: chess.Board) -> None:
        self._supervisor = supervisor
        self._team = team
        self._request = request
        self._board = board
        self._number = team.begin(request.control.wake)
        moves = len(set(self._board.legal_moves if request.only is None else request.only))
        lines = min(request.multipv, moves)
        self._conductor = SameRoot(request.limits.depth) if lines == 1 else SameRootLines(lines)
        self._sharing = team.sharing(supervisor)
        self._began_s = request.control.asked_at or time.perf_counter()
        self._next_s = 0.0
        self._nodes: dict[int, int] = {0: 0}
        """by machine"""
        self._depths: dict[int, int] = {}
        """the same: the deepest that is finished"""
        self._members: dict[int, Member] = {}
        """all that have taken part, by number"""
        self._shown: Info | None = None
        """the last that was shown of the best line"""
        self._shown_machine = 0
        self._is_over = False
        """some machine has come to the end of the search"""

    # -- from the begin to the end -----------------------------------------------------------------------------------

    def run(self) -> Result:
        """Search."""
        try:
            for _ in self._team.events():  # of the time since the last search
                continue
            self._sharing.begin()
            shares = self._shares()
            for member in self._team.members:
                self._give(member, shares.get(member.number))
            local = self._search_here(shares.get(0))
            if shares:
                self._await_shares()
            self._take_events()
        finally:
            self._team.end()
            self._team.sharing(self._supervisor).end()
        return self._merged(local)

    def _search_here(self, share: int | None) -> Result:
        """By this machine. Where its workers are lost again and again, whatever the others have found by then."""
        try:
            return self._supervisor.search(self._own_request(share))
        except WorkerDied as error:
            answer = self._conductor.answer()
            if answer is None:
                raise
            return Result(answer.pv[0], info_of(answer.lines[0], self._board.turn), notes=[str(error)])

    def _shares(self) -> dict[int, int]:
        """Return the shares of a limit of nodes, by machine, as the machines have threads; none without a limit."""
        nodes = self._request.limits.nodes
        if nodes is None:
            return {}
        threads = {member.number: member.threads for member in self._team.members}
        own = self._supervisor.workers.threads
        total = own + sum(threads.values())
        shares = {number: nodes * count // total for number, count in threads.items()}
        return {0: nodes - sum(shares.values()), **{number: share for number, share in shares.items() if share}}

    def _own_request(self, share: int | None) -> SearchRequest:
        request = self._request
        is_watched = request.on_info is not None
        return replace(
            request,
            limits=replace(request.limits, nodes=share),
            on_info=self._take_own,
            on_look=self._look,
            live_interval_s=request.live_interval_s if is_watched else float("inf"),
        )

    def _give(self, member: Member, share: int | None) -> None:
        """Have another machine search the same. With a limit of nodes only those that have a share of it."""
        limits = self._request.limits
        if limits.nodes is not None and share is None:
            return
        board = self._board.copy(stack=min(len(self._board.move_stack), _HISTORY))
        only = None if self._request.only is None else tuple(self._request.only)
        limits = Limits(depth=limits.depth, nodes=share, mate=limits.mate)
        self._members[member.number] = member
        self._team.give(
            member,
            Search(self._number, member.number, board, limits, self._request.options, only, self._request.multipv),
        )

    def _await_shares(self) -> None:
        """This machine has searched its share of the nodes: until the others have, or are silent, or time is up."""
        clock, control = self._request.clock(), self._request.control
        while not control.is_stopped and not self._is_over:
            now = time.monotonic()
            if not any(one.search == self._number and now - one.heard_at < _SILENCE_S for one in self._team.members):
                return
            if self._elapsed_s >= clock.deadline_s():
                return
            self._take_events(_LEAST_PERIOD_S)
            self._send_entries()

    @property
    def _elapsed_s(self) -> float:
        return time.perf_counter() - self._began_s

    # -- what is done meanwhile --------------------------------------------------------------------------------------

    def _look(self) -> float | None:
        """See `SearchRequest.on_look`."""
        self._take_events()
        return None if self._is_over else self._send_entries()

    def _take_events(self, timeout_s: float = 0.0) -> None:
        for event in self._team.events(timeout_s):
            match event:
                case MemberJoined(member):
                    self._give(member, None)
                case Heard(member, news, finished) if news.search == self._number:
                    self._take_news(member, news)
                    self._is_over = self._is_over or (finished is not None and finished.is_complete)

    def _take_news(self, member: Member, news: News) -> None:
        self._nodes[member.number] = max(news.nodes, self._nodes.get(member.number, 0))
        for report in news.reports:
            self._hear(report, None)
        if news.parcel is not None:
            self._team.sharing(self._supervisor).take(news.parcel)
            for other in self._team.members:
                if other is not member:
                    other.mail.append(news.parcel)

    def _send_entries(self) -> float:
        """Once a period, if it is time: what this machine has found to all others, and what they have to each other."""
        now_s = self._elapsed_s
        if now_s < self._next_s:
            return self._next_s - now_s
        period_s = min(max(now_s / _PERIODS, _LEAST_PERIOD_S), _MOST_PERIOD_S)
        self._next_s = now_s + period_s
        members = [member for member in self._team.members if member.search == self._number]
        if any(not member.is_asked for member in members):
            sharing = self._team.sharing(self._supervisor)
            room = sharing.room = room_of(_BYTES_PER_SECOND, _LEAST_PERIOD_S, 1 + len(members))
            parcel = sharing.pack()
            for member in members:
                if parcel is not None:
                    member.mail.append(parcel)
                while sum(len(one.entries) for one in member.mail) > len(members) * room:
                    member.mail.popleft()  # it is slow, or gone
                if not member.is_asked:
                    self._team.order(member, Orders(self._number, tuple(member.mail), room))
                    member.mail.clear()
        return period_s

    # -- reports -----------------------------------------------------------------------------------------------------

    def _take_own(self, info: Info) -> None:
        """What this machine's workers report."""
        self._nodes[0] = info.nodes
        if not info.is_live:
            self._hear(report_of(info, 0), info)
        elif self._request.on_info is not None:
            shown = self._shown or info
            self._request.on_info(
                replace(
                    self._of_all(shown),
                    seldepth=max(shown.seldepth, info.seldepth),
                    is_live=True,
                    workers=info.workers,
                    hashfull=info.hashfull,
                    currmove=info.currmove,
                    currmovenumber=info.currmovenumber,
                )
            )

    def _hear(self, report: MachineReport, info: Info | None) -> None:
        """A report of some machine; info: where it is of this one."""
        self._conductor.report(report)
        if report.bound == BOUND_EXACT:
            self._depths[report.machine] = max(report.depth, self._depths.get(report.machine, 0))
        if self._request.on_info is not None and self._is_news(report):
            shown = self._of_all(info or info_of(report, self._board.turn))
            if report.line == 1:
                self._shown, self._shown_machine = shown, report.machine
            self._request.on_info(shown)

    def _is_news(self, report: MachineReport) -> bool:
        """Tell whether a report is shown: the machine that is first at a depth is shown until that depth ends."""
        shown = self._shown
        if shown is None or report.depth > shown.depth:
            return True
        return report.depth == shown.depth and report.machine == self._shown_machine

    def _of_all(self, info: Info) -> Info:
        """With the counters of all machines, as they are now."""
        return replace(info, nodes=sum(self._nodes.values()), time_s=self._elapsed_s, machines=1 + len(self._there()))

    def _there(self) -> list[Member]:
        return [member for member in self._team.members if member.number in self._members]

    # -- the answer --------------------------------------------------------------------------------------------------

    def _merged(self, local: Result) -> Result:
        """The answer of the machine whose it is, with what all have done."""
        if local.lines:
            self._nodes[0] = local.info.nodes
        answer = self._conductor.answer()
        lines = local.lines
        if answer is not None and (answer.machine != 0 or not lines):
            lines = [
                replace(info_of(report, self._board.turn), hashfull=local.info.hashfull, workers=local.info.workers)
                for report in answer.lines
            ]
        lines = [replace(self._of_all(line), machines=1 + len(self._members)) for line in lines]
        own = MachineStats("", self._supervisor.workers.threads, self._nodes[0], self._depths.get(0, 0))
        others = [
            MachineStats(member.name, member.threads, self._nodes.get(number, 0), self._depths.get(number, 0))
            for number, member in sorted(self._members.items())
        ]
        return replace(local, bestmove=lines[0].pv[0], info=lines[0], lines=lines, machines=[own, *others])
