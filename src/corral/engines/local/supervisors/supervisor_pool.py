"""The supervisors of one spawner: forks them, and gives a supervisor whose instance has ended the next instance.

A fork of an interpreter costs several milliseconds of CPU, most of it for copies of memory pages. A supervisor that has
finished a plain instance, without container and storage, keeps its process and waits for another one. It still
supervises one instance at a time, and needs nothing of the spawner while it does so. Each supervisor has a socket to
the spawner: one byte says that it waits, a message is its next instance, and a closed socket, at either side, ends the
waiting. A supervisor with an instance finishes that first.

The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
import traceback
from typing import NoReturn

from corral.engines.attempts.instance_messages import InstanceSpec, take_frames, with_length
from corral.engines.attempts.processes import name_process
from corral.engines.local.supervisors.exits import REASON_LOST, record_failed_launch
from corral.engines.local.supervisors.supervisor import prepare_process, supervise

#: Supervisors that may wait at the same time, and for how long each.
MAX_IDLE = 32
IDLE_SECONDS = 5.0
#: Instances of one supervisor: garbage collection is off, so no process is used for ever.
MAX_INSTANCES = 500
#: A longer message would not fit into the buffer of a socket, and is given to a new supervisor.
MAX_SENT_BYTES = 1 << 16
_READ_BYTES = 1 << 16
#: The descriptor of the socket to the spawner in a supervisor.
_LINK = 3


class SupervisorPool:
    def __init__(self, poll: select.poll) -> None:
        """`poll` is that of the spawner, which calls `take_report` for the descriptors of the pool."""
        self._poll = poll
        self._links: dict[int, socket.socket] = {}
        #: since when each supervisor waits, the longest first
        self._idle: dict[int, float] = {}

    def start(self, frame: bytes, spec: InstanceSpec, *, may_be_sent: bool) -> None:
        """Start an instance, in a supervisor that waits, if `may_be_sent`, or in a new one."""
        if may_be_sent and len(frame) <= MAX_SENT_BYTES:
            while self._idle:
                if self._send(self._idle.popitem()[0], with_length(frame)):
                    return
        self._fork(spec)

    def take_report(self, descriptor: int) -> None:
        """A supervisor waits for an instance, or its process has ended."""
        link = self._links[descriptor]
        try:
            is_idle = link.recv(1) != b""
        except BlockingIOError:
            return
        except OSError:
            is_idle = False
        if is_idle and len(self._idle) < MAX_IDLE:
            self._idle[descriptor] = time.monotonic()
        else:
            self._dismiss(descriptor)

    def dismiss_idle(self) -> float | None:
        """End the supervisors that have waited for too long. Returns the milliseconds until the next one is due."""
        now = time.monotonic()
        for descriptor in [idle for idle, since in self._idle.items() if now - since >= IDLE_SECONDS]:
            self._dismiss(descriptor)
        if not self._idle:
            return None
        return max(0.0, min(self._idle.values()) + IDLE_SECONDS - now) * 1000 + 1

    def _send(self, descriptor: int, message: bytes) -> bool:
        try:
            is_sent = self._links[descriptor].send(message) == len(message)
        except OSError:
            is_sent = False  # its process was killed
        if not is_sent:
            # What arrived of the message is no instance: its supervisor reads the end of the socket.
            self._dismiss(descriptor)
        return is_sent

    def _dismiss(self, descriptor: int) -> None:
        self._idle.pop(descriptor, None)
        self._poll.unregister(descriptor)
        self._links.pop(descriptor).close()

    def _fork(self, spec: InstanceSpec) -> None:
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:
            record_failed_launch(spec, f"no process could be started: {error.strerror}", REASON_LOST)
            return
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            theirs.close()
            record_failed_launch(spec, f"no process could be started: {error.strerror}", REASON_LOST)
            return
        if pid == 0:
            _become_supervisor(spec, theirs)
        theirs.close()
        ours.setblocking(False)
        self._links[ours.fileno()] = ours
        self._poll.register(ours.fileno(), select.POLLIN)


def _become_supervisor(spec: InstanceSpec, link: socket.socket) -> NoReturn:
    status, rank_dir = 1, spec["rank_dir"]
    try:
        # Without the sockets of the spawner and of other supervisors, which must end with the spawner.
        os.dup2(link.fileno(), _LINK, inheritable=False)
        os.closerange(_LINK + 1, os.sysconf("SC_OPEN_MAX"))
        os.setsid()
        prepare_process()
        for left in reversed(range(MAX_INSTANCES)):
            rank_dir = spec["rank_dir"]
            # The last one asks for no other: it would be lost.
            if not supervise(spec) or not left:
                break
            following = _next_instance()
            if following is None:
                break
            spec = following
        status = 0
    except BaseException:  # noqa: BLE001 - a forked child must never return into the spawner's loop
        sys.stderr.write(f"supervisor of {rank_dir}:\n{traceback.format_exc()}")
        sys.stderr.flush()
    finally:
        os._exit(status)


def _next_instance() -> InstanceSpec | None:
    """Wait for the next instance; None if there is none, because the spawner does not need this process any more."""
    try:
        os.write(_LINK, b"\0")
    except BrokenPipeError:
        return None
    name_process("corral-idle")  # the spawner uses it from now on
    buffer = bytearray()
    while data := os.read(_LINK, _READ_BYTES):
        buffer += data
        for frame in take_frames(buffer):
            spec: InstanceSpec = json.loads(frame)
            return spec
    return None
