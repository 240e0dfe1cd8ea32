"""Further commands in running jobs of this machine: `corral shell`.

A command in a job with an image runs in its container, by Podman or Docker. Every other one is started by
`shell_process`, which enters the job as its program did, and ends the command with it.
"""

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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from corral.control.ports import EngineUnavailable, LaunchRefused, ShellChannel
from corral.engines.attempts.claims import read_claim
from corral.engines.attempts.processes import start_ticks
from corral.engines.local.attempts import AttemptFiles
from corral.engines.local.containers.container_orders import ContainerRuntime, container_name
from corral.engines.local.rundir import ENVIRONMENT, TMP, Layout, is_safe_id

_PROGRAM = str(Path(__file__).with_name("shell_process.py"))
_READ_BYTES = 1 << 16
_SHELL_OF_IMAGE = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec /bin/sh")


class ShellSpec(TypedDict):
    """The input of `shell_process`."""

    #: the program of the job, and when it began, which the two together name
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
    #: a descriptor that is closed when the server leaves the command
    control: int


class LocalShells:
    def __init__(
        self,
        layout: Layout,
        files: AttemptFiles,
        engine: str,
        runtime: Callable[[], ContainerRuntime | None],
        server_env: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._files = files
        self._engine = engine
        self._runtime = runtime
        self._env = {"PATH": server_env.get("PATH", os.defpath), "LANG": "C.UTF-8"}

    async def open_shell(
        self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool, has_input: bool
    ) -> LocalShell:
        """Raises LaunchRefused and EngineUnavailable."""
        spec = self._spec(attempt_id, rank, command, has_terminal=has_terminal)
        words, env = [sys.executable, "-I", _PROGRAM], dict(self._env)
        if self._has_container(attempt_id, rank):
            words, env = self._in_container(attempt_id, rank, command, has_terminal, has_input)
            spec = None
        elif spec is None:
            raise LaunchRefused(f"instance {rank} of {attempt_id} does not run")
        try:
            return await _started(words, env, spec, has_terminal=has_terminal, has_input=has_input)
        except OSError as error:
            raise EngineUnavailable(f"no command can be started: {error.strerror}") from error

    def _spec(self, attempt_id: str, rank: int, command: Sequence[str], *, has_terminal: bool) -> ShellSpec | None:
        """The input of `shell_process`; None if the instance does not run."""
        if not is_safe_id(attempt_id):
            return None
        directory = self._layout.rank_dir(attempt_id, rank)
        started = read_claim(directory).started
        pid, ticks = started.get("pid"), started.get("start_ticks")
        if not isinstance(pid, int) or ticks is None or start_ticks(pid) != ticks:
            return None
        try:
            # Only the server can change the directory around it: its owner is the account of the job.
            owner = os.lstat(os.path.join(directory, TMP))
        except FileNotFoundError:
            return None
        groups = [os.path.join(path, "cgroup.procs") for path in self._files.group(attempt_id, rank).directories]
        return ShellSpec(
            pid=pid,
            start_ticks=ticks,
            uid=owner.st_uid,
            gid=owner.st_gid,
            groups=[path for path in groups if os.path.exists(path)],
            command=list(command),
            has_terminal=has_terminal,
            term="xterm-256color",
            control=-1,
        )

    def _has_container(self, attempt_id: str, rank: int) -> bool:
        return is_safe_id(attempt_id) and os.path.exists(
            os.path.join(self._layout.rank_dir(attempt_id, rank), ENVIRONMENT)
        )

    def _in_container(
        self, attempt_id: str, rank: int, command: Sequence[str], has_terminal: bool, has_input: bool
    ) -> tuple[list[str], dict[str, str]]:
        """The container's own variables, account, working directory and limits hold for the command."""
        runtime = self._runtime()
        if runtime is None:
            raise LaunchRefused(f"instance {rank} of {attempt_id} does not run")
        options = [*(["--interactive"] if has_input else []), *(["--tty"] if has_terminal else [])]
        name = container_name(self._engine, attempt_id, rank)
        words = [runtime.program, *runtime.global_options, "exec", *options, name, *(command or _SHELL_OF_IMAGE)]
        return words, dict(runtime.env)


async def _started(
    words: list[str],
    env: dict[str, str],
    spec: ShellSpec | None,
    *,
    has_terminal: bool,
    has_input: bool,
) -> LocalShell:
    """Raises OSError."""
    control, kept = os.pipe2(os.O_CLOEXEC)
    ours, theirs = os.openpty() if has_terminal else (-1, -1)
    if spec is not None:
        words = [*words, json.dumps({**spec, "control": control})]
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
    return LocalShell(process, terminal=ours, control=kept, is_watched=spec is not None)


class LocalShell:
    """Implements `corral.control.ports.ShellStream`."""

    def __init__(self, process: Process, *, terminal: int, control: int, is_watched: bool) -> None:
        """`terminal` is the server's end, -1 without one. The command ends when `control` is closed, if it is
        watched."""
        self._process = process
        self._is_watched = is_watched
        self._terminal = terminal
        self._control = control
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
        if self._terminal >= 0:
            while data := await self._read():
                yield ShellChannel.STDOUT, data
        else:
            async for channel, data in self._both():
                yield channel, data
        await self._process.wait()

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
