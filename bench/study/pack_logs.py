"""Keep the raw logs of a study in one compressed file, docs/measurements/STUDY/logs.jsonl.xz.

    python bench/study/pack_logs.py add LOGS.jsonl.xz [--commit HASH] LOG.jsonl|FOLDER ...
    python bench/study/pack_logs.py list LOGS.jsonl.xz
    python bench/study/pack_logs.py unpack LOGS.jsonl.xz FOLDER

Every line of a packed log is a line of its log with one key more, `run`: the log's file name without `.jsonl`, preceded
by the folder's name and a slash where a folder is given. A run begins with an `about`, which gets the commit that was
measured; logs that have none of their own (of `psearch analyse --json`, of matches) get one with nothing else in it.
What reads logs takes `LOGS.jsonl.xz#RUN` for a file name. A run that is there already is replaced.

Exit status: 0, 1 bad input: a log that is damaged, or a file that is none; every file stays then as it is.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from pathlib import Path
from typing import Any

from psearch.files.safe_files import json_value
from psearch.results import PsearchError

Line = dict[str, Any]
Runs = dict[str, list[Line]]


def with_commit(lines: list[Line], commit: str | None) -> list[Line]:
    """The lines of a log, the first of them an `about` that names the commit, if one is given."""
    if commit is None:
        return lines
    if "about" not in lines[0]:
        return [{"about": {"commit": commit}}, *lines]
    return [{**lines[0], "about": {**lines[0]["about"], "commit": commit}}, *lines[1:]]


def read_packed(path: Path) -> Runs:
    """The lines of each run, without the key `run`. Raises PsearchError for a file that is not wholly such lines."""
    runs: Runs = {}
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        text = decompressor.decompress(path.read_bytes())
    except lzma.LZMAError as error:
        raise PsearchError(f"{path}: {error}") from None
    if not decompressor.eof or decompressor.unused_data:
        raise PsearchError(f"{path} is damaged at its end")  # `lzma.decompress` would leave out what follows
    for number, line in enumerate(_lines(path, text), 1):
        run = line.pop("run", None)
        if not isinstance(run, str):
            raise PsearchError(f"{path}, line {number}: it says nothing of its run")
        runs.setdefault(run, []).append(line)
    return runs


def write_packed(path: Path, runs: Runs) -> None:
    """The runs in the order of their names: the same runs give the same bytes."""
    text = "".join(json.dumps({"run": name, **line}) + "\n" for name in sorted(runs) for line in runs[name])
    part = path.with_name(path.name + ".part")
    part.write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))
    part.replace(path)


def _lines(path: Path, text: bytes) -> list[Line]:
    """The objects of a log. Raises PsearchError for a line that is none."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found.append(json_value(line))
        except ValueError as error:
            raise PsearchError(f"{path}, line {number}: {error}") from None
        if not isinstance(found[-1], dict) or not isinstance(found[-1].get("about", {}), dict):
            raise PsearchError(f"{path}, line {number}: it is no line of a log")
    if not found:
        raise PsearchError(f"{path}: nothing is in it")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Add, list or unpack; returns the exit status."""
    parser = argparse.ArgumentParser(prog="pack_logs.py", description="Keep raw logs in one compressed file.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, meaning in (("add", "add logs"), ("list", "name the runs"), ("unpack", "write each run as a file")):
        command = commands.add_parser(name, help=meaning)
        command.add_argument("packed", metavar="LOGS.jsonl.xz", type=Path)
        if name == "add":
            command.add_argument("--commit", metavar="HASH", help="the commit that was measured")
            command.add_argument("logs", metavar="LOG", type=Path, nargs="+", help="a log, or a folder of logs")
        elif name == "unpack":
            command.add_argument("folder", metavar="FOLDER", type=Path)
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except (OSError, PsearchError) as error:
        print(f"pack_logs: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.command == "add":
        runs = read_packed(options.packed) if options.packed.exists() else {}
        added: dict[str, Path] = {}
        for given in options.logs:
            for path in sorted(given.rglob("*.jsonl")) if given.is_dir() else [given]:
                name = path.relative_to(given.parent).with_suffix("").as_posix()
                if added.setdefault(name, path) != path:
                    raise PsearchError(f"{added[name]} and {path} would be one run, {name}")
                runs[name] = with_commit(_lines(path, path.read_bytes()), options.commit)
        write_packed(options.packed, runs)
    elif options.command == "list":
        for name, lines in read_packed(options.packed).items():
            print(f"{name:40} {len(lines):6} lines  {lines[0].get('about', {}).get('commit', '')}")
    else:
        for name, lines in read_packed(options.packed).items():
            path = options.folder / f"{name}.jsonl"
            if not path.resolve().is_relative_to(options.folder.resolve()):
                raise PsearchError(f"{name!a} is no name of a run")
            if path.exists() and not path.read_bytes().startswith(b"{"):
                raise PsearchError(f"{path} is no log, and is not replaced")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
