"""How a job sees its storage.

Every mount has a variable and a link in the job's directory. A server that runs as root gives the job a mount namespace
of its own (`mount_namespace`): each directory is mounted in a private directory, read-only if required, and also at the
requested path if that covers nothing of the system. If the namespace cannot be made, the attempt ends: the directory
itself, in which every account may write, is not shown to a job. If the job runs as root itself, it uses the variable,
and loses the permission to write to files of others, so that datasets stay as they are. A server that is not root
cannot mount: its jobs run as its own account, use the variable, and are trusted not to change read-only storage; files
of datasets have no write permission. It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence

from corral.engines.attempts.instance_messages import Owner, StorageSpec
from corral.engines.attempts.job_places import make_private, open_path
from corral.engines.attempts.processes import acting_as
from corral.engines.storage import mount_namespace
from corral.engines.storage.permissions import allow_passage, may_pass
from corral.files import NotPlain, Place
from corral.files.descriptors import open_directory_path

MOUNTS_VARIABLE = "CORRAL_MOUNTS"
#: In the directory of an instance: the mounts of the instance, visible in its own mount namespace only.
PRIVATE = "storage"
#: In the job's directory.
LINKS = "mounts"
#: Never covered by a mount: programs that become root read them, and they hold this node's own software.
SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr",
          "var")  # fmt: skip
#: Where a mount point may be made that the machine does not have: in a private copy, which no other process sees.
_MAY_BE_MADE_IN = ("/mnt", "/media", "/srv", "/opt", "/")


class StorageMissing(Exception):
    """A mount of the job does not exist; the message names it."""


def make_ready(storage: Sequence[StorageSpec], owner: Owner | None, top: str) -> None:
    """Called by the supervisor: makes directories on the node's own disk, and checks that volumes exist. Raises
    StorageMissing."""
    for spec in storage:
        if spec["kind"] == "local":
            os.makedirs(os.path.dirname(spec["source"]), mode=0o711, exist_ok=True)
            make_private(spec["source"], owner)
            if owner is not None:
                # The node's own disk may be outside of the server's home.
                for directory in (os.path.dirname(os.path.dirname(spec["source"])), top):
                    open_path(spec["source"], directory)
        elif not os.path.isdir(spec["source"]):
            raise StorageMissing(f"{spec['kind']} {spec['name']} ({spec['id']}) has no directory on this node")


def place_in(rank_dir: str, index: int) -> str:
    """The path of a mount in the instance's own namespace."""
    return os.path.join(rank_dir, PRIVATE, str(index))


def enter_mounts(
    storage: Sequence[StorageSpec], owner: Owner | None, job_dir: str, rank_dir: str, say: Callable[[str], None]
) -> dict[str, str]:
    """Called in the process that becomes the job, before it drops privileges: makes mounts and links; returns the
    variables. `say` writes into the job's log. Raises OSError."""
    if not storage:
        return {}
    seen = {spec["path"]: spec["source"] for spec in storage}
    if os.geteuid() == 0:
        if _has_namespace(owner):
            seen = _mounted(storage, owner, rank_dir)
        elif any(spec["kind"] == "dataset" for spec in storage):
            mount_namespace.drop_root_file_rights()
    for line in dataset_lines(storage, seen):
        say(line)
    if job_dir:
        _make_links(job_dir, {spec["link"]: seen[spec["path"]] for spec in storage})
    return mount_environment(storage, seen)


def _has_namespace(owner: Owner | None) -> bool:
    """Raises OSError if a job has an account of its own and cannot be given a namespace."""
    try:
        mount_namespace.enter()
    except OSError:
        if owner is not None:
            raise
        return False  # the job has the server's own permissions: nothing could be hidden from it
    return True


def mount_environment(storage: Sequence[StorageSpec], seen: dict[str, str]) -> dict[str, str]:
    if not storage:
        return {}
    env = {f"CORRAL_MOUNT_{variable_part(spec['link'])}": seen[spec["path"]] for spec in storage}
    return {**env, MOUNTS_VARIABLE: json.dumps(seen)}


def dataset_lines(storage: Sequence[StorageSpec], seen: Mapping[str, str]) -> list[str]:
    """The lines of the job's log that name the directory of each dataset version."""
    return [
        f"{spec['name']}@{spec['version'][:12]} is at {seen[spec['path']]}, read-only"
        for spec in storage
        if spec["kind"] == "dataset"
    ]


def variable_part(name: str) -> str:
    """The name as a part of an environment variable's name."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


# ------------------------------------------------------------------------------------------------ really mounted


def _mounted(storage: Sequence[StorageSpec], owner: Owner | None, rank_dir: str) -> dict[str, str]:
    """The path at which the job sees each mount: the requested one, or else the private one."""
    # The server's own umask would close mount points to the job's account.
    os.umask(0o022)
    private = os.path.join(rank_dir, PRIVATE)
    mount_namespace.mount_memory(private)
    _make_points([spec["path"] for spec in storage], private)
    seen = {}
    # Shorter paths first, so that one mount can be inside another.
    for index, spec in sorted(enumerate(storage), key=lambda item: len(item[1]["path"])):
        place = place_in(rank_dir, index)
        os.mkdir(place, 0o755)
        source = os.open(spec["source"], os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            mount_namespace.bind(source, place, read_only=spec["read_only"])
        finally:
            os.close(source)
        seen[spec["path"]] = spec["path"] if _is_shown_at(place, spec["path"], owner) else place
    if owner is not None and owner["uid"] != 0:
        mount_namespace.forbid_privilege_gains()
    return seen


def _is_shown_at(place: str, path: str, owner: Owner | None) -> bool:
    """Whether it is mounted at the requested path, which must be a directory that the account can reach."""
    if not is_outside_system(path):
        return False
    try:
        with acting_as(owner):
            target = open_directory_path(path)
    except (NotPlain, FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    try:
        mount_namespace.bind_again(place, target)
    finally:
        os.close(target)
    return True


def is_outside_system(path: str) -> bool:
    return path != "/" and path.split("/")[1] not in SYSTEM


def missing_point(path: str) -> str | None:
    """The directory that must be copied privately to have a mount point there; None if the mount point exists, or may
    not be made."""
    if not is_outside_system(path) or os.path.lexists(path):
        return None
    exists = os.path.dirname(path)
    while not os.path.lexists(exists):
        exists = os.path.dirname(exists)
    return exists if exists in _MAY_BE_MADE_IN else None


def _make_points(paths: Sequence[str], private: str) -> None:
    """Make mount points that the machine does not have. The root first: copies of other directories are made in it."""
    wanted: dict[str, list[str]] = {}
    for path in paths:
        directory = missing_point(path)
        if directory is not None:
            wanted.setdefault(directory, []).append(path)
    for directory in sorted(wanted):
        try:
            if directory == "/":
                root = os.path.join(private, "root")
                os.mkdir(root, 0o755)
                mount_namespace.copy_root(root)
            else:
                mount_namespace.copy_directory(directory)
        except mount_namespace.CannotCopy:
            continue  # the job sees it in the private directory
        for path in wanted[directory]:
            os.makedirs(path, 0o755, exist_ok=True)


# ------------------------------------------------------------------------------------------------ seen by links only


def open_to_account(spec: StorageSpec, owner: Owner, volumes: str) -> None:
    """Opens the directory of this volume or bucket, which only the server can pass otherwise, to the account."""
    if spec["kind"] not in ("volume", "object"):
        return
    around = os.path.dirname(spec["source"])
    open_path(around, volumes if spec["kind"] == "volume" else os.path.dirname(around))
    if not allow_passage(around, may_pass(around) | {owner["uid"]}):
        os.chmod(around, 0o711)


def _make_links(job_dir: str, links: dict[str, str]) -> None:
    with Place.at(os.path.dirname(job_dir), os.path.basename(job_dir)) as outer:
        try:
            outer.make(LINKS, 0o755)
            inner = outer.below(LINKS)
        except NotPlain as error:
            problem = "is in the way of the links to what the job mounts"
            raise OSError(errno.ENOTDIR, problem, f"{job_dir}/{LINKS}") from error
        with inner:
            for name, target in links.items():
                inner.link(name, target)
