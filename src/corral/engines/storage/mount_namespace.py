"""A mount namespace of one job: no other process sees its mounts, and nothing of it is left behind.

Everything is mounted by descriptor, so that no name can be replaced between the check and the mount. A mount point that
the machine does not have is made in a private copy of its parent directory: a small file system in memory in which the
real entries are mounted. Only root can do this. It is forked from the spawner, so this module uses the standard library
only.
"""

from __future__ import annotations

import ctypes
import os
import stat

_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 2, 4, 32, 4096, 16384
_MS_SLAVE = 1 << 19
_MS_RELATIME = 1 << 21
#: As `statvfs` shows them: read-only, nosuid, nodev, noexec, noatime and nodiratime have the same bits as for mounts.
_KEPT = 1 | 2 | 4 | 8 | 1024 | 2048
_ST_RELATIME = 4096
_MNT_DETACH = 2
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAPBSET_DROP = 24
_CAP_CHOWN, _CAP_DAC_OVERRIDE, _CAP_FOWNER = 0, 1, 3
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_MEMORY = b"mode=0755,size=1m"
#: A directory with more entries is not copied.
_MAX_ENTRIES = 512

_libc = ctypes.CDLL(None, use_errno=True)


class CannotCopy(Exception):
    """A directory cannot be copied privately; the message says why."""


def enter() -> None:
    """Gives this process its own mounts. Raises OSError if that is not allowed."""
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise _error("a mount namespace")
    # Later mounts of the machine are seen here too; mounts made here are not seen outside.
    _mount(b"none", b"/", None, _MS_SLAVE | _MS_REC)


def forbid_privilege_gains() -> None:
    """Forbids programs to gain privileges: the process sees other files than the rest of the machine."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_root_file_rights() -> None:
    """Drops root's rights to files of others: from the next program on, a process of root can only write where the
    mode of a file allows it, and only change its own files. Raises OSError.
    """
    for capability in (_CAP_CHOWN, _CAP_DAC_OVERRIDE, _CAP_FOWNER):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise _error("the permissions of root")


def mount_memory(directory: str) -> None:
    """An empty file system in memory, which is gone with the namespace."""
    _mount(b"none", os.fsencode(directory), b"tmpfs", _MS_NOSUID | _MS_NODEV, _MEMORY)


def bind(source: int, place: str, *, read_only: bool, with_inner: bool = False) -> None:
    """Mount the directory of a descriptor at a directory of our own; `with_inner` includes mounts inside it.
    Restrictions of the source's own mount stay."""
    kept = os.fstatvfs(source).f_flag
    flags = kept & _KEPT | (_MS_RELATIME if kept & _ST_RELATIME else 0) | _MS_NOSUID | _MS_NODEV
    target = os.fsencode(place)
    _mount(b"/proc/self/fd/%d" % source, target, None, _MS_BIND | (_MS_REC if with_inner else 0))
    _mount(b"none", target, None, _MS_REMOUNT | _MS_BIND | flags | (_MS_RDONLY if read_only else 0))


def bind_again(place: str, target: int) -> None:
    """Mount a directory of our own over another directory too, with the same restrictions. By descriptor: a job may be
    able to replace the name."""
    _mount(os.fsencode(place), b"/proc/self/fd/%d" % target, None, _MS_BIND | _MS_REC)


def copy_directory(directory: str) -> None:
    """Replace a directory of the system by a private copy. Raises CannotCopy and OSError."""
    original = _checked(directory)
    try:
        entries = _entries(original)
        mount_memory(directory)
        _show(original, entries, directory)
    finally:
        os.close(original)


def copy_root(place: str) -> None:
    """Replace `/` by a private copy, made in an empty directory. Raises CannotCopy and OSError."""
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise CannotCopy(f"corral cannot do it on {os.uname().machine}")
    original = _checked("/")
    try:
        mount_memory(place)
        _show(original, _entries(original), place)
    finally:
        os.close(original)
    os.chdir(place)
    if _libc.syscall(ctypes.c_long(number), b".", b".") != 0:
        raise _error("/")
    # The old root is mounted over the new one.
    if _libc.umount2(b".", _MNT_DETACH) != 0:
        raise _error("/")
    os.chdir("/")


def _checked(directory: str) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if found.st_uid != 0 or found.st_mode & 0o022:
        os.close(descriptor)
        raise CannotCopy(f"{directory} can be changed by others than root")
    return descriptor


def _entries(directory: int) -> list[tuple[str, os.stat_result]]:
    names = os.listdir(directory)
    if len(names) > _MAX_ENTRIES:
        raise CannotCopy(f"it has more than {_MAX_ENTRIES} entries")
    return [(name, os.stat(name, dir_fd=directory, follow_symlinks=False)) for name in names]


def _show(original: int, entries: list[tuple[str, os.stat_result]], place: str) -> None:
    for name, found in entries:
        target = os.path.join(place, name)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=original), target)
            continue
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(target, 0o755)
        else:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        source = b"/proc/self/fd/%d/%s" % (original, os.fsencode(name))
        _mount(source, os.fsencode(target), None, _MS_BIND | _MS_REC)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    if _libc.mount(source, target, kind, ctypes.c_ulong(flags), options) != 0:
        raise _error(os.fsdecode(target))


def _error(place: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), place)
