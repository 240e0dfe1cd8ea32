"""Daemons of a test cluster, by their names: started with their output in a file, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(kw_only=True)
class Processes:
    log: Path
    _started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[object], env: dict[str, str] | None = None) -> int:
        """Starts a process; returns its id."""
        assert not self.is_running(name), f"{name} runs already"
        with (self.log / f"{name}.log").open("ab") as output:
            self._started[name] = subprocess.Popen(
                [str(word) for word in command],
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return self._started[name].pid

    def is_running(self, name: str) -> bool:
        return name in self._started and self._started[name].poll() is None

    def running(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._started.items() if process.poll() is None}

    def child(self, name: str) -> int:
        """The one process that it started: `nsenter` and `unshare` start the daemon as their child."""
        children = Path(f"/proc/{self._started[name].pid}/task/{self._started[name].pid}/children")
        wait_for(lambda: children.read_text().split() or not self.is_running(name), f"the child of {name}")
        return int(children.read_text().split()[0])

    def end(self, name: str, how: signal.Signals = signal.SIGTERM, *, child: bool = False) -> None:
        if self.is_running(name):
            os.kill(self.child(name) if child else self._started[name].pid, how)
        self._wait(name)

    def _wait(self, name: str) -> None:
        process = self._started.pop(name, None)
        if process is None:
            return
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], object], what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.1)
