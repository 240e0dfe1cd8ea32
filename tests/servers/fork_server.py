"""Starts corral programs without importing their code each time: one process imports it, every program is a fork of it.

Importing the code takes a server three seconds of processor time, and the tests start hundreds of servers and commands.
Each program is a process of its own, with the arguments, environment, directory and files that it was given; only
the imports are saved. `python fork_server.py FD` is the process that is forked; it ends with the process of tests that
started it.
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

#: The largest request: an environment and some arguments.
MOST_BYTES = 1 << 18
ENTRY_POINT = ("-m", "corral.cli.main")


class ForkedProcess:
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
            code = os.read(self._status, 64)
            os.close(self._status)
            assert code, "the fork server has ended"
            self.returncode = int(code)
        return self.returncode


class ForkServer:
    """Starts processes of corral; there is one for each process of tests."""

    def __init__(self) -> None:
        self._orders, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            # Its output must not be a terminal: the output of its forks is none.
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
    ) -> ForkedProcess:
        """`command` holds the arguments of the interpreter."""
        order = {"command": list(command), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        status, far = os.pipe()
        try:
            files = [stdin.fileno(), stdout.fileno(), stderr.fileno(), far]
            socket.send_fds(self._orders, [json.dumps(order).encode()], files)
        finally:
            os.close(far)
        return ForkedProcess(command, int(self._orders.recv(64)), status)


_fork_server: ForkServer | None = None


def fork_server() -> ForkServer:
    """The fork server of this process, started at the first call."""
    global _fork_server
    if _fork_server is None:
        _fork_server = ForkServer()
    return _fork_server


# ------------------------------------------------------------------------------------- in the process that is forked


@dataclass(frozen=True, slots=True)
class _Order:
    command: list[str]
    env: dict[str, str]
    cwd: str
    files: list[int]

    def run(self) -> None:
        """Run the program in this fork. Returns, or raises, as the program does."""
        code = 1

        def leave() -> None:
            # Runs after the exit handlers that the program registers. Exits without freeing the imported code: freeing
            # memory that is shared with the fork server would copy it first.
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
        # Otherwise all forks would draw the same random numbers.
        random.seed()
        if tuple(self.command[:2]) == ENTRY_POINT:
            from corral.cli import main

            sys.argv = [main.__file__, *self.command[2:]]
            main.main()
        else:
            sys.argv = self.command
            runpy.run_path(self.command[0], run_name="__main__")


def _serve(orders: socket.socket) -> _Order | None:
    """Fork for every request until the process of tests closes the socket. Returns the request in a fork, else None."""
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
            _report_exits(statuses)
        if orders.fileno() in ready:
            text, files, _, _ = socket.recv_fds(orders, MOST_BYTES, 4)
            if not text:
                return None
            order = _Order(**json.loads(text), files=files[:3])
            assert threading.active_count() == 1, "a process with threads cannot be forked"
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return order
            statuses[pid] = files[3]
            for file in files[:3]:
                os.close(file)
            orders.send(str(pid).encode())


def _report_exits(statuses: dict[int, int]) -> None:
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        file = statuses.pop(pid)
        # The test may have closed its end.
        with contextlib.suppress(BrokenPipeError):
            os.write(file, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(file)


def _import_the_code() -> None:
    # Modules of this directory must not be imported by their bare names.
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    import argon2.profiles
    import rich.table

    import corral.cli.main
    import corral.client.client
    import corral.server.auth.passwords
    import corral.server.wiring.run

    # The cheapest password hash: with the real one, tests would mostly wait for sign-ins.
    cheapest = functools.partial(argon2.PasswordHasher.from_parameters, argon2.profiles.CHEAPEST)
    setattr(corral.server.auth.passwords, "PasswordHasher", cheapest)  # noqa: B010
    assert corral.cli.main
    assert corral.client.client
    assert corral.server.wiring.run
    assert rich.table
    # The imported code is never freed: the garbage collector of a fork need not look at it.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_the_code()
    _order = _serve(socket.socket(fileno=int(sys.argv[1])))
    if _order is not None:
        _order.run()
