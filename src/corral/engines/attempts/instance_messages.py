"""What the engine tells the spawner: one length-prefixed JSON message per instance to start.

Used by the spawner too, so only the standard library is imported here.
"""

from __future__ import annotations

import json
import struct
from typing import Any, TypedDict

_LENGTH = struct.Struct("!I")
#: More than any command and environment that the kernel takes (2 MiB, here in escaped form).
MAX_MESSAGE_BYTES = 32 << 20


class Owner(TypedDict):
    """The account that a job's processes belong to."""

    name: str
    uid: int
    gid: int
    groups: list[int]


class ContainerMountSpec(TypedDict):
    """A directory that a container sees. The runtime is given a place of the supervisor's own, at which it is mounted
    by descriptor."""

    source: str
    read_only: bool
    #: no job can replace it: opened with the server's rights, all others with those of the job's account
    is_servers: bool
    #: the place of an instance's storage whose directory it is; -1 for others
    storage: int


class ContainerSpec(TypedDict):
    """An instance that runs in a container: complete command lines of the runtime, and the files they read."""

    image: str
    name: str
    #: prints the image's id if it is here already, and fails if not
    exists: list[str]
    pull: list[str]
    run: list[str]
    #: where the image stands in `run`: it is run by its id, which nobody can give another meaning meanwhile
    image_at: int
    #: where the node notes which images came by a login
    rights: str
    #: prints whether it was OOM-killed, when it started, and the runtime's own message, with `|` between
    inspect: list[str]
    terminate: list[str]
    #: also ends it when it runs
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
    """One thing that an instance mounts. Its access holds secrets: a spec is never written down."""

    kind: str
    name: str
    #: where the job sees it
    path: str
    read_only: bool
    #: the directory on the node; "" until it is prepared
    source: str
    #: its link in the job's directory, and the end of its variable's name
    link: str
    id: str
    version: str
    size_bytes: int
    prefetch: bool
    access: dict[str, str]


class PreparerSpec(TypedDict):
    """The process that makes storage ready, where that takes long."""

    command: list[str]
    env: dict[str, str]
    #: what providers may use of the node
    places: dict[str, Any]


class InstanceSpec(TypedDict):
    """Everything a supervisor needs; it never asks back."""

    attempt_id: str
    rank: int
    attempt_dir: str
    rank_dir: str
    events_path: str
    boot_id: str
    #: of the server that gives the order, and the file with the latest one
    term: int
    term_path: str
    command: list[str]
    env: dict[str, str]
    #: "" means the run directory's own
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
    #: directories of the job that the account gets
    owned: list[str]
    #: below it the way to the job's directories is opened for the account
    top: str
    #: below these lie the server's files and what others keep: no container gets a directory there but the job's own
    closed: list[str]
    #: a virtual environment or conda prefix that must be there
    venv: str
    container: ContainerSpec | None
    storage: list[StorageSpec]
    #: all that the instance has of the node's own disk, gone with it
    scratch: str
    #: below it volumes are kept
    volumes: str
    preparer: PreparerSpec | None


def encode(spec: InstanceSpec) -> bytes:
    body = json.dumps(spec).encode()
    return _LENGTH.pack(len(body)) + body


class BadFrame(Exception):
    """The stream is out of step: nothing after this point can be read."""


def take_frames(buffer: bytearray) -> list[bytes]:
    """Remove and give the complete messages at the beginning of the buffer."""
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
