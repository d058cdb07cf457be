"""The notebook prints what it says, and the grader tells right answers from wrong ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import chess
import pytest
from paths import REPOSITORY
from positions import KIWIPETE
from teaching import ANSWERS, NOTEBOOK, SHEET, answer_to, grader, renewed_notebook, renewed_sheet, without_pictures

from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator

CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
EXAMPLES = REPOSITORY / "docs" / "examples"
GRADE = grader()


@pytest.mark.slow
def test_the_notebook_is_what_its_cells_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    text = NOTEBOOK.read_text("utf-8")
    assert without_pictures(renewed_notebook(text)) == without_pictures(text)


def test_every_section_of_the_notebook_has_a_picture_and_figures() -> None:
    text = ["".join(cell["source"]) for cell in CELLS]
    sections = [number for number, source in enumerate(text) if re.match(r"## \d", source)]
    assert len(sections) == 5
    for begin, end in zip(sections, [*sections[1:], len(CELLS)], strict=True):
        cells = CELLS[begin:end]
        assert any(out["output_type"] == "display_data" for cell in cells for out in cell.get("outputs", ()))
        assert any("template" in cell["metadata"] for cell in cells)


def test_a_figure_in_the_text_of_the_notebook_comes_from_a_cell() -> None:
    for cell in CELLS:
        if cell["cell_type"] == "markdown":
            source = "".join(cell["metadata"].get("template", cell["source"]))
            assert not re.search(r"\d\.\d|\d%", re.sub(r"\{.*?\}", "", source)), source


@pytest.mark.timeout(900)  # a minute on a quiet machine
@pytest.mark.slow
def test_the_sheet_has_the_figures_of_the_answers() -> None:
    text = SHEET.read_text("utf-8")
    assert renewed_sheet(text) == text
    assert len(ANSWERS) == len(GRADE.expected_figures(text)) == len(re.findall(r"^\d\. \*\*", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (1, answer_to(1), "right"),
        (1, EXAMPLES / "pvsplit.py", "wrong"),
        pytest.param(6, answer_to(6), "right", marks=pytest.mark.slow),
        pytest.param(6, answer_to(2), "wrong", marks=pytest.mark.slow),
        pytest.param(2, answer_to(3), "wrong", marks=pytest.mark.slow),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else str(value),
)
def test_an_answer_is_graded(exercise: int, answer: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert GRADE.main([str(exercise), str(answer)]) == (words == "wrong")
    head, expected, found, verdict = capsys.readouterr().out.splitlines()
    assert head.startswith(f"exercise {exercise}") and expected.startswith("expected")
    assert found.startswith(answer.name) and verdict == words


def test_an_answer_may_be_better_than_the_best_but_not_slower(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = GRADE.expected_figures(SHEET.read_text("utf-8"))[6][1:]
    for change, status in ((0.01, 0), (0, 0), (-0.01, 1)):
        found = [f"{float(expected[0]) + change:.2f}", *expected[1:4], "1", "1.00%"]
        monkeypatch.setattr(GRADE, "figures_of", lambda *_, found=found: found)
        assert GRADE.main(["6", str(answer_to(6))]) == status
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give the number of an exercise, 1 to 6, and the file of a policy"),
        (["7", "x.py"], "give the number of an exercise"),
        (["two", "x.py"], "give the number of an exercise"),
        (["2", "no_such_file.py"], "no such file: no_such_file.py"),
        (["2", str(EXAMPLES / "tic_tac_toe.py")], "tic_tac_toe.py: it replaces nothing"),
    ],
    ids=str,
)
def test_what_cannot_be_graded_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        GRADE.main(arguments)
    captured = capsys.readouterr()
    assert stop.value.code == 2 and captured.out == ""
    assert words in captured.err and captured.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pvsplit", "jamboree"])
def test_a_textbook_policy_shares_chess_and_finds_its_value(name: str) -> None:
    found = []
    for workers, policy in ((3, str(EXAMPLES / f"{name}.py")), (1, "serial")):
        simulator = Simulator(workers, 1, Costs())
        try:
            options = SearchOptions.plain(policy=policy)
            found.append(simulator.search("", chess.Board(KIWIPETE), 3, options, validate=True))
        finally:
            simulator.close()
    assert found[0].splits > 0 and found[0].joins > 0
    assert found[0].score == found[1].score
