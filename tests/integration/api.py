"""One real server for the API tests of a module, and what they all need."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.servers.corral_server import CorralServer, plain_http

API = "/api/v1"


@contextmanager
def api_server(*args: str, users: tuple[str, ...] = (), **env: str) -> Iterator[CorralServer]:
    """A server with virtual GPUs and the given scientists."""
    home = Path(tempfile.mkdtemp(prefix="corral-api-"))
    server = CorralServer(home, *(args or ("--virtual-gpus", "4xA100-80G")))
    try:
        server.start(env)
        for user in users:
            server.add_user(user)
        yield server
    finally:
        server.kill()
        shutil.rmtree(home, ignore_errors=True)


def anonymous(server: CorralServer) -> httpx.Client:
    return plain_http(server.url)


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem that an answer holds; checks that it is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["type"].startswith("/problems/")
    assert body["title"]
    assert body["detail"]
    return body


def dump(server: CorralServer) -> str:
    """Everything in the store, as text, except for when credentials were last used and users last seen, which the
    server stores once a minute."""
    stored = sqlite3.connect(f"file:{server.home / 'corral.db'}?mode=ro", uri=True)
    with closing(stored), closing(sqlite3.connect(":memory:")) as copy:
        stored.backup(copy)
        copy.execute("UPDATE credentials SET last_used_at = NULL")
        copy.execute("UPDATE users SET last_seen_at = NULL")
        return "\n".join(copy.iterdump())
