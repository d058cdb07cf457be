"""The notebook and the exercise sheet: run, and written again with the figures of now.

A cell of text in `docs/examples/parallel-search.ipynb` that has figures keeps its source with names in braces as
`template` in its metadata; the cells of code before give the values. After a change of the scheduler:

    python tests/support/teaching.py
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from example_games import plain_game
from paths import DATA, REPOSITORY

NOTEBOOK = REPOSITORY / "docs" / "examples" / "parallel-search.ipynb"
SHEET = REPOSITORY / "docs" / "guides" / "exercises.md"
ANSWERS = ("root_alone", "young_brothers", "smallest_first", "minimal_tree", "lazy_smp", "best")
"""Files of `tests/data/exercises` that answer the exercises, from the first."""
_ROW = re.compile(r"^\| \d .*\n", re.MULTILINE)
_HEAD = re.compile(r"(?<=^\|---\|---\|---\|---\|---\|---\|---\|---\|\n)", re.MULTILINE)
_EXAMPLE = re.compile(r"^    (expected|my_answer\.py) .*$", re.MULTILINE)


def grader() -> Any:
    """Return the module of `docs/examples/grade.py`."""
    return plain_game(REPOSITORY / "docs" / "examples" / "grade.py")


def answer_to(exercise: int) -> Path:
    """Return the file that answers an exercise, 1 to 6."""
    return DATA / "exercises" / f"{ANSWERS[exercise - 1]}.py"


def renewed_notebook(text: str) -> str:
    """Return the notebook with the outputs and figures of now. It is run in the current folder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    notebook = json.loads(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    with mock.patch.object(pyplot, "show"), contextlib.ExitStack() as ended:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
                cell["outputs"] = [*_stream(printed.getvalue()), *map(_picture, pyplot.get_fignums())]
                pyplot.close("all")
            elif template := cell["metadata"].get("template"):
                cell["source"] = "".join(template).format_map(names).splitlines(keepends=True)
        ended.push(names["FOLDER"])  # a reader's kernel removes it when it ends
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _stream(text: str) -> list[dict[str, Any]]:
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []


def _picture(number: int) -> dict[str, Any]:
    from matplotlib import pyplot

    picture = io.BytesIO()
    pyplot.figure(number).savefig(picture, format="png", dpi=70, metadata={"Software": None})
    data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["<Figure>"]}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def without_pictures(text: str) -> list[Any]:
    """Return the cells of a notebook with the kinds of their outputs in place of pictures."""
    cells = json.loads(text)["cells"]
    return [
        (cell["source"], [output.get("text", output["output_type"]) for output in cell.get("outputs", [])])
        for cell in cells
    ]


def renewed_sheet(text: str) -> str:
    """Return the sheet with the figures of now."""
    grade = grader()
    workers = {number: row[0] for number, row in grade.expected_figures(text).items()}
    found = {number: grade.figures_of(answer_to(number), workers[number]) for number in workers}
    found[6][0] = f"{int(float(found[6][0]) * 10) / 10:.2f}"  # a tenth below is as good
    rows = [" | ".join([f"| {number}", workers[number], *row]) + " |\n" for number, row in found.items()]
    shown = "  ".join(cell.rjust(width) for cell, width in zip(found[2], (7, 5, 5, 6, 5, 7), strict=True))
    text = _EXAMPLE.sub(lambda match: f"    {match[1]:<12}  {shown}", _ROW.sub("", text))
    return _HEAD.sub("".join(rows), text)


def main() -> None:
    """Write both files again, if anything but a picture has changed."""
    for path, renewed, content in (
        (SHEET, renewed_sheet, str),
        (NOTEBOOK, renewed_notebook, without_pictures),
    ):
        before = path.read_text("utf-8")
        with contextlib.chdir(NOTEBOOK.parent):
            after = renewed(before)
        if content(after) != content(before) or "--pictures" in sys.argv:
            Path(path).write_text(after, "utf-8")
            print(path.relative_to(REPOSITORY).as_posix())


if __name__ == "__main__":
    main()
