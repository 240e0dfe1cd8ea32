"""The engine's end of the socket to the spawner: starts the spawner, sends without blocking, detects its death.

The engine decides what is sent again after a death (`launches`).
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import corral
from corral.control.ports import EngineUnavailable
from corral.engines.local.supervisors.spawner import spawner_command

_EXIT_SECONDS = 5.0


class SpawnerLink:
    """One running spawner. Not safe for several threads: the engine's lock guards it."""

    def __init__(self, log_path: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        package_root = str(Path(corral.__file__).resolve().parent.parent)
        try:
            with open(log_path, "ab") as log:
                self._process = subprocess.Popen(
                    spawner_command(package_root, theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    cwd="/",
                    pass_fds=(theirs.fileno(),),
                    # Supervisors inherit this environment; jobs get their own.
                    env={"PATH": os.defpath},
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise EngineUnavailable(f"the spawner could not be started: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._outbox = bytearray()

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def has_unsent(self) -> bool:
        return bool(self._outbox)

    def send(self, payload: bytes) -> None:
        """Raises OSError if the spawner is dead."""
        self._outbox += payload
        self.flush()

    def flush(self) -> None:
        """Send as much as the socket accepts now. Raises OSError if the spawner is dead."""
        while self._outbox:
            try:
                sent = self._socket.send(self._outbox)
            except BlockingIOError:
                return
            del self._outbox[:sent]

    def is_dead(self) -> bool:
        """Call when the socket is readable: the spawner never says anything, it only ends."""
        try:
            return self._socket.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> int:
        """Close the socket: the spawner starts the instances that it has received, and exits. Returns its status."""
        self._socket.close()
        try:
            return self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def log_tail(path: str, limit_bytes: int) -> str:
    """The end of the spawner's log, from a whole line on; "" if there is none."""
    try:
        with open(path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - limit_bytes))
            tail = log.read(limit_bytes)
    except FileNotFoundError:
        return ""
    return (tail if size <= limit_bytes else tail.partition(b"\n")[2]).decode(errors="replace")
