"""The small process that forks supervisors, so that no launch pays for starting an interpreter.

It reads messages from the engine's socket and ends when the engine's end closes; supervisors live on by themselves.
It has one thread and few modules, which makes forking safe and cheap. What it must do it gets told: it decides
nothing, and a message it cannot read is reported on its standard error and skipped.
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

#: Small enough to come from memory that stays mapped.
_READ_BYTES = 1 << 16


def spawner_command(package_root: str, descriptor: int) -> list[str]:
    """How to start it: isolated and without site-packages, so that only the standard library and corral load."""
    code = (
        f"import sys; sys.path.append({package_root!r}); "
        f"from corral.engines.local.supervisors.spawner import main; main({descriptor})"
    )
    return [sys.executable, "-I", "-S", "-c", code]


def main(descriptor: int) -> None:
    name_process("corral-spawner")
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    # Ended supervisors are nobody's concern here: the kernel reaps them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Everything loaded so far lives for ever; leaving it out of collections keeps its pages shared after a fork.
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
