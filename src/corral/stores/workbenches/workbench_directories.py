"""The directories of workbenches, on a file system that the nodes share with the server (on one machine: any).

    <jobs>/<shard>/<job>/workbench/          the server's: programs, settings.json, authorized_keys, relay.pem
    <jobs>/<shard>/<job>/workbench/run/      the workbench's own: status.json, jupyter.sock, keys of its SSH server
    <jobs>/<shard>/<job>/work/               what its owner keeps there, when no other directory is named

The job's own account may write in some of them, and the server may be root: everything there goes through
`corral.files`.
"""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.control.ports import WorkbenchStatus
from corral.files import NotPlain, Place

SETTINGS = "settings.json"
KEYS = "authorized_keys"
RELAY_KEY = "relay.pem"
STATUS = "status.json"
SOCKET = "jupyter.sock"
_MAX_STATUS_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_HOST_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/=]{1,200}")


class NotTheWorkbench(ConnectionError):
    """Another program than the workbench answers at its socket."""


class DirectoryWorkbenches:
    """Implements `corral.control.ports.WorkbenchFiles`. `home_of` returns a job's directory, and `programs` are the
    files that run in a workbench, by their names there; a name may be in a directory (`program/host.py`)."""

    def __init__(self, home_of: Callable[[str], Path], programs: Mapping[str, Path]) -> None:
        self.home_of = home_of
        self._programs = programs

    def prepare(
        self, job_id: str, settings: Mapping[str, Any], keys: Sequence[str], relay_key: bytes | None = None
    ) -> None:
        self.home_of(job_id).mkdir(parents=True, exist_ok=True)
        with self._home(job_id) as home:
            home.make("workbench", 0o711)
            if not settings.get("workdir"):
                home.make("work", 0o700)
            with home.below("workbench") as own:
                own.make("run", 0o700)
                self._write_programs(own)
                own.write(SETTINGS, json.dumps(dict(settings)).encode())
                own.write(KEYS, _lines(keys))
                if relay_key is not None:
                    own.write(RELAY_KEY, relay_key, mode=0o600, for_owner=True)

    def _write_programs(self, own: Place) -> None:
        for name, program in self._programs.items():
            directory, _, file = name.rpartition("/")
            if directory:
                own.make(directory, 0o755)
            with own.below(*filter(None, [directory])) as place:
                place.write(file, program.read_bytes())

    def put_keys(self, job_id: str, keys: Sequence[str]) -> bool:
        try:
            with self._home(job_id) as home, home.below("workbench") as own:
                if own.holds(KEYS, _lines(keys)):
                    return False
                own.write(KEYS, _lines(keys))
                return True
        except (FileNotFoundError, NotADirectoryError, NotPlain):
            return False

    def status(self, job_id: str) -> WorkbenchStatus | None:
        try:
            with self._run(job_id) as run:
                return parse_status(run.read(STATUS, _MAX_STATUS_BYTES))
        except OSError:
            return None

    def connect(self, job_id: str) -> socket.socket:
        """A non-blocking connection to the workbench's Jupyter. Raises OSError (BlockingIOError: try again in a
        moment), and NotTheWorkbench for a socket of another account: the workbench's owner could have linked to any
        socket."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        connection.setblocking(False)
        try:
            with self._run(job_id) as run:
                # Through the descriptor: the path of a socket may have 107 characters only.
                connection.connect(f"{run.path}/{SOCKET}")
                owners = {run.stat().st_uid}
            with self._home(job_id) as home:
                # Only files of the job's account count: a directory of another account could have been moved there.
                owners.add(home.stat().st_uid)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if owners != {_CREDENTIALS.unpack(credentials)[1]}:
                raise NotTheWorkbench(f"what answers at the socket of {job_id} is not the workbench")
        except BaseException:
            connection.close()
            raise
        return connection

    def owner_of(self, job_id: str) -> int:
        """The account that owns the job's directory. Raises OSError."""
        with self._home(job_id) as home:
            return home.stat().st_uid

    def _home(self, job_id: str) -> Place:
        home = self.home_of(job_id)
        return Place.at(home.parent, home.name)

    def _run(self, job_id: str) -> Place:
        home = self.home_of(job_id)
        return Place.at(home.parent, home.name, "workbench", "run")


def parse_status(data: bytes) -> WorkbenchStatus | None:
    """The status that the workbench's program reported, or None if it is not valid: its owner can write anything
    there."""
    try:
        reported = json.loads(data)
        port, key, relay_port = reported["ssh_port"], reported["ssh_host_key"], reported.get("relay_port")
        status = WorkbenchStatus(
            attempt=int(reported["attempt"]),
            at=float(reported["at"]),
            account=_matched(_ACCOUNT, reported["account"]),
            jupyter_ready=reported["jupyter_ready"] is True,
            ssh_ready=reported["ssh_ready"] is True,
            ssh_port=None if port is None else int(port),
            ssh_host_key=None if key is None else _matched(_HOST_KEY, key),
            ssh_sessions=int(reported["ssh_sessions"]),
            relay_port=None if relay_port is None else _unprivileged(int(relay_port)),
            is_busy=reported["busy"] is True,
            used_at=float(reported["used_at"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    return status if status.ssh_port is None or 0 < status.ssh_port < 65536 else None


def _unprivileged(port: int) -> int:
    """The server connects to this port: low ports belong to system services and are refused."""
    if not 1024 <= port < 65536:
        raise ValueError(f"{port} is no port of a workbench")
    return port


def _matched(pattern: re.Pattern[str], value: Any) -> str:
    """Returns the value if it matches: it becomes part of a command that users copy."""
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not of the form {pattern.pattern}")
    return value


def _lines(keys: Sequence[str]) -> bytes:
    return "".join(f"{key}\n" for key in keys).encode()
