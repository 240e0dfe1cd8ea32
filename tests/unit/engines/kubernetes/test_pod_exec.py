"""Commands in pods: an image whose shell never ends holds nothing up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from websockets.sync.server import ServerConnection, serve

from corral.engines.kubernetes.api import exec as pod_exec
from corral.engines.kubernetes.api.credentials import NoToken
from corral.engines.kubernetes.api.kubeconfig import Access


@contextmanager
def answering(handler: object) -> Iterator[Access]:
    with serve(handler, "127.0.0.1", 0, subprotocols=["v4.channel.k8s.io"]) as server:  # type: ignore[arg-type, list-item]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Access(server=f"http://127.0.0.1:{server.socket.getsockname()[1]}", credential=NoToken())
        server.shutdown()


def test_a_command_that_writes_for_ever_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_exec, "LONGEST_SECONDS", 0.2)
    is_over = threading.Event()

    def chatter(connection: ServerConnection) -> None:
        while not is_over.wait(0.01):
            connection.send(b"\x01more")

    with answering(chatter) as access:
        pod_exec.run_in_pod(access, "/pods/x", "job", ("sh",))
        is_over.set()


def test_a_command_that_ends_is_not_waited_for_longer() -> None:
    began = threading.Event()

    def ends(connection: ServerConnection) -> None:
        began.set()

    with answering(ends) as access:
        pod_exec.run_in_pod(access, "/pods/x", "job", ("sh",))
        assert began.wait(1)
