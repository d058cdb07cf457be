"""Fit win, draw and loss to this engine's scores, and write the parameters as `psearch/text/wdl_model.py`.

    python bench/tuning/fit_wdl.py FILE [--out FILE] [--positions N] [--nodes N] [--seed S]

The file is one of games (`bench/training`), or holds one position a line (text, or .xz): `FEN;score;result`, result 1,
0.5 or 0 seen from White; its score is not used. A seeded sample of positions is searched by this engine, one worker, a
fixed number of nodes, empty table. The model (`psearch.text.wdl`) is fitted to the games' results by maximum
likelihood.

**Model.** P(win) and P(loss) are logistic in the score, with a margin a and a spread b that depend on the material of
both sides in pawn units. log a and log b are linear between knots, so that both stay positive; then P(win) and P(loss)
add up to less than 1. One set of parameters serves both colours: everything is seen from the side to move.

**Held out.** A tenth of the sample, drawn with the seed, is not fitted. Its log loss (mean of -log P(what happened), in
nats) is compared with that of the frequencies alone, and with a and b that do not depend on material. The file does not
name games, so positions of one game may fall on both sides.

**What it means.** The model in use is fitted to games of TCEC, of engines much stronger than this one, at long time
controls. They draw more, and turn smaller advantages into wins, than psearch does against an equal. So it answers: how
do such positions end when they are played well? That is what a reader of an analysis asks. It does not predict a match
of psearch. After a change of evaluation or search the fit should be run again: the scale of the scores is what it is
about.
"""

from __future__ import annotations

import argparse
import lzma
import random
import sys
import time
from pathlib import Path
from typing import Any

import chess
import numpy as np
from fitting.positions import board_codes, read  # finds bench/training
from fitting.weights import check_ours
from netdata.reader import shuffled

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError
from psearch.text.fen import parse_position
from psearch.text.wdl import material
from psearch.text.wdl_model import DRAW_MARGIN_CP, MATERIAL_KNOTS, SPREAD_CP

try:
    from scipy.optimize import minimize
    from scipy.special import expit
except ImportError:
    raise SystemExit("this needs scipy: pip install '.[study]'") from None

Array = np.ndarray[Any, Any]

KNOTS = (16, 26, 36, 50, 64, 78)
"""pawn units of both sides together. Won games are adjudicated before little material is left, so what the data holds
below the first knot is drawn more often than it should be. There the first knot's values stand; with a knot at 12 the
held-out log loss was 0.7838 instead of 0.7873, and a lone rook against a king half a draw."""
HELD_OUT = 10
SCORE_MAX = 2000
"""cp; scores beyond, mates too, count as this: such games are decided, and one odd result must not bend the fit"""
HASH_MB = 16

_HEAD = '''\
"""Parameters of the win, draw and loss model (`wdl.py`). Written by bench/tuning/fit_wdl.py: change that, not this.

{provenance}
"""

'''


def read_sample(path: Path, count: int, seed: int) -> tuple[list[str], Array]:
    """Return FENs and results seen from White, without duplicates of a position. Raises ValueError and PsearchError."""
    if path.suffix == ".games":
        return _read_games(path, count, seed)
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="ascii") as lines:
        every = [line for line in lines if line.strip()]
    random.Random(seed).shuffle(every)
    chosen: dict[str, float] = {}
    for line in every:
        fen, _, result = line.rstrip("\n").split(";")
        parse_position(fen)
        chosen.setdefault(fen, float(result))
        if len(chosen) == count:
            break
    return list(chosen), np.array(list(chosen.values()))


def _read_games(path: Path, count: int, seed: int) -> tuple[list[str], Array]:
    """Return the same of games; every position from its mover's side, who is White then."""
    found = read([path])
    samples = shuffled(np.concatenate([found.training, found.test]), seed)
    _, first = np.unique(samples[["occupied", "pieces"]], return_index=True)
    samples = samples[np.sort(first)[:count]]
    fens = []
    for codes in board_codes(samples):
        board = chess.Board(None)
        for square in np.flatnonzero(codes):
            board.set_piece_at(int(square), chess.Piece(int(codes[square]) & 7, bool(codes[square] < 8)))
        fens.append(board.fen())
    return fens, samples["result"] / 2


def search_all(fens: list[str], nodes: int) -> tuple[Array, Array, Array]:
    """Return for each position: our score in cp, the material in pawn units, 1 if White is to move, else -1."""
    arena = Arena(workers=1, hash_mb=HASH_MB)
    options = SearchOptions(policy="serial")
    found = np.zeros((3, len(fens)))
    start = time.monotonic()
    for number, fen in enumerate(fens):
        board = chess.Board(fen)
        arena.forget()
        write_search(arena, board, Limits(nodes=nodes), options)
        work_alone(arena)
        found[:, number] = int(arena.header[0]["score"]), material(board), 1 if board.turn else -1
        if number % 1000 == 0:
            print(f"{number}/{len(fens)} positions, {time.monotonic() - start:.0f} s", file=sys.stderr)
    arena.close()
    return found[0], found[1], found[2]


def likelihoods(parameters: Array, score: Array, units: Array) -> tuple[Array, Array, Array]:
    """P(win), P(draw), P(loss); parameters: log a at every knot, then log b; or one of each."""
    half = len(parameters) // 2
    knots = KNOTS if half > 1 else KNOTS[:1]
    margin = np.exp(np.interp(units, knots, parameters[:half]))
    spread = np.exp(np.interp(units, knots, parameters[half:]))
    win, loss = expit((score - margin) / spread), expit((-score - margin) / spread)
    return win, 1 - win - loss, loss


def log_loss(parameters: Array, score: Array, units: Array, outcome: Array) -> float:
    """Mean of -log P(outcome); outcome: 1 won, 0 drawn, -1 lost by the side to move."""
    win, draw, loss = likelihoods(parameters, score, units)
    chance = np.where(outcome > 0, win, np.where(outcome < 0, loss, draw))
    return float(-np.log(np.maximum(chance, 1e-12)).mean())


def fit(score: Array, units: Array, outcome: Array, knots: int) -> Array:
    """The parameters of least log loss; raises RuntimeError when the optimiser gives up."""
    begin = np.concatenate([np.full(knots, np.log(150.0)), np.full(knots, np.log(80.0))])
    for method in ("L-BFGS-B", "Powell"):  # few positions may leave a line search by differences without progress
        done = minimize(log_loss, begin, args=(score, units, outcome), method=method, options={"maxiter": 2000})
        if done.success:
            return np.asarray(done.x)
    raise RuntimeError(f"no fit: {done.message}")


def reliability(chance: Array, happened: Array, bins: int = 5) -> list[tuple[float, float]]:
    """Mean prediction and share that happened, in bins of equal number."""
    order = np.argsort(chance)
    return [(float(chance[part].mean()), float(happened[part].mean())) for part in np.array_split(order, bins)]


def _tuple(name: str, values: Array, note: str) -> str:
    numbers = ", ".join(f"{value:.1f}" for value in values)
    return f'{name} = ({numbers})\n"""{note}"""\n'


def main() -> None:
    """Search, fit, report, write."""
    parser = argparse.ArgumentParser(description="Fit the win, draw and loss model.")
    parser.add_argument("tuning_file", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--positions", type=int, default=30_000)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.out is not None:
        check_ours(options.out, '"""Parameters of the win')

    fens, white_result = read_sample(options.tuning_file, options.positions, options.seed)
    score, units, side = search_all(fens, options.nodes)
    outcome = np.sign((2 * white_result - 1) * side)
    score = np.clip(score, -SCORE_MAX, SCORE_MAX)

    held = np.random.default_rng(options.seed).permutation(len(score)) < len(score) // HELD_OUT
    fitted = ~held
    parameters = fit(score[fitted], units[fitted], outcome[fitted], len(KNOTS))
    constant = fit(score[fitted], units[fitted], outcome[fitted], 1)
    losses = {
        "frequencies alone": float(-np.mean(np.log([(outcome[fitted] == one).mean() for one in outcome[held]]))),
        "score, not material": log_loss(constant, score[held], units[held], outcome[held]),
        "score and material": log_loss(parameters, score[held], units[held], outcome[held]),
    }
    if MATERIAL_KNOTS == KNOTS:
        before = log_loss(np.log([*DRAW_MARGIN_CP, *SPREAD_CP]), score[held], units[held], outcome[held])
        print(f"held-out log loss, {'the model in use':<20} {before:.4f}")
    for name, value in losses.items():
        print(f"held-out log loss, {name:<20} {value:.4f}")
    chances = likelihoods(parameters, score[held], units[held])
    for name, chance, happened in zip(("win", "draw", "loss"), chances, (1, 0, -1), strict=True):
        pairs = ", ".join(f"{said:.3f}/{was:.3f}" for said, was in reliability(chance, outcome[held] == happened))
        print(f"P({name}) said/happened: {pairs}")
    for index, knot in enumerate(KNOTS):
        near = int((np.abs(units - knot) < 6).sum())
        margin, spread = np.exp(parameters[index]), np.exp(parameters[len(KNOTS) + index])
        print(f"material {knot:2d}: a {margin:6.1f} cp, b {spread:6.1f} cp ({near} positions near)")

    if options.out is not None:
        counts = f"{int(fitted.sum()):,} positions ({options.tuning_file.name}, seed {options.seed})"
        provenance = (
            f"Fitted on {counts},\neach searched by one worker for {options.nodes:,} nodes. "
            f"Log loss on {int(held.sum()):,} held-out positions:\n"
            + ", ".join(f"{name} {value:.4f}" for name, value in losses.items())
            + "."
        )
        half = len(KNOTS)
        text = _HEAD.format(provenance=provenance)
        text += f"MATERIAL_KNOTS = {KNOTS}\n" + '"""pawn units of both sides together"""\n'
        text += _tuple("DRAW_MARGIN_CP", np.exp(parameters[:half]), "a: the score at which half of the games are won")
        text += _tuple("SPREAD_CP", np.exp(parameters[half:]), "b: the scale of the logistic curves")
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, EOFError, lzma.LZMAError, PsearchError) as error:
        sys.exit(f"fit_wdl.py: {error}")
