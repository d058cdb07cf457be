"""How a search does on a test suite: what it solved, how soon, and the points of its moves."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from psearch.batch.analysis.games import MOST_PV_PLIES
from psearch.batch.positions.task import Answer, Choice
from psearch.terminal.streams import printable
from psearch.text.epd_text import SuitePosition
from psearch.text.report import relative_text, terminal_kind

_TIMES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_MOST_GROUPS = 50
_LONGEST_NAME = 30
_LONGEST_WANTED = 24
_GAP = "  "
_LEFT = ("position", "result", "move", "wanted", "points")
"""columns that are aligned to the left"""
_NARROWEST = {"position": 10, "wanted": 6}
"""how far columns may be cut on a narrow terminal"""


# -- judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """A position, the answer, and what it is worth. The answer is None where the game is over on the board, and where
    there is a problem."""

    position: SuitePosition
    answer: Answer | None
    solved_by: Choice | None = None
    """when the right answer was found for good; None when the answer is wrong, or the position has no goal"""
    points: int = 0
    problem: str | None = None
    """why it could not be searched"""

    @property
    def result(self) -> str:
        if self.problem is not None:
            return "failed"
        if self.answer is None:
            return terminal_kind(self.position.board)
        if not self.position.scored:
            return "-"
        return "right" if self.solved_by is not None else "wrong"


def judge(position: SuitePosition, answer: Answer | None, problem: str | None = None) -> Verdict:
    """Tell whether the answer is right, since when it has been, and the points of its move."""
    if answer is None:
        return Verdict(position, None, problem=problem)
    board = position.board
    move = answer.move(board)
    points = position.points.get(move, 0)
    if not position.is_about_moves:
        is_found = position.mate is not None and _is_mate(answer, position.mate)
        end = Choice(move.uci(), answer.time_s, answer.line.depth, answer.nodes)
        return Verdict(position, answer, end if is_found else None, points)
    if not position.accepts(move):
        return Verdict(position, answer, None, points)
    since = answer.choices[-1]
    for choice in reversed(answer.choices):
        if not position.accepts(board.parse_uci(choice.move)):
            break
        since = choice
    return Verdict(position, answer, since, points)


def _is_mate(answer: Answer, moves: int) -> bool:
    """Tell whether the answer is a mate for the same side in as many moves, or fewer."""
    mate, bound = answer.line.score.mate(), answer.line.bound
    if mate is None or bound == ("upper" if moves > 0 else "lower"):
        return False
    return (mate > 0) == (moves > 0) and abs(mate) <= abs(moves)


# -- for people ------------------------------------------------------------------------------------------------------


@dataclass
class Survey:
    """What must be known of a suite before the first row of its table is written."""

    positions: int = 0
    searchable: int = 0
    """those with a legal move"""
    name_width: int = 8
    wanted_width: int = 6
    has_points: bool = False

    @classmethod
    def of(cls, positions: Iterable[SuitePosition]) -> Survey:
        """Survey positions that are looked at once, one after the other."""
        survey = cls()
        for position in positions:
            survey.positions += 1
            survey.searchable += any(position.board.legal_moves)
            survey.name_width = max(survey.name_width, min(_LONGEST_NAME, len(position.name)))
            survey.wanted_width = max(survey.wanted_width, min(_LONGEST_WANTED, len(_wanted(position))))
            survey.has_points |= bool(position.points)
        return survey


class SuiteTable:
    """Rows as they come. width: of the terminal that they go to; None: it is none, and nothing is left out."""

    def __init__(self, survey: Survey, width: int | None = None) -> None:
        self._name = survey.name_width
        self._widths = {"position": survey.name_width, "result": 9, "move": 7, "wanted": survey.wanted_width}
        self._widths |= {"found, s": 8, "depth": 7, "score": 8, "nodes": 13}
        if survey.has_points:
            self._widths["points"] = 7
        if width is not None:
            self._fit(width)

    def _fit(self, width: int) -> None:
        """Cut names first; leave out figures where that is not enough."""
        for dispensable in (None, "score", "nodes", "depth"):
            if dispensable is not None:
                del self._widths[dispensable]
            surplus = sum(self._widths.values()) + len(_GAP) * (len(self._widths) - 1) - width
            spare = {name: max(0, self._widths[name] - least) for name, least in _NARROWEST.items()}
            if surplus <= sum(spare.values()):
                break
        for name, most in spare.items():
            cut = min(most, max(0, surplus))
            self._widths[name] -= cut
            surplus -= cut

    def _line(self, cells: dict[str, str]) -> str:
        shown = [(name, cells[name], width) for name, width in self._widths.items() if name in cells]
        aligned = (text.ljust(width) if name in _LEFT else text.rjust(width) for name, text, width in shown)
        return _GAP.join(aligned).rstrip() + "\n"

    def head(self) -> str:
        return self._line({name: name for name in self._widths})

    def row(self, verdict: Verdict) -> str:
        """Return one position; the line ends with a line feed."""
        position, answer = verdict.position, verdict.answer
        name = _end_of(_cut(position.name, self._name), self._widths["position"])
        cells = {"position": name, "result": verdict.result}
        if answer is not None:
            cells["move"] = position.board.san(answer.move(position.board))
            cells["wanted"] = _cut(_wanted(position), self._widths["wanted"])
            cells["found, s"] = f"{verdict.solved_by.time_s:.2f}" if verdict.solved_by is not None else ""
            cells["depth"] = f"{answer.line.depth}/{answer.line.seldepth}"
            cells["score"] = relative_text(answer.line.score, answer.line.bound)
            cells["nodes"] = f"{answer.nodes:,}"
            cells["points"] = f"{verdict.points}/{position.most_points}" if position.points else ""
        return self._line(cells)


def _cut(text: str, width: int) -> str:
    text = printable(" ".join(text[: 4 * width].split()))
    return text if len(text) <= width else text[: width - 1] + "…"


def _end_of(path: str, width: int) -> str:
    """What tells paths apart is at their end."""
    text = printable(path)
    return text if len(text) <= width else "…" + text[1 - width :]


def _wanted(position: SuitePosition) -> str:
    words = [position.board.san(move) for move in position.best]
    words += [f"not {position.board.san(move)}" for move in position.avoid]
    return " ".join(words) or (f"#{position.mate}" if position.mate is not None else "")


def group_of(name: str) -> str:
    """Return the part of an id that a theme shares: `STS(v1.0) Undermine.001` is of `STS(v1.0) Undermine`."""
    name = name.rstrip()
    theme = name.rstrip("0123456789")
    return theme.rstrip("\t\n\v\f\r ._#-") if theme != name else name


class SuiteSummary:
    """The figures of a suite, added up position by position. kept: of answers that were there already; None: there are
    none to be counted."""

    def __init__(self, kept: int | None = None) -> None:
        self._kept = kept
        self._all = _SuiteSums()
        self._groups: dict[str, _SuiteSums] | None = {}
        """by theme; None when there are too many to be themes"""
        self._files: dict[str, _SuiteSums] = {}

    def add(self, verdict: Verdict, file: str, kept: int = 0) -> None:
        """Add a finished position of the file that the user named so. kept: 1 if its answer was there already."""
        if self._kept is not None:
            self._kept += kept
        self._all.add(verdict)
        self._files.setdefault(file, _SuiteSums()).add(verdict)
        if self._groups is not None:
            self._groups.setdefault(group_of(verdict.position.name), _SuiteSums()).add(verdict)
            if len(self._groups) > _MOST_GROUPS:
                self._groups = None

    @property
    def standing(self) -> str:
        """`solved 3/5`; empty where nothing is asked."""
        return f"solved {len(self._all.solved)}/{self._all.scored}" if self._all.asked else ""

    def figures(self, total: int) -> dict[str, Any]:
        """Return the figures; total: positions in the file; times in seconds.

        `solved_within` counts positions by the time since when their answer was right; `groups` is there for suites of
        several themes, `files` for several files, `kept` where there were answers already.
        """
        figures = {"positions": total, "finished": self._all.finished, **self._all.figures()}
        if self._kept is not None:
            figures["kept"] = self._kept
        groups = self._groups or {}
        if 1 < len(groups) < self._all.finished / 2:
            figures["groups"] = {name: group.figures() for name, group in groups.items()}
        if len(self._files) > 1:
            figures["files"] = {name: sums.figures() for name, sums in self._files.items()}
        return figures


@dataclass
class _SuiteSums:
    finished: int = 0
    asked: int = 0
    """positions with a right and a wrong"""
    scored: int = 0
    """those of them that were searched"""
    solved: array[float] = field(default_factory=lambda: array("d"))
    """since when, in seconds"""
    points: int = 0
    most_points: int = 0
    nodes: int = 0
    time_s: float = 0.0

    def add(self, verdict: Verdict) -> None:
        self.finished += 1
        self.asked += verdict.position.scored
        if verdict.answer is None:
            return
        self.scored += verdict.position.scored
        if verdict.solved_by is not None:
            self.solved.append(verdict.solved_by.time_s)
        self.points += verdict.points
        self.most_points += verdict.position.most_points
        self.nodes += verdict.answer.nodes
        self.time_s += verdict.answer.time_s

    def figures(self) -> dict[str, Any]:
        times = sorted(self.solved)
        return {
            "scored": self.scored,
            "solved": len(times),
            "solved_within": {str(limit): n for limit, n in _within(times)},
            "mean_time_to_solution": round(statistics.fmean(times), 4) if times else None,
            "median_time_to_solution": round(statistics.median(times), 4) if times else None,
            "points": self.points,
            "most_points": self.most_points,
            "nodes": self.nodes,
            "time": round(self.time_s, 3),
        }


def _within(times: list[float]) -> list[tuple[float, int]]:
    """Limits and how many times are no longer, from the first limit that is reached to the last that adds one."""
    counts = [(limit, sum(time <= limit for time in times)) for limit in _TIMES_S]
    return [
        (limit, count)
        for number, (limit, count) in enumerate(counts)
        if count and (number == 0 or count > counts[number - 1][1])
    ]


def summary_text(summary: dict[str, Any]) -> str:
    """Return the summary for people; ends with a line feed."""
    lines = []
    if summary["finished"] < summary["positions"]:
        lines.append(f"finished   {summary['finished']} of {summary['positions']} positions")
    if summary["scored"]:
        lines.append(f"solved     {_share(summary['solved'], summary['scored'])}")
    elif summary["finished"] and not summary["most_points"]:
        lines.append("scored     none: no position that was searched has bm, am or dm")
    if summary["solved"]:
        within = ", ".join(f"{limit} s: {count}" for limit, count in summary["solved_within"].items())
        mean, median = summary["mean_time_to_solution"], summary["median_time_to_solution"]
        lines.append(f"found      after {mean:.2f} s in the mean, {median:.2f} s in the median")
        if within:
            lines.append(f"within     {within}")
    if summary["most_points"]:
        lines.append(f"points     {_share(summary['points'], summary['most_points'])}")
    nps = round(summary["nodes"] / summary["time"]) if summary["time"] else 0
    if "kept" in summary:
        lines.append(f"kept       {summary['kept']:,} of {summary['finished']:,} from older results")
    lines.append(f"searched   {summary['nodes']:,} nodes in {summary['time']:.1f} s, {nps:,} nps")
    files, themes = (summary.get(parts, {}).items() for parts in ("files", "groups"))
    groups = [(_end_of(name, _LONGEST_NAME), figures) for name, figures in files if figures["scored"]]
    groups += [(_cut(name, _LONGEST_NAME), figures) for name, figures in themes]
    width = max([len(name) for name, _ in groups], default=0)
    for name, figures in groups:
        line = f"  {name:<{width}}  solved {_share(figures['solved'], figures['scored'])}"
        if figures["most_points"]:
            line += f", points {_share(figures['points'], figures['most_points'])}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "0"


# -- for programs ----------------------------------------------------------------------------------------------------


def json_object(verdict: Verdict, file: str) -> dict[str, Any]:
    """Return one position as `--json` prints it. file: as the user named it."""
    position, answer = verdict.position, verdict.answer
    values: dict[str, Any] = {
        "file": file,
        "line": position.line,
        "id": position.name,
        "fen": position.board.fen(),
        "bm": [position.board.uci(move) for move in position.best],
        "am": [position.board.uci(move) for move in position.avoid],
        "result": verdict.result,
    }
    if position.mate is not None:
        values["dm"] = position.mate
    if position.points:
        values |= {"points": verdict.points, "most_points": position.most_points}
    if answer is not None:
        values |= answer.as_json(MOST_PV_PLIES)
    if verdict.problem is not None:
        values["error"] = verdict.problem
    if verdict.solved_by is not None:
        values["solution"] = verdict.solved_by.as_json()
    return values
