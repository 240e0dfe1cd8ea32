"""`corral allocate`, `start-program` and `release`: hold GPUs for a task, start a program on them, release them.

`corral gpu-manager` is the same with the flags of a GPU manager script, for scripts that call one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.fleet.status import held_gpus, status
from corral.cli.jobs.job_texts import state_line
from corral.cli.terminal import formats
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, YesOption, command

app = typer.Typer()

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]


#: How long `corral allocate` waits for a task whose GPUs are free to run.
START_SECONDS = 15.0


@command(
    app,
    "allocate",
    section=Section.TASKS,
    examples=[
        "corral allocate training_task_1",
        "corral allocate exp --gpus 4",
        "corral allocate exp --gpus 4 --wait",
    ],
)
def allocate(
    terminal: Terminal,
    task: TaskArgument,
    gpus: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The number of GPUs; default: chosen automatically.")
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Queue the task if a limit leaves no room for it now, and wait until it runs."),
    ] = False,
) -> None:
    """Hold GPUs for a task.

    Without --gpus corral allocates the configured minimum (scaling.min_gpus), within the automatic limit; with it, up
    to the manual limit. A request for more than a limit is refused, and nothing changes. If the GPUs are not free, the
    task waits for them and a warning says so.
    """
    from corral.client.jobs.jobs import ENDED_STATES

    with terminal.client() as client:
        view = client.tasks.allocate(task, gpus=gpus, wait=wait)
        if view["warning"]:
            terminal.note(f"Warning: {view['warning']}")
        if wait or not view["warning"]:
            try:
                view["job"] = client.jobs.wait_for_start(view["job"], seconds=None if wait else START_SECONDS)
            except KeyboardInterrupt:
                terminal.note(f"\nNo longer waiting; task {task} stays queued. Remove it: corral release {task}")
                raise typer.Exit(130) from None
    job = view["job"]
    if job["state"] in ENDED_STATES:
        raise Refused(
            f"task {task} ended before its program was started: {state_line(job)}", hint=f"corral logs {task}"
        )
    asked = formats.count(job["gpus"] * job["nodes"], "GPU")
    held = formats.count(held_gpus(job), "GPU") if job["allocation"] else asked
    terminal.answer(
        view,
        f"Task {view['task']}: {held}, {state_line(job)} ({job['id']}). "
        f"Start a program on it: corral start-program {view['task']} -- CMD",
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
def release(terminal: Terminal, task: TaskArgument, yes: YesOption = False) -> None:
    """Release a task's GPUs; a program on them is stopped."""
    question = f"Release the GPUs of task {task}, and stop its program?"
    terminal.confirm(question, assume_yes=yes, is_reversible=True)
    with terminal.client() as client:
        job = client.tasks.release(task)
    terminal.answer(job, f"Task {task}: released ({job['id']} is {job['state']})")


@command(
    app,
    "gpu-manager",
    section=Section.TASKS,
    examples=[
        "corral gpu-manager --status",
        "corral gpu-manager --allocate exp_train --gpus 4",
        "corral gpu-manager --start-program exp_train",
        "corral gpu-manager --release exp_train",
    ],
)
def gpu_manager(
    terminal: Terminal,
    show_status: Annotated[bool, typer.Option("--status", help="As `corral status --classic`.")] = False,
    allocated: Annotated[str | None, typer.Option("--allocate", metavar="TASK", help="As `corral allocate`.")] = None,
    started: Annotated[
        str | None, typer.Option("--start-program", metavar="TASK", help="As `corral start-program`.")
    ] = None,
    released: Annotated[str | None, typer.Option("--release", metavar="TASK", help="As `corral release`.")] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, metavar="N", help="With --allocate: the number of GPUs.")
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", min=0.5, metavar="SECONDS", help="Without an action: between two pages.")
    ] = 5.0,
) -> None:
    """The commands for tasks with the flags of a GPU manager script.

    Without an action the status page is printed again and again, until Ctrl-C. The server, `corral up`, does the
    monitoring itself.
    """
    actions = {"--status": show_status, "--allocate": allocated, "--start-program": started, "--release": released}
    chosen = [flag for flag, value in actions.items() if value]
    if len(chosen) > 1:
        raise WrongUsage(f"{' and '.join(chosen)} exclude each other: give one action")
    if gpus is not None and allocated is None:
        raise WrongUsage("--gpus belongs to --allocate TASK")
    if allocated is not None:
        allocate(terminal, allocated, gpus=gpus)
    elif started is not None:
        start_program(terminal, started)
    elif released is not None:
        release(terminal, released, yes=True)
    elif show_status:
        status(terminal, classic=True)
    else:
        while True:
            status(terminal, classic=True)
            time.sleep(interval)
