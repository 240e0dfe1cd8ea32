"""`corral allocate`, `start-program` and `release`: hold GPUs for a task, start a program on them, release them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.fleet.status import held_gpus
from corral.cli.jobs.job_texts import state_line
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, command

app = typer.Typer()

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]


@command(
    app, "allocate", section=Section.TASKS, examples=["corral allocate training_task_1", "corral allocate exp --gpus 4"]
)
def allocate(
    terminal: Terminal,
    task: TaskArgument,
    gpus: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The number of GPUs; default: chosen automatically.")
    ] = None,
) -> None:
    """Hold GPUs for a task.

    Without --gpus corral allocates free GPUs up to the automatic limit; with it, up to the manual limit. A request for
    more is refused, and nothing changes.
    """
    with terminal.client() as client:
        view = client.tasks.allocate(task, gpus=gpus)
    job = view["job"]
    if view["warning"]:
        terminal.note(f"Warning: {view['warning']}")
    asked = formats.count(job["gpus"] * job["nodes"], "GPU")
    held = (
        f"{formats.count(held_gpus(job), 'GPU')}, {state_line(job)}"
        if job["allocation"]
        else f"{asked}, {job['state']}"
    )
    terminal.answer(
        view,
        f"Task {view['task']}: {held} ({job['id']}). Start a program on it: corral start-program {view['task']} -- CMD",
    )


@command(
    app,
    "start-program",
    section=Section.TASKS,
    examples=["corral start-program training_task_1", "corral start-program exp -- python train.py --epochs 3"],
)
def start_program(
    terminal: Terminal,
    task: TaskArgument,
    cmd: Annotated[
        list[str] | None, typer.Argument(metavar="CMD", help="Default: the configured program_template.")
    ] = None,
    workdir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The program's working directory; default: the current one.")
    ] = None,
) -> None:
    """Start a program on a task's GPUs."""
    with terminal.client() as client:
        job = client.tasks.start_program(task, cmd, str((workdir or Path()).absolute()))
    terminal.answer(job, f"Task {task}: program started, {state_line(job)}. Follow it: corral logs -f {job['id']}")


@command(app, "release", section=Section.TASKS, examples=["corral release training_task_1"])
def release(terminal: Terminal, task: TaskArgument) -> None:
    """Release a task's GPUs; a program on them is stopped."""
    with terminal.client() as client:
        job = client.tasks.release(task)
    terminal.answer(job, f"Task {task}: released ({job['id']} is {job['state']})")
