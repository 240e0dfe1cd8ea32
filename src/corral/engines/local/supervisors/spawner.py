"""The spawner: a small process that forks supervisors, so that a launch does not pay for starting an interpreter.

The engine starts one spawner and sends it one message per instance through a socket. For each message the spawner forks
a supervisor, which begins a session of its own and so outlives the spawner. When the engine closes the socket, or dies,
the spawner exits; supervisors continue.

The spawner has one thread and loads few modules, which makes a fork safe and cheap. It decides nothing. A message that
it cannot read is reported on its standard error and skipped.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import traceback

from corral.engines.attempts.instance_messages import InstanceSpec, take_frames
from corral.engines.attempts.processes import name_process
from corral.engines.local.supervisors.exits import REASON_LOST, record_failed_launch
from corral.engines.local.supervisors.supervisor import supervise

#: Small enough for memory that stays mapped.
_READ_BYTES = 1 << 16


def spawner_command(package_root: str, descriptor: int) -> list[str]:
    """The command that starts it: isolated and without site-packages, so that only the standard library and corral are
    loaded."""
    code = (
        f"import sys; sys.path.append({package_root!r}); "
        f"from corral.engines.local.supervisors.spawner import main; main({descriptor})"
    )
    return [sys.executable, "-I", "-S", "-c", code]


def main(descriptor: int) -> None:
    name_process("corral-spawner")
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    # The exit status of supervisors is not needed: the kernel reaps them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Everything loaded so far is never freed. Excluding it from garbage collection keeps its pages shared after a fork.
    gc.collect()
    gc.freeze()
    gc.disable()
    buffer = bytearray()
    while data := connection.recv(_READ_BYTES):
        buffer += data
        for frame in take_frames(buffer):
            _start(frame, connection)


def _start(frame: bytes, connection: socket.socket) -> None:
    try:
        spec: InstanceSpec = json.loads(frame)
        rank_dir = spec["rank_dir"]
    except (ValueError, KeyError, TypeError):
        traceback.print_exc()
        return
    try:
        pid = os.fork()
    except OSError as error:
        record_failed_launch(spec, f"no process could be started: {error.strerror}", REASON_LOST)
        return
    if pid:
        return
    status = 1
    try:
        connection.close()
        os.setsid()
        supervise(spec)
        status = 0
    except BaseException:  # noqa: BLE001 - a forked child must never return into the spawner's loop
        sys.stderr.write(f"supervisor of {rank_dir}:\n{traceback.format_exc()}")
        sys.stderr.flush()
    finally:
        os._exit(status)
