"""Clients that send packs of a dataset slowly wait for themselves only."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from corral.datasets.content.packs import encode_index
from corral.datasets.history.records import digest_of
from tests.attacks.conftest import SharedMachine

pytestmark = pytest.mark.slow

#: more than packs are accepted at the same time
SLOW = 16
PIECE = b"a piece of ann\n" * 1000


def begun(machine: SharedMachine) -> socket.socket:
    """A request of eve's that has sent its head and the first bytes of its body."""
    connection = socket.create_connection(("127.0.0.1", machine.server.port), timeout=30)
    lines = [
        f"PUT /api/v1/datasets/mine/objects/{'ab' * 32}?index_bytes=100 HTTP/1.1",
        "Host: corral",
        f"Authorization: Bearer {machine.server.token('eve')}",
        "Content-Type: application/octet-stream",
        "Content-Length: 20000",
    ]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + b"x" * 50)
    return connection


def test_a_slow_client_does_not_keep_others_from_sending(machine: SharedMachine) -> None:
    with machine.server.client("eve") as eve:
        eve.datasets.create({"name": "mine"})
    with machine.server.client("ann") as ann, ExitStack() as stack:
        ann.datasets.create({"name": "hers"})
        slow = [stack.enter_context(begun(machine)) for _ in range(SLOW)]
        machine.run("ann", "true")  # the server has taken them by now
        pack, index = encode_index("data", 0.0, [(digest_of(PIECE), len(PIECE))])
        with machine.server.http("ann") as http:
            answer = http.put(
                f"/datasets/hers/objects/{pack}?index_bytes={len(index)}", content=index + PIECE, timeout=10
            )
        assert answer.is_success, answer.text
        # One more of eve's is refused with words.
        with begun(machine) as more:
            assert b"503" in more.recv(4096).splitlines()[0]
        for one in slow:
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)
