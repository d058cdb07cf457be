"""How a search does on a test suite: what it solved, how soon, and the points of its moves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psearch.analysis.analyser import Answer, Choice
from psearch.notation.epd import SuitePosition
from psearch.notation.report import relative_text, terminal_kind

_TIMES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_MOST_GROUPS = 50
_LONGEST_NAME = 30
_LONGEST_WANTED = 24


# -- judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """A position, the answer, and what it is worth. The answer is None where the game is over on the board."""

    position: SuitePosition
    answer: Answer | None
    solved_by: Choice | None = None
    """when the right answer was found for good; None when the answer is wrong, or the position has no goal"""
    points: int = 0

    @property
    def result(self) -> str:
        if self.answer is None:
            return terminal_kind(self.position.board)
        if not self.position.scored:
            return "-"
        return "right" if self.solved_by is not None else "wrong"


def judge(position: SuitePosition, answer: Answer | None) -> Verdict:
    """Whether the answer is right, since when it has been, and the points of its move."""
    if answer is None:
        return Verdict(position, None)
    board = position.board
    points = position.points.get(board.parse_uci(answer.best), 0)
    if not position.scored or not position.accepts(board.parse_uci(answer.best)):
        return Verdict(position, answer, None, points)
    since = answer.choices[-1]
    for choice in reversed(answer.choices):
        if not position.accepts(board.parse_uci(choice.move)):
            break
        since = choice
    return Verdict(position, answer, since, points)


# -- for people ------------------------------------------------------------------------------------------------------


class Table:
    """Rows as they come, and the summary."""

    def __init__(self, positions: Sequence[SuitePosition]) -> None:
        self._name = min(_LONGEST_NAME, max([8, *(len(position.name) for position in positions)]))
        self._wanted = min(_LONGEST_WANTED, max([6, *(len(_wanted(position)) for position in positions)]))
        self._points = any(position.points for position in positions)

    def head(self) -> str:
        columns = f"{'position':<{self._name}}  result     move     {'wanted':<{self._wanted}}  {'found, s':>8}"
        columns += f"  {'depth':>7}  {'score':>8}  {'nodes':>13}"
        return columns + ("  points\n" if self._points else "\n")

    def row(self, verdict: Verdict) -> str:
        """One position; the line ends with a line feed."""
        position, answer = verdict.position, verdict.answer
        name = _cut(position.name, self._name)
        line = f"{name:<{self._name}}  {verdict.result:<9}"
        if answer is None:
            return line.rstrip() + "\n"
        move = position.board.san(position.board.parse_uci(answer.best))
        found = f"{verdict.solved_by.time_s:.2f}" if verdict.solved_by is not None else ""
        line += f"  {move:<7}  {_cut(_wanted(position), self._wanted):<{self._wanted}}  {found:>8}"
        line += f"  {f'{answer.depth}/{answer.seldepth}':>7}  {relative_text(answer.score):>8}  {answer.nodes:>13,}"
        if position.points:
            line += f"  {verdict.points}/{position.most_points}"
        return line.rstrip() + "\n"


def _cut(text: str, width: int) -> str:
    text = "".join(mark if mark.isprintable() else "?" for mark in text)
    return text if len(text) <= width else text[: width - 1] + "…"


def _wanted(position: SuitePosition) -> str:
    words = [position.board.san(move) for move in position.best]
    return " ".join(words + [f"not {position.board.san(move)}" for move in position.avoid])


def group_of(name: str) -> str:
    """The part of an id that a theme shares: `STS(v1.0) Undermine.001` is of `STS(v1.0) Undermine`."""
    return re.sub(r"[\s._#-]*[0-9]+\s*$", "", name)


def summarise(verdicts: Iterable[Verdict], total: int) -> dict[str, Any]:
    """The figures of a suite. total: positions in the file; times in seconds.

    `solved_within` counts positions by the time since when their answer was right; `groups` is there for suites of
    several themes.
    """
    verdicts = list(verdicts)
    summary = {"positions": total, "finished": len(verdicts), **_figures(verdicts)}
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(group_of(verdict.position.name), []).append(verdict)
    if 1 < len(groups) <= _MOST_GROUPS and len(groups) < len(verdicts) / 2:
        summary["groups"] = {name: _figures(members) for name, members in groups.items()}
    return summary


def _figures(verdicts: list[Verdict]) -> dict[str, Any]:
    answers = [verdict.answer for verdict in verdicts if verdict.answer is not None]
    times = sorted(verdict.solved_by.time_s for verdict in verdicts if verdict.solved_by is not None)
    return {
        "scored": sum(verdict.position.scored and verdict.answer is not None for verdict in verdicts),
        "solved": len(times),
        "solved_within": {str(limit): n for limit, n in _within(times)},
        "mean_time_to_solution": round(sum(times) / len(times), 4) if times else None,
        "median_time_to_solution": _median(times),
        "points": sum(verdict.points for verdict in verdicts),
        "most_points": sum(verdict.position.most_points for verdict in verdicts if verdict.answer is not None),
        "nodes": sum(answer.nodes for answer in answers),
        "time": round(sum(answer.time_s for answer in answers), 3),
    }


def _within(times: list[float]) -> list[tuple[float, int]]:
    """Limits and how many times are no longer, from the first limit that is reached to the last that adds one."""
    counts = [(limit, sum(time <= limit for time in times)) for limit in _TIMES_S]
    return [
        (limit, count)
        for number, (limit, count) in enumerate(counts)
        if count and (number == 0 or count > counts[number - 1][1])
    ]


def _median(times: list[float]) -> float | None:
    if not times:
        return None
    middle = len(times) // 2
    return times[middle] if len(times) % 2 else round((times[middle - 1] + times[middle]) / 2, 4)


def summary_text(summary: dict[str, Any]) -> str:
    """The summary for people; ends with a line feed."""
    lines = []
    if summary["finished"] < summary["positions"]:
        lines.append(f"finished   {summary['finished']} of {summary['positions']} positions")
    if summary["scored"]:
        lines.append(f"solved     {_share(summary['solved'], summary['scored'])}")
    if summary["solved"]:
        within = ", ".join(f"{limit} s: {count}" for limit, count in summary["solved_within"].items())
        mean, median = summary["mean_time_to_solution"], summary["median_time_to_solution"]
        lines.append(f"found      after {mean:.2f} s in the mean, {median:.2f} s in the median")
        if within:
            lines.append(f"within     {within}")
    if summary["most_points"]:
        lines.append(f"points     {_share(summary['points'], summary['most_points'])}")
    nps = round(summary["nodes"] / summary["time"]) if summary["time"] else 0
    lines.append(f"searched   {summary['nodes']:,} nodes in {summary['time']:.1f} s, {nps:,} nps")
    groups = summary.get("groups", {})
    width = max([len(name) for name in groups], default=0)
    for name, figures in groups.items():
        line = f"  {name:<{width}}  solved {_share(figures['solved'], figures['scored'])}"
        if figures["most_points"]:
            line += f", points {_share(figures['points'], figures['most_points'])}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "0"


# -- for programs ----------------------------------------------------------------------------------------------------


def json_object(verdict: Verdict) -> dict[str, Any]:
    """One position as `--json` prints it."""
    position, answer = verdict.position, verdict.answer
    values: dict[str, Any] = {
        "line": position.line,
        "id": position.name,
        "fen": position.board.fen(),
        "bm": [position.board.uci(move) for move in position.best],
        "am": [position.board.uci(move) for move in position.avoid],
        "result": verdict.result,
    }
    if position.points:
        values |= {"points": verdict.points, "most_points": position.most_points}
    if answer is not None:
        values |= {
            "bestmove": answer.best,
            "score": {"cp": answer.cp} if answer.mate is None else {"mate": answer.mate},
            "depth": answer.depth,
            "seldepth": answer.seldepth,
            "nodes": answer.nodes,
            "time": answer.time_s,
            "pv": answer.pv,
        }
    if verdict.solved_by is not None:
        since = verdict.solved_by
        values["solution"] = {"time": since.time_s, "depth": since.depth, "nodes": since.nodes}
    return values
