"""Connections that say nothing, requests that never end and answers that are never read do not pile up."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.attacks.conftest import SharedMachine

#: far more than any limit of these tests: a guard against waiting for ever
PATIENCE_SECONDS = 60.0
PER_ADDRESS = 30


@pytest.fixture
def strict(machine: SharedMachine) -> SharedMachine:
    """The machine with limits that are short enough for a test."""
    config = machine.place / "corral.yaml"
    limits = f"header_seconds: 1, body_seconds: 1, idle_seconds: 2, max_connections_per_address: {PER_ADDRESS}"
    config.write_text(f"{config.read_text()}server: {{{limits}}}\n")
    machine.server.kill()
    machine.start()
    return machine


@pytest.fixture
def connections(strict: SharedMachine) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(machine: SharedMachine, source: str = "127.0.0.77") -> socket.socket:
    return socket.create_connection(
        ("127.0.0.1", machine.server.port), timeout=PATIENCE_SECONDS, source_address=(source, 0)
    )


def head(machine: SharedMachine, *lines: str, user: str = "eve") -> bytes:
    given = [*lines, "Host: corral", f"Authorization: Bearer {machine.server.token(user)}"]
    return "\r\n".join([*given, "", ""]).encode()


def rest(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def trickle(connection: socket.socket, byte: bytes) -> None:
    """A byte now and then, for as long as the server takes it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            connection.send(byte)
            time.sleep(0.2)
    except (BrokenPipeError, ConnectionResetError):
        return
    raise AssertionError("the server takes it for ever")


def test_a_connection_that_says_nothing_ends(strict: SharedMachine, connections: ExitStack) -> None:
    silent = connections.enter_context(connect(strict))
    assert rest(silent) == b""
    # Blank lines before a request are no request.
    blank = connections.enter_context(connect(strict))
    trickle(blank, b"\r\n")


@pytest.mark.parametrize("after", ["first", "a request before"])
def test_a_head_that_never_ends_is_cut_off(strict: SharedMachine, connections: ExitStack, after: str) -> None:
    slow = connections.enter_context(connect(strict))
    if after != "first":
        slow.sendall(head(strict, "GET /api/v1/me HTTP/1.1"))
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
    slow.sendall(b"GET /api/v1/me HTTP/1.1\r\nX-Slow: ")
    trickle(slow, b"a")


def test_a_head_without_end_takes_no_memory(strict: SharedMachine, connections: ExitStack) -> None:
    large = connections.enter_context(connect(strict))
    large.sendall(b"GET /api/v1/me HTTP/1.1\r\nX-Large: ")
    try:
        for _ in range(1000):
            large.sendall(b"a" * 65536)
    except (BrokenPipeError, ConnectionResetError):
        return
    raise AssertionError("64 MB of a header were taken")


@pytest.mark.parametrize(
    "framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"], ids=["length", "chunked"]
)
def test_a_body_that_never_ends_is_cut_off(strict: SharedMachine, connections: ExitStack, framing: str) -> None:
    slow = connections.enter_context(connect(strict))
    slow.sendall(head(strict, "POST /api/v1/jobs HTTP/1.1", framing, "Content-Type: application/json"))
    trickle(slow, b"1\r\n \r\n" if "chunked" in framing else b" ")


def test_a_slow_but_honest_upload_arrives(strict: SharedMachine, connections: ExitStack) -> None:
    body = b'{"command": ["true"], "env": {"A": "' + b"a" * 6000 + b'"}}'
    honest = connections.enter_context(connect(strict))
    length = f"Content-Length: {len(body)}"
    honest.sendall(head(strict, "POST /api/v1/jobs HTTP/1.1", length, "Content-Type: application/json"))
    for start in range(0, len(body), 500):
        honest.sendall(body[start : start + 500])
        time.sleep(0.3)
    assert honest.recv(65536).startswith(b"HTTP/1.1 201")


def test_single_address_cannot_take_all_connections(strict: SharedMachine, connections: ExitStack) -> None:
    flood = [connections.enter_context(connect(strict)) for _ in range(PER_ADDRESS + 20)]
    refused = [rest(connection) for connection in flood[PER_ADDRESS:]]
    assert all(answer.startswith(b"HTTP/1.1 503") for answer in refused), refused[:1]
    with strict.server.http("ann") as ann:
        assert ann.get("/me").status_code == 200, "others come in meanwhile"
    for connection in flood[:PER_ADDRESS]:
        assert rest(connection) == b"", "and the silent ones have gone"
    again = connections.enter_context(connect(strict))
    again.sendall(head(strict, "GET /api/v1/me HTTP/1.1"))
    assert again.recv(65536).startswith(b"HTTP/1.1 200"), "places are given back"


def test_closed_connections_leave_no_lines_in_the_log(strict: SharedMachine, connections: ExitStack) -> None:
    slow = connections.enter_context(connect(strict))
    slow.sendall(head(strict, "PUT /api/v1/volumes/none/uploads/none/parts/1 HTTP/1.1", "Content-Length: 100000"))
    slow.close()
    with strict.server.http("ann") as ann:
        ann.get("/me").raise_for_status()
    assert "Traceback" not in strict.server.log()


def test_ordinary_clients_notice_nothing(strict: SharedMachine) -> None:
    """Keep-alive, pauses between requests, a stream that is quiet for longer than any limit."""
    with strict.server.http("ann") as ann, ann.stream("GET", "/stream") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        time.sleep(4)
        with strict.server.http("ann") as other:
            made: dict[str, Any] = other.post("/jobs", json={"command": ["true"]}).raise_for_status().json()
            time.sleep(3)
            assert other.get(f"/jobs/{made['id']}").status_code == 200
        assert any("job.submitted" in line for line in lines)


def test_the_defaults_let_a_whole_lab_in(machine: SharedMachine) -> None:
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    headers = {"Authorization": f"Bearer {machine.server.token('ann')}"}
    with ExitStack() as streams:
        lab = streams.enter_context(
            httpx.Client(base_url=f"{machine.server.url}/api/v1", limits=limits, headers=headers, timeout=60)
        )
        for _ in range(200):
            stream = streams.enter_context(lab.stream("GET", "/stream"))
            assert stream.status_code == 200
