"""A distributed training with the standard library only: every instance starts one process per GPU, all processes find
each other through the environment that corral exports, and add up vectors round a ring, over and over, until the file
that is named on the command line exists.

Every message is small next to a socket's buffer, so that all ranks may send before any rank receives.
"""

# ruff: noqa: T201 - its output is what the story reads

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time

ADDRESS, PORT = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
WORLD, PER_NODE, NODE = (int(os.environ[name]) for name in ("WORLD_SIZE", "GPUS_PER_NODE", "NODE_RANK"))
LENGTH = 1003


def instance(until: str) -> int:
    """One process per GPU; as bad as the first bad one."""
    processes = [
        subprocess.Popen([sys.executable, __file__, until, str(local)], env={**os.environ, "LOCAL_RANK": str(local)})
        for local in range(PER_NODE)
    ]
    print(f"instance {NODE} is {os.getpid()}", flush=True)
    codes = [process.wait() for process in processes]
    return next((code for code in codes if code), 0)


def rank(local: int, until: str) -> None:
    me = NODE * PER_NODE + local
    before, behind = ring(me)
    while True:
        # The first number is rank 0's word on whether this round is the last.
        mine = [float(me == 0 and os.path.exists(until)), *((me + 1) * step for step in range(1, LENGTH))]
        total = all_reduce(mine, me, before, behind)
        assert total[1:] == [WORLD * (WORLD + 1) // 2 * step for step in range(1, LENGTH)], total[:5]
        if total[0]:
            break
        print(f"rank {me} went round", flush=True)
        time.sleep(0.05)
    print(f"rank {me} of {WORLD} has {int(sum(total[1:]))}", flush=True)


def ring(me: int) -> tuple[socket.socket, socket.socket]:
    """Connections from the rank before and to the rank behind; rank 0 sends every rank the addresses of all."""
    listener = socket.create_server((ADDRESS, 0))
    mine = listener.getsockname()[1]
    ports = [0] * WORLD
    if me == 0:
        ports[0] = mine
        with socket.create_server((ADDRESS, PORT), backlog=WORLD) as meeting:
            met = [meeting.accept()[0] for _ in range(WORLD - 1)]
        for other in met:
            number, port = json.loads(line(other))
            ports[number] = port
        for other in met:
            other.sendall(json.dumps(ports).encode() + b"\n")
            other.close()
    else:
        with connected() as meeting_place:
            meeting_place.sendall(json.dumps([me, mine]).encode() + b"\n")
            ports = json.loads(line(meeting_place))
    behind = socket.create_connection((ADDRESS, ports[(me + 1) % WORLD]))
    before = listener.accept()[0]
    return before, behind


def connected() -> socket.socket:
    """Rank 0 may not listen yet."""
    while True:
        try:
            return socket.create_connection((ADDRESS, PORT))
        except ConnectionRefusedError:
            time.sleep(0.02)


def all_reduce(values: list[float], me: int, before: socket.socket, behind: socket.socket) -> list[float]:
    """Reduce-scatter, then all-gather: every rank sends each part of the vector once round the ring, twice."""
    parts = [values[len(values) * n // WORLD : len(values) * (n + 1) // WORLD] for n in range(WORLD)]
    for step in range(WORLD - 1):
        send(behind, parts[(me - step) % WORLD])
        got = (me - step - 1) % WORLD
        parts[got] = [a + b for a, b in zip(parts[got], receive(before, len(parts[got])), strict=True)]
    for step in range(WORLD - 1):
        send(behind, parts[(me - step + 1) % WORLD])
        got = (me - step) % WORLD
        parts[got] = receive(before, len(parts[got]))
    return [value for part in parts for value in part]


def send(to: socket.socket, values: list[float]) -> None:
    to.sendall(struct.pack(f"<{len(values)}d", *values))


def receive(of: socket.socket, count: int) -> list[float]:
    data = b""
    while len(data) < 8 * count:
        more = of.recv(8 * count - len(data))
        if not more:
            raise ConnectionError("the one before is gone")
        data += more
    return list(struct.unpack(f"<{count}d", data))


def line(of: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        more = of.recv(4096)
        if not more:
            raise ConnectionError("gone before it had spoken")
        data += more
    return data


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(instance(sys.argv[1]))
    rank(int(sys.argv[2]), sys.argv[1])
