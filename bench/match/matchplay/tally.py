"""The games of a match, counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .elo import PAIR_SCORES, Sprt, Strength, strength
from .game import Complaint, Record, Usage


class Tally:
    """A match so far."""

    def __init__(self, names: tuple[str, str], sprt: Sprt | None) -> None:
        self.names = names
        self.sprt = sprt
        self.records: list[Record] = []
        self.counts = [0] * len(PAIR_SCORES)
        """Numbers of pairs with 0, 1/2, 1, 3/2 and 2 points for the first engine."""
        self.llr = 0.0
        self.decision: str | None = None
        """Decision of the sequential test; it stands, whatever the remaining games bring."""
        self._half: dict[int, float] = {}
        """Points of games whose other half is not finished, by pair."""

    def add(self, record: Record) -> None:
        self.records.append(record)
        pair = record.number // 2
        if pair not in self._half:
            self._half[pair] = record.points
            return
        self.counts[round(2 * (self._half.pop(pair) + record.points))] += 1
        if self.sprt is not None and self.decision is None:
            self.llr = self.sprt.llr(self.counts)
            self.decision = self.sprt.decision(self.llr)

    @property
    def wins_draws_losses(self) -> tuple[int, int, int]:
        points = [record.points for record in self.records]
        return points.count(1.0), points.count(0.5), points.count(0.0)

    @property
    def complaints(self) -> list[tuple[int, Complaint]]:
        """Return all complaints with the numbers of their games."""
        return [(record.number, complaint) for record in self.records for complaint in record.complaints]

    def usage(self, engine: int) -> Usage:
        total = Usage()
        for record in self.records:
            one = record.usage[engine]
            total.moves += one.moves
            total.time_s += one.time_s
            total.nodes += one.nodes
            total.depth += one.depth
            total.longest_s = max(total.longest_s, one.longest_s)
            left = [used.least_left_s for used in (one, total) if used.least_left_s is not None]
            total.least_left_s = min(left, default=None)
        return total

    def short(self) -> str:
        """One line for the progress display."""
        wins, draws, losses = self.wins_draws_losses
        parts = [f"+{wins} ={draws} -{losses}"]
        found = strength(self.counts)
        if found is not None:
            parts.append(elo_text(found))
        if self.sprt is not None:
            low, high = self.sprt.bounds
            parts.append(f"LLR {self.llr:+.2f} ({low:.2f}, {high:.2f})")
        if self.complaints:
            parts.append(f"{len(self.complaints)} complaints")
        return "  ".join(parts)

    def lines(self) -> list[str]:
        """The result, for people."""
        wins, draws, losses = self.wins_draws_losses
        games = len(self.records)
        points = wins + draws / 2
        lines = [f"{self.names[0]} - {self.names[1]}: {points:g} - {games - points:g}"]
        lines.append(f"games {games}: +{wins} ={draws} -{losses}, pairs (0, 1/2, 1, 3/2, 2 points): {self.counts}")
        found = strength(self.counts)
        if found is not None:
            lines.append(
                f"Elo {_certain_text(found)}, normalised {found.normalised_elo:+.1f}, from {found.pairs}"
                f" pair{'s' * (found.pairs > 1)}"
            )
        if self.sprt is not None:
            low, high = self.sprt.bounds
            decision = {"H0": "H0 accepted", "H1": "H1 accepted", None: "not decided"}[self.decision]
            lines.append(
                f"SPRT ({self.sprt.elo0:g}, {self.sprt.elo1:g} {self.sprt.model} Elo): LLR"
                f" {self.llr:+.2f} in ({low:.2f}, {high:.2f}): {decision}"
            )
        for engine, name in enumerate(self.names):
            usage = self.usage(engine)
            if usage.moves:
                left = "" if usage.least_left_s is None else f", least left {usage.least_left_s * 1000:.0f} ms"
                lines.append(
                    f"{name}: {usage.moves} moves, depth {usage.depth / usage.moves:.1f},"
                    f" {usage.nodes / max(usage.time_s, 1e-9) / 1000:.0f} knps,"
                    f" longest move {usage.longest_s * 1000:.0f} ms{left}"
                )
        reasons = Counter(record.reason for record in self.records)
        lines.append("ended by: " + ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items())))
        for number, complaint in self.complaints:
            lines.append(
                f"COMPLAINT game {number + 1}, {self.names[complaint.engine]}: {complaint.kind}: {complaint.text}"
            )
        for record in self.records:
            lines += [f"thrown away, game {record.number + 1}: {text}" for text in record.thrown_away]
        return lines

    def summary(self) -> dict[str, Any]:
        """Return the result, for programs."""
        wins, draws, losses = self.wins_draws_losses
        found = strength(self.counts)
        usages = [usage for record in self.records for usage in record.usage]
        moves = sum(usage.moves for usage in usages)
        spare_s = sum(record.seconds for record in self.records) - sum(usage.time_s for usage in usages)
        test = None
        if self.sprt is not None:
            test = asdict(self.sprt)
            test |= {"llr": self.llr, "bounds": list(self.sprt.bounds), "decision": self.decision}
        return {
            "games": len(self.records),
            "wins": wins,
            "draws": draws,
            "losses": losses,
            "pairs": self.counts,
            "score": found and found.score,
            "elo": found and _finite(found.elo),
            "elo_95": found and [_finite(found.low), _finite(found.high)],
            "normalised_elo": found and _finite(found.normalised_elo),
            "los": found and found.los,
            "sprt": test,
            "complaints": [
                {"game": number + 1, "engine": self.names[one.engine], "kind": one.kind, "text": one.text}
                for number, one in self.complaints
            ],
            "thrown_away": [
                {"game": record.number + 1, "text": text} for record in self.records for text in record.thrown_away
            ],
            "runner_ms_per_move": 1000 * spare_s / moves if moves else None,
        }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def pairs_text(counts: Sequence[int]) -> str:
    """Return pairs of games by the half points of the first player, and the strength that they show."""
    found = strength(counts)
    if found is None:
        return "no pair was finished"
    return f"{2 * found.pairs} games, pairs {list(counts)}: Elo {_certain_text(found)}"


def _certain_text(found: Strength) -> str:
    """Return Elo, its interval and the likelihood of superiority, or that all pairs are alike."""
    if found.los is None:
        return f"{found.elo:+.1f}, all pairs alike: no interval"
    return f"{elo_text(found)} (95%), LOS {found.los:.1%}"


def elo_text(found: Strength) -> str:
    """Elo with the half width of its interval, or its ends where they are not the same distance away."""
    if not math.isfinite(found.elo):
        return f"{found.elo:+.0f}"
    if found.los is None:
        return f"{found.elo:+.1f} (no interval)"
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return f"{found.elo:+.1f} ({found.low:+.0f} to {found.high:+.0f})"
    return f"{found.elo:+.1f} +- {(found.high - found.low) / 2:.1f}"
