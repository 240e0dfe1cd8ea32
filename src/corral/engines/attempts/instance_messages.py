"""The messages from the engine to the spawner: one length-prefixed JSON message per instance to start.

The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import json
import struct
from typing import Any, TypedDict

_LENGTH = struct.Struct("!I")
#: More than any command and environment that the kernel accepts (2 MiB, here in escaped form).
MAX_MESSAGE_BYTES = 32 << 20


class Owner(TypedDict):
    """The account of a job's processes."""

    name: str
    uid: int
    gid: int
    groups: list[int]


class ContainerMountSpec(TypedDict):
    """A directory that a container sees. The runtime is given a directory of the supervisor's own, at which it is
    mounted by descriptor."""

    source: str
    read_only: bool
    #: no job can replace it: it is opened with the server's permissions; others with those of the job's account
    is_servers: bool
    #: the index in the instance's storage whose directory it is; -1 for other directories
    storage: int


class ContainerSpec(TypedDict):
    """An instance that runs in a container: complete command lines of the runtime, and the files they read."""

    image: str
    name: str
    #: prints the image's id if it is here already, and fails if not
    exists: list[str]
    pull: list[str]
    run: list[str]
    #: the index of the image in `run`: it is run by its id, which cannot change its meaning
    image_at: int
    #: where the node stores which images were pulled with a login
    rights: str
    #: prints whether it was OOM-killed, when it started, and the runtime's own message, with `|` between
    inspect: list[str]
    terminate: list[str]
    #: also kills it if it runs
    remove: list[str]
    #: the runtime's environment; the job's own is in a file
    env: dict[str, str]
    env_file: str
    #: a login to the registry, in Docker's format; "" for none
    auth: str
    auth_file: str
    mounts: list[ContainerMountSpec]
    #: processes of the container are descendants of the supervisor
    is_child: bool


class StorageSpec(TypedDict):
    """One mount of an instance. Its access holds secrets: a spec is never written to disk."""

    kind: str
    name: str
    #: the path at which the job sees it
    path: str
    read_only: bool
    #: the directory on the node; "" until it is prepared
    source: str
    #: the name of the link in the job's directory, and the end of the variable's name
    link: str
    id: str
    version: str
    size_bytes: int
    prefetch: bool
    access: dict[str, str]


class PreparerSpec(TypedDict):
    """The process that prepares storage, if that takes long."""

    command: list[str]
    env: dict[str, str]
    #: the directories and limits of the node that providers may use
    places: dict[str, Any]


class InstanceSpec(TypedDict):
    """The order for the supervisor of one instance."""

    attempt_id: str
    rank: int
    attempt_dir: str
    rank_dir: str
    events_path: str
    boot_id: str
    #: the term of the server that launches, and the file with the latest term
    term: int
    term_path: str
    command: list[str]
    env: dict[str, str]
    #: "" means the working directory in the run directory
    workdir: str
    time_limit_seconds: float | None
    grace_seconds: float
    log_limit_bytes: int
    memory_bytes: int
    cpu_milli: int
    #: 0 means no limit
    max_processes: int
    cgroup_version: int
    cgroup_memory: str
    cgroup_cpu: str
    cgroup_pids: str
    cgroup_name: str
    #: None means the server's own account
    owner: Owner | None
    #: setuid programs and file capabilities give the job no privileges
    no_new_privileges: bool
    #: directories of the job that the account gets as its own
    owned: list[str]
    #: below it, the path to the job's directories is opened for the account
    top: str
    #: below these are files of the server and of other users: a container gets only the job's own directories there
    closed: list[str]
    #: a virtual environment or conda prefix that must exist
    venv: str
    container: ContainerSpec | None
    storage: list[StorageSpec]
    #: the directory of the instance on the node's own disk, removed at its end
    scratch: str
    #: the directory that holds volumes
    volumes: str
    preparer: PreparerSpec | None


def encode(spec: InstanceSpec) -> bytes:
    return with_length(json.dumps(spec).encode())


def with_length(frame: bytes) -> bytes:
    return _LENGTH.pack(len(frame)) + frame


class BadFrame(Exception):
    """The stream is corrupt: nothing after this point can be read."""


def take_frames(buffer: bytearray) -> list[bytes]:
    """Remove and return the complete messages at the beginning of the buffer."""
    frames: list[bytes] = []
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        if length > MAX_MESSAGE_BYTES:
            raise BadFrame(f"a message of {length} bytes")
        if len(buffer) < _LENGTH.size + length:
            break
        frames.append(bytes(buffer[_LENGTH.size : _LENGTH.size + length]))
        del buffer[: _LENGTH.size + length]
    return frames
