"""Steps that the tests of shells share between engines: `corral shell` as people use it, and its refusals."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from corral.client.http.errors import NotFound
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

CORRAL = str(Path(sys.executable).parent / "corral")


def running_job(server: CorralServer, user: str = "operator", **body: Any) -> str:
    with server.http(user) as http:
        answer = http.post("/jobs", json={"command": ["sleep", "600"], "time": "10m", "grace": "1s", **body})
        assert answer.status_code == 201, answer.text
        job = str(answer.json()["id"])
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "it runs", seconds=120)
    return job


def corral(server: CorralServer, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CORRAL, *words],
        env=_environment(server),
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def check_codes_and_input(server: CorralServer, job: str) -> None:
    """Checks that a shell passes on its input, and ends with the exit code of its command."""
    assert corral(server, "shell", job, "--", "sh", "-c", "exit 7").returncode == 7
    assert corral(server, "shell", job, "--", "wc", "-c", given="x" * 200_000).stdout.strip() == "200000"
    assert corral(server, "shell", job, given="echo from a shell; exit 3\n").returncode == 3


def check_terminal(server: CorralServer, job: str, prompt: bytes) -> None:
    """Checks that a shell in a terminal knows its size, and ends with its exit code."""
    parent, child = pty.openpty()
    os.set_blocking(parent, False)
    env = _environment(server, COLUMNS="91", LINES="33")
    command = [CORRAL, "shell", job]
    process = subprocess.Popen(command, env=env, stdin=child, stdout=child, stderr=child, start_new_session=True)
    os.close(child)
    try:
        _read_until(parent, prompt)
        os.write(parent, b"stty size; test -t 0 && echo is-a-''terminal\n")
        shown = _read_until(parent, b"is-a-terminal")
        os.write(parent, b"exit 5\n")
        assert process.wait(60) == 5
        assert "33 91" in shown
    finally:
        process.kill()
        process.wait()
        os.close(parent)


def check_who_is_let_in(server: CorralServer, job: str) -> None:
    """Checks that another user learns nothing of the job, and that the audit log names an operator in ann's job."""
    server.add_user("ann")
    with server.client("ann") as client, pytest.raises(NotFound, match=f"there is no job '{job}'"):
        client.jobs.open_shell(job, ["true"])
    other = running_job(server, "ann")
    with server.client() as operator:
        heard: list[bytes] = []
        assert operator.jobs.open_shell(other, ["echo", "hello"]).run(lambda _, data: heard.append(data)) == 0
    assert b"".join(heard) == b"hello\n"
    with server.http() as http:
        opened = http.get("/events", params={"action": "job.shell-opened", "limit": 5}).json()["items"][0]
        assert (opened["actor"], opened["subject"], opened["detail"]["command"]) == ("operator", other, "echo hello")
        http.post(f"/jobs/{other}/stop")


def _environment(server: CorralServer, **more: str) -> dict[str, str]:
    return {**os.environ, "CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token(), **more}


def _read_until(descriptor: int, word: bytes, seconds: float = 60.0) -> str:
    found, until = b"", time.monotonic() + seconds
    while word not in found:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"no {word!r} in {found!r}"
        found += os.read(descriptor, 65536)
    return found.decode(errors="replace")
