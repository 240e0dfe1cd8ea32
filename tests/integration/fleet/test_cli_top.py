"""`corral top` and `corral gpus --watch` in a real terminal, against a scripted server."""

from __future__ import annotations

import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from typing import Any

import pytest

from tests.unit.cli.fleet_views import NODES, answers
from tests.unit.client.scripted_server import Answer, ScriptedServer, Seen, as_json, scripted


class TerminalSession:
    """A process in a terminal of its own: what it draws, and keys for it."""

    def __init__(self, *command: str, env: dict[str, str], columns: int = 80, rows: int = 24) -> None:
        self.ours, self._theirs = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            command, stdin=self._theirs, stdout=self._theirs, stderr=self._theirs, env=env, start_new_session=True
        )
        self.drawn = ""

    def resize(self, columns: int, rows: int) -> None:
        ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        self.drawn = ""
        os.write(self.ours, keys.encode())

    def wait_for(self, what: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while what not in self.drawn:
            left = deadline - time.monotonic()
            assert left > 0, f"never drawn: {what!r}; last {self.drawn[-2000:]!r}"
            if select.select([self.ours], [], [], left)[0]:
                self.drawn += os.read(self.ours, 65536).decode(errors="replace")

    def end(self) -> int:
        """The exit code, when the program has ended by itself."""
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.ours], [], [], 0.02)[0]:
                self.drawn += os.read(self.ours, 65536).decode(errors="replace")
        while select.select([self.ours], [], [], 0)[0]:
            self.drawn += os.read(self.ours, 65536).decode(errors="replace")
        return self.process.wait(timeout=1)

    @property
    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._theirs)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self._theirs)


@contextmanager
def top_in_a_terminal(server: ScriptedServer, *args: str) -> Iterator[TerminalSession]:
    env = {**os.environ, "CORRAL_SERVER": server.url, "TERM": "xterm-256color"}
    session = TerminalSession(sys.executable, "-m", "corral.cli.main", "top", *args, env=env)
    try:
        yield session
    finally:
        session.close()


def test_in_a_terminal_q_ends_it_and_the_terminal_is_as_before() -> None:
    is_away = False

    def sometimes(seen: Seen, number: int) -> Answer:
        return Answer(status=500, body=b"{}") if is_away else answers(seen, number)

    with scripted(sometimes) as server, top_in_a_terminal(server, "--interval", "0.2") as session:
        session.wait_for("j-2")
        assert "\x1b[?1049h" in session.drawn
        assert session.settings[3] & termios.ICANON == 0
        session.press("s")
        session.wait_for("s sort: use")
        session.press("\x1b[B")
        session.press("\t")
        session.wait_for("▸jobs")
        # away: the last state stays on the screen, with its age
        is_away = True
        session.wait_for("AWAY")
        session.drawn = ""
        session.wait_for("old")
        is_away = False
        session.press("k")
        session.wait_for("j-1")
        session.press("q")
        assert session.end() == 0
        assert session.settings == session.before
        assert session.drawn.rstrip().endswith(("\x1b[?1049l", "\x1b[?25h"))
        assert "\x1b[?25h" in session.drawn
        assert "Traceback" not in session.drawn


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_leaves_the_terminal_as_before(number: int) -> None:
    with scripted(answers) as server, top_in_a_terminal(server) as session:
        session.wait_for("j-2")
        session.process.send_signal(number)
        assert session.end() in (130, 128 + number)
        assert session.settings == session.before
        assert "\x1b[?1049l" in session.drawn
        assert "Traceback" not in session.drawn


def test_the_table_of_gpus_can_be_watched_and_says_when_the_server_is_away() -> None:
    is_away = False

    def sometimes(seen: Seen, number: int) -> Answer:
        gpus = [found for one in NODES for found in one["gpus"]]
        return Answer(status=500, body=b"{}") if is_away else as_json({"items": gpus, "next_cursor": None})

    with scripted(sometimes) as server:
        env = {**os.environ, "CORRAL_SERVER": server.url, "TERM": "xterm-256color"}
        command = (sys.executable, "-m", "corral.cli.main", "gpus", "-w", "--interval", "0.2")
        session = TerminalSession(*command, env=env)
        try:
            session.wait_for("n2-gpu1")
            assert "50%?" in session.drawn
            is_away = True
            session.wait_for("AWAY")
            session.process.send_signal(2)
            assert session.end() == 130
            assert session.settings == session.before
        finally:
            session.close()
