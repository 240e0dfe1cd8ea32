"""Commands in pods with input and output: the API server's protocol, and what the end of a command means."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from corral.control.ports import EngineUnavailable, ShellChannel
from corral.engines.kubernetes.api.client import ApiForbidden, ApiUnavailable
from corral.engines.kubernetes.api.credentials import NoToken
from corral.engines.kubernetes.api.exec_stream import PodCommand, exit_code_of, open_command
from corral.engines.kubernetes.api.kubeconfig import Access
from corral.engines.kubernetes.api.port_forward import forward

SUCCESS = b'\x03{"status": "Success"}'


@contextmanager
def answering(handler: Any, **options: Any) -> Iterator[Access]:
    protocols = options.pop("protocols", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
    with serve(handler, "127.0.0.1", 0, subprotocols=protocols, **options) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Access(server=f"http://127.0.0.1:{server.socket.getsockname()[1]}", credential=NoToken())
        server.shutdown()


def ran(access: Access, given: bytes = b"") -> tuple[list[tuple[ShellChannel, bytes]], int | None]:
    async def run() -> tuple[list[tuple[ShellChannel, bytes]], int | None]:
        command: PodCommand = await open_command(access, "/pods/x", "job", ["cat"], has_terminal=False, has_input=True)
        if given:
            await command.send(given)
        await command.end_input()
        heard = [piece async for piece in command.output()]
        await command.close()
        return heard, command.exit_code

    return asyncio.run(run())


def test_output_errors_and_exit_code_are_kept_apart() -> None:
    asked: list[str] = []

    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        asked.append(connection.request.path)
        assert connection.recv() == b"\x00hello"
        assert connection.recv() == b"\xff\x00"
        status = {
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
        }
        connection.send(b"\x01out")
        connection.send(b"\x02err")
        connection.send(b"\x03" + json.dumps(status).encode())

    with answering(handler) as access:
        heard, code = ran(access, b"hello")

    assert heard == [(ShellChannel.STDOUT, b"out"), (ShellChannel.STDERR, b"err")]
    assert code == 3
    assert asked == ["/pods/x/exec?command=cat&container=job&stdout=true&stdin=true&stderr=true"]


def test_an_older_api_server_is_not_sent_what_it_does_not_know() -> None:
    received: list[bytes | str] = []

    def handler(connection: ServerConnection) -> None:
        connection.send(SUCCESS)
        received.extend(connection)

    with answering(handler, protocols=["v4.channel.k8s.io"]) as access:
        assert ran(access) == ([], 0)

    assert received == []


def test_a_connection_that_breaks_is_no_end_of_the_command() -> None:
    with answering(lambda connection: connection.send(b"\x01half")) as access, pytest.raises(EngineUnavailable):
        ran(access)


def test_a_command_that_cannot_be_started_has_the_reason() -> None:
    with pytest.raises(ValueError, match="container not found"):
        exit_code_of(b'{"status": "Failure", "message": "container not found"}')
    with pytest.raises(ValueError, match="gibberish"):
        exit_code_of(b"gibberish")


def test_a_refusal_has_the_words_of_the_api_server() -> None:
    def refuse(connection: ServerConnection, _: object) -> Any:
        body = json.dumps({"message": 'User "corral" cannot get resource "pods/exec"', "reason": "Forbidden"})
        return connection.respond(403, body)

    with (
        answering(lambda _: None, process_request=refuse) as access,
        pytest.raises(ApiForbidden, match="cannot get resource"),
    ):
        ran(access)


def test_an_api_server_that_is_away_is_unavailable() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        access = Access(server=f"http://127.0.0.1:{probe.getsockname()[1]}", credential=NoToken())
        with pytest.raises(ApiUnavailable):
            ran(access)


def test_a_port_of_a_pod_is_a_socket() -> None:
    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        assert connection.request.path == "/pods/x/portforward?ports=8080"
        port = (8080).to_bytes(2, "little")
        connection.send(b"\x00" + port)
        connection.send(b"\x01" + port)
        data = connection.recv()
        assert isinstance(data, bytes)
        connection.send(b"\x00" + data[1:].upper())

    with answering(handler, protocols=["v4.channel.k8s.io"]) as access, forward(access, "/pods/x", 8080) as opened:
        opened.settimeout(10)
        opened.sendall(b"hello")
        assert opened.recv(100) == b"HELLO"
        assert opened.recv(100) == b""


def test_a_port_where_nothing_listens_ends_the_connection() -> None:
    def handler(connection: ServerConnection) -> None:
        port = (8080).to_bytes(2, "little")
        connection.send(b"\x00" + port)
        connection.send(b"\x01" + port)
        connection.send(b"\x01connection refused")
        list(connection)

    with answering(handler, protocols=["v4.channel.k8s.io"]) as access, forward(access, "/pods/x", 8080) as opened:
        opened.settimeout(10)
        assert opened.recv(100) == b""
