"""Connections that stay open for hours end when the rights that opened them are lost: a revoked token, the role of an
operator, a share of an app."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until
from tests.servers.corral_server import plain_http

pytestmark = pytest.mark.slow

#: Accepts WebSockets at its port, and says nothing.
QUIET = """
import base64, hashlib, os, socket, threading
def serve(line):
    head = b""
    while b"\\r\\n\\r\\n" not in head: head += line.recv(4096)
    key = next(part[18:].strip() for part in head.split(b"\\r\\n") if part.lower().startswith(b"sec-websocket-key"))
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    line.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\n")
    while line.recv(4096): pass
server = socket.create_server(("127.0.0.1", int(os.environ["CORRAL_APP_PORT"])))
print("ready", flush=True)
while True: threading.Thread(target=serve, args=(server.accept()[0],)).start()
"""
PASSWORD = "password-of-oscar"


@pytest.fixture
def job(machine: SharedMachine) -> str:
    """A running job of ann's with an app."""
    job_id = machine.submit("ann", 'exec python3 -c "$PROGRAM"', env={"PROGRAM": QUIET}, port=0)
    wait_until(lambda: "ready" in machine.log("ann", job_id), "the app listens")
    return job_id


class Followed(threading.Thread):
    """Follows the log of a job until the server ends the stream."""

    def __init__(self, machine: SharedMachine, token: str, job_id: str) -> None:
        super().__init__(daemon=True)
        self.begun, self.events = threading.Event(), ""
        self._url = f"{machine.server.url}/api/v1/jobs/{job_id}/logs?follow=true"
        self._token = token
        self.start()
        assert self.begun.wait(60)

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        with httpx.stream("GET", self._url, headers=headers, timeout=120) as answer:
            for line in answer.iter_lines():
                self.events += f"{line}\n"
                self.begun.set()

    def must_end(self) -> None:
        self.join(60)
        assert not self.is_alive(), "the log is sent although the right to read it was lost"
        assert "event: end" not in self.events


@pytest.fixture
def oscar(machine: SharedMachine) -> Iterator[httpx.Client]:
    """A second operator, who loses the role."""
    with machine.server.http() as operator, plain_http(f"{machine.server.url}/api/v1") as http:
        body = {"name": "oscar", "password": PASSWORD, "role": "operator"}
        operator.post("/users", json=body).raise_for_status()
        signed = http.post("/auth/login", json={"user": "oscar", "password": PASSWORD, "token_name": "test"})
        http.headers["Authorization"] = f"Bearer {signed.raise_for_status().json()['token']}"
        yield http


@contextmanager
def socket_to(machine: SharedMachine, token: str, path: str) -> Iterator[ClientConnection]:
    url = f"ws://127.0.0.1:{machine.server.port}{path}"
    with connect(url, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None) as connection:
        yield connection


def must_close(connection: ClientConnection) -> None:
    """Reads up to the end."""
    with pytest.raises(ConnectionClosed):
        deque(iter(partial(connection.recv, timeout=60), None), maxlen=0)


def test_an_operator_without_the_role_loses_what_was_opened_in_jobs_of_others(
    machine: SharedMachine, job: str, oscar: httpx.Client
) -> None:
    token = oscar.headers["Authorization"].partition(" ")[2]
    paths = (
        f"/api/v1/jobs/{job}/shell?command=sleep&command=600",
        f"/api/v1/jobs/{job}/tunnel",
        f"/apps/{job}/ws",
    )
    with ExitStack() as opened, machine.server.http() as operator:
        connections = [opened.enter_context(socket_to(machine, token, path)) for path in paths]
        log = Followed(machine, token, job)
        operator.patch("/users/oscar", json={"role": "scientist"}).raise_for_status()
        assert oscar.get(f"/jobs/{job}").status_code == 404
        machine.submit("ann", "true")
        log.must_end()
        for connection in connections:
            must_close(connection)


def test_a_log_is_followed_as_long_as_the_token_is_valid(machine: SharedMachine, job: str) -> None:
    with machine.server.http("ann") as ann:
        made = ann.post("/me/tokens", json={"name": "leaked"}).raise_for_status().json()
        log = Followed(machine, made["token"], job)
        ann.delete(f"/me/tokens/{made['id']}").raise_for_status()
    log.must_end()


def test_a_program_of_a_guest_loses_an_app_that_is_shared_no_longer(machine: SharedMachine, job: str) -> None:
    with machine.server.http("ann") as ann:
        ann.post(f"/apps/{job}/shares", json={"group": "default"}).raise_for_status()
        with socket_to(machine, machine.server.token("eve"), f"/apps/{job}/ws") as connection:
            ann.delete(f"/apps/{job}/shares/group/default").raise_for_status()
            must_close(connection)
