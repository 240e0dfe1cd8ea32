"""A real server as a process of its own, and the command line as its users run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

PASSWORD = "operator-password-1"
START_SECONDS = 60.0
CORRAL = [sys.executable, "-m", "corral.cli.main"]

Value = TypeVar("Value")


def until(question: Callable[[], Value], *, seconds: float = 30.0) -> Value:
    """The first true answer, asked for until the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(0.05)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> dict[str, Any]:
        found = json.loads(self.err)
        assert isinstance(found, dict)
        return found


@dataclass(kw_only=True)
class Person:
    """Someone at a shell, with stored tokens of their own."""

    server: str
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CORRAL_")}
        return {**clean, "CORRAL_HOME": str(self.home), "CORRAL_SERVER": self.server, **self.env}

    def start(self, *args: str) -> subprocess.Popen[str]:
        """In the background, as in another terminal."""
        return subprocess.Popen(
            [*CORRAL, *args],
            env=self.environment(),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, stdin: str = "", code: int | None = None) -> Done:
        """The finished command; `code` is the exit code that it must have."""
        self.home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [*CORRAL, *args],
            env=self.environment(),
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def ok(self, *args: str, stdin: str = "") -> str:
        return self.run(*args, stdin=stdin, code=0).out

    def read(self, *args: str) -> Any:
        """The answer as a document."""
        return self.run(*args, "-o", "json", code=0).document

    def submit(self, *args: str) -> str:
        """The new job's id."""
        return str(self.read("submit", *args[: args.index("--")], "-o", "json", *args[args.index("--") :])["id"])

    def state(self, job: str) -> str:
        return str(self.read("show", job)["state"])

    def wait_for(self, job: str, *states: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            view = self.read("show", job)
            return view if view["state"] in states else None

        return until(reached, seconds=60) or {}


@dataclass(kw_only=True)
class LiveServer:
    home: Path
    port: int
    flags: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CORRAL_")}
        with (self.home.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*CORRAL, "up", "--port", str(self.port), *self.flags],
                env={**clean, "CORRAL_HOME": str(self.home), "CORRAL_BOOTSTRAP_PASSWORD": PASSWORD},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._is_ready, seconds=START_SECONDS)

    def _is_ready(self) -> bool:
        import httpx

        assert self.process is not None
        assert self.process.poll() is None, (self.home.parent / "server.log").read_text()
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=30)
            self.process = None

    def person(self, name: str) -> Person:
        home = self.home.parent / "people" / name
        home.mkdir(parents=True, exist_ok=True)
        return Person(server=self.url, home=home)

    def operator(self) -> Person:
        """The first operator, signed in."""
        operator = self.person("operator")
        operator.ok("login", "--user", "operator", "--password-stdin", stdin=PASSWORD)
        return operator

    def scientist(self, operator: Person, name: str) -> Person:
        """A new user, signed in."""
        password = f"{name}-password-1"
        operator.ok("user", "create", name, "--password-stdin", stdin=password)
        person = self.person(name)
        person.ok("login", "--user", name, "--password-stdin", stdin=password)
        return person


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def live_server(directory: Path, *flags: str) -> LiveServer:
    server = LiveServer(home=directory / "state", port=free_port(), flags=flags)
    server.start()
    return server
