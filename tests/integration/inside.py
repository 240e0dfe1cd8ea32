"""A server inside the test's own process, so that a test can fill its history and look into its controller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from tests.integration.api import API
from tests.integration.waiting import wait_until

PASSWORD = "first-password-of-the-operator"


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The application on a port of its own; its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, "it listens")
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


def signed_in(url: str, user: str, password: str) -> httpx.Client:
    body = {"user": user, "password": password, "token_name": "test"}
    token = httpx.post(f"{url}{API}/auth/login", json=body).raise_for_status().json()["token"]
    return httpx.Client(base_url=f"{url}{API}", headers={"Authorization": f"Bearer {token}"}, timeout=30)
