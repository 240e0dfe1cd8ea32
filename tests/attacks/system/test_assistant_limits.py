"""`corral mcp --http` serves users of corral only, and one token does not use it up."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from corral.cli.assistant.mcp_guard import AT_ONCE, MAX_BODY_BYTES, PER_MINUTE
from tests.attacks.conftest import SharedMachine
from tests.integration.cli_harness import CORRAL
from tests.integration.waiting import wait_until
from tests.servers.corral_server import free_port, plain_http

pytestmark = pytest.mark.slow

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def address(machine: SharedMachine) -> Iterator[str]:
    port = free_port()
    env = {**os.environ, "CORRAL_SERVER": machine.server.url, "CORRAL_HOME": str(machine.place / "nobody")}
    command = [*CORRAL, "mcp", "--http", "--port", str(port)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as serving:
        try:
            wait_until(lambda: _listens(port), "it listens")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            serving.terminate()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def ask(address: str, token: str, http: httpx.Client | None = None, **options: Any) -> httpx.Response:
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    with contextlib.ExitStack() as parts:
        http = http or parts.enter_context(plain_http(timeout=60))
        return http.post(address, headers=headers, **({"json": LIST} | options))


def test_only_tokens_that_corral_accepts_are_served(machine: SharedMachine, address: str) -> None:
    token = machine.server.token("ann")
    served = ask(address, token)
    assert served.status_code == 200, served.text
    assert "dry_run" in served.text
    for other in ("made-up", token[:-1], f"{token}x"):
        refused = ask(address, other)
        assert refused.status_code == 401
        assert "dry_run" not in refused.text


def test_bodies_and_requests_of_a_token_have_limits(machine: SharedMachine, address: str) -> None:
    eve, ann = machine.server.token("eve"), machine.server.token("ann")
    assert ask(address, eve, json=None, content=b" " * (MAX_BODY_BYTES + 1)).status_code == 413
    pieces = (b" " * 65536 for _ in range(MAX_BODY_BYTES // 65536 + 1))
    assert ask(address, eve, json=None, content=pieces).status_code == 413

    # Bodies that never end occupy eve's own places only.
    parts = address.removeprefix("http://").partition("/")[0].partition(":")
    slow = [socket.create_connection((parts[0], int(parts[2]))) for _ in range(AT_ONCE)]
    lines = ["POST /mcp HTTP/1.1", f"Host: {parts[0]}", f"Authorization: Bearer {eve}", "Content-Length: 9"]
    for one in slow:
        one.sendall("\r\n".join([*lines, "", ""]).encode())
    wait_until(lambda: ask(address, eve).status_code == 429, "no more of eve's are taken")
    assert ask(address, ann).status_code == 200
    for one in slow:
        one.close()
    wait_until(lambda: ask(address, eve).status_code == 200, "connections that are closed make room")

    # Requests that cost little: the limit is a rate, and a busy machine must exceed it too.
    with ThreadPoolExecutor(AT_ONCE) as many, plain_http(timeout=60) as http:
        answers = list(
            many.map(lambda _: ask(address, eve, http, json=None, content=b"").status_code, range(PER_MINUTE + 100))
        )
    assert 429 in answers
    assert ask(address, ann).status_code == 200
