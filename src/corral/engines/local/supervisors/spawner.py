"""The spawner: a small process that forks supervisors, so that a launch does not pay for starting an interpreter.

The engine starts one spawner and sends it one message per instance through a socket. The spawner passes each message to
a supervisor of its pool (`supervisor_pool`), which has a session of its own and so outlives the spawner. When the
engine closes the socket, or dies, the spawner exits; supervisors with an instance continue.

The spawner has one thread and loads few modules, which makes a fork safe and cheap. It decides nothing. A message that
it cannot read is reported on its standard error and skipped.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback

from corral.engines.attempts.instance_messages import InstanceSpec, take_frames
from corral.engines.attempts.processes import name_process
from corral.engines.local.supervisors.supervisor import is_plain
from corral.engines.local.supervisors.supervisor_pool import SupervisorPool

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
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    pool = SupervisorPool(poll)
    buffer = bytearray()
    while True:
        ready = [number for number, _ in poll.poll(pool.dismiss_idle())]
        # Supervisors that wait are known before the next instances are started.
        for number in ready:
            if number != descriptor:
                pool.take_report(number)
        if descriptor in ready:
            data = connection.recv(_READ_BYTES)
            if not data:
                return
            buffer += data
            for frame in take_frames(buffer):
                _start(frame, pool)


def _start(frame: bytes, pool: SupervisorPool) -> None:
    try:
        spec: InstanceSpec = json.loads(frame)
        may_be_sent = is_plain(spec) and bool(spec["rank_dir"])
    except (ValueError, KeyError, TypeError):
        traceback.print_exc()
        return
    pool.start(frame, spec, may_be_sent=may_be_sent)
