"""`corral shell`: a shell, or another command, in a running job."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.jobs.jobs import JobArgument
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.jobs.sessions import JobSession

app = typer.Typer()

_PIECE_BYTES = 1 << 16
_STDERR_CHANNEL = 2


@command(
    app,
    "shell",
    section=Section.DAILY,
    free_arguments=True,
    examples=["corral shell j-12", "corral shell j-12 -- nvidia-smi", "corral shell j-12 --rank 1 -- ps aux"],
)
def shell(
    terminal: Terminal,
    job: JobArgument,
    cmd: Annotated[list[str] | None, typer.Argument(metavar="CMD", help="Run this instead of a shell.")] = None,
    rank: Annotated[int, typer.Option(min=0, metavar="N", help="This instance of a gang; default: the first.")] = 0,
) -> None:
    """Open a shell in a running job, or run a command there.

    It has the job's account, files, GPUs and limits, and ends with the job. Not on Slurm: use `srun --jobid` there, or
    create a workbench with SSH. Exits with the exit code of the command.
    """
    words = [*(cmd or [])][1:] if cmd and cmd[0] == "--" else cmd or []
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with terminal.client() as client:
        session = client.jobs.open_shell(job, words, rank=rank, has_terminal=has_terminal)
        with contextlib.closing(session), _raw_terminal(session) if has_terminal else contextlib.nullcontext():
            threading.Thread(target=_pass_input_on, args=(session,), daemon=True).start()
            code = session.run(_write)
    raise typer.Exit(1 if code is None else code)


def _write(channel: int, data: bytes) -> None:
    """Writes output unchanged: a user who opens a shell sees the output of its programs."""
    stream = sys.stderr if channel == _STDERR_CHANNEL else sys.stdout
    stream.buffer.write(data)
    stream.buffer.flush()


def _pass_input_on(session: JobSession) -> None:
    with contextlib.suppress(OSError, ValueError):
        while piece := os.read(sys.stdin.fileno(), _PIECE_BYTES):
            session.send(piece)
    session.end_input()


@contextlib.contextmanager
def _raw_terminal(session: JobSession) -> Iterator[None]:
    """Keys go to the command as they are, and it knows the size of the terminal."""
    import termios
    import tty

    def send_size(*_: object) -> None:
        size = shutil.get_terminal_size()
        session.resize(size.columns, size.lines)

    before = termios.tcgetattr(sys.stdin)
    handler = signal.signal(signal.SIGWINCH, send_size)
    try:
        tty.setraw(sys.stdin)
        send_size()
        yield
    finally:
        signal.signal(signal.SIGWINCH, handler)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
