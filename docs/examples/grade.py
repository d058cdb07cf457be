"""Grade an answer to an exercise of docs/guides/exercises.md: python docs/examples/grade.py EXERCISE FILE

Exit status: 0 right, 1 wrong, 2 the exercise or the file cannot be used.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHEET = HERE.parent / "guides" / "exercises.md"
COLUMNS = ("speedup", "nodes", "idle", "splits", "joins", "aborted")
BY_SPEEDUP = 6
"""The exercise whose other figures do not count."""


def expected_figures(sheet):
    """Return the rows of the sheet's table by number of the exercise: workers, then `COLUMNS`, all of them texts."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in sheet.splitlines() if line[:1] == "|"]
    return {int(number): figures for number, *figures in rows if number.isdigit()}


def figures_of(policy, workers):
    """Return `COLUMNS` of ten artificial trees, as texts. Exits with status 2 where the search refuses the policy."""
    beside = Path(sys.executable).with_name("psearch")
    program = str(beside) if beside.exists() else shutil.which("psearch")
    if program is None:
        fail("psearch is not installed: run `pip install .` in the checkout")
    command = [program, "simulate", "--game", str(HERE / "artificial_tree.py"), *map(str, range(1, 11))]
    command += ["--depth", "7", "--workers", str(workers), "--policy", "answer.py", "--json"]
    with tempfile.TemporaryDirectory() as folder:  # the name of a policy, as it is given, seeds its searches
        shutil.copy(policy, Path(folder, "answer.py"))
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        fail(done.stderr.strip().splitlines()[-1].replace(str(Path(folder, "answer.py")), str(policy)))
    row = json.loads(done.stdout)["rows"][-1]
    shares = f"{row['idle_share']:.1%}", f"{row['aborted_share']:.2%}"
    counts = f"{row['splits']:,.0f}", f"{row['joins']:,.0f}"
    return [f"{row['speedup']:.2f}", f"{row['node_overhead']:.2f}", shares[0], *counts, shares[1]]


def fail(message):
    print(f"grade.py: {message}", file=sys.stderr)
    sys.exit(2)


def main(arguments):
    sheet = expected_figures(SHEET.read_text("utf-8"))
    if len(arguments) != 2 or not arguments[0].isdigit() or int(arguments[0]) not in sheet:
        fail(f"give the number of an exercise, 1 to {max(sheet)}, and the file of a policy")
    exercise, file = int(arguments[0]), Path(arguments[1])
    if not file.is_file():
        fail(f"no such file: {file}")
    workers, *expected = sheet[exercise]
    found = figures_of(file.resolve(), workers)
    rows = [(f"exercise {exercise}", *COLUMNS), ("expected", *expected), (file.name, *found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        print(first.ljust(widths[0]), *map(str.rjust, others, widths[1:]), sep="  ")
    if exercise == BY_SPEEDUP:
        right = float(found[0]) >= float(expected[0])
    else:
        right = found == expected
    print("right" if right else "wrong")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
