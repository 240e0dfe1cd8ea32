"""The command line as people run it: processes of its own, each person with stored tokens of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer
from tests.servers.fork_server import ENTRY_POINT, ForkedProcess, fork_server

CORRAL = [sys.executable, *ENTRY_POINT]


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
    """Someone at a shell."""

    server: str
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        # The width of the terminal in which the tests run must not matter, nor its variables for corral.
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("CORRAL_", "COLUMNS"))}
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

    def fork(self, *args: str, out: Path) -> ForkedProcess:
        """In the background, without the time of imports; its output goes to a file."""
        with out.open("wb") as written, Path(os.devnull).open("r+b") as nothing:
            return fork_server().start(
                [*ENTRY_POINT, *args],
                env=self.environment(),
                cwd=self.home,
                stdin=nothing,
                stdout=written,
                stderr=nothing,
            )

    def run(self, *args: str, stdin: str = "", code: int | None = None) -> Done:
        """The finished command; `code` is the exit code that it must have."""
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            process = fork_server().start(
                [*ENTRY_POINT, *args], env=self.environment(), cwd=self.home, stdin=given, stdout=out, stderr=err
            )
            done = Done(code=process.wait(timeout=90), out=_text(out), err=_text(err))
        assert "Traceback" not in done.err, done.err
        assert code is None or done.code == code, f"{args}: {done.code}\n{done.out}\n{done.err}"
        return done

    def ok(self, *args: str, stdin: str = "") -> str:
        return self.run(*args, stdin=stdin, code=0).out

    def read(self, *args: str) -> Any:
        """The answer as a document."""
        return self.run("-o", "json", *args, code=0).document

    def submit(self, *args: str) -> str:
        """The new job's id."""
        return str(self.read("submit", *args)["id"])

    def state(self, job: str) -> str:
        return str(self.read("show", job)["state"])

    def wait_for(self, job: str, state: str) -> dict[str, Any]:
        """The job, once it is in that state."""
        seen: list[dict[str, Any]] = []

        def reached() -> bool:
            seen.append(self.read("show", job))
            return bool(seen[-1]["state"] == state)

        wait_until(reached, f"{job} is {state}")
        return seen[-1]


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def person(server: CorralServer, name: str) -> Person:
    """Not signed in yet."""
    home = server.home.parent / "people" / name
    home.mkdir(parents=True, exist_ok=True)
    return Person(server=server.url, home=home)


def operator_of(server: CorralServer) -> Person:
    """The first operator, signed in."""
    operator = person(server, "operator")
    operator.ok("login", "--user", "operator", "--password-stdin", stdin=PASSWORD)
    return operator


def scientist(server: CorralServer, operator: Person, name: str) -> Person:
    """A new user, signed in."""
    password = f"{name}-password-1"
    operator.ok("user", "create", name, "--password-stdin", stdin=password)
    made = person(server, name)
    made.ok("login", "--user", name, "--password-stdin", stdin=password)
    return made


def stop_everything(operator: Person) -> None:
    live = [job["id"] for job in operator.read("jobs", "--limit", "500")["items"]]
    if live:
        # one that ended in the meantime is refused, which is as good
        operator.run("stop", *live)
        wait_until(lambda: not operator.read("jobs", "--limit", "500")["items"], "nothing waits or runs")


@contextmanager
def cli_server(directory: Path, *args: str) -> Iterator[CorralServer]:
    """A server for the stories of one module; no job of theirs is left behind."""
    server = CorralServer(directory / "state", *args)
    server.start()
    try:
        yield server
        stop_everything(operator_of(server))
    finally:
        server.kill()
