"""`corral submit`: makes one request of flags and a job file. The server decides whether it is allowed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from corral.cli.jobs import arrays
from corral.cli.jobs.job_options import PROJECT_FILE
from corral.cli.jobs.job_request import request_body, with_flags, with_job_options
from corral.cli.jobs.job_texts import state_line, submitted
from corral.cli.jobs.submission.end_notes import hint_lines
from corral.cli.scheduling.estimates import expected_text
from corral.cli.terminal import formats
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ApiProblem, ClientError
from corral.core.jobs.field_types import JobCommand

if TYPE_CHECKING:
    from corral.cli.jobs.job_file import JobFile
    from corral.cli.jobs.submission.scripts import Script
    from corral.client.client import Client
    from corral.client.views import JobArray, JobCreate, JobView, PlanView

app = typer.Typer()

ProgramArgument = Annotated[
    list[str] | None, typer.Argument(metavar="CMD", help="The program to run and its arguments.")
]
FileOption = Annotated[
    Path | None, typer.Option("-f", "--file", metavar="FILE", help="Read the job from a file; flags win.")
]


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
        "corral submit train.sh",
        "corral submit",
        "corral submit -f job.yaml --gpus 8 --wait",
        "corral submit --name sweep --array 0-99 --gpus 1 -- python train.py",
        "corral submit --name small --array 1-500%8 --pack --gpus 1 -- python evaluate.py",
        "corral submit --name total --after sweep -- python collect.py",
        "corral submit --gpus 0.5 --dry-run -- python notebook.py",
    ],
)
@with_job_options(JobCommand.SUBMIT)
def submit(
    terminal: Terminal,
    cmd: ProgramArgument = None,
    file: FileOption = None,
    *,
    array: Annotated[
        str | None, typer.Option(metavar="INDEXES", help="One job for every index, such as 0-99 or 1,3,7.")
    ] = None,
    pack: Annotated[
        bool,
        typer.Option(
            "--pack", help="Run the items of --array one after another: --array 1-500%8 --pack is eight jobs."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; submit nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job's end and exit with its exit code.")] = False,
    **typed: Any,
) -> None:
    """Submit a job.

    Everything after -- is the program to run. A job file has the same keys as the flags; flags win over the file.
    The program may be a script of the current folder, with options in lines such as `#CORRAL --gpus 2` or `#SBATCH`.
    Without a program and a file, corral.job.yaml of the current folder is used (`corral init job` writes it).
    Ctrl-C while waiting lets the job go on.
    """
    flags = request_body(JobCommand.SUBMIT, typed)
    script = script_named(cmd, flags)
    if cmd and script is None:
        flags["command"] = program_of(cmd, "submit")
    if array is not None:
        flags["array"] = array
    if pack:
        flags["pack"] = True
    given = script or read_file(file, flags)
    body = merged(given, flags)
    if "pack" in body and "array" not in body:
        raise WrongUsage("--pack needs --array: it says which items a job runs one after another")
    if dry_run and wait:
        raise WrongUsage("--dry-run and --wait exclude each other: a dry run starts nothing to wait for")
    with terminal.client() as client:
        try:
            body = looked_up(terminal, client, script, body)
            if dry_run:
                _show_plan(terminal, client.jobs.plan(cast("JobCreate", arrays.plan_body(terminal, body))))
                note_share(terminal, client, body)
                return
            note_missing_gpus(terminal, body)
            note_share(terminal, client, body)
            jobs = send(client, body)
        except ApiProblem as error:
            raise with_flags(error, None if given is None else given.places) from error
        if wait:
            wait_for_end(terminal, client, jobs)
        elif "array" in body:
            terminal.answer({"items": jobs}, arrays.submitted(jobs))
        else:
            terminal.answer(jobs[0], submitted(jobs[0]))


def script_named(words: list[str] | None, flags: Mapping[str, Any]) -> Script | None:
    """The script of this folder that was named as the program. A repository has files of its own."""
    if not words or flags.get("git") or not Path(words[0]).is_file():
        return None
    from corral.cli.jobs.submission.scripts import script_of

    return script_of(words)


def looked_up(terminal: Terminal, client: Client, script: Script | None, body: dict[str, Any]) -> dict[str, Any]:
    """The request with what only the server knows about the words of a Slurm script, after notes about lines without
    effect."""
    if script is None or script.batch is None:
        return body
    for note in script.batch.notes:
        terminal.note(f"Note: {note}.")
    return script.looked_up(client, body)


def program_of(words: list[str], command: str) -> list[str]:
    """The program. A single word that is a job file is no program: the option for it was left out."""
    if len(words) == 1 and words[0].endswith((".yaml", ".yml")) and Path(words[0]).is_file():
        hint = f"Submit it: corral {command} -f {words[0]}"
        raise WrongUsage(f"{words[0]} is a file with settings and no program", hint=hint)
    return words


#: Fields of a job whose GPUs are known, or are its author's choice.
_SIZED = ("gpus", "min_gpus", "package", "flavor", "preset", "app")


def note_missing_gpus(terminal: Terminal, body: Mapping[str, Any]) -> None:
    """Remind a user at a terminal that a job has no GPU unless it asks for one."""
    if terminal.is_interactive and not any(body.get(field) is not None for field in _SIZED):
        terminal.note("Note: the job asks for no GPU. Add --gpus 1 for one; --gpus 0 hides this note.")


def note_share(terminal: Terminal, client: Client, body: Mapping[str, Any]) -> None:
    """Reports to a user at a terminal whether the share of a GPU that a job asks for is enforced."""
    gpus = body.get("gpus") or 0
    if terminal.is_interactive and isinstance(gpus, int | float) and 0 < gpus < 1:
        shares = client.system.about().get("gpu_shares")
        if shares is not None:
            terminal.note(f"Note: a share of a GPU is {shares['detail']}.")


def send(client: Client, body: Mapping[str, Any]) -> list[JobView]:
    """Submit a job, or all jobs of an array."""
    if "array" in body:
        return client.jobs.submit_array(cast("JobArray", body))
    return [client.jobs.submit(cast("JobCreate", body))]


def read_file(file: Path | None, flags: Mapping[str, Any]) -> JobFile | None:
    """The job file that was named, or else that of the project folder if no program was named."""
    if file is None and (flags.get("command") or flags.get("preset") or flags.get("app")):
        return None
    project = Path(PROJECT_FILE)
    if file is None and not project.exists():
        return None
    from corral.cli.jobs.job_file import read_job_file

    return read_job_file(file or project)


def merged(job_file: JobFile | Script | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags win over the file; environment variables and labels of both are merged."""
    from_file = dict(job_file.body) if job_file is not None else {}
    body = {**from_file, **flags}
    for key in ("env", "labels"):
        if key in from_file and key in flags:
            body[key] = {**from_file[key], **flags[key]}
    if not body.get("git"):
        body.setdefault("workdir", os.getcwd())
    if not body.get("command") and not body.get("preset") and not body.get("app"):
        raise WrongUsage(
            "command: there is nothing to run",
            hint="Put the program after --, as in `corral submit -- python train.py`, or write a file: corral init job",
        )
    return body


def _show_plan(terminal: Terminal, plan: PlanView) -> None:
    """A refusal is printed like other answers, but exits with 1 so that scripts notice it."""
    if terminal.as_json:
        terminal.json(plan)
    else:
        outcome = {
            "start": "It would start now",
            "wait": "It would wait",
            "refuse": "It would be refused",
        }.get(plan["outcome"], plan["outcome"])
        # a job that would start now needs no explanation
        explained = plan["detail"] and plan["outcome"] != "start"
        terminal.say(f"{outcome}: {plan['detail']}" if explained else f"{outcome}.")
        if plan["nodes"]:
            terminal.say(f"  on {formats.listed(plan['nodes'])}")
        if plan["start_at"] is not None and plan["outcome"] == "wait":
            terminal.say(f"  planned start, at the latest: {formats.at_and_ago(plan['start_at'], terminal.now())}")
        for line in _start_lines(plan, terminal.now()):
            terminal.say(f"  {line}")
        for reason in plan["reasons"]:
            if reason["detail"] != plan["detail"]:
                terminal.say(f"  {reason['rule']}: {reason['detail']}")
    if plan["outcome"] == "refuse":
        raise typer.Exit(1)


def _start_lines(plan: PlanView, now: float) -> list[str]:
    """When the job would start, after which jobs, and which jobs it would preempt."""
    lines = []
    if (expected := plan.get("estimate")) and plan["outcome"] == "wait":
        lines.append(f"expected to start {expected_text(expected, now)}")
    would = plan.get("would_start")
    if plan["ahead_count"]:
        named = ", ".join(would["after"][:5]) if would else ""
        lines.append(f"behind {formats.count(plan['ahead_count'], 'job')}" + (f": {named}" if named else ""))
    for preemption in would["preempting"] if would else ():
        lost, name = formats.duration(preemption["lost_gpu_seconds"]), preemption["job"] or "a job"
        lines.append(f"preempting {name} by the rule {preemption['rule']}, which loses {lost} of GPU time")
    return lines


def wait_for_end(
    terminal: Terminal, client: Client, jobs: Sequence[JobView], *, are_new: bool = True, until: float | None = None
) -> None:
    """Wait until all jobs have ended, or until that time; the first job that did not complete gives the exit code."""
    from corral.client.http.streams import Patience
    from corral.client.jobs.jobs import ENDED_STATES, exit_status

    def lost(error: ClientError) -> None:
        terminal.note(f"{error.message} Still trying; the job is not affected.")

    def changed(view: JobView) -> None:
        terminal.note(f"{view['id']} {state_line(view)}")

    ended: list[JobView] = []
    for job in jobs:
        begun = f"Submitted {job['id']} ({job['name']}), {job['state']}."
        did = begun if are_new else f"{job['id']} {state_line(job)}."
        terminal.note(did if job["state"] in ENDED_STATES else f"{did} Ctrl-C stops waiting, not the job.")
    for job in jobs:
        try:
            left = None if until is None else max(0.0, until - terminal.now())
            view = client.jobs.wait(
                job["id"], patience=Patience(on_lost=lost), on_change=changed, first=job, seconds=left
            )
            if view["state"] not in ENDED_STATES:
                raise still(view)
            ended.append(view)
        except KeyboardInterrupt:
            terminal.note(
                f"\nNo longer waiting; {job['id']} goes on. Follow it: corral logs -f {job['id']}. "
                f"Stop it: corral stop {job['id']}"
            )
            raise typer.Exit(130) from None
    if terminal.as_json:
        terminal.json(ended[0] if len(jobs) == 1 else {"items": ended})
    elif len(jobs) == 1:
        for line in hint_lines(ended[0]):
            terminal.note(line)
    codes = [exit_status(view["state"], view["exit_code"]) for view in ended]
    codes += [_commit_status(terminal, client, view) for view in ended]
    raise typer.Exit(next((code for code in codes if code), 0))


def still(job: JobView) -> Refused:
    """The refusal of a command that has waited as long as it was to wait."""
    return Refused(f"{job['id']} is still {job['state']}", hint=f"The job goes on: `corral show {job['id']}` shows it.")


def _commit_status(terminal: Terminal, client: Client, job: JobView) -> int:
    """Wait until the outputs of a completed job are a version of a dataset, so that the next job can use it."""
    wanted = job.get("commit_outputs")
    if not wanted or job["state"] != "completed":
        return 0
    commits = client.datasets.of_job(job["id"])["commits"]
    if not commits:
        terminal.note(f"Nothing was committed to {wanted}. The reason: corral events --subject {job['id']}")
        return 1
    done = client.datasets.wait(commits[0])
    if done["state"] == "failed":
        terminal.note(f"Nothing was committed to {wanted}: {done['error']}")
        return 1
    terminal.note(f"Committed to {wanted}: version {str(done['version'])[:12]}")
    return 0
