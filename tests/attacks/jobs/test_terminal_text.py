"""Names, descriptions and logs of users cannot control the terminals of readers."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attacks.conftest import SharedMachine
from tests.servers.fork_server import ENTRY_POINT

#: Sets a title, rewrites the line before, and shows words in another order.
EVIL = "\x1b]0;owned\x07\x1b[1A\x1b[2Kall is well\x9b31m \u202eexe.gpj\u2066"
ACTING = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066")


@pytest.fixture
def job(machine: SharedMachine) -> str:
    """A job of eve's with such text wherever she can put it."""
    body = {"name": "tools", "address": "example.org/tools:1", "description": EVIL}
    with machine.server.http("eve") as eve:
        eve.post("/images", json=body).raise_for_status()
    script = 'printf "%s\\n" "$EVIL"; printf "10%%\\r20%%\\n"; exit 3'
    job_id = machine.submit("eve", script, env={"EVIL": EVIL, "OTHER": EVIL}, labels={}, max_retries=0)
    machine.wait("eve", job_id)
    return job_id


def environment(machine: SharedMachine, home: Path) -> dict[str, str]:
    # Without colours every escape is a user's.
    plain = {"TERM": "dumb", "NO_COLOR": "1", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "COLUMNS": "400"}
    return {**plain, "HOME": str(home), "CORRAL_SERVER": machine.server.url, "CORRAL_TOKEN": machine.server.token()}


def at_a_terminal(machine: SharedMachine, home: Path, *args: str) -> str:
    """The output of an operator's command at a terminal, of both streams."""
    ours, theirs = pty.openpty()
    command = [sys.executable, *ENTRY_POINT, *args]
    with subprocess.Popen(
        command, env=environment(machine, home), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break  # the last one who had it open is gone
            if not part:
                break
            written += part
    os.close(ours)
    return written.decode("utf-8")


def check(text: str) -> None:
    found = [f"{ord(mark):#x}" for mark in ACTING if mark in text]
    assert not found, f"{found} in {text!r}"


@pytest.mark.parametrize(
    "args",
    [
        ("logs", "JOB"),
        ("logs", "JOB", "--search", "well"),
        ("logs", "JOB", "--rank", "all"),
        ("logs", "-f", "JOB"),
        ("show", "JOB"),
        ("show", "JOB", "-o", "json"),
        ("jobs", "--all"),
        ("events", "--limit", "20"),
        ("events", "--search", "tools", "-o", "json"),
        ("image", "ls"),
        ("image", "show", "tools"),
        ("image", "ls", "-o", "json"),
    ],
    ids=" ".join,
)
def test_no_escape_reaches_a_terminal(machine: SharedMachine, job: str, tmp_path: Path, args: tuple[str, ...]) -> None:
    written = at_a_terminal(machine, tmp_path, *(job if word == "JOB" else word for word in args))
    assert written
    check(written)


def test_a_log_shows_symbols_and_hides_no_line(machine: SharedMachine, job: str, tmp_path: Path) -> None:
    lines = at_a_terminal(machine, tmp_path, "logs", job).splitlines()
    assert lines[:3] == ["␛]0;owned␇␛[1A␛[2Kall is well\\u009b31m \\u202eexe.gpj\\u2066", "10%", "20%"]


def test_a_pipe_and_raw_get_the_bytes(machine: SharedMachine, job: str, tmp_path: Path) -> None:
    command = [sys.executable, *ENTRY_POINT, "logs", job]
    piped = subprocess.run(command, env=environment(machine, tmp_path), capture_output=True, check=True).stdout
    assert piped == f"{EVIL}\n10%\r20%\n".encode()
    assert EVIL in at_a_terminal(machine, tmp_path, "logs", job, "--raw")


def test_the_server_writes_no_escape_to_its_own_log(machine: SharedMachine, job: str) -> None:
    with machine.server.http("eve") as eve:
        eve.get(f"/auth/{quote(EVIL)}/callback")
        eve.get(f"/jobs/{quote(EVIL)}%0A2026 forged line")
    check(machine.server.log())
