"""A real corral server for tests:

Its own process, home and port, started, killed and started again as a story needs.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from corral.client.client import Client
from tests.servers.fork_server import ENTRY_POINT, ForkedProcess, fork_server

PASSWORD = "first-password-of-the-operator"


def plain_http(url: str = "", **options: Any) -> httpx.Client:
    """For servers of tests, none of which speaks TLS: to read the certificates would cost more than a request."""
    return httpx.Client(base_url=url, verify=False, trust_env=False, **{"timeout": 30, **options})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class CorralServer:
    """`program` is what is run instead of the ordinary entry point, such as a server that dies on purpose."""

    def __init__(self, home: Path, *args: str, program: Sequence[str] = ENTRY_POINT) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [*program, "up", "--port", str(self.port), *args]
        self._tokens: dict[str, str] = {}
        self.process: ForkedProcess | None = None

    def start(self, environment: Mapping[str, str] | None = None, *, wait: bool = True, **variables: str) -> None:
        """Start it with further environment variables: a mapping of them, or by name."""
        self.home.mkdir(parents=True, exist_ok=True)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CORRAL_")}
        # Directories of tests are for the account that runs them, and on many machines that is root.
        fixed = {"CORRAL_HOME": str(self.home), "CORRAL_BOOTSTRAP_PASSWORD": PASSWORD, "CORRAL_ALLOW_ROOT": "true"}
        environ = {**clean, **fixed, **(environment or {}), **variables}
        with (self.home / "server.log").open("ab") as log, Path(os.devnull).open("rb") as nothing:
            self.process = fork_server().start(self._command, env=environ, stdin=nothing, stdout=log, stderr=log)
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        with plain_http(self.url, timeout=2) as http:
            while time.monotonic() < deadline and self.is_running:
                try:
                    if http.get("/readyz").is_success:
                        return
                except httpx.TransportError:
                    pass  # not listening yet
                time.sleep(0.02)
        raise AssertionError(f"the server is not ready:\n{self.log()[-3000:]}")

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kills the server without warning, like a crash."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGKILL)
            self.process.wait(timeout=10)

    def stop(self) -> int:
        """Stops the server like an operator; returns the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=30)

    def log(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")

    def token(self, user: str = "operator", password: str = PASSWORD) -> str:
        if user not in self._tokens:
            body = {"user": user, "password": password, "token_name": "test"}
            with plain_http(self.url) as http:
                answer = http.post("/api/v1/auth/login", json=body).raise_for_status()
            self._tokens[user] = answer.json()["token"]
        return self._tokens[user]

    def forget_tokens(self) -> None:
        """The store is another one from now on."""
        self._tokens.clear()

    def client(self, user: str = "operator") -> Client:
        return Client(self.url, self.token(user))

    def http(self, user: str = "operator") -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token(user)}"}
        return plain_http(f"{self.url}/api/v1", headers=headers)

    def add_user(self, name: str, role: str = "scientist") -> None:
        password = f"password-of-{name}"
        with self.http() as http:
            http.post("/users", json={"name": name, "password": password, "role": role}).raise_for_status()
        self.token(name, password)
