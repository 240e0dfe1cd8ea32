"""`corral stop`, `start`, `restart`, `requeue`, `resize`, `migrate`, `extend`, `edit`, `keep`, `rm`: change jobs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from corral.cli.jobs import arrays
from corral.cli.jobs.job_request import request_body, with_flags, with_job_options
from corral.cli.jobs.job_texts import elastic_text, warning_text
from corral.cli.jobs.jobs import JobArgument
from corral.cli.terminal import completion, formats
from corral.cli.terminal.changes import change_each
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, YesOption, command
from corral.client.http.errors import ApiProblem
from corral.core.jobs.field_types import JobCommand

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import AllocationView, ChangePreviewView, JobEdit, JobView, WaitingEffectView

app = typer.Typer()

_JOBS = typer.Argument(metavar="JOB", help="Ids, or names of your own jobs.", autocompletion=completion.job_names)
JobsArgument = Annotated[list[str], _JOBS]
SomeJobsArgument = Annotated[list[str] | None, _JOBS]


@command(
    app,
    "stop",
    section=Section.DAILY,
    examples=["corral stop j-12", "corral stop j-12 j-13", "corral stop --array sweep"],
)
def stop(
    terminal: Terminal,
    jobs: SomeJobsArgument = None,
    array: arrays.ArrayOption = None,
    yes: YesOption = False,
) -> None:
    """Stop jobs: SIGTERM, then SIGKILL after the grace time."""
    if array is None:
        change_each(terminal, _named(jobs), lambda client, job: client.jobs.stop(job), _state_text)
        return
    if jobs:
        raise WrongUsage("name jobs or an array, not both")
    with terminal.client() as client:
        count = sum(job["ended_at"] is None for job in arrays.jobs_of(client, array))
        if count > 1:
            terminal.confirm(
                f"Stop {formats.count(count, 'job')} of array {array}?", assume_yes=yes, is_reversible=True
            )
        stopped = client.jobs.stop_array(array)
    states = Counter(job["state"] for job in stopped)
    terminal.answer(
        {"items": stopped}, f"Array {array}: " + ", ".join(f"{count} {state}" for state, count in states.items())
    )


@command(app, "start", section=Section.DAILY, examples=["corral start j-12", "corral start --array sweep"])
def start(terminal: Terminal, jobs: SomeJobsArgument = None, array: arrays.ArrayOption = None) -> None:
    """Queue jobs that were held back or have ended, with the same settings."""
    change_each(terminal, _chosen(terminal, jobs, array), lambda client, job: client.jobs.start(job), _state_text)


@command(app, "requeue", section=Section.DAILY, examples=["corral requeue j-12"])
def requeue(terminal: Terminal, jobs: JobsArgument) -> None:
    """Requeue running jobs: they save, end, and later resume from their last checkpoint."""
    change_each(terminal, jobs, lambda client, job: client.jobs.requeue(job), _state_text)


@command(app, "restart", section=Section.DAILY, examples=["corral restart j-12", "corral restart j-12 j-13"])
def restart(terminal: Terminal, jobs: JobsArgument) -> None:
    """Run jobs again from their last checkpoint: a running job is requeued, an ended one is queued."""

    def again(client: Client, job: str) -> JobView:
        view = client.jobs.get(job)
        runs = view["state"] in ("starting", "running")
        return client.jobs.requeue(view["id"]) if runs else client.jobs.start(view["id"])

    change_each(terminal, jobs, again, _state_text)


DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]


@command(
    app,
    "resize",
    section=Section.DAILY,
    examples=["corral resize j-12 --gpus 6", "corral resize j-12 --gpus 6 --dry-run"],
)
def resize(
    terminal: Terminal,
    job: JobArgument,
    gpus: Annotated[int, typer.Option(metavar="N", help="Within its minimum and maximum.")],
    dry_run: DryRunOption = False,
) -> None:
    """Change the number of GPUs of a running elastic job: it is warned, saves, and starts again."""
    with terminal.client() as client:
        if dry_run:
            _say_preview(terminal, client.jobs.plan_resize(job, gpus))
            return
        view = client.jobs.resize(job, gpus)
    terminal.answer(view, f"{view['id']} is {view['state']}: {elastic_text(view, terminal.now())}")


@command(
    app,
    "migrate",
    section=Section.DAILY,
    examples=["corral migrate j-12 --dry-run", "corral migrate j-12", "corral migrate j-12 --to node-7 --yes"],
)
def migrate(
    terminal: Terminal,
    job: JobArgument,
    to: Annotated[str | None, typer.Option("--to", metavar="NODE", help="Otherwise the best other node.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Move a running job to another node, after a preview: it is warned, saves, and starts again there."""
    with terminal.client() as client:
        found = client.jobs.plan_migration(job, to)
        if dry_run:
            _say_preview(terminal, found)
            return
        if not yes and not terminal.as_json:
            _say_preview(terminal, found)
        target = found["after"]["grants"][0]["node"]
        terminal.confirm(f"Move {found['job']} to {target}?", assume_yes=yes)
        # The node of the preview, which the user has confirmed.
        view = client.jobs.migrate(found["job"], target)
    terminal.answer(view, f"{view['id']} is {view['state']}: it goes on on {target} when it has saved")


def _say_preview(terminal: Terminal, found: ChangePreviewView) -> None:
    """Prints the preview of a resize or a move."""
    saved = found["checkpointed_at"]
    last = f"last saved {formats.ago(saved, terminal.now())}" if saved else "it never saved"
    lost = formats.quantity(found["lost_gpu_seconds"] / 3600)
    effects = [_effect_text(terminal, effect) for effect in found["waiting"]]
    hidden = found["hidden_waiting"]
    if hidden:
        effects.append(f"{formats.count(hidden, 'job')} of other users")
    terminal.facts(
        found,
        [
            ("Job", found["job"]),
            ("Now", _place_text(found["before"])),
            ("Then", _place_text(found["after"])),
            (
                "At risk",
                f"at most {lost} GPU-hours of work: {last}, {formats.duration(found['grace_seconds'])} to save",
            ),
            ("Waiting jobs", "; ".join(effects) or "none starts earlier or later"),
        ],
    )


def _place_text(allocation: AllocationView) -> str:
    return "; ".join(
        f"{grant['node']}: {formats.listed(grant['gpus']) if grant['gpus'] else 'no GPU'}"
        for grant in allocation["grants"]
    )


def _effect_text(terminal: Terminal, effect: WaitingEffectView) -> str:
    if effect["starts_now"]:
        return f"{effect['job']} starts at once"
    before, after = (
        formats.local_time(at) if at else "not planned" for at in (effect["start_before"], effect["start_after"])
    )
    return f"{effect['job']}: planned start {before} → {after}"


@command(app, "extend", section=Section.DAILY, examples=["corral extend j-12"])
def extend(terminal: Terminal, job: JobArgument) -> None:
    """Give more time, once, to a job that was warned because it is idle."""
    with terminal.client() as client:
        view = client.jobs.extend(job)
    terminal.answer(view, f"{view['id']}: {warning_text(view.get('idle_warning'), terminal.now())}")


@command(
    app,
    "edit",
    section=Section.DAILY,
    examples=[
        "corral edit j-12 --queue quick",
        "corral edit resnet --priority 2 --time 4h",
        "corral edit j-12 --time none",
        "corral edit j-12 --after none",
        "corral edit j-12 --gpus 2",
        "corral edit j-12 --description 'Baseline for the paper'",
    ],
)
@with_job_options(JobCommand.EDIT)
def edit(terminal: Terminal, job: JobArgument, **typed: Any) -> None:
    """Change settings of a job: queue, priority, time limit and dependencies before it runs, its size before it ever
    ran, and its description at any time."""
    changes = request_body(JobCommand.EDIT, typed)
    if not changes:
        raise WrongUsage("nothing to change", hint="Give --queue, --priority, --time, --gpus or --description …")
    with terminal.client() as client:
        try:
            view = client.jobs.edit(job, cast("JobEdit", changes))
        except ApiProblem as error:
            raise with_flags(error) from error
    limit = formats.duration(view["time_limit_seconds"]) if view["time_limit_seconds"] else "no time limit"
    waits = f", after {formats.listed(view['after'])}" if view.get("after") else ""
    terminal.answer(view, f"{view['id']}: queue {view['queue']}, priority {view['priority']}, {limit}{waits}")


@command(app, "keep", section=Section.DAILY, examples=["corral keep j-12", "corral keep --off j-12"])
def keep(
    terminal: Terminal,
    jobs: JobsArgument,
    off: Annotated[bool, typer.Option("--off", help="Let them expire again.")] = False,
) -> None:
    """Keep jobs with their logs and files beyond the retention time."""
    if off:
        change_each(
            terminal, jobs, lambda client, job: client.jobs.let_go(job), lambda view: f"{view['id']} expires again"
        )
    else:
        change_each(terminal, jobs, lambda client, job: client.jobs.keep(job), lambda view: f"{view['id']} is kept")


@command(
    app,
    "rm",
    section=Section.DAILY,
    examples=["corral rm j-12", "corral rm -y j-12 j-13", "corral rm --array sweep"],
)
def rm(
    terminal: Terminal,
    jobs: SomeJobsArgument = None,
    array: arrays.ArrayOption = None,
    yes: YesOption = False,
) -> None:
    """Delete ended jobs with their attempts and logs."""
    jobs = _chosen(terminal, jobs, array)
    subject = jobs[0] if len(jobs) == 1 else formats.count(len(jobs), "job")
    terminal.confirm(f"Delete {subject} with logs?", assume_yes=yes)

    def delete(client: Client, job: str) -> JobView:
        view = client.jobs.get(job)
        client.jobs.delete(view["id"])
        return view

    change_each(terminal, jobs, delete, lambda view: f"Deleted {view['id']} ({view['name']})")


def _chosen(terminal: Terminal, jobs: list[str] | None, array: str | None) -> list[str]:
    if array is None:
        return _named(jobs)
    if jobs:
        raise WrongUsage("name jobs or an array, not both")
    with terminal.client() as client:
        return [job["id"] for job in arrays.jobs_of(client, array)]


def _named(jobs: list[str] | None) -> list[str]:
    if not jobs:
        raise WrongUsage("JOB is missing", hint="Name some, or an array of yours with --array.")
    return jobs


def _state_text(view: JobView) -> str:
    return f"{view['id']} is {view['state']}"
