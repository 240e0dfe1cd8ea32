"""How a job gets to see what it mounts.

Every mount has a variable and a link in the job's directory. Where the supervisor may have a mount namespace of its
own, as root usually may, the job also sees each one at the very path that was asked for, read-only where it should be,
and no other process sees anything. Elsewhere a program has to use the variable, and is trusted to keep what it may only
read.
Runs forked from the spawner, so only the standard library is imported here.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
from collections.abc import Sequence

from corral.engines.local.messages import Owner, StorageSpec
from corral.engines.local.places import make_private, open_way
from corral.engines.local.storage.permissions import let_pass, may_pass

MOUNTS_VARIABLE = "CORRAL_MOUNTS"
#: In the job's directory.
LINKS = "mounts"
#: In the run directory, for the runtime of a container.
LINKS_DIRECTORY = "storage"
#: Never covered by a mount: programs that become root read them, and this node's own software lives there.
SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr",
          "var")  # fmt: skip
#: Where an empty directory is made for a mount that has none yet.
_MAY_BE_MADE_IN = ("/", "/mnt", "/media", "/srv", "/opt")

_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 2, 4, 32, 4096, 16384
_MS_SLAVE = 1 << 19
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


class StorageMissing(Exception):
    """Something that the job mounts is not there; the message names it."""


def make_ready(storage: Sequence[StorageSpec], owner: Owner | None, top: str) -> None:
    """By the supervisor: directories of the node's own disk are made, volumes must be there. Raises StorageMissing."""
    for spec in storage:
        if spec["kind"] == "local":
            os.makedirs(os.path.dirname(spec["source"]), mode=0o711, exist_ok=True)
            make_private(spec["source"], owner)
            if owner is not None:
                # The node's own disk may be outside of the server's home.
                for way in (os.path.dirname(os.path.dirname(spec["source"])), top):
                    open_way(spec["source"], way)
        elif not os.path.isdir(spec["source"]):
            raise StorageMissing(f"{spec['kind']} {spec['name']} ({spec['id']}) has no directory on this node")


def link_in(rank_dir: str, index: int) -> str:
    return os.path.join(rank_dir, LINKS_DIRECTORY, str(index))


def link_sources(storage: Sequence[StorageSpec], rank_dir: str) -> None:
    """For a container's runtime, which was told these paths before it was known where they lead."""
    for index, spec in enumerate(storage):
        path = link_in(rank_dir, index)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.symlink(spec["source"], path)


def enter_mounts(storage: Sequence[StorageSpec], owner: Owner | None, job_dir: str, volumes: str) -> dict[str, str]:
    """In the process that becomes the job, before it gives up any right: mounts and links; gives the variables.
    Raises OSError."""
    if not storage:
        return {}
    bound = _bind([spec for spec in storage if can_be_mounted_at(spec["path"])], owner)
    seen = {}
    for spec in storage:
        seen[spec["path"]] = spec["path"] if spec["path"] in bound else spec["source"]
        if spec["path"] not in bound and owner is not None:
            let_in(spec, owner, volumes)
    if job_dir:
        _make_links(job_dir, {spec["link"]: seen[spec["path"]] for spec in storage}, owner)
    return mount_environment(storage, seen)


def mount_environment(storage: Sequence[StorageSpec], seen: dict[str, str]) -> dict[str, str]:
    if not storage:
        return {}
    env = {f"CORRAL_MOUNT_{variable_part(spec['link'])}": seen[spec["path"]] for spec in storage}
    return {**env, MOUNTS_VARIABLE: json.dumps(seen)}


def variable_part(name: str) -> str:
    """As a part of an environment variable's name."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


# ------------------------------------------------------------------------------------------------ really mounted


def can_be_mounted_at(path: str) -> bool:
    """A directory that covers nothing of the system, or one that can be made without touching anybody's files."""
    if path.split("/")[1] in SYSTEM or path == "/":
        return False
    if os.path.realpath(path) != path:
        return False  # a link: covering what it leads to could surprise
    return os.path.isdir(path) or (not os.path.lexists(path) and os.path.dirname(path) in _MAY_BE_MADE_IN)


def _bind(storage: Sequence[StorageSpec], owner: Owner | None) -> set[str]:
    """The paths that are mounted now; none where this process may not mount."""
    if os.geteuid() != 0 or not storage or _libc.unshare(_CLONE_NEWNS) != 0:
        return set()
    # What the machine mounts later is seen here too, and nothing from here is seen outside.
    _mount("none", "/", _MS_SLAVE | _MS_REC)
    # Shorter paths first, so that one mount can be inside of another.
    for spec in sorted(storage, key=lambda spec: len(spec["path"])):
        with contextlib.suppress(FileExistsError):
            os.mkdir(spec["path"], 0o755)
        _mount(spec["source"], spec["path"], _MS_BIND)
        flags = _MS_NOSUID | _MS_NODEV | (_MS_RDONLY if spec["read_only"] else 0)
        _mount("none", spec["path"], _MS_REMOUNT | _MS_BIND | flags)
    if owner is not None and owner["uid"] != 0:
        # It sees other files than the machine does: no program may become root on the strength of them.
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return {spec["path"] for spec in storage}


def _mount(source: str, target: str, flags: int) -> None:
    if _libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


# ------------------------------------------------------------------------------------------------ seen by links only


def let_in(spec: StorageSpec, owner: Owner, volumes: str) -> None:
    """The account may pass to this volume or bucket, whose directory is otherwise the server's alone."""
    if spec["kind"] not in ("volume", "object"):
        return
    around = os.path.dirname(spec["source"])
    open_way(around, volumes if spec["kind"] == "volume" else os.path.dirname(around))
    if not let_pass(around, may_pass(around) | {owner["uid"]}):
        os.chmod(around, 0o711)


def _make_links(job_dir: str, links: dict[str, str], owner: Owner | None) -> None:
    """By descriptor and without following links: what is in the job's directory may be the job's own work."""
    outer = os.open(job_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(LINKS, 0o755, dir_fd=outer)
        inner = os.open(LINKS, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            problem = "is in the way of the links to what the job mounts"
            raise OSError(error.errno, problem, f"{job_dir}/{LINKS}") from error
        raise
    finally:
        os.close(outer)
    try:
        if owner is not None:
            os.chown(inner, owner["uid"], owner["gid"])
        for name, target in links.items():
            temporary = f".{name}.{os.getpid()}"
            os.symlink(target, temporary, dir_fd=inner)
            os.rename(temporary, name, src_dir_fd=inner, dst_dir_fd=inner)
    finally:
        os.close(inner)
