"""Folders that nobody else can change: real folders, links and owners."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from psearch.core.toolchain import trusted_folder
from psearch.core.toolchain.trusted_folder import NotTrusted, open_folder

STRANGER = 54321
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
PR_SET_DUMPABLE = 4
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


def make(path: Path, mode: int = 0o700, owner: int | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner, owner)
    return path


def link(path: Path, target: str | Path, owner: int | None = None) -> Path:
    path.symlink_to(target)
    if owner is not None:
        os.lchown(path, owner, owner)
    return path


def refused(path: Path, make: bool = False) -> str:
    """Why a folder is not trusted."""
    with pytest.raises(NotTrusted) as raised:
        open_folder(str(path), make)
    return str(raised.value.strerror)


def content_of(path: Path, name: str = "file") -> bytes:
    with open_folder(str(path)) as folder:
        return folder.read(name)


# -- who may own a folder, and write to it ---------------------------------------------------------------------------


def test_what_is_missing_is_made_for_this_user_alone(tmp_path):
    umask = os.umask(0)
    try:
        with open_folder(str(tmp_path / "a" / "b"), make=True) as folder, folder.inner("c", make=True) as inner:
            inner.replace("file", b"content")
    finally:
        os.umask(umask)
    paths = [tmp_path / place for place in ("a", "a/b", "a/b/c", "a/b/c/file")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700, 0o700, 0o700, 0o600]


def test_nothing_is_made_where_nobody_asks_for_it(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_folder(str(tmp_path / "a"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path, bits):
    make(tmp_path / "open", bits)
    assert refused(tmp_path / "open") == f"{tmp_path}/open can be changed by others"
    with open_folder(str(tmp_path)) as folder, pytest.raises(NotTrusted):
        folder.inner("open")


@pytest.mark.parametrize("bits", [0o777, 0o707, 0o702])
def test_a_folder_under_one_that_others_can_write_to_is_refused(tmp_path, bits):
    """They could rename it, and put another in its place. Nothing is made there either."""
    make(tmp_path / "open", bits)
    make(tmp_path / "open" / "own" / "cache")
    assert f"{tmp_path}/open can be changed by others" == refused(tmp_path / "open" / "own" / "cache")
    assert f"{tmp_path}/open can be changed by others" == refused(tmp_path / "open" / "new", make=True)
    assert not (tmp_path / "open" / "new").exists()


def test_a_folder_under_a_sticky_one_is_trusted(tmp_path):
    make(make(tmp_path / "sticky", 0o1777) / "own")
    (tmp_path / "sticky" / "own" / "file").write_bytes(b"content")
    assert content_of(tmp_path / "sticky" / "own") == b"content"


@needs_root
@pytest.mark.parametrize("place", ["stranger", "stranger/own"])
def test_what_belongs_to_another_user_is_refused(tmp_path, place):
    make(tmp_path / "stranger", 0o755, STRANGER)
    make(tmp_path / "stranger" / "own")
    assert refused(tmp_path / place) == f"{tmp_path}/stranger belongs to somebody else"


def test_what_belongs_to_another_user_is_refused_seen_from_there(tmp_path, monkeypatch):
    if os.geteuid() == 0:
        pytest.skip("what is root's is trusted by everybody")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "belongs to somebody else" in refused(tmp_path)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user can enter, and which lies in none that all can write to."""
    with tempfile.TemporaryDirectory(dir="/run") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@needs_root
def test_what_belongs_to_root_is_trusted_by_every_user(reachable):
    """A cache in an image, read by a user who cannot write there."""
    cache = make(reachable / "cache", 0o755)
    (cache / "file").write_bytes(b"content")
    (cache / "file").chmod(0o644)
    assert as_stranger(lambda: content_of(cache)) == "b'content'"
    assert "PermissionError" in as_stranger(lambda: open_folder(str(cache)).replace("file", b"other"))


def as_stranger(call: Callable[[], object]) -> str:
    """What a call gives to another user."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)  # else what it has in /proc stays root's
            try:
                text = repr(call())
            except OSError as error:
                text = repr(error)
            os.write(theirs, text.encode())
        os._exit(0)
    os.close(theirs)
    with open(ours) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def test_a_group_of_this_user_alone_may_write_on_the_way(tmp_path, monkeypatch):
    """As many distributions have it; not where the group has others in it, nor to the folder itself."""
    import grp
    import pwd

    user, group = 1234, 1234
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("me", "x", uid, group, "", "/", "")))
    members: list[str] = []
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((names[gid], "x", gid, members)))
    names = {group: "me", 100: "users"}
    monkeypatch.setattr(os, "geteuid", lambda: user)
    lists: list[str] = []
    monkeypatch.setattr(os, "listxattr", lambda path: lists)

    def is_own(mode: int, gid: int = group, uid: int = user) -> bool:
        return trusted_folder._is_own_group(os.stat_result((mode | stat.S_IFDIR, 0, 0, 1, uid, gid, 0, 0, 0, 0)), -1)

    assert is_own(0o775)
    assert not is_own(0o777)
    assert not is_own(0o775, gid=100)
    assert not is_own(0o775, uid=0)
    members.append("me")
    assert is_own(0o775)
    members.append("you")
    assert not is_own(0o775)
    members.clear()
    lists.append("system.posix_acl_access")
    assert not is_own(0o775)


# -- links -----------------------------------------------------------------------------------------------------------


def test_links_of_this_user_are_followed(tmp_path):
    make(tmp_path / "real" / "cache")
    (tmp_path / "real" / "cache" / "file").write_bytes(b"content")
    link(tmp_path / "absolute", tmp_path / "real")
    link(tmp_path / "relative", "./real/../real")
    link(tmp_path / "twice", "relative")
    for name in ("absolute", "relative", "twice"):
        assert content_of(tmp_path / name / "cache") == b"content"


def test_links_in_a_circle_end(tmp_path):
    link(tmp_path / "a", "b")
    link(tmp_path / "b", "a")
    with pytest.raises(OSError) as raised:
        open_folder(str(tmp_path / "a"))
    assert raised.value.errno == errno.ELOOP


@needs_root
def test_a_link_of_another_user_is_refused(tmp_path):
    """Though it points to a folder of ours as yet: it may point elsewhere when it is used."""
    make(tmp_path / "home" / "private")
    make(tmp_path / "sticky", 0o1777)
    link(tmp_path / "sticky" / "psearch-0", tmp_path / "home" / "private", STRANGER)
    assert "belongs to somebody else" in refused(tmp_path / "sticky" / "psearch-0", make=True)
    assert list((tmp_path / "home" / "private").iterdir()) == []


def test_a_link_to_where_others_can_write_is_refused(tmp_path):
    make(make(tmp_path / "open", 0o777) / "cache")
    link(tmp_path / "link", tmp_path / "open" / "cache")
    assert f"{tmp_path}/open can be changed by others" == refused(tmp_path / "link")


def test_an_open_folder_stays_the_one_that_was_looked_at(tmp_path):
    """Whatever its path leads to meanwhile."""
    for name in ("ours", "theirs"):
        make(tmp_path / name)
        (tmp_path / name / "file").write_bytes(name.encode())
    link(tmp_path / "link", "ours")
    with open_folder(str(tmp_path / "link")) as linked, open_folder(str(tmp_path / "ours")) as named:
        (tmp_path / "link").unlink()
        link(tmp_path / "link", "theirs")
        (tmp_path / "ours").rename(tmp_path / "away")
        (tmp_path / "theirs").rename(tmp_path / "ours")
        for folder in (linked, named):
            assert folder.read("file") == b"ours"
            folder.replace("new", b"")
        assert (tmp_path / "away" / "new").exists()


def test_a_link_that_is_exchanged_all_the_time_is_never_followed_into_the_open(tmp_path):
    """Between two system calls as well."""
    make(tmp_path / "ours")
    make(make(tmp_path / "open", 0o777) / "theirs")
    for path, text in ((tmp_path / "ours", b"ours"), (tmp_path / "open" / "theirs", b"theirs")):
        (path / "file").write_bytes(text)
    link(tmp_path / "link", "ours")
    stop = threading.Event()

    def exchange() -> None:
        targets = ["open/theirs", "ours"]
        while not stop.is_set():
            link(tmp_path / "other", targets[0])
            os.rename(tmp_path / "other", tmp_path / "link")
            targets.reverse()

    thread = threading.Thread(target=exchange)
    thread.start()
    found: dict[object, int] = {}
    try:
        deadline = time.monotonic() + 60
        while (len(found) < 2 or sum(found.values()) < 500) and time.monotonic() < deadline:
            try:
                content: object = content_of(tmp_path / "link")
            except NotTrusted:
                content = NotTrusted
            found[content] = found.get(content, 0) + 1
    finally:
        stop.set()
        thread.join()
    assert set(found) == {b"ours", NotTrusted}


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "open", "stranger", "large"])
def test_a_file_that_is_none_of_ours_is_refused(tmp_path, kind):
    cache, path = make(tmp_path / "cache"), tmp_path / "cache" / "file"
    (tmp_path / "elsewhere").write_bytes(b"content")
    if kind == "link":
        link(path, "../elsewhere")
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"content")
        path.chmod(0o620 if kind == "open" else 0o600)
        if kind == "large":
            os.truncate(path, trusted_folder._MOST_BYTES + 1)
        elif kind == "stranger":
            if os.geteuid() != 0:
                pytest.skip("gives a file to another user")
            os.chown(path, STRANGER, STRANGER)
    with pytest.raises(OSError):
        content_of(cache)


def test_the_last_use_is_written_once_an_hour(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    now = time.time()
    for age_s, is_touched in ((60, False), (4000, True)):
        os.utime(tmp_path / "file", (now - age_s, now - age_s))
        content_of(tmp_path)
        assert ((tmp_path / "file").stat().st_mtime > now - 30) is is_touched


# -- name spaces -----------------------------------------------------------------------------------------------------


def trusted(*paths: Path) -> list[str]:
    found = []
    for path in paths:
        try:
            open_folder(str(path)).__exit__()
            found.append("trusted")
        except OSError as error:
            found.append(str(error.strerror))
    return found


def in_name_space(kind: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(kind):
        raise OSError(ctypes.get_errno(), "no name space")


@needs_root
def test_a_user_without_root_trusts_what_was_roots_but_not_in_a_folder_of_all(reachable):
    """In a user namespace that maps one user alone whatever belongs to others belongs to nobody."""
    cache = make(make(reachable / "home", 0o755) / "cache", 0o755, STRANGER)
    squatted = make(make(reachable / "sticky", 0o1777) / "psearch", 0o755)
    make(squatted / "own", 0o755, STRANGER)

    def look() -> list[str]:
        before = trusted(cache, squatted)
        in_name_space(CLONE_NEWUSER)
        Path("/proc/self/uid_map").write_text(f"{STRANGER} {STRANGER} 1")
        assert cache.parent.stat().st_uid not in (0, STRANGER)
        return before + trusted(cache, squatted, squatted / "own")

    found = as_stranger(look)
    if "no name space" in found:
        pytest.skip("no user name spaces here")
    assert found == repr(["trusted", "trusted", "trusted", *[f"{squatted} belongs to somebody else"] * 2])


@needs_root
def test_a_file_system_mounted_where_others_can_write_is_refused(tmp_path):
    """It may be another user's, and tell whatever owner he likes."""
    open_to_all = make(make(tmp_path / "sticky", 0o1777) / "psearch")
    own = make(tmp_path / "own" / "psearch")
    program = """
import subprocess, sys
from test_trusted_folder import CLONE_NEWNS, Path, in_name_space, trusted
in_name_space(CLONE_NEWNS)
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
paths = [Path(word) for word in sys.argv[1:]]
for path in paths:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "none", str(path)], check=True)
print(*trusted(*paths), sep="\\n")
"""
    words = [sys.executable, "-c", program, str(open_to_all), str(own)]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    if "no name space" in done.stderr or "mount" in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert done.stdout.splitlines() == [f"{open_to_all} is a file system that others may have mounted", "trusted"]
