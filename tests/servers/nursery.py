"""Programs of corral that start at once: one process has read the code, and every program begins as a copy of it.

Reading its code takes a server three seconds of a processor, and the tests start servers and commands by the hundred.
What is started is a process of its own, with the arguments, environment, directory and files that it was given; only
the reading is saved. `python nursery.py FD` is the process that is copied; it ends with the one that started it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

#: The largest order: an environment and some arguments.
MOST_BYTES = 1 << 18
ENTRY_POINT = ("-m", "corral.cli.main")


class Offspring:
    """A process that was started, with what tests use of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], pid: int, status: int) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            told = os.read(self._status, 64)
            os.close(self._status)
            assert told, "the nursery is gone"
            self.returncode = int(told)
        return self.returncode


class Nursery:
    """Where processes of corral are started from; one for each process of tests."""

    def __init__(self) -> None:
        self._orders, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            # Its output must be no terminal, because that of its copies is none.
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(far.fileno())],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
        cwd: Path | None = None,
    ) -> Offspring:
        """`command` is what would follow the name of the interpreter."""
        order = {"command": list(command), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        status, far = os.pipe()
        try:
            files = [stdin.fileno(), stdout.fileno(), stderr.fileno(), far]
            socket.send_fds(self._orders, [json.dumps(order).encode()], files)
        finally:
            os.close(far)
        return Offspring(command, int(self._orders.recv(64)), status)


_nursery: Nursery | None = None


def nursery() -> Nursery:
    """That of this process, begun when it is first needed."""
    global _nursery
    if _nursery is None:
        _nursery = Nursery()
    return _nursery


# ------------------------------------------------------------------------------------- in the process that is copied


@dataclass(frozen=True, slots=True)
class _Order:
    command: list[str]
    env: dict[str, str]
    cwd: str
    files: list[int]

    def run(self) -> None:
        """Become what was ordered. Returns, or leaves with an exception, as the program does."""
        code = 1

        def leave() -> None:
            # After everybody else's last words. To take apart all that was read would mean to copy it first.
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

        atexit.register(leave)
        try:
            self._run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            raise

    def _run(self) -> None:
        for place, file in enumerate(self.files):
            os.dup2(file, place)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.env)
        time.tzset()
        # A copy would throw the same dice as its sisters.
        random.seed()
        if tuple(self.command[:2]) == ENTRY_POINT:
            from corral.cli import main

            sys.argv = [main.__file__, *self.command[2:]]
            main.main()
        else:
            sys.argv = self.command
            runpy.run_path(self.command[0], run_name="__main__")


def _serve(orders: socket.socket) -> _Order | None:
    """Make copies until nobody asks any more. In a copy: what it is to be."""
    statuses: dict[int, int] = {}
    wake, far = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(far, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(far)
    while True:
        ready, _, _ = select.select([orders.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _tell_who_ended(statuses)
        if orders.fileno() in ready:
            text, files, _, _ = socket.recv_fds(orders, MOST_BYTES, 4)
            if not text:
                return None
            order = _Order(**json.loads(text), files=files[:3])
            assert threading.active_count() == 1, "a process with threads cannot be copied"
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return order
            statuses[pid] = files[3]
            for file in files[:3]:
                os.close(file)
            orders.send(str(pid).encode())


def _tell_who_ended(statuses: dict[int, int]) -> None:
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        file = statuses.pop(pid)
        # Nobody may wait for it any more.
        with contextlib.suppress(BrokenPipeError):
            os.write(file, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(file)


def _read_the_code() -> None:
    # Not this directory's: modules here are no modules of their own.
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    import argon2.profiles
    import rich.table

    import corral.cli.main
    import corral.client.client
    import corral.server.auth.passwords
    import corral.server.wiring.run

    # These servers guard nothing: with a hash that is as slow as it should be, tests would mostly wait for sign-ins.
    cheapest = functools.partial(argon2.PasswordHasher.from_parameters, argon2.profiles.CHEAPEST)
    setattr(corral.server.auth.passwords, "PasswordHasher", cheapest)  # noqa: B010
    assert corral.cli.main
    assert corral.client.client
    assert corral.server.wiring.run
    assert rich.table
    # What was read is for good: no copy needs to look through it again.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _read_the_code()
    _order = _serve(socket.socket(fileno=int(sys.argv[1])))
    if _order is not None:
        _order.run()
