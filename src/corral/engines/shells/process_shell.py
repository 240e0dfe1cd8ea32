"""A command as a process of this machine, with pipes or a terminal, which ends when the server leaves it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict

from corral.control.ports import EngineUnavailable, ShellChannel

_PROGRAM = str(Path(__file__).with_name("shell_process.py"))
_READ_BYTES = 1 << 16


class ShellSpec(TypedDict):
    """The input of `shell_process`."""

    #: the program of the job, and when it began, which the two together name; 0 if the command itself enters the job
    pid: int
    start_ticks: int
    #: the account of the job
    uid: int
    gid: int
    #: the files by which a process enters the control groups of the job
    groups: list[str]
    #: empty: a shell
    command: list[str]
    has_terminal: bool
    term: str
    #: between the signal that hangs up and the one that kills
    hang_up_seconds: float
    #: a descriptor that is closed when the server leaves the command
    control: int


async def started(
    words: list[str],
    env: Mapping[str, str],
    spec: ShellSpec | None,
    *,
    has_terminal: bool,
    has_input: bool,
    failures: Mapping[int, str] = MappingProxyType({}),
) -> ProcessShell:
    """Starts `shell_process` with a specification, or else the words themselves. `failures` are exit codes that say
    why no command was run. Raises OSError."""
    control, kept = os.pipe2(os.O_CLOEXEC)
    ours, theirs = os.openpty() if has_terminal else (-1, -1)
    if spec is not None:
        words = [sys.executable, "-I", _PROGRAM, json.dumps({**spec, "control": control})]
        if has_terminal and os.geteuid() == 0:
            os.fchown(theirs, spec["uid"], -1)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            env=env,
            cwd="/",
            stdin=theirs if has_terminal else PIPE if has_input else DEVNULL,
            stdout=theirs if has_terminal else PIPE,
            stderr=theirs if has_terminal else PIPE,
            pass_fds=(control,),
            start_new_session=True,
        )
    except OSError:
        for descriptor in (kept, ours):
            if descriptor >= 0:
                os.close(descriptor)
        raise
    finally:
        for descriptor in (control, theirs):
            if descriptor >= 0:
                os.close(descriptor)
    return ProcessShell(process, terminal=ours, control=kept, is_watched=spec is not None, failures=failures)


class ProcessShell:
    """Implements `corral.control.ports.ShellStream`."""

    def __init__(
        self, process: Process, *, terminal: int, control: int, is_watched: bool, failures: Mapping[int, str]
    ) -> None:
        """`terminal` is the server's end, -1 without one. The command ends when `control` is closed, if it is
        watched."""
        self._process = process
        self._is_watched = is_watched
        self._terminal = terminal
        self._control = control
        self._failures = failures
        if terminal >= 0:
            os.set_blocking(terminal, False)

    @property
    def exit_code(self) -> int | None:
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    async def send(self, data: bytes) -> None:
        if self._terminal >= 0:
            await self._write(data)
        elif self._process.stdin is not None:
            # The command may have ended meanwhile: `output` reports how.
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def end_input(self) -> None:
        if self._terminal >= 0:
            await self._write(b"\x04")
        elif self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, columns: int, rows: int) -> None:
        if self._terminal >= 0:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def output(self) -> AsyncIterator[tuple[ShellChannel, bytes]]:
        """Raises EngineUnavailable at the end if no command was run."""
        if self._terminal >= 0:
            while data := await self._read():
                yield ShellChannel.STDOUT, data
        else:
            async for channel, data in self._both():
                yield channel, data
        if (failure := self._failures.get(await self._process.wait())) is not None:
            raise EngineUnavailable(failure)

    async def close(self) -> None:
        """The command gets SIGHUP, as when a terminal is closed."""
        if self._process.returncode is None and not self._is_watched:
            self._process.terminate()
        for descriptor in (self._control, self._terminal):
            if descriptor >= 0:
                os.close(descriptor)
        self._control = self._terminal = -1
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()

    async def _both(self) -> AsyncIterator[tuple[ShellChannel, bytes]]:
        chunks: asyncio.Queue[tuple[ShellChannel, bytes]] = asyncio.Queue(maxsize=16)

        async def copy(channel: ShellChannel, source: asyncio.StreamReader | None) -> None:
            while source is not None and (data := await source.read(_READ_BYTES)):
                await chunks.put((channel, data))
            await chunks.put((channel, b""))

        sources = ((ShellChannel.STDOUT, self._process.stdout), (ShellChannel.STDERR, self._process.stderr))
        tasks = [asyncio.create_task(copy(channel, source)) for channel, source in sources]
        left = len(tasks)
        try:
            while left:
                channel, data = await chunks.get()
                if data:
                    yield channel, data
                else:
                    left -= 1
        finally:
            for task in tasks:
                task.cancel()

    async def _read(self) -> bytes:
        """Empty at the end: a terminal whose other end is closed reports an error."""
        while True:
            try:
                return os.read(self._terminal, _READ_BYTES)
            except BlockingIOError:
                await _ready(self._terminal, to_write=False)
            except OSError:
                return b""

    async def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._terminal, data) :]
            except BlockingIOError:
                await _ready(self._terminal, to_write=True)
            except OSError:
                return


async def _ready(descriptor: int, *, to_write: bool) -> None:
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    add, remove = (loop.add_writer, loop.remove_writer) if to_write else (loop.add_reader, loop.remove_reader)
    add(descriptor, event.set)
    try:
        await event.wait()
    finally:
        remove(descriptor)
