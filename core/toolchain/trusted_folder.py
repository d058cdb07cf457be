"""Folders that nobody else can change, and the files in them; all by descriptor.

What lies in the cache is code: whoever can write to its folder, or to a folder above it, can have other code run. So a
path is walked from the root down. Each component is opened below the one before it and looked at once it is open: what
is renamed or linked to another place meanwhile is neither what was looked at nor what is used. A folder is trusted if

- it belongs to root or to this user, and nobody else can write to it; one above it may be open to all if it is sticky,
  as /tmp is, for then nobody else can rename what lies in it;
- every symbolic link on the way belongs to root or to this user;
- it is not a file system mounted in a folder that others can write to: it may be theirs, and say what it likes.

A file in it is trusted if it belongs to root or to this user, is no link, and nobody else can write to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe has perhaps no writer
_MAKE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
NEW = ".new-"
"""Begins the name of a file that is being written; one that stays was left by a program that was killed."""
_MOST_BYTES = 1 << 26
"""Of a file; what is kept is a thousandth of that."""
_NOT_TOUCHED_S = 3600.0
"""A file's time of last use is written so much later, not at every start of a program."""
_ROOT = 0


class NotTrusted(OSError):
    """Somebody else could change what lies there. `strerror` says where, and why: fit for a message."""

    def __init__(self, descriptor: int, reason: str) -> None:
        try:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            place = "a folder on the way"
        super().__init__(errno.EPERM, f"{place} {reason}")


class Folder:
    """An open folder that is trusted; its files go by their names. A context manager.

    All methods raise OSError when the system refuses, NotTrusted when somebody else could have had a hand in it.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor = descriptor
        self.path = path
        """for messages"""

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.descriptor)

    def inner(self, name: str, make: bool = False) -> Folder:
        """Return a folder in this one. make: if there is none."""
        descriptor = _open_component(self.descriptor, name, make)
        try:
            _check_alone(os.fstat(descriptor), descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return Folder(descriptor, os.path.join(self.path, name))

    def names(self) -> list[str]:
        """Return the names of all that lies in it."""
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def read(self, name: str) -> bytes:
        """Return the content of a file, which counts as used now."""
        with open(os.open(name, _READ, dir_fd=self.descriptor), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                raise NotTrusted(file.fileno(), "is not a file of the cache")
            if status.st_uid not in _own() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise NotTrusted(file.fileno(), "can be changed by others")
            if time.time() - status.st_mtime > _NOT_TOUCHED_S:
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())
            return file.read(status.st_size)

    def replace(self, name: str, content: bytes) -> None:
        """Write a file as a whole: who reads it gets the old content or the new."""
        new = self._write_new(content)
        try:
            os.rename(new, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(new)
            raise

    def check_room(self, size: int) -> None:
        """Raises OSError when a file of so many bytes cannot be written here."""
        self.remove(self._write_new(bytes(size)))

    def _write_new(self, content: bytes) -> str:
        """A file of a new name, whole or not at all."""
        name = f"{NEW}{os.urandom(8).hex()}"
        descriptor = os.open(name, _MAKE | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=self.descriptor)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(name)
            raise
        return name

    def lock_file(self, name: str) -> int:
        """Open a file that is there to be locked."""
        return os.open(name, _MAKE | os.O_RDWR, 0o600, dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=self.descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove a folder that is empty."""
        os.rmdir(name, dir_fd=self.descriptor)


def open_folder(path: str, make: bool = False) -> Folder:
    """Open a folder by its absolute path, link by link. make: what is missing on the way, for this user alone.

    Raises NotTrusted, or OSError when there is none.
    """
    waiting = _parts(path)
    links = 0
    folder = os.open("/", _LOOK)
    try:
        above = os.fstat(folder)
        _check_way(above, folder, None)
        while waiting:
            inner = _open_component(folder, waiting.pop(), make)
            try:
                status = os.fstat(inner)
                _check_way(status, inner, above)
                if stat.S_ISLNK(status.st_mode):
                    links += 1
                    if links > _MOST_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    target = os.readlink("", dir_fd=inner)
                    waiting += _parts(target)
                    # on from where the link lies, or from the root
                    onward = os.open("/" if target.startswith("/") else ".", _LOOK, dir_fd=folder)
                    os.close(inner)
                    inner, status = onward, os.fstat(onward)
            except BaseException:
                os.close(inner)
                raise
            os.close(folder)
            folder, above = inner, status
        _check_alone(above, folder)
    except BaseException:
        os.close(folder)
        raise
    return Folder(folder, path)


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _open_component(folder: int, name: str, make: bool) -> int:
    try:
        return os.open(name, _LOOK, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):  # another program makes it, too
        os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, _LOOK, dir_fd=folder)


def _check_way(status: os.stat_result, descriptor: int, above: os.stat_result | None) -> None:
    """Check a component on the way. above: the folder that it lies in."""
    open_above = above is not None and _is_open(above)
    if status.st_uid not in _own() and (open_above or not _stands_for_root(status.st_uid)):
        raise NotTrusted(descriptor, "belongs to somebody else")
    if stat.S_ISLNK(status.st_mode):
        return
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if open_above and above is not None and above.st_dev != status.st_dev:
        raise NotTrusted(descriptor, "is a file system that others may have mounted")
    if _is_open(status) and not status.st_mode & stat.S_ISVTX and not _is_own_group(status, descriptor):
        raise NotTrusted(descriptor, "can be changed by others")


def _check_alone(status: os.stat_result, descriptor: int) -> None:
    """Check the folder itself: what is enough on the way to it is not enough here."""
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if status.st_uid not in _own():
        raise NotTrusted(descriptor, "belongs to somebody else")
    if _is_open(status):
        raise NotTrusted(descriptor, "can be changed by others")


def _own() -> tuple[int, int]:
    """Return who may own what is trusted."""
    return _ROOT, os.geteuid()


def _is_open(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_own_group(status: os.stat_result, descriptor: int) -> bool:
    """Whether those who can write are a group of this user alone, which many distributions give to each.

    Then folders are made group-writable there. Root's group may have others in it. Under an access control list the
    mode tells nothing about the group.
    """
    if status.st_mode & stat.S_IWOTH or status.st_uid != os.geteuid() or status.st_uid == _ROOT:
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
        lists = os.listxattr(f"/proc/self/fd/{descriptor}")
    except (KeyError, OSError):
        return False
    is_private = user.pw_gid == group.gr_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return is_private and not any(name.startswith("system.") for name in lists)


def _stands_for_root(uid: int) -> bool:
    """In a user namespace without root (bubblewrap, Flatpak) whatever is root's outside has the number of nobody.

    So has what belongs to any other user outside: enough only in a folder in which nobody else can make anything.
    """
    try:
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            nobody = int(file.read())
        with open("/proc/self/uid_map", encoding="ascii") as file:
            ranges = [[int(word) for word in line.split()] for line in file]
    except (OSError, ValueError):
        return False
    is_mapped = any(first <= number < first + count for first, _, count in ranges for number in (_ROOT, nobody))
    return uid == nobody and not is_mapped
