"""`corral jobs`, `show`, `why`, `stop`, `start`, `edit` and `rm`: looking at jobs and changing them one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import words
from corral.cli.checkpoints import last_checkpoint
from corral.cli.failures import WrongUsage, exit_code, problem, readable
from corral.cli.submit import end_text
from corral.cli.terminal import Section, Terminal, command
from corral.client.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import (
        AllocationView,
        AttemptView,
        IdleWarningView,
        JobRefView,
        JobView,
        ReasonView,
        UsageView,
        WhyView,
    )

app = typer.Typer()

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's id, or the name of one of yours.")]
JobsArgument = Annotated[list[str], typer.Argument(metavar="JOB", help="Ids, or names of your own jobs.")]

TITLES = ("ID", "NAME~", "USER", "STATE!", "QUEUE?", "PRIO>?", "NODES>?", "GPUS>", "AGE>", "RAN>", "DETAIL~")
NO_JOBS = "No jobs yet. Submit one: corral submit --gpus 1 -- python train.py"
NO_LIVE_JOBS = (
    "No jobs that wait or run. Ended ones: corral jobs -a. Submit one: corral submit --gpus 1 -- python train.py"
)
NO_MATCH = "No job matches. Without filters, with ended ones: corral jobs -a"


@command(
    app,
    "jobs",
    section=Section.DAILY,
    examples=[
        "corral jobs",
        "corral jobs -a --user maria --limit 20",
        "corral jobs --state failed --state stopped -o json",
        "corral jobs -w",
    ],
)
def jobs(
    terminal: Terminal,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE", help="Only in this state; repeatable.")] = None,
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help="Only of this kind; repeatable.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only in this queue.")] = None,
    name: Annotated[str | None, typer.Option(help="Only with this text in the name.")] = None,
    everything: Annotated[bool, typer.Option("-a", "--all", help="Ended ones too.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Keep the list on the screen up to date.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Between updates of --watch.")] = 2.0,
) -> None:
    """List jobs, the newest first; without -a those that wait or run."""
    from corral.client.jobs import LIVE_STATES

    states = tuple(state) if state else () if everything else LIVE_STATES
    filtered = bool(state or user or kind or queue or name)

    def load(client: Client) -> tuple[list[JobView], bool]:
        # one more than asked for tells whether the list was cut
        found = list(
            client.jobs.list(
                states=states, kinds=kind or (), user=user, queue=queue, name=name, sort="-created_at", limit=limit + 1
            )
        )
        return found[:limit], len(found) > limit

    with terminal.client() as client:
        if watch:
            _watch(terminal, lambda: load(client)[0], interval)
            return
        found, more = load(client)
    empty = NO_MATCH if filtered else NO_JOBS if everything else NO_LIVE_JOBS
    now = terminal.now()
    terminal.table(TITLES, found, lambda job: job_row(job, now), empty=empty)
    if more:
        terminal.note(f"Only the newest {limit} are shown. More: --limit {limit * 4}")


def job_row(job: JobView, now: float) -> Sequence[str]:
    detail = words.listed([grant["node"] for grant in job["allocation"]["grants"]]) if job["allocation"] else ""
    if job["ended_at"] is not None:
        detail = end_text(job)
    return (
        job["id"],
        job["name"],
        job["user"],
        job["state"],
        job["queue"],
        str(job["priority"]) + ("*" if job["pinned_at"] else ""),
        str(job["nodes"]),
        words.number(job["gpus"]),
        words.duration(now - words.moment(job["created_at"])),
        words.between(job["started_at"], job["ended_at"], now),
        detail,
    )


def _watch(terminal: Terminal, load: Callable[[], list[JobView]], interval_seconds: float) -> None:
    if terminal.as_json:
        raise WrongUsage("--watch draws on the screen and has no JSON form", hint="`corral events -f -o json` does.")
    from rich.console import RenderableType

    from corral.cli import tables

    def draw() -> RenderableType:
        now, found = terminal.now(), load()
        if not found:
            return NO_MATCH
        return tables.table(tables.columns(*TITLES), [job_row(job, now) for job in found])

    tables.watch(draw, interval_seconds)


@command(app, "show", section=Section.DAILY, examples=["corral show j-12", "corral show resnet -o json"])
def show(terminal: Terminal, job: JobArgument) -> None:
    """Show everything about one job, with its attempts."""
    with terminal.client() as client:
        view = client.jobs.get(job)
        attempts = list(client.jobs.attempts(view["id"]))
        saved = list(client.jobs.checkpoints(view["id"])) if view.get("checkpointed_at") else []
    now = terminal.now()
    if terminal.as_json:
        terminal.json({**view, "attempts": attempts})
        return
    terminal.facts(view, [*_job_facts(view, now), ("Last checkpoint", last_checkpoint(view, saved, now))])
    if attempts:
        terminal.say("\nAttempts")
        terminal.table(
            ("ID", "STARTED", "RAN>", "ON~", "USE>", "GPU-H>", "KWH>?", "END~"),
            attempts,
            lambda attempt: _attempt_row(attempt, now),
            empty="",
        )
    if view["state"] == "queued":
        terminal.say(f"\nWhy it waits: corral why {view['id']}")


def _job_facts(job: JobView, now: float) -> list[tuple[str, str]]:
    import shlex

    return [
        ("Id", job["id"]),
        ("Name", job["name"]),
        ("User", job["user"]),
        ("Kind", job["kind"]),
        ("State", job["state"]),
        ("How it ended", end_text(job) if job["ended_at"] else ""),
        ("Message", job["message"] if not job["ended_at"] else ""),
        ("Queue", f"{job['queue']}, priority {job['priority']}" + (", pinned" if job["pinned_at"] else "")),
        ("Asks for", _request_text(job)),
        ("Holds", _allocation_text(job["allocation"])),
        ("Command", shlex.join(job["command"])),
        ("Directory", job["workdir"] or ""),
        ("Environment", " ".join(f"{key}={shlex.quote(value)}" for key, value in sorted(job["env"].items()))),
        ("Time limit", words.duration(job["time_limit_seconds"]) if job["time_limit_seconds"] else "none"),
        ("Grace", words.duration(job["grace_seconds"])),
        ("Retries", f"{job['retries']} of {job['max_retries']}"),
        ("Created", words.at_and_ago(job["created_at"], now)),
        ("Queued", words.at_and_ago(job["queued_at"], now) if job["queued_at"] else ""),
        ("Not before", words.at_and_ago(job["not_before"], now) if job["not_before"] else ""),
        ("Started", words.at_and_ago(job["started_at"], now) if job["started_at"] else ""),
        ("Ended", words.at_and_ago(job["ended_at"], now) if job["ended_at"] else ""),
        ("Ran", words.between(job["started_at"], job["ended_at"], now) if job["started_at"] else ""),
        ("Does nothing", _warning_text(job.get("idle_warning"), now)),
        ("Used", _usage_text(job.get("usage"))),
    ]


def _warning_text(warning: IdleWarningView | None, now: float) -> str:
    if warning is None:
        return ""
    text = f"it is stopped {words.ago(warning['deadline'], now)} unless it uses its GPUs"
    return f"{text}; it was given more time" if warning["extended_at"] else f"{text}; more time: corral extend JOB"


def _usage_text(usage: UsageView | None) -> str:
    """What its GPUs did, of all attempts together."""
    if usage is None or not usage["gpu_hours"]:
        return ""
    text = f"{amount(usage['gpu_hours'])} GPU-hours"
    if not usage["measured_gpu_hours"]:
        return f"{text}; its GPUs have not been measured"
    return (
        f"{text}, {words.percent(usage['utilization'])} in use, {amount(usage['idle_gpu_hours'])} idle;"
        f" {amount(usage['energy_kwh'])} kWh; at most {words.size(usage['memory_peak_bytes'])} of a GPU's memory"
    )


def amount(value: float) -> str:
    """Small amounts with as many digits as they need: 12.34, 0.0042."""
    return words.number(value) if value == 0 or abs(value) >= 1 else f"{value:.2g}"


def _request_text(job: JobView) -> str:
    parts = [words.count(job["gpus"], "GPU")]
    if job["cpus"]:
        parts.append(words.count(job["cpus"], "CPU"))
    if job["memory_bytes"]:
        parts.append(f"{words.size(job['memory_bytes'])} of memory")
    text = ", ".join(parts)
    if job["nodes"] > 1:
        text += f" on each of {job['nodes']} nodes"
    if job["models"]:
        text += f"; model {' or '.join(job['models'])}"
    if job["labels"]:
        text += f"; labels {words.listed([f'{key}={value}' for key, value in sorted(job['labels'].items())])}"
    return text


def _allocation_text(allocation: AllocationView | None) -> str:
    """Node by node: `gpu-01 (gpu ids)`."""
    if allocation is None:
        return ""
    shown = []
    for grant in allocation["grants"]:
        share = f"{words.number(grant['gpu_share'])} of " if grant["gpus"] and grant["gpu_share"] < 1 else ""
        shown.append(f"{grant['node']} ({share}{', '.join(grant['gpus'])})" if grant["gpus"] else grant["node"])
    model = f"{allocation['model']}: " if allocation["model"] else ""
    return model + "; ".join(shown)


def _attempt_row(attempt: AttemptView, now: float) -> Sequence[str]:
    usage = attempt.get("usage")
    return (
        attempt["id"],
        words.ago(attempt["started_at"], now),
        words.between(attempt["started_at"], attempt["ended_at"], now),
        _allocation_text(attempt["allocation"]),
        words.percent(usage["utilization"]) if usage else words.NOTHING,
        amount(usage["gpu_hours"]) if usage else words.NOTHING,
        amount(usage["energy_kwh"]) if usage and usage["measured_gpu_hours"] else words.NOTHING,
        end_text(attempt) if attempt["ended_at"] else "",
    )


@command(app, "why", section=Section.DAILY, examples=["corral why j-12", "corral why resnet -o json"])
def why(terminal: Terminal, job: JobArgument) -> None:
    """Say why a job waits: every rule that holds it, who is ahead, and when it is planned to start."""
    with terminal.client() as client:
        view = client.jobs.why(job)
    if terminal.as_json:
        terminal.json(view)
        return
    if view["reasons"]:
        # the summary is the first reason in other words
        terminal.say(f"{view['job_id']} is {view['state']}. What holds it:")
    else:
        terminal.say(f"{view['job_id']} is {view['state']}: {view['summary']}")
    for reason in view["reasons"]:
        terminal.say(f"  - {reason_line(reason)}")
    for line in _place_lines(view, terminal.now()):
        terminal.say(line)


def reason_line(reason: ReasonView) -> str:
    jobs = f" ({', '.join(reason['jobs'][:5])}{', …' if len(reason['jobs']) > 5 else ''})" if reason["jobs"] else ""
    return f"{reason['rule']}: {reason['detail']}{jobs}"


def _place_lines(view: WhyView, now: float) -> list[str]:
    lines = []
    if view["position"] is not None:
        lines.append(f"Place in its line: {view['position']}")
    if view["ahead"]:
        ahead = ", ".join(_reference(ref) for ref in view["ahead"][:5])
        more = view["ahead_count"] - min(5, len(view["ahead"]))
        lines.append(f"Ahead: {ahead}" + (f" and {more} more" if more > 0 else ""))
    if view["planned_start"] is not None:
        where = f" on {words.listed(view['planned_nodes'])}" if view["planned_nodes"] else ""
        lines.append(f"Planned start: {words.at_and_ago(view['planned_start'], now)}{where}")
    return lines


def _reference(ref: JobRefView) -> str:
    return f"{ref['id']} ({ref['name']}, {ref['user']})" if ref["id"] else f"a job of {ref['user']}"


@command(app, "stop", section=Section.DAILY, examples=["corral stop j-12", "corral stop j-12 j-13"])
def stop(terminal: Terminal, jobs: JobsArgument) -> None:
    """Stop jobs: a warning (SIGTERM), the grace time, then the end."""
    _each(terminal, jobs, lambda client, job: client.jobs.stop(job), lambda view: f"{view['id']} is {view['state']}")


@command(app, "start", section=Section.DAILY, examples=["corral start j-12"])
def start(terminal: Terminal, jobs: JobsArgument) -> None:
    """Queue jobs that were held back or have ended, with the same settings."""
    _each(terminal, jobs, lambda client, job: client.jobs.start(job), lambda view: f"{view['id']} is {view['state']}")


@command(app, "extend", section=Section.DAILY, examples=["corral extend j-12"])
def extend(terminal: Terminal, job: JobArgument) -> None:
    """Ask for more time for a job that was warned because it does nothing; once."""
    with terminal.client() as client:
        view = client.jobs.extend(job)
    terminal.answer(view, f"{view['id']}: {_warning_text(view.get('idle_warning'), terminal.now())}")


@command(
    app,
    "edit",
    section=Section.DAILY,
    examples=[
        "corral edit j-12 --queue quick",
        "corral edit resnet --priority 2 --time 4h",
        "corral edit j-12 --time none",
    ],
)
def edit(
    terminal: Terminal,
    job: JobArgument,
    queue: Annotated[str | None, typer.Option(help="Another queue; the word auto finds the right one.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 100; smaller goes first.")] = None,
    time: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Longest run time; none: as long as the queue allows.")
    ] = None,
) -> None:
    """Change where, how soon and how long a job that does not run yet shall run."""
    changes: dict[str, Any] = {} if priority is None else {"priority": priority}
    if queue is not None:
        changes["queue"] = None if queue == "auto" else queue
    if time is not None:
        changes["time"] = None if time == "none" else time
    if not changes:
        raise WrongUsage("nothing to change", hint="Give --queue, --priority or --time.")
    with terminal.client() as client:
        view = client.jobs.edit(job, changes)
    limit = words.duration(view["time_limit_seconds"]) if view["time_limit_seconds"] else "no time limit"
    terminal.answer(view, f"{view['id']}: queue {view['queue']}, priority {view['priority']}, {limit}")


@command(app, "rm", section=Section.DAILY, examples=["corral rm j-12", "corral rm -y j-12 j-13"])
def rm(
    terminal: Terminal,
    jobs: JobsArgument,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Don't ask.")] = False,
) -> None:
    """Delete ended jobs with their attempts and logs."""
    what = jobs[0] if len(jobs) == 1 else words.count(len(jobs), "job")
    terminal.confirm(f"Delete {what} with logs?", assume_yes=yes)

    def delete(client: Client, job: str) -> JobView:
        view = client.jobs.get(job)
        client.jobs.delete(view["id"])
        return view

    _each(terminal, jobs, delete, lambda view: f"Deleted {view['id']} ({view['name']})")


def _each(
    terminal: Terminal,
    jobs: Sequence[str],
    change: Callable[[Client, str], JobView],
    text: Callable[[JobView], str],
) -> None:
    """One after the other; one that is refused does not keep the rest from being done. The first refusal gives the
    exit code."""
    done, failed = [], list[ClientError]()
    with terminal.client() as client:
        for job in jobs:
            try:
                view = change(client, job)
            except ClientError as error:
                if len(jobs) == 1:
                    raise
                failed.append(error)
                terminal.note(problem(error) if terminal.as_json else f"{job}: {readable(error)}")
            else:
                done.append(view)
                terminal.say(text(view))
    if terminal.as_json:
        terminal.json(done[0] if len(jobs) == 1 else {"items": done})
    if failed:
        raise typer.Exit(exit_code(failed[0]))
