"""`corral run`: submits a job, prints its output, passes Ctrl-C on, and exits with the job's exit code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from corral.cli.jobs.job_request import request_body, with_flags, with_job_options
from corral.cli.jobs.logs import print_to_end
from corral.cli.jobs.submission.submit import (
    FileOption,
    ProgramArgument,
    looked_up,
    merged,
    note_missing_gpus,
    program_of,
    read_file,
    script_named,
    send,
)
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ApiProblem, ClientError
from corral.core.jobs.field_types import JobCommand

if TYPE_CHECKING:
    from corral.client.views import JobView

app = typer.Typer()

INTERRUPTED = 130


@command(
    app,
    "run",
    section=Section.DAILY,
    free_arguments=True,
    examples=[
        "corral run -- nvidia-smi",
        "corral run --gpus 1 -- python train.py",
        "corral run --gpus 2 --time 10m --env EPOCHS=1 -- python train.py --quick",
        "corral run -f job.yaml",
    ],
)
@with_job_options(JobCommand.SUBMIT)
def run(
    terminal: Terminal,
    cmd: ProgramArgument = None,
    file: FileOption = None,
    **typed: Any,
) -> None:
    """Submit a job and print its output until it ends, and exit with its exit code.

    Ctrl-C stops the job, as `corral stop` does; a second Ctrl-C leaves it to end by itself. Notes go to stderr, so
    that stdout has the output of the job only.
    """
    flags = request_body(JobCommand.SUBMIT, typed)
    script = script_named(cmd, flags)
    if cmd and script is None:
        flags["command"] = program_of(cmd, "run")
    given = script or read_file(file, flags)
    body = merged(given, flags)
    if "array" in body:
        raise WrongUsage("array: `corral run` runs one job", hint="Submit the array: corral submit --wait")
    with terminal.client() as client:
        try:
            body = looked_up(terminal, client, script, body)
            note_missing_gpus(terminal, body)
            (job,) = send(client, body)
        except ApiProblem as error:
            raise with_flags(error, None if given is None else given.places) from error
        where = f" Why it waits: corral why {job['id']}" if job["state"] == "queued" else ""
        terminal.note(f"-- {job['id']} ({job['name']}), {job['state']}. Ctrl-C stops it.{where}")
        with _passing_on(terminal, job) as interrupts:
            end = print_to_end(terminal, client, job["id"])
    from corral.client.jobs.jobs import exit_status

    code = exit_status(end.state, end.exit_code)
    raise typer.Exit(INTERRUPTED if interrupts and end.exit_code is None else code)


@contextmanager
def _passing_on(terminal: Terminal, job: JobView) -> Iterator[list[int]]:
    """Stop the job on the first SIGINT or SIGTERM, and end on the second one. The signals that came are yielded.

    The request is made on a thread of its own: the output of the job is read until its end meanwhile."""
    came: list[int] = []

    def stop() -> None:
        try:
            with terminal.client() as client:
                client.jobs.stop(job["id"])
        except ClientError as error:
            terminal.note(f"-- {job['id']} could not be stopped: {error.message}")

    def on_signal(number: int, frame: object) -> None:
        came.append(number)
        if len(came) > 1:
            terminal.note(f"-- {job['id']} is left to end by itself. Its state: corral show {job['id']}")
            raise typer.Exit(INTERRUPTED)
        terminal.note(f"-- stopping {job['id']}; Ctrl-C again leaves it to end by itself")
        threading.Thread(target=stop, daemon=True).start()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
