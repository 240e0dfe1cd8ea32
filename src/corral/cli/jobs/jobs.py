"""`corral jobs`, `show` and `why`: show jobs, and why they wait."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.jobs.checkpoints import last_checkpoint
from corral.cli.jobs.job_request import flag_of
from corral.cli.jobs.job_texts import attempt_row, end_text, job_facts
from corral.cli.scheduling import receipts
from corral.cli.scheduling.estimates import expected_text, start_text
from corral.cli.terminal import completion, formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.moments import moment_option
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.core.jobs.job_fields import SEARCHED

if TYPE_CHECKING:
    from corral.client.views import (
        JobRefView,
        JobView,
        ReasonView,
        SuggestionView,
        WhyView,
    )

app = typer.Typer()

JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="A job's id, or the name of one of yours.", autocompletion=completion.job_names),
]

TITLES = ("ID", "NAME~", "USER", "STATE!", "QUEUE?", "PRIO>?", "NODES>?", "GPUS>", "AGE>", "RAN>", "IMAGE~?", "DETAIL~")
#: The name of the user who asks.
ME = "me"
_SEARCHED = f"{', '.join(SEARCHED[:-1])} or {SEARCHED[-1]}"
NO_JOBS = "No jobs yet. Submit one: corral submit --gpus 1 -- python train.py"
NO_LIVE_JOBS = (
    "No jobs that wait or run. Ended jobs: corral jobs -a. Submit one: corral submit --gpus 1 -- python train.py"
)
NO_MATCH = "No job matches. Without filters, with ended jobs: corral jobs -a"


@command(
    app,
    "jobs",
    section=Section.DAILY,
    lists=True,
    examples=[
        "corral jobs",
        "corral jobs --mine",
        "corral jobs -a --user maria --limit 20",
        "corral jobs --state failed --state stopped -o json",
        "corral jobs -a --search resnet --since 2d",
        "corral jobs -w",
        "corral stop $(corral jobs --mine -q)",
    ],
)
def jobs(
    terminal: Terminal,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE", help="Only in this state; repeatable.")] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER", help="Only of this user, or me; repeatable.", autocompletion=completion.user_names
        ),
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own; the same as --user me.")] = False,
    all_users: Annotated[
        bool, typer.Option("-A", "--all-users", help="Of all users whose jobs you may see (the default).")
    ] = False,
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help="Only of this kind; repeatable.")] = None,
    queue: Annotated[
        str | None, typer.Option(help="Only in this queue.", autocompletion=completion.queue_names)
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only with this text in the name.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help=f"Only with this text in {_SEARCHED}.")] = None,
    array: Annotated[str | None, typer.Option(help="Only of the array of this name.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Created since: RFC 3339, or 2h.")] = None,
    everything: Annotated[bool, typer.Option("-a", "--all", help="Ended jobs too.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="The largest number of jobs to list.")] = 50,
) -> None:
    """List jobs, the newest first; without -a those that wait or run."""
    from corral.client.jobs.jobs import LIVE_STATES

    states = tuple(state) if state else () if everything else LIVE_STATES
    users = _users(user or [], mine=mine, all_users=all_users)
    filtered = bool(state or users or kind or queue or name or search or array or since)
    begin = moment_option("--since", since, terminal.now())
    with terminal.client() as client:
        # one job more than requested shows whether the list was cut
        found = list(
            client.jobs.list(
                states=states,
                kinds=kind or (),
                user=[client.people.me()["name"] if user == ME else user for user in users],
                queue=queue,
                name=name,
                text=search,
                array=array,
                since=begin,
                sort="-created_at",
                limit=limit + 1,
            )
        )
    found, more = found[:limit], len(found) > limit
    empty = NO_MATCH if filtered else NO_JOBS if everything else NO_LIVE_JOBS
    now = terminal.now()
    terminal.table(TITLES, found, lambda job: job_row(job, now), empty=empty)
    if more:
        terminal.note(f"Shown: the newest {formats.count(limit, 'job')}. More: --limit {limit * 4}")


def _users(named: Sequence[str], *, mine: bool, all_users: bool) -> list[str]:
    """The users whose jobs are listed; none means all."""
    if all_users and (named or mine):
        raise WrongUsage("--all-users excludes --user and --mine", hint="Leave one of them out.")
    return [*named, *([ME] if mine and ME not in named else [])]


def job_row(job: JobView, now: float) -> Sequence[str]:
    detail = formats.listed([grant["node"] for grant in job["allocation"]["grants"]]) if job["allocation"] else ""
    if job["ended_at"] is not None:
        detail = end_text(job)
    elif job.get("after"):
        detail = f"after {formats.listed(job['after'][:3])}{', …' if len(job['after']) > 3 else ''}"
    elif expected := job.get("estimated_start"):
        detail = f"starts {start_text(None, expected, now)}"
    return (
        job["id"],
        job["name"],
        job["user"],
        job["state"],
        job["queue"],
        str(job["priority"]) + ("*" if job["pinned_at"] else ""),
        str(job["nodes"]),
        formats.number(job["gpus"]),
        formats.duration(now - formats.moment(job["created_at"])),
        formats.between(job["started_at"], job["ended_at"], now),
        # The last part distinguishes images; `corral show` has the whole address.
        (job["image"] or formats.NOTHING).rpartition("/")[2],
        detail,
    )


@command(app, "show", section=Section.DAILY, examples=["corral show j-12", "corral show resnet -o json"])
def show(terminal: Terminal, job: JobArgument) -> None:
    """Show everything about one job, with its attempts."""
    with terminal.client() as client:
        view = client.jobs.get(job)
        attempts = list(client.jobs.attempts(view["id"]))
        saved = list(client.jobs.checkpoints(view["id"])) if view.get("checkpointed_at") else []
        preemptions = client.receipts.of_job(view["id"])
    now = terminal.now()
    if terminal.as_json:
        terminal.json({**view, "attempts": attempts, "receipts": preemptions})
        return
    terminal.facts(view, [*job_facts(view, now), ("Last checkpoint", last_checkpoint(view, saved, now))])
    if attempts:
        terminal.say("\nAttempts")
        terminal.table(
            ("ID", "STARTED", "RAN>", "ON~", "USE>", "GPU-H>", "KWH>?", "END~"),
            attempts,
            lambda attempt: attempt_row(attempt, now),
            empty="",
        )
    if preemptions:
        terminal.say("\nPreemptions")
        receipts.show(terminal, preemptions)
    if view["state"] == "queued":
        terminal.say(f"\nWhy it waits: corral why {view['id']}")


@command(
    app,
    "why",
    section=Section.DAILY,
    examples=["corral why j-12", "corral why resnet -o json", "corral why j-12 --at '2026-01-03 10:00'"],
)
def why(
    terminal: Terminal,
    job: JobArgument,
    at: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Why it waited then: a time on this machine's clock, or 2h for 2 hours ago."),
    ] = None,
) -> None:
    """Show why a job waits: the rules that hold it, the jobs ahead, its planned start, and changes that would help."""
    with terminal.client() as client:
        view = client.jobs.why(job, at=moment_option("--at", at, terminal.now()))
    if terminal.as_json:
        terminal.json(view)
        return
    cycle = view.get("cycle")
    is_now = "is" if cycle is None else "was"
    if cycle is not None:
        terminal.say(f"{formats.local_time(view.get('at'))}, {cycle['words']}:")
    if view["reasons"]:
        # the summary repeats the first reason
        terminal.say(f"{view['job_id']} {is_now} {view['state']}. What {'holds' if cycle is None else 'held'} it:")
    else:
        terminal.say(f"{view['job_id']} {is_now} {_without_reasons(view)}")
    for reason in view["reasons"]:
        terminal.say(f"  - {reason_line(reason)}")
    for line in [*_place_lines(view, terminal.now()), *_suggestion_lines(view, terminal.now())]:
        terminal.say(line)


def _without_reasons(view: WhyView) -> str:
    """The state and the summary, without the parts that repeat the state."""
    state = view["state"]
    if view["summary"] == f"it does not wait: it is {state}":
        return f"{state}: it does not wait."
    if view["summary"].startswith("it does not wait: it has ended"):
        return f"{state}: it does not wait any more. How it ended: corral show {view['job_id']}"
    return f"{state}: {view['summary']}"


def reason_line(reason: ReasonView) -> str:
    # Most details name no job; the others name the first of them.
    named = {*re.findall(r"\bj-\d+", reason["detail"])}
    jobs = [job for job in reason["jobs"] if job not in named]
    listed = f" ({', '.join(jobs[:5])}{', …' if len(jobs) > 5 else ''})" if jobs else ""
    return f"{reason['rule']}: {reason['detail']}{listed}"


def _place_lines(view: WhyView, now: float) -> list[str]:
    lines = []
    if view["position"] is not None:
        lines.append(f"Place in its line: {view['position']}" + (f" ({place})" if (place := view.get("place")) else ""))
    if view["ahead"]:
        ahead = ", ".join(_reference(ref) for ref in view["ahead"][:5])
        more = view["ahead_count"] - min(5, len(view["ahead"]))
        lines.append(f"Ahead: {ahead}" + (f" and {more} more" if more > 0 else ""))
    if view["planned_start"] is not None:
        where = f" on {formats.listed(view['planned_nodes'])}" if view["planned_nodes"] else ""
        lines.append(f"Planned start, at the latest: {formats.at_and_ago(view['planned_start'], now)}{where}")
    if expected := view.get("estimate"):
        lines.append(f"Expected to start {expected_text(expected, now)}.")
        lines.append(f"  {expected['basis']}")
    return lines


def _suggestion_lines(view: WhyView, now: float) -> list[str]:
    lines = []
    for suggestion in view.get("suggestions", []):
        effect = suggestion["effect"]
        when = "now" if effect["outcome"] == "start" else formats.at_and_ago(effect["start_at"], now)
        lines += [
            f"  - {suggestion['title']}, and it starts {when}. {suggestion['detail']}",
            f"    {suggestion_command(view['job_id'], suggestion)}",
        ]
    return ["What would help:", *lines] if lines else []


def suggestion_command(job: str, suggestion: SuggestionView) -> str:
    """The command that follows a suggestion."""
    change = suggestion["change"]
    if change["operation"] != "edit":
        return f"corral {change['operation']} {job}"
    flags = [f"{flag_of(field)} {_argument(field, value)}" for field, value in change["body"].items()]
    return " ".join(["corral edit", job, *flags])


def _argument(field: str, value: Any) -> str:
    if field == "time":
        return f"{value:g}s"
    return shlex.quote(",".join(value) if isinstance(value, list) else str(value))


def _reference(ref: JobRefView) -> str:
    return f"{ref['id']} ({ref['name']}, {ref['user']})" if ref["id"] else f"a job of {ref['user']}"
