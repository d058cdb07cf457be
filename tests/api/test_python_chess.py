"""What works with python-chess's engines works with ours: its documented examples, and its signatures."""

from __future__ import annotations

import asyncio
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import chess
import chess.engine
import pytest

import psearch

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "api.md").read_text("utf-8")

# From https://python-chess.readthedocs.io/en/latest/engine.html (python-chess is GPL-3.0-or-later), with `{engine}`
# for what starts the engine, and times of 0.1 s and depths of 20 made smaller, for there are hundreds of moves.
PLAYING = """
engine = {engine}

board = chess.Board()
while not board.is_game_over():
    result = await engine.play(board, chess.engine.Limit(time=0.004))
    board.push(result.move)

await engine.quit()
assert board.outcome(claim_draw=False) is not None
"""
ANALYSING = """
engine = {engine}

board = chess.Board()
info = await engine.analyse(board, chess.engine.Limit(time=0.1))
print("Score:", info["score"])
# Score: PovScore(Cp(+20), WHITE)

board = chess.Board("r1bqkbnr/p1pp1ppp/1pn5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 2 4")
info = await engine.analyse(board, chess.engine.Limit(depth=12))
print("Score:", info["score"])
# Score: PovScore(Mate(+1), WHITE)

await engine.quit()
"""
INDEFINITE = """
engine = {engine}

with await engine.analysis(chess.Board()) as analysis:
    async for info in analysis:
        print("Score:", info.get("score"), info.get("pv"))

        # Arbitrary stop condition.
        if info.get("seldepth", 0) > 12:
            break

await engine.quit()
"""
OPTIONS = """
engine = {engine}

# Check available options.
print(engine.options["Hash"])

# Set an option.
await engine.configure({{"Hash": 32}})

# Set an option for one search.
await engine.play(chess.Board(), chess.engine.Limit(depth=3), options={{"Pruning": "plain"}})
await engine.quit()
"""
EXAMPLES = {"playing": PLAYING, "analysing": ANALYSING, "indefinite": INDEFINITE, "options": OPTIONS}


@pytest.mark.parametrize("style", ["blocking", "asyncio"])
@pytest.mark.parametrize("name", list(EXAMPLES))
def test_documented_examples(name: str, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind = "Engine" if style == "blocking" else "AsyncEngine"
    text = EXAMPLES[name].format(engine=f"psearch.{kind}(hash_mb=1)")
    names: dict[str, Any] = {"chess": chess, "psearch": psearch}
    if style == "blocking":
        exec(re.sub(r"\b(await|async) ", "", text), names)
    else:
        exec("async def main():\n" + textwrap.indent(text, "    "), names)
        asyncio.run(names["main"]())
    said = capsys.readouterr().out
    if name == "analysing":
        assert said.splitlines()[1] == "Score: PovScore(Mate(+1), WHITE)"
    if name == "indefinite":
        assert said.count("Score: PovScore(") >= 3
    if name == "options":
        assert re.match(r"Option\(name='Hash', type='spin', default=(64|128|256|512|1024), min=1", said)


PLUMBING = {
    *("transport", "protocol", "timeout", "returncode", "shutdown_event"),
    *(name for name in dir(asyncio.SubprocessProtocol) if not name.startswith("_")),
    *("send_line", "line_received", "error_line_received", "config", "target_config", "loop"),
}
"""Members of python-chess's classes that concern how it talks to a process."""
REFUSED = {"popen", "popen_uci", "popen_xboard", "communicate"}
OTHER_DEFAULTS = {("play", "info"), ("analyse", "limit")}


def public(kind: type) -> dict[str, Any]:
    declared = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    return {
        name: inspect.getattr_static(kind, name, None)
        for name in {*dir(kind), *declared}
        if not name.startswith("_") and name not in PLUMBING
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (chess.engine.SimpleEngine, psearch.Engine),
        (chess.engine.Protocol, psearch.AsyncEngine),
        (chess.engine.SimpleAnalysisResult, psearch.Analysis),
        (chess.engine.AnalysisResult, psearch.AsyncAnalysis),
    ],
)
def test_signatures(theirs: type, ours: type) -> None:
    """A name or a parameter that a later python-chess has, and we do not, shows here."""
    mine = public(ours)
    assert set(public(theirs)) <= set(mine)
    for name, method in public(theirs).items():
        if name in REFUSED or not callable(method):
            continue
        wanted, found = inspect.signature(method).parameters, inspect.signature(mine[name]).parameters
        assert list(wanted) == [key for key in found if key in wanted], name
        assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(mine[name]), name
        for key, parameter in wanted.items():
            assert parameter.kind == found[key].kind, (name, key)
            if (name, key) not in OTHER_DEFAULTS:
                assert parameter.default == found[key].default, (name, key)
        for key in found.keys() - wanted.keys():  # ours alone: nobody has to know it
            assert found[key].default is not inspect.Parameter.empty, (name, key)


def test_info_is_that_of_the_best_line() -> None:
    with psearch.Engine(hash_mb=1) as engine:
        analysis = engine.analysis(chess.Board(), chess.engine.Limit(depth=1))
        assert analysis.wait().move is not None
        assert analysis.multipv[0] is analysis.info


def test_the_guide_lists_what_differs() -> None:
    table = GUIDE.split("## Other than python-chess's engines\n", 1)[1].split("\n## ")[0]
    for name in {*REFUSED, "transport", "timeout", *(f"{method}" for method, _ in OTHER_DEFAULTS)}:
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", table), name


def test_what_there_is_not_says_what_to_use() -> None:
    for start in (psearch.Engine.popen_uci, psearch.Engine.popen, psearch.Engine.popen_xboard):
        with pytest.raises(psearch.PsearchError, match=r"SimpleEngine\.popen_uci"):
            start("stockfish")
    with pytest.raises(psearch.PsearchError, match=r"chess\.engine\.popen_uci"):
        asyncio.run(psearch.AsyncEngine.popen("stockfish"))
    with psearch.Engine(hash_mb=1) as engine, pytest.raises(psearch.PsearchError, match="analysis"):
        engine.communicate(lambda protocol: protocol)
    with pytest.raises(psearch.PsearchError, match="analysis"):
        asyncio.run(psearch.AsyncEngine().communicate(lambda protocol: protocol))
