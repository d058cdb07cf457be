"""Files of kernels that stand in for hooks: which machine code they get, and what a user is told of a mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import SUPPORT
from tiny_hooks import TINY_HOOKS

from psearch.core.toolchain import groups
from psearch.core.toolchain.groups import KernelError, PlugInError
from psearch.core.toolchain.kernel_cache import file_hash
from psearch.core.toolchain.kernel_sets import STANDARD, KernelSet

TEN_TIMES = """
from tiny_hooks import chosen
from psearch.core.toolchain.jit import replaces

@replaces(chosen)
def mine(number):
    return {0} * chosen(number)
"""


def set_of(file: Path) -> KernelSet:
    return KernelSet(str(file), "", file_hash(str(file)))


def answer(kernels: KernelSet) -> int:
    return int(kernels.group(TINY_HOOKS).function("answer")(4))


# -- which code runs -------------------------------------------------------------------------------------------------


def test_the_standard_set_is_the_package_s_own_groups() -> None:
    assert STANDARD.group(TINY_HOOKS) is TINY_HOOKS
    assert answer(STANDARD) == 5


def test_a_stand_in_runs_in_place_of_the_hook_and_may_call_it(tmp_path: Path) -> None:
    file = tmp_path / "ten.py"
    file.write_text(TEN_TIMES.format(10))
    assert set_of(file).group(TINY_HOOKS) is set_of(file).group(TINY_HOOKS)
    assert answer(set_of(file)) == 50
    assert answer(STANDARD) == 5


def test_a_file_that_was_edited_never_gets_the_older_code(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text(TEN_TIMES.format(2))
    before = set_of(file)
    assert answer(before) == 10
    file.write_text(TEN_TIMES.format(3))
    assert answer(set_of(file)) == 15
    assert answer(before) == 10, "what is loaded stays"
    file.write_text(TEN_TIMES.format(4))
    late = set_of(file)
    file.write_text(TEN_TIMES.format(5))
    with pytest.raises(PlugInError, match=r"edited\.py: it has changed since it was read"):
        answer(late)


def test_neither_does_one_that_imports_a_file_which_was(tmp_path: Path) -> None:
    """The program that asks is another one each time, as after an edit."""
    (tmp_path / "beside_it.py").write_text("FACTOR = 6\n")
    file = tmp_path / "importing.py"
    file.write_text("from beside_it import FACTOR\n" + TEN_TIMES.format("FACTOR"))
    program = (
        "from tiny_hooks import TINY_HOOKS; from psearch.core.toolchain.kernel_sets import KernelSet;"
        f"print(KernelSet{(str(file), '', file_hash(str(file)))!r}.group(TINY_HOOKS).function('answer')(4))"
    )

    def printed() -> str:
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, "-c", program]
        return subprocess.run(words, capture_output=True, text=True, timeout=100, env=environment, check=True).stdout

    assert printed() == "30\n"
    (tmp_path / "beside_it.py").write_text("FACTOR = 7\n")
    assert printed() == "35\n"


def test_two_copies_of_a_file_share_their_code(tmp_path: Path) -> None:
    files = [tmp_path / name / "copied.py" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(TEN_TIMES.format(8))
    first, second = (set_of(file).group(TINY_HOOKS) for file in files)
    groups.load(first, second)
    found = [groups.cached(group) for group in (first, second)]
    assert found[0] is not None and found[0] == found[1]


def test_a_module_is_imported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an installed package declares it."""
    file = tmp_path / "declared_policy.py"
    file.write_text(TEN_TIMES.format(9))
    monkeypatch.syspath_prepend(tmp_path)
    assert answer(KernelSet(str(file), "declared_policy", file_hash(str(file)))) == 45


def test_a_mistake_reaches_the_program_as_one_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(TEN_TIMES.format("factor"))
    with pytest.raises(KernelError) as raised:
        answer(set_of(file))
    assert str(raised.value) == f"{file}:7: mine: NameError: name 'factor' is not defined"


# -- what is wrong with a file ---------------------------------------------------------------------------------------

HEAD = """\
from psearch.own_policy import Context, Node, i64, kernel, may_open, open_priority, replaces

@replaces(may_open)
def mine(ctx, node, ply):
"""
OPENS = f"{HEAD}    return True\n"
MISTAKES = {
    "fine": (OPENS, ""),
    "no_field": (f"{HEAD}    return node.moves_dun > 1", "5: mine: no field is called moves_dun"),
    "no_name": (f"{HEAD}    return nodes > 1", "5: mine: NameError: name 'nodes' is not defined"),
    "result": (f"{HEAD}    return 'yes'", "5: mine: No conversion from Literal[str](yes) to bool"),
    "arguments": (
        HEAD.replace(", ply", "") + "    return True",
        "4: mine takes (ctx, node), and may_open is called with (ctx, node, ply)",
    ),
    "function": (
        f"{HEAD}    return helper(node)\n\ndef helper(node):\n    return True",
        "4: mine: a kernel cannot use helper, which is a function",
    ),
    "call": (
        f"{HEAD}    return helper(node) > 1\n\n@kernel(i64(Context, Node))\ndef helper(ctx, node):\n    return 1",
        "5: mine: helper is called with arguments that it does not take",
    ),
    "list": (f"{HEAD}    return [1, 2][node.depth] > 1", "4: mine: a kernel takes no memory"),
    "raises": (f"{HEAD}    raise ValueError", "5: mine: a kernel cannot raise exceptions"),
    "closure": (
        "from psearch.own_policy import may_open, replaces\n\ndef make(n):\n    @replaces(may_open)\n"
        "    def mine(ctx, node, ply):\n        return n\n\nmake(1)",
        "5: mine: plug_in_closure",
    ),
    "itself": (
        HEAD.replace("mine", "may_open") + "    return may_open(ctx, node, ply)",
        "4: may_open calls itself: no kernel is recursive",
    ),
    "twice": (
        f"{OPENS}\n@replaces(may_open)\ndef other(ctx, node, ply):\n    return True",
        "8: other: may_open has been replaced already",
    ),
    "no_hook": (HEAD.replace("(may_open)", "(kernel)") + "    return True", "4: mine cannot replace kernel: there are"),
    "nothing": ("x = 1", " it replaces nothing"),
    "syntax": ("def mine(:", "1: invalid syntax"),
    "no_module": ("import no_such_module", "1: ModuleNotFoundError: No module named 'no_such_module'"),
    "unknown_hook": ("from psearch.own_policy import may_opem", "1: ImportError: cannot import name 'may_opem'"),
    "fails": ("x = 1\ny = x / 0", "2: ZeroDivisionError: division by zero"),
    "leaves": ("raise SystemExit(0)", "1: SystemExit: 0"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is told of each file, without its folder."""
    folder = tmp_path_factory.mktemp("policies")
    for name, (text, _) in MISTAKES.items():
        (folder / f"{name}.py").write_text(text)
    words = [sys.executable, str(SUPPORT / "bad_policies.py"), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return {name: line.removeprefix(f"{folder}/") for name, line in found.items()}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_line_with_file_and_line(name: str, told: dict[str, str]) -> None:
    wanted = MISTAKES[name][1]
    assert "\n" not in told[name]
    if not wanted:
        assert told[name] == ""
    else:
        assert told[name].startswith(f"{name}.py:{wanted}")
