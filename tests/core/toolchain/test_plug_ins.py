"""Files of kernels that stand in for hooks: which machine code they get, and what a user is told of a mistake."""

from __future__ import annotations

import json
import os
import py_compile
import signal
import subprocess
import sys
import time
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from paths import SUPPORT
from tiny_hooks import TINY_HOOKS

from psearch_core.toolchain import compiler_client, groups
from psearch_core.toolchain.groups import KernelError, PlugInError
from psearch_core.toolchain.kernel_cache import file_hash
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet, read_plug_in

TEN_TIMES = """
from tiny_hooks import chosen
from psearch_core.toolchain.jit import replaces

@replaces(chosen)
def mine(number):
    return {0} * chosen(number)
"""


def set_of(file: Path) -> KernelSet:
    return KernelSet(str(file), "", file_hash(str(file)))


def answer(kernels: KernelSet) -> int:
    return int(kernels.group(TINY_HOOKS).function("answer")(4))


def test_the_standard_set_is_the_package_s_own_groups() -> None:
    assert STANDARD.group(TINY_HOOKS) is TINY_HOOKS
    assert answer(STANDARD) == 5


def test_a_stand_in_runs_in_place_of_the_hook_and_may_call_it(tmp_path: Path) -> None:
    file = tmp_path / "many.py"
    file.write_text(TEN_TIMES.format(201))
    assert set_of(file).group(TINY_HOOKS) is set_of(file).group(TINY_HOOKS)
    function = set_of(file).group(TINY_HOOKS).function("answer")
    assert (function(1), function(4)) == (402, 1000), "the nearest within the limits of the hook"
    assert answer(STANDARD) == 5


def test_a_build_with_checks_ends_at_an_answer_beyond_the_limits(tmp_path: Path) -> None:
    file = tmp_path / "many.py"
    file.write_text(TEN_TIMES.format(201))
    program = (
        "from tiny_hooks import TINY_HOOKS; from psearch_core.toolchain.kernel_sets import KernelSet;"
        f"function = KernelSet{(str(file), '', file_hash(str(file)))!r}.group(TINY_HOOKS).function('answer');"
        "print(function(1), flush=True); function(4)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "PSEARCH_CHECK": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, env=environment)
    assert (done.returncode, done.stdout) == (-signal.SIGABRT, "402\n")
    assert done.stderr.endswith(".mine: chosen must answer with a number from 0 to 1000\n")


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
        "from tiny_hooks import TINY_HOOKS; from psearch_core.toolchain.kernel_sets import KernelSet;"
        f"print(KernelSet{(str(file), '', file_hash(str(file)))!r}.group(TINY_HOOKS).function('answer')(4))"
    )

    def printed() -> str:
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, "-c", program]
        return subprocess.run(words, capture_output=True, text=True, timeout=100, env=environment, check=True).stdout

    assert printed() == "30\n"
    (tmp_path / "beside_it.py").write_text("FACTOR = 7\n")
    assert printed() == "35\n"


@pytest.mark.parametrize("edited", ["stale.py", "stale_constants.py"])
def test_neither_does_one_whose_bytecode_looks_like_new(edited: str, tmp_path: Path) -> None:
    """Python believes bytecode of the same size and second."""
    (tmp_path / "stale_constants.py").write_text("FACTOR = 6\n")
    file = tmp_path / "stale.py"
    file.write_text("from stale_constants import FACTOR\n" + TEN_TIMES.format("(FACTOR + 1)"))
    older = tmp_path / edited
    status = older.stat()
    py_compile.compile(str(older))
    older.write_text(older.read_text().replace("= 6", "= 8").replace("+ 1", "+ 3"))
    os.utime(older, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert answer(set_of(file)) == 45
    assert [path.name for path in tmp_path.glob("__pycache__/*")] == [Path(cache_from_source(str(older))).name]


def test_files_compiled_at_once_have_modules_of_their_own(tmp_path: Path) -> None:
    sets = []
    for number in (3, 4):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "same_name.py").write_text(f"FACTOR = {number}\n")
        (folder / "own.py").write_text("from same_name import FACTOR\n" + TEN_TIMES.format("FACTOR"))
        sets.append(set_of(folder / "own.py"))
    groups.load(*(each.group(TINY_HOOKS) for each in sets))
    assert [answer(each) for each in sets] == [15, 20]


def test_the_package_s_own_code_does_not_depend_on_a_file_compiled_at_once(tmp_path: Path) -> None:
    file = tmp_path / "passing.py"
    file.write_text(TEN_TIMES.format(11))
    program = (
        "from tiny_hooks import TINY_HOOKS; from psearch_core.toolchain import groups;"
        "from psearch_core.toolchain.kernel_sets import KernelSet;"
        f"own = KernelSet{(str(file), '', file_hash(str(file)))!r}.group(TINY_HOOKS);"
        "groups.load(TINY_HOOKS, own);"
        f"open({str(file)!r}, 'a').write('# edited');"
        "print(groups.cached(TINY_HOOKS) is not None, groups.cached(own) is not None)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "PSEARCH_CACHE_DIR": str(tmp_path / "cache")}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=environment, check=True)
    assert done.stdout == "True False\n"


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
    """An installed package declares it in this way."""
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


def test_an_import_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much it says meanwhile."""
    monkeypatch.setattr(compiler_client, "_IMPORT_S", 2.0)
    file = tmp_path / "endless.py"
    file.write_text("import sys, time\nwhile True:\n    print(file=sys.stderr, flush=True)\n    time.sleep(0.1)\n")
    with pytest.raises(PlugInError) as raised:
        answer(set_of(file))
    assert str(raised.value) == f"{file}: importing it takes more than 2 s"


@pytest.mark.parametrize("leaving", ["os._exit(0)", "os.kill(os.getpid(), 11)"])
def test_an_import_that_ends_the_compiler_is_told(leaving: str, tmp_path: Path) -> None:
    file = tmp_path / "leaving.py"
    file.write_text(f"import os\n{leaving}\n")
    with pytest.raises(PlugInError) as raised:
        answer(set_of(file))
    assert str(raised.value) == f"{file}: it ended the process that imported it"


def test_a_process_that_it_starts_is_not_waited_for(tmp_path: Path) -> None:
    """It has inherited the compiler's pipes."""
    file, number = tmp_path / "starting.py", tmp_path / "number"
    start = "import os, pathlib, time\npid = os.fork()\nif not pid:\n    time.sleep(60)\n    os._exit(0)\n"
    file.write_text(f"{start}pathlib.Path({str(number)!r}).write_text(str(pid))\n{TEN_TIMES.format(12)}")
    since = time.monotonic()
    assert answer(set_of(file)) == 60
    assert time.monotonic() - since < 40
    os.kill(int(number.read_text()), 9)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_what_is_no_file_of_kernels_is_not_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(OSError, match="larger than 1 MiB" if kind == "large" else "not a regular file"):
        read_plug_in(str(path))


HEAD = """\
from psearch.own_policy import Context, Node, boolean, i64, kernel, may_open, replaces

@replaces(may_open)
def mine(ctx, node, ply):
"""
OPENS = f"{HEAD}    return True\n"
RULE = """\
import numpy as np
from psearch.own_policy import *
from psearch.own_rule import *
"""
EVALUATES = f"{RULE}@replaces(evaluation_of)\ndef mine(ctx, wk, pos):\n"
HELPER = f"{RULE}@kernel(i64(Node, Worker))\ndef helper(n, w):\n    n.best = w.value = 3\n    return 1\n\n"
WRITES = {
    "field": (f"{HEAD}    node.depth = 3\n    return True", "5: mine: it writes to node.depth; "),
    "more": (f"{HEAD}    node.inside += 1\n    return True", "5: mine: it writes to node.inside; "),
    "name": (f"{HEAD}    it = node\n    it.depth = 3\n    return True", "6: mine: it writes to it.depth; "),
    "item": (f"{HEAD}    node.pv[0] = 3\n    return True", "5: mine: it writes to node.pv[0]; "),
    "text": (f"{HEAD}    node['depth'] = 3\n    return True", "5: mine: it writes to node['depth']; "),
    "header": (
        f"{RULE}@replaces(claim_depth)\ndef mine(ctx):\n    header_of(ctx).options.wait = 1\n    return 0",
        "6: mine: it writes to header_of(ctx).options.wait; in place of claim_depth it only reads",
    ),
    "best": (
        f"{RULE}@replaces(prunes_move)\ndef mine(ctx, wk, pos, node, move):\n    node.best = 0\n    node.alpha = 0\n"
        "    return True",
        "7: mine: it writes to node.alpha; in place of prunes_move it may write the field best of node only",
    ),
    "node_value": (
        f"{HELPER}@replaces(prune_node)\ndef mine(ctx, wk, pos, node, came_by):\n    return helper(node, wk)",
        "6: helper: it writes to n.best; in place of prune_node it may write the field value of wk only",
    ),
    "record": (
        f"from psearch_core.toolchain.intrinsics import clear_record\n{HEAD}    clear_record(node)\n    return True",
        "6: mine: it writes to node; ",
    ),
    "word_of_a_record": (
        f"from psearch_core.toolchain.intrinsics import atomic_store\n"
        f"from psearch.scheduler.words import closed_of\n{HEAD}"
        "    where = closed_of(node)\n    atomic_store(where, 1)\n    return True",
        "8: mine: it writes to where; ",
    ),
}
"""Kernels that write, and the error for each, by what they write to."""
TAKEN = "a kernel takes no memory: no lists, no new arrays, no strings, no dictionaries"
NOT_HERE = {
    "random": (f"{EVALUATES}    return int(np.random.randint(0, 9))", "5: mine: a kernel draws no random numbers"),
    "gamma": (
        f"from math import gamma\n{EVALUATES}    return int(gamma(pos.side + 1.0))",
        "6: mine: it needs numba_gamma",
    ),
    "exp": (f"from math import erf, exp\n{EVALUATES}    return int(exp(pos.side) + 2.0 ** pos.side + erf(0.3))", ""),
    "sum_of_a_list": (f"{EVALUATES}    return sum([1, 2, pos.side])", f"6: mine: {TAKEN}"),
    "text": (f"{EVALUATES}    return len(f'{{pos.side}}')", f"6: mine: {TAKEN}"),
    "array": (f"{EVALUATES}    return np.zeros(4, np.int64)[pos.side]", f"6: mine: {TAKEN}"),
    "import_inside": (
        f"{EVALUATES}    import math\n    return 0",
        "5: mine: a kernel cannot import: say so at the head",
    ),
}
"""Kernels that need things which exist only in Python, or in numba's own process."""
MISTAKES = {
    "fine": (OPENS, ""),
    **{f"writes_{name}": mistake for name, mistake in WRITES.items()},
    **{f"not_here_{name}": mistake for name, mistake in NOT_HERE.items()},
    "writes_what_it_may": (
        f"{HELPER.replace('n.best = ', '')}@replaces(prune_node)\ndef mine(ctx, wk, pos, node, came_by):\n"
        "    return helper(node, wk)\n\n"
        "@replaces(prunes_move)\ndef other(ctx, wk, pos, node, move):\n    node.best += 1\n    return True",
        "",
    ),
    "writes_own_words": (
        f"WORDS = 2\n{RULE}@replaces(claim_depth)\ndef mine(ctx):\n    where = word(ctx, 1)\n"
        "    atomic_store(where, 1)\n    return atomic_add(word(ctx, 0), 1)",
        "",
    ),
    "no_field": (
        f"{HEAD}    return node.moves_dun > 1",
        "5: mine: no field is called moves_dun: there are lock, open, ",
    ),
    "no_option": (
        f"{HEAD.replace('replaces', 'header_of, replaces', 1)}    return header_of(ctx).options.weight > 1",
        "5: mine: no field is called weight: there are tt, pruning, ",
    ),
    "no_name": (f"{HEAD}    return nodes > 1", "5: mine: NameError: name 'nodes' is not defined"),
    "result": (f"{HEAD}    return 'yes'", "5: mine: No conversion from Literal[str](yes) to bool"),
    "arguments": (
        HEAD.replace(", ply", "") + "    return True",
        "4: mine takes (ctx, node), and may_open is called with (ctx, node, ply)",
    ),
    "function": (
        f"{HEAD}    return helper(node)\n\ndef helper(node):\n    return True",
        "4: mine: a kernel cannot use helper, which is a function, and has no @kernel(RESULT(ARGUMENTS)) above it",
    ),
    "call": (
        f"{HEAD}    return helper(node) > 1\n\n@kernel(i64(Context, Node))\ndef helper(ctx, node):\n    return 1",
        "5: mine: helper is called with arguments that it does not take",
    ),
    "float": (f"{HEAD}    return node.depth / 2", "5: mine: it returns a float, where it must be True or False"),
    "float_in_a_call": (
        f"{HEAD}    return may_open(ctx, node, ply / 2)",
        "5: mine: a call is given a float, where it must be a whole number (`//` divides, int() cuts off)",
    ),
    "float_in_a_field": (
        f"{RULE}@replaces(prune_node)\ndef mine(ctx, wk, pos, node, came_by):\n    wk.value = node.depth / 2\n"
        "    return PRUNE_RETURN",
        "6: mine: the field value is given a float",
    ),
    "no_return": (f"{HEAD}    if ply > 1:\n        return True", "5: mine: a path through it returns nothing"),
    "u64": (
        f"{HEAD}    x = ctx.tt_clusters\n    if ply > 1:\n        x = 0\n    return (x & 1) > 0",
        "8: mine: there is no and_ of float64, Literal[int](1): where a u64 and",
    ),
    "answer": (
        HEAD.replace("may_open", "open_priority").replace(", ply", "") + "    return -1 if node.depth > 1 else 1",
        "5: mine: it returns -1: open_priority must answer with a number from 1 to 2147483647",
    ),
    "answer_beside_own_policy": (
        "from psearch_core.toolchain.jit import replaces\nfrom psearch.scheduler.policy import claim_depth\n\n"
        "@replaces(claim_depth)\ndef mine(ctx):\n    return -1",
        "6: mine: it returns -1: claim_depth must answer with a number from 0 to 100",
    ),
    "answer_beside_own_rule": (
        "from psearch_core.chess.search.decisions import reduction_of\n"
        "from psearch_core.toolchain.jit import replaces\n\n"
        "@replaces(reduction_of)\ndef mine(ctx, wk, pos, node, visit, gives):\n    return -1",
        "6: mine: it returns -1: reduction_of must answer with a number from 0 to 128",
    ),
    "list": (f"{HEAD}    return [1, 2][node.depth] > 1", "4: mine: a kernel takes no memory"),
    "raises": (f"{HEAD}    raise ValueError", "5: mine: a kernel cannot raise exceptions"),
    "prints": (f"{HEAD}    print(node.depth)\n    return True", "5: mine: a kernel cannot print"),
    "closure": (
        "from psearch.own_policy import may_open, replaces\n\ndef make(n):\n    @replaces(may_open)\n"
        "    def mine(ctx, node, ply):\n        return n\n\nmake(1)",
        "5: mine: plug_in_closure",
    ),
    "itself": (
        HEAD.replace("mine", "may_open") + "    return may_open(ctx, node, ply)",
        "4: may_open calls itself: no kernel is recursive",
    ),
    "helper_calls_the_hook": (
        HEAD + "    return helper(ctx, node, ply)\n\n@kernel(boolean(Context, Node, i64))\n"
        "def helper(ctx, node, ply):\n    return may_open(ctx, node, ply)",
        "4: mine calls itself by way of helper: no kernel is recursive",
    ),
    "lambda": (HEAD.split("@")[0] + "mine = replaces(may_open)(lambda ctx, node, ply: True)", "3: <lambda>: plug_in_l"),
    "made_by_exec": (
        HEAD.split("@")[0] + "exec('def mine(ctx, node, ply): return True')\nmine = replaces(may_open)(mine)",
        " it replaces nothing",
    ),
    "deep": (f"{HEAD}    return {'-' * 5000}node.depth > 1", " "),
    "nulls": ("x = 1\0", " source code string cannot contain null bytes"),
    "memory": (
        HEAD.replace("replaces\n", "replaces, word\n") + "    return word(ctx, 0) > 0",
        "4: mine uses memory of its own: a line WORDS = 4 must say how many words",
    ),
    "word": (
        "WORDS = 4\n" + HEAD.replace("replaces\n", "replaces, word\n") + "    return word(ctx, 4) > 0",
        "6: mine: there is no word 4: WORDS = 4 are numbered from 0",
    ),
    "memory_too_late": (f"{OPENS}\nif True:\n    WORDS = 4\n", " WORDS must be set once, by a line that begins"),
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
    """Return the error for each file, without its folder."""
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
