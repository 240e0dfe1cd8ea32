"""`corral submit`: flags and a job file become one submission. What is allowed is the server's decision."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.jobs import arrays
from corral.cli.scheduling.estimates import expected_text
from corral.cli.storage.volumes import MountOption
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ApiProblem, ServerUnreachable

if TYPE_CHECKING:
    from corral.cli.jobs.job_file import JobFile
    from corral.client.client import Client
    from corral.client.views import AttemptView, JobView, PlanView

app = typer.Typer()

#: The API's word to the flag, where they differ.
FLAGS = {
    "labels": "--label",
    "mounts": "--mount",
    "max_retries": "--retries",
    "checkpoint_interval": "--checkpoint-interval",
    "min_gpus": "--min-gpus",
    "max_gpus": "--max-gpus",
}


@command(
    app,
    "submit",
    section=Section.DAILY,
    free_arguments=True,
    examples=[
        "corral submit --gpus 1 -- python train.py",
        "corral submit --name resnet --gpus 4 --time 2h --env EPOCHS=90 -- python train.py",
        "corral submit --nodes 2 --gpus 8 --model H200 -- torchrun train.py",
        "corral submit --package a100-x1 -- python train.py",
        "corral submit --min-gpus 2 --max-gpus 8 -- python train.py --gpus {gpu_count}",
        "corral submit --gpus 1 --mount data:/data:ro --mount local:50GiB:/scratch -- python train.py",
        "corral submit -f job.yaml --gpus 8 --wait",
        "corral submit --name sweep --array 0-99 --gpus 1 -- python train.py",
        "corral submit --name total --after sweep -- python collect.py",
        "corral submit --gpus 0.5 --dry-run -- python notebook.py",
    ],
)
def submit(
    terminal: Terminal,
    cmd: Annotated[
        list[str] | None, typer.Argument(metavar="CMD", help="The program to run and its arguments.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", metavar="FILE", help="Read the job from a file; flags win.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name, unique among your jobs.")] = None,
    gpus: Annotated[
        float | None, typer.Option(metavar="N", help="GPUs per node; a fraction is a share of one.")
    ] = None,
    min_gpus: Annotated[
        int | None, typer.Option(metavar="N", help="The least of an elastic job, which grows into idle GPUs.")
    ] = None,
    max_gpus: Annotated[int | None, typer.Option(metavar="N", help="The most of an elastic job.")] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Nodes that start together as one gang.")] = None,
    cpus: Annotated[float | None, typer.Option(metavar="N", help="CPUs per node.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory per node, such as 16GiB.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="A GPU model that will do; repeat for several.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A label that its nodes must have; repeatable.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="The queue to wait in.")] = None,
    flavor: Annotated[str | None, typer.Option(help="A kind of hardware: `corral flavor ls`.")] = None,
    package: Annotated[
        str | None, typer.Option(help="A size, instead of GPUs, CPUs and memory: `corral package ls`.")
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="0..100", help="Smaller goes first; default 5.")] = None,
    time: Annotated[str | None, typer.Option(metavar="DURATION", help="Longest run time, such as 90m or 2h.")] = None,
    grace: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Between the warning and the end of a stop; default 30s.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="An environment variable; repeatable.")] = None,
    workdir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where it runs; default: here.")] = None,
    image: Annotated[
        str | None, typer.Option(help="An image to run in, by name (`corral image ls`) or by address.")
    ] = None,
    venv: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A virtual environment or conda prefix; its programs come first.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="training or distributed: must be what it is by its nodes.")] = None,
    mount: MountOption = None,
    retries: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="0: never run it again by itself, not even after a fault of the platform, which costs no retry.",
        ),
    ] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option("--preemptible/--no-preemptible", help="Whether it may give way to others; default: yes."),
    ] = None,
    checkpoint_interval: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How often its program shall save, such as 5m.")
    ] = None,
    hold: Annotated[bool | None, typer.Option("--hold", help="Only create it; `corral start` queues it.")] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB", help="Start when this job, or array, has completed; repeatable."),
    ] = None,
    array: Annotated[
        str | None, typer.Option(metavar="INDEXES", help="One job for every index, such as 0-99 or 1,3,7.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; submit nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end and exit with its exit code.")] = False,
) -> None:
    """Submit a job.

    Everything after -- is the program to run. A job file has the same words as the flags; flags win over the
    file. Ctrl-C while waiting lets the job go on.
    """
    flags = {
        "name": name,
        "kind": kind,
        "command": cmd or None,
        "gpus": whole_if_possible("--gpus", gpus),
        "min_gpus": min_gpus,
        "max_gpus": max_gpus,
        "nodes": nodes,
        "cpus": whole_if_possible("--cpus", cpus),
        "memory": memory,
        "model": model or None,
        "labels": pairs("--label", label),
        "queue": queue,
        "flavor": flavor,
        "package": package,
        "priority": priority,
        "time": time,
        "grace": grace,
        "env": pairs("--env", env),
        "workdir": str(workdir.absolute()) if workdir is not None else None,
        "image": image,
        "venv": str(venv.absolute()) if venv is not None else None,
        "mounts": mount or None,
        "max_retries": retries,
        "preemptible": preemptible,
        "checkpoint_interval": checkpoint_interval,
        "hold": hold,
        "after": arrays.others(after),
        "array": array,
    }
    job_file = _read(file)
    body = _merged(job_file, {key: value for key, value in flags.items() if value is not None})
    if dry_run and wait:
        raise WrongUsage("--dry-run and --wait exclude each other: a dry run starts nothing to wait for")
    with terminal.client() as client:
        try:
            if dry_run:
                _show_plan(terminal, client.jobs.plan(arrays.plan_body(terminal, body)))
                return
            many = client.jobs.submit_array(body) if "array" in body else [client.jobs.submit(body)]
        except ApiProblem as error:
            raise in_their_words(error, job_file) from error
        if wait:
            wait_for_end(terminal, client, many)
        elif "array" in body:
            terminal.answer({"items": many}, arrays.submitted(many))
        else:
            terminal.answer(many[0], submitted(many[0]))


def _read(file: Path | None) -> JobFile | None:
    if file is None:
        return None
    from corral.cli.jobs.job_file import read_job_file

    return read_job_file(file)


def _merged(job_file: JobFile | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags win; environment and labels of both are put together."""
    from_file = dict(job_file.body) if job_file is not None else {}
    body = {**from_file, **flags}
    for key in ("env", "labels"):
        if key in from_file and key in flags:
            body[key] = {**from_file[key], **flags[key]}
    body.setdefault("workdir", os.getcwd())
    if not body.get("command") and not body.get("preset"):
        raise WrongUsage(
            "command: there is nothing to run",
            hint="Put the program after --, as in: corral submit --gpus 1 -- python train.py",
        )
    return body


def pairs(flag: str, given: Sequence[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise WrongUsage(f"{flag}: expected NAME=VALUE, got {text!r}")
        pairs[key] = value
    return pairs


def whole_if_possible(flag: str, value: float | None) -> float | int | None:
    if value is not None and not math.isfinite(value):
        raise WrongUsage(f"{flag}: {value} is not an amount")
    return int(value) if value is not None and value.is_integer() else value


def in_their_words(error: ApiProblem, job_file: JobFile | None = None) -> ApiProblem:
    """The fields that the server names, as the person wrote them: a line of the file, or a flag."""
    named = []
    for field, message in error.field_errors:
        top = field.partition(".")[0].partition("[")[0]
        if job_file is not None and top in job_file.lines:
            place = f"{job_file.place(top)}: {field}"
        else:
            place = FLAGS.get(top, f"--{top}") if top not in ("", "command") else field
        named.append({"field": place, "message": message})
    if not named:
        return error
    return type(error)(error.status, {**error.problem, "errors": named})


def submitted(job: JobView) -> str:
    follow = f"Follow it: corral logs -f {job['id']}"
    if job["state"] == "created":
        follow = f"Queue it: corral start {job['id']}"
    return f"Submitted {job['id']} ({job['name']}), {job['state']}. {follow}"


def _show_plan(terminal: Terminal, plan: PlanView) -> None:
    """A refusal is an answer like the others, but scripts should notice it."""
    if terminal.as_json:
        terminal.json(plan)
    else:
        outcome = {
            "start": "It would start now",
            "wait": "It would wait",
            "refuse": "It would be refused",
        }.get(plan["outcome"], plan["outcome"])
        # a job that would start needs no explanation
        explained = plan["detail"] and plan["outcome"] != "start"
        terminal.say(f"{outcome}: {plan['detail']}" if explained else f"{outcome}.")
        if plan["nodes"]:
            terminal.say(f"  on {formats.listed(plan['nodes'])}")
        if plan["start_at"] is not None and plan["outcome"] == "wait":
            terminal.say(f"  planned start {formats.at_and_ago(plan['start_at'], terminal.now())}")
        for line in _start_lines(plan, terminal.now()):
            terminal.say(f"  {line}")
        for reason in plan["reasons"]:
            if reason["detail"] != plan["detail"]:
                terminal.say(f"  {reason['rule']}: {reason['detail']}")
    if plan["outcome"] == "refuse":
        raise typer.Exit(1)


def _start_lines(plan: PlanView, now: float) -> list[str]:
    """When it would start, after whom, and who would be interrupted for it."""
    lines = []
    if (expected := plan.get("estimate")) and plan["outcome"] == "wait":
        lines.append(f"expected to start {expected_text(expected, now)}")
    would = plan.get("would_start")
    if plan["ahead_count"]:
        named = ", ".join(would["after"][:5]) if would else ""
        lines.append(f"behind {formats.count(plan['ahead_count'], 'job')}" + (f": {named}" if named else ""))
    for one in would["preempting"] if would else ():
        lost = formats.duration(one["lost_gpu_seconds"])
        lines.append(f"preempting {one['job'] or 'a job'} by the rule {one['rule']}, which loses {lost} of GPU time")
    return lines


def wait_for_end(terminal: Terminal, client: Client, jobs: Sequence[JobView]) -> None:
    """Until all of them have ended; the first one that did not complete gives the exit code."""
    from corral.client.http.streams import Patience
    from corral.client.jobs.jobs import exit_status

    def lost(error: ServerUnreachable) -> None:
        terminal.note(f"{error.message} Still trying; the job is not affected.")

    def changed(view: JobView) -> None:
        terminal.note(f"{view['id']} {state_line(view)}")

    ended: list[JobView] = []
    for job in jobs:
        terminal.note(f"Submitted {job['id']} ({job['name']}), {job['state']}. Ctrl-C stops waiting, not the job.")
    for job in jobs:
        try:
            ended.append(client.jobs.wait(job["id"], patience=Patience(on_lost=lost), on_change=changed, first=job))
        except KeyboardInterrupt:
            terminal.note(
                f"\nNo longer waiting; {job['id']} goes on. Follow it: corral logs -f {job['id']}. "
                f"Stop it: corral stop {job['id']}"
            )
            raise typer.Exit(130) from None
    if terminal.as_json:
        terminal.json(ended[0] if len(jobs) == 1 else {"items": ended})
    codes = [exit_status(view["state"], view["exit_code"]) for view in ended]
    raise typer.Exit(next((code for code in codes if code), 0))


def state_line(job: JobView) -> str:
    """A job's state with where it runs or how it ended."""
    line: str = job["state"]
    if job["allocation"] is not None and job["state"] in ("starting", "running"):
        line += f" on {formats.listed([grant['node'] for grant in job['allocation']['grants']])}"
    how = end_text(job) if job["state"] in ("completed", "failed", "stopped") else ""
    return f"{line} ({how})" if how else line


def end_text(ended: JobView | AttemptView) -> str:
    """How a job or an attempt ended, each thing once: `exit code 3`, `timed_out; exit code 143; killed by SIGTERM`."""
    code = "" if ended["exit_code"] is None else f"exit code {ended['exit_code']}"
    # with a code, that there is one says nothing more; engines repeat it in their message
    reason = "" if code and ended["end_reason"] == "exit_code" else ended["end_reason"]
    message = "" if ended["message"] == code else ended["message"]
    return "; ".join(part for part in (reason, code, message) if part)
