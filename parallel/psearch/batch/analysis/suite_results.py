"""Results of a test suite: which positions were solved, how soon, and the points of the moves."""

from __future__ import annotations

import itertools
import statistics
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psearch.batch.analysis.games import MOST_PV_PLIES
from psearch.batch.positions.task import Answer, Choice, answer_object
from psearch.results import relative_text
from psearch.terminal.streams import printable
from psearch.text.epd_text import SuitePosition
from psearch.text.report import terminal_kind

_TIMES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_MOST_GROUPS = 50
_LONGEST_NAME = 30
_LONGEST_WANTED = 24
_GAP = "  "
_LEFT = ("position", "result", "move", "wanted", "points")
"""Columns that are aligned to the left."""
_NARROWEST = {"position": 10, "wanted": 6}
"""Least widths of columns that may be cut on a narrow terminal."""


@dataclass(frozen=True)
class Verdict:
    """A position, its answer and the verdict. There is no answer if the game is over or the search failed."""

    position: SuitePosition
    answer: Answer | None
    solved_by: Choice | None = None
    """First choice since which the answer was right; None if the answer is wrong or the position has no goal."""
    points: int = 0
    problem: str | None = None
    """Reason why the position could not be searched."""

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
    """Return the verdict: whether the answer is right, since when, and the points of its move."""
    if answer is None:
        return Verdict(position, None, problem=problem)
    board = position.board
    move = answer.move(board)
    points = position.points.get(move, 0)
    choices = answer.choices
    if position.is_about_moves:
        is_right = position.accepts(move)

        def accepts(choice: Choice) -> bool:
            return position.accepts(board.parse_uci(choice.move))
    else:
        # right: a mate by the same side, in at most the wanted number of moves
        wanted = position.mate or 0
        is_bound = answer.line.bound == ("upper" if wanted > 0 else "lower")

        def is_wanted(mate: int | None) -> bool:
            return mate is not None and mate * wanted > 0 and abs(mate) <= abs(wanted)

        def accepts(choice: Choice) -> bool:
            return is_wanted(choice.mate)

        is_right = not is_bound and is_wanted(answer.line.score.mate())
        if not choices or not accepts(choices[-1]):  # an older result, or a bound
            choices = [Choice(move.uci(), answer.time_s, answer.line.depth, answer.nodes)]
    since = None
    for choice in reversed(choices if is_right else []):
        if since is not None and not accepts(choice):
            break
        since = choice
    return Verdict(position, answer, since, points)


@dataclass
class Survey:
    """Facts about a suite that are needed before the first row of its table."""

    positions: int = 0
    searchable: int = 0
    """Number of positions with a legal move."""
    name_width: int = 8
    wanted_width: int = 6
    has_points: bool = False

    @classmethod
    def of(cls, positions: Iterable[SuitePosition]) -> Survey:
        """Return the facts about these positions, which are read once."""
        survey = cls()
        for position in positions:
            survey.positions += 1
            survey.searchable += any(position.board.legal_moves)
            survey.name_width = max(survey.name_width, min(_LONGEST_NAME, len(position.name)))
            survey.wanted_width = max(survey.wanted_width, min(_LONGEST_WANTED, len(_wanted(position))))
            survey.has_points |= bool(position.points)
        return survey


class SuiteTable:
    """A table that is written row by row. width: columns of the terminal; None: not a terminal, nothing is cut."""

    def __init__(self, survey: Survey, width: int | None = None) -> None:
        self._name = survey.name_width
        self._widths = {"position": survey.name_width, "result": 9, "move": 7, "wanted": survey.wanted_width}
        self._widths |= {"found, s": 8, "depth": 7, "score": 8, "nodes": 13}
        if survey.has_points:
            self._widths["points"] = 7
        # on a narrow terminal, cut names first; if that is not enough, leave out columns
        surplus, spare = 0, dict.fromkeys(_NARROWEST, 0)
        for dispensable in () if width is None else ("", "score", "nodes", "depth"):
            self._widths.pop(dispensable, None)
            surplus = sum(self._widths.values()) + len(_GAP) * (len(self._widths) - 1) - (width or 0)
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
        """Return the row of a position, with a line feed."""
        position, answer = verdict.position, verdict.answer
        name = _end_of(_cut(position.name, self._name), self._widths["position"])
        cells = {"position": name, "result": verdict.result}
        if answer is not None:
            line = answer.line
            cells |= {
                "move": position.board.san(answer.move(position.board)),
                "wanted": _cut(_wanted(position), self._widths["wanted"]),
                "found, s": f"{verdict.solved_by.time_s:.2f}" if verdict.solved_by is not None else "",
                "depth": f"{line.depth}/{line.seldepth}",
                "score": relative_text(line.score, line.bound),
                "nodes": f"{answer.nodes:,}",
                "points": f"{verdict.points}/{position.most_points}" if position.points else "",
            }
        return self._line(cells)


def _cut(text: str, width: int) -> str:
    text = printable(" ".join(text[: 4 * width].split()))
    return text if len(text) <= width else text[: width - 1] + "…"


def _end_of(path: str, width: int) -> str:
    """Return the end of a path, which distinguishes it from others."""
    text = printable(path)
    return text if len(text) <= width else "…" + text[1 - width :]


def _wanted(position: SuitePosition) -> str:
    words = [position.board.san(move) for move in position.best]
    words += [f"not {position.board.san(move)}" for move in position.avoid]
    return " ".join(words) or (f"#{position.mate}" if position.mate is not None else "")


def group_of(name: str) -> str:
    """Return the theme of an id, without its number: `STS(v1.0) Undermine` for `STS(v1.0) Undermine.001`."""
    name = name.rstrip()
    theme = name.rstrip("0123456789")
    return theme.rstrip("\t\n\v\f\r ._#-") if theme != name else name


class SuiteSummary:
    """Figures of a suite, added up position by position. kept: number of answers from older results; None: there are no
    older results."""

    def __init__(self, kept: int | None = None) -> None:
        self._kept = kept
        self._all = _SuiteSums()
        self._groups: dict[str, _SuiteSums] | None = {}
        """Figures by theme; None when there are too many for them to be themes."""
        self._files: dict[str, _SuiteSums] = {}

    def add(self, verdict: Verdict, file: str, kept: int = 0) -> None:
        """Add a finished position. file: its name as the user gave it; kept: 1 if the answer is from older results."""
        if self._kept is not None:
            self._kept += kept
        self._all.add(verdict)
        self._files.setdefault(file, _SuiteSums()).add(verdict)
        if self._groups is not None:
            self._groups.setdefault(group_of(verdict.position.name), _SuiteSums()).add(verdict)
            if len(self._groups) > _MOST_GROUPS:
                self._groups = None

    @property
    def solved_text(self) -> str:
        """Text such as `solved 3/5`; empty if no position has a goal."""
        sums = self._all
        return f"solved {len(sums.solved)}/{sums.counts['scored']}" if sums.counts["asked"] else ""

    def figures(self, total: int) -> dict[str, Any]:
        """Return the figures for JSON. total: number of positions in the input.

        Times are in seconds; `solved_within` counts positions by the time since which their answer was right. Suites
        with several themes have `groups`, several files `files`, older results `kept`.
        """
        finished = self._all.counts["finished"]
        figures = {"positions": total, "finished": finished, **self._all.figures()}
        if self._kept is not None:
            figures["kept"] = self._kept
        groups = self._groups or {}
        if 1 < len(groups) < finished / 2:
            figures["groups"] = {name: group.figures() for name, group in groups.items()}
        if len(self._files) > 1:
            figures["files"] = {name: sums.figures() for name, sums in self._files.items()}
        return figures


class _SuiteSums:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Finished positions (`finished`), those with a goal (`asked`), those of them that were searched (`scored`)."""
        self.solved = array("d")
        """Time since which each answer was right, in seconds."""
        self.time_s = 0.0

    def add(self, verdict: Verdict) -> None:
        position, answer = verdict.position, verdict.answer
        self.counts.update(finished=1, asked=position.scored)
        if answer is None:
            return
        if verdict.solved_by is not None:
            self.solved.append(verdict.solved_by.time_s)
        points = {"points": verdict.points, "most_points": position.most_points}
        self.counts.update(scored=position.scored, nodes=answer.nodes, **points)
        self.time_s += answer.time_s

    def figures(self) -> dict[str, Any]:
        times = sorted(self.solved)
        counts = {str(limit): bisect_right(times, limit) for limit in _TIMES_S}
        before = itertools.chain([0], counts.values())
        return {
            "scored": self.counts["scored"],
            "solved": len(times),
            # limits that solve more than the one before
            "solved_within": {limit: n for (limit, n), less in zip(counts.items(), before, strict=False) if n > less},
            "mean_time_to_solution": round(statistics.fmean(times), 4) if times else None,
            "median_time_to_solution": round(statistics.median(times), 4) if times else None,
            **{name: self.counts[name] for name in ("points", "most_points", "nodes")},
            "time": round(self.time_s, 3),
        }


def summary_text(summary: dict[str, Any]) -> str:
    """Return the summary as text, with a line feed at the end."""
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


def json_object(verdict: Verdict, file: str) -> dict[str, Any]:
    """Return a position as `--json` prints it. file: its name as the user gave it."""
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
        values |= answer_object(answer, position.board, MOST_PV_PLIES)
    if verdict.problem is not None:
        values["error"] = verdict.problem
    if verdict.solved_by is not None:
        values["solution"] = verdict.solved_by.as_json()
    return values
