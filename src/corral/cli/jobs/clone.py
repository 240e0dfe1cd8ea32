"""`corral clone`: a job of one's own once more, with what shall be different about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.jobs.arrays import others
from corral.cli.jobs.submit import in_their_words, pairs, submitted, whole_if_possible
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ApiProblem

app = typer.Typer()


@command(
    app,
    "clone",
    section=Section.DAILY,
    examples=[
        "corral clone resnet",
        "corral clone resnet --name resnet-large --gpus 8 --env EPOCHS=90",
        "corral clone j-12 -- python train.py --lr 0.2",
        "corral clone evaluate --after resnet-large",
    ],
)
def clone(
    terminal: Terminal,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id or the name of a job of yours.")],
    cmd: Annotated[list[str] | None, typer.Argument(metavar="CMD", help="Another program to run, after --.")] = None,
    name: Annotated[str | None, typer.Option(help="Its name; default: the old one with a number.")] = None,
    gpus: Annotated[float | None, typer.Option(metavar="N", help="GPUs per node.")] = None,
    min_gpus: Annotated[int | None, typer.Option(metavar="N", help="The least of an elastic job.")] = None,
    max_gpus: Annotated[int | None, typer.Option(metavar="N", help="The most of an elastic job.")] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Nodes that start together.")] = None,
    cpus: Annotated[float | None, typer.Option(metavar="N", help="CPUs per node.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory per node.")] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="MODEL", help="GPU models that will do.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Labels to add or replace.")] = None,
    queue: Annotated[str | None, typer.Option(help="Another queue; the word auto finds the right one.")] = None,
    flavor: Annotated[str | None, typer.Option(help="Another kind of hardware.")] = None,
    package: Annotated[str | None, typer.Option(help="Another size out of the catalog.")] = None,
    priority: Annotated[int | None, typer.Option(metavar="0..100", help="Smaller goes first.")] = None,
    time: Annotated[str | None, typer.Option(metavar="DURATION", help="Longest run time; none: no own limit.")] = None,
    grace: Annotated[str | None, typer.Option(metavar="DURATION", help="Between warning and end.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Variables to add or replace.")] = None,
    workdir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where it runs.")] = None,
    image: Annotated[str | None, typer.Option(help="An image to run in, by name or by address.")] = None,
    venv: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A virtual environment or conda prefix; its programs come first.")
    ] = None,
    mount: Annotated[
        list[str] | None,
        typer.Option(metavar="SRC:/PATH[:ro|rw]", help="Storage instead of what was mounted; none: nothing."),
    ] = None,
    retries: Annotated[int | None, typer.Option(metavar="N", help="New attempts.")] = None,
    preemptible: Annotated[
        bool | None, typer.Option("--preemptible/--no-preemptible", help="Whether it may give way to others.")
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option(metavar="JOB", help="Start when these have completed; none: after no job.")
    ] = None,
    hold: Annotated[bool | None, typer.Option("--hold", help="Only create it; `corral start` queues it.")] = None,
) -> None:
    """Submit a job of yours once more. What you don't give is as it was, its environment too."""
    flags = {
        "name": name,
        "command": cmd or None,
        "gpus": whole_if_possible("--gpus", gpus),
        "min_gpus": min_gpus,
        "max_gpus": max_gpus,
        "nodes": nodes,
        "cpus": whole_if_possible("--cpus", cpus),
        "memory": memory,
        "model": model or None,
        "labels": pairs("--label", label),
        "flavor": flavor,
        "package": package,
        "priority": priority,
        "grace": grace,
        "env": pairs("--env", env),
        "workdir": str(workdir.absolute()) if workdir is not None else None,
        "image": image,
        "venv": str(venv.absolute()) if venv is not None else None,
        "mounts": [] if mount == ["none"] else mount or None,
        "max_retries": retries,
        "preemptible": preemptible,
        "after": others(after),
        "hold": hold,
    }
    changes: dict[str, Any] = {key: value for key, value in flags.items() if value is not None}
    if queue is not None:
        changes["queue"] = None if queue == "auto" else queue
    if time is not None:
        changes["time"] = None if time == "none" else time
    with terminal.client() as client:
        try:
            view = client.jobs.clone(job, changes)
        except ApiProblem as error:
            raise in_their_words(error) from error
    terminal.answer(view, submitted(view))
