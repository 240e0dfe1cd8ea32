"""SIGTERM ends the server soon, whatever it does; exit codes say why it ended."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

#: what is promised, and what a busy machine may add to it before the process is gone
PROMISED, ADDED = 5.0, 10.0
HANGING = Path(__file__).parent.parent / "hanging_server.py"


def end(server: CorralServer) -> int:
    """The exit code. The program must end by itself: only SIGTERM is sent."""
    assert server.process is not None
    server.process.terminate()
    return server.process.wait(timeout=PROMISED + ADDED)


def test_clients_that_read_and_write_slowly(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "2xA10")
    server.start()
    token = server.token()
    head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
    connections = []
    for request in (
        f"GET /api/v1/stream HTTP/1.1\r\n{head}\r\n",
        f"POST /api/v1/jobs HTTP/1.1\r\n{head}Content-Length: 1000\r\n\r\n{{",
        "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n",
    ):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(request.encode())
        connections.append(connection)
    connections[0].recv(100)
    assert end(server) == 0
    for connection in connections:
        connection.close()


def test_a_store_that_stays_locked(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "2xA10")
    server.start()
    server.token()
    other = sqlite3.connect(server.home / "corral.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with server.http() as http:
        # Whatever comes of it: the controller waits for the lock now.
        assert http.post("/jobs", json={"name": "waits", "command": ["true"]}).status_code == 503
    assert end(server) == 0
    other.close()


@pytest.mark.parametrize("place", ["launch", "observe", "worker", "request", "controller"])
def test_server_stops_when_a_part_hangs(tmp_path: Path, place: str) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "2xA10", program=[str(HANGING)])
    server.start(HANGS_IN=place)
    server.token()
    # By a plain socket: no answer may ever come.
    connection = socket.create_connection(("127.0.0.1", server.port))
    head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token()}\r\n"
    body = '{"name": "hangs", "command": ["true"]}'
    submit = f"POST /api/v1/jobs {head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    connection.sendall((f"GET /api/v1/events {head}\r\n" if place == "request" else submit).encode())
    wait_until(lambda: (server.home / "hangs").exists(), f"the {place} hangs")
    assert end(server) == 0
    connection.close()


def test_a_second_server_in_the_same_home(tmp_path: Path) -> None:
    first = CorralServer(tmp_path / "home")
    first.start()
    second = CorralServer(tmp_path / "home")
    second.start(wait=False)
    assert second.process is not None
    assert second.process.wait(timeout=60) == 3
    third = CorralServer(tmp_path / "other")
    third.port = first.port
    third._command[third._command.index("--port") + 1] = str(first.port)
    third.start(wait=False)
    assert third.process is not None
    assert third.process.wait(timeout=60) == 4
    assert first.stop() == 0


def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "corral.db").write_bytes(b"this is no database" * 1000)
    server = CorralServer(home)
    server.start(wait=False)
    assert server.process is not None
    assert server.process.wait(timeout=60) == 5
    assert "cannot open the store" in server.log()


def test_a_signal_while_it_starts(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "2xA10")
    for pause in (0.2, 0.5, 1.0):
        server.start(wait=False)
        time.sleep(pause)
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGTERM)
        # Before the program handles signals at all, the signal itself ends it.
        assert server.process.wait(timeout=PROMISED + ADDED) in (0, -signal.SIGTERM)
