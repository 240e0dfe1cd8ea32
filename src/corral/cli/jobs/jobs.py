"""`corral jobs`, `show` and `why`: looking at jobs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.jobs.checkpoints import last_checkpoint
from corral.cli.jobs.submit import end_text
from corral.cli.scheduling import receipts
from corral.cli.scheduling.estimates import expected_text
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.moments import moment_option
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import (
        AllocationView,
        AttemptView,
        ElasticView,
        IdleWarningView,
        JobRefView,
        JobView,
        PredictionView,
        ReasonView,
        SuggestionView,
        UsageView,
        WhyView,
    )

app = typer.Typer()

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's id, or the name of one of yours.")]

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
        "corral jobs -a --search resnet --since 2d",
        "corral jobs -w",
    ],
)
def jobs(
    terminal: Terminal,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE", help="Only in this state; repeatable.")] = None,
    user: Annotated[list[str] | None, typer.Option(metavar="USER", help="Only of this user; repeatable.")] = None,
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help="Only of this kind; repeatable.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only in this queue.")] = None,
    name: Annotated[str | None, typer.Option(help="Only with this text in the name.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only with this text in id, name or user.")] = None,
    array: Annotated[str | None, typer.Option(help="Only of the array of this name.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Created since: RFC 3339, or 2h.")] = None,
    everything: Annotated[bool, typer.Option("-a", "--all", help="Ended ones too.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Keep the list on the screen up to date.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Between updates of --watch.")] = 2.0,
) -> None:
    """List jobs, the newest first; without -a those that wait or run."""
    from corral.client.jobs.jobs import LIVE_STATES

    states = tuple(state) if state else () if everything else LIVE_STATES
    filtered = bool(state or user or kind or queue or name or search or array or since)
    begin = moment_option("--since", since, terminal.now())

    def load(client: Client) -> tuple[list[JobView], bool]:
        # one more than asked for tells whether the list was cut
        found = list(
            client.jobs.list(
                states=states,
                kinds=kind or (),
                user=user,
                queue=queue,
                name=name,
                text=search,
                array=array,
                since=begin,
                sort="-created_at",
                limit=limit + 1,
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
    detail = formats.listed([grant["node"] for grant in job["allocation"]["grants"]]) if job["allocation"] else ""
    if job["ended_at"] is not None:
        detail = end_text(job)
    elif job.get("after"):
        detail = f"after {formats.listed(job['after'][:3])}{', …' if len(job['after']) > 3 else ''}"
    elif expected := job.get("estimated_start"):
        detail = f"starts {formats.ago(expected['p50'], now)}, or later"
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
        detail,
    )


def _watch(terminal: Terminal, load: Callable[[], list[JobView]], interval_seconds: float) -> None:
    if terminal.as_json:
        raise WrongUsage("--watch draws on the screen and has no JSON form", hint="`corral events -f -o json` does.")
    from rich.console import RenderableType

    from corral.cli.terminal import tables

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
        given_way = client.receipts.of_job(view["id"])
    now = terminal.now()
    if terminal.as_json:
        terminal.json({**view, "attempts": attempts, "receipts": given_way})
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
    if given_way:
        terminal.say("\nGave way, or was given way")
        receipts.show(terminal, given_way)
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
        ("Kept", "however old it becomes" if job["kept"] else ""),
        ("Message", job["message"] if not job["ended_at"] else ""),
        ("Queue", f"{job['queue']}, priority {job['priority']}" + (", pinned" if job["pinned_at"] else "")),
        ("Comes after", formats.listed(job["after"]) if job.get("after") else ""),
        ("Array", _array_text(job)),
        ("Asks for", _request_text(job)),
        ("Elastic", elastic_text(job.get("elastic"), now)),
        ("Holds", _allocation_text(job["allocation"])),
        ("Preset", _preset_text(job)),
        ("Command", shlex.join(job["command"])),
        ("Directory", job["workdir"] or ""),
        ("Image", job["image"] or ""),
        ("Mounts", _mounts(job)),
        ("Environment", job["venv"] or ""),
        ("Environment", " ".join(f"{key}={shlex.quote(value)}" for key, value in sorted(job["env"].items()))),
        ("Time limit", formats.duration(job["time_limit_seconds"]) if job["time_limit_seconds"] else "none"),
        ("Predicted", _prediction_text(job.get("predicted"))),
        ("Grace", formats.duration(job["grace_seconds"])),
        ("Retries", f"{job['retries']} of {job['max_retries']}"),
        ("Platform faults", f"{faults} in a row" if (faults := job.get("faults", 0)) else ""),
        ("Gives way", _gives_way_text(job)),
        ("Created", formats.at_and_ago(job["created_at"], now)),
        ("Queued", formats.at_and_ago(job["queued_at"], now) if job["queued_at"] else ""),
        ("Expected start", expected_text(expected, now) if (expected := job.get("estimated_start")) else ""),
        ("Not before", formats.at_and_ago(job["not_before"], now) if job["not_before"] else ""),
        ("Started", formats.at_and_ago(job["started_at"], now) if job["started_at"] else ""),
        ("Ended", formats.at_and_ago(job["ended_at"], now) if job["ended_at"] else ""),
        ("Ran", formats.between(job["started_at"], job["ended_at"], now) if job["started_at"] else ""),
        ("Does nothing", warning_text(job.get("idle_warning"), now)),
        ("Used", _usage_text(job.get("usage"))),
    ]


def _gives_way_text(job: JobView) -> str:
    """Whether it may be preempted, and how often it was."""
    if job["preempted_for"] and job["state"] == "stopping":
        return f"it makes room for {job['preempted_for']}"
    text = "yes, to jobs before it" if job["preemptible"] else "no"
    return f"{text}; {formats.count(job['preemptions'], 'time')} so far" if job["preemptions"] else text


def _prediction_text(prediction: PredictionView | None) -> str:
    """How long runs like it took, and how well that is known."""
    if prediction is None:
        return ""
    usual, longest = (formats.duration(prediction[part]) for part in ("p50_seconds", "p90_seconds"))
    runs = formats.count(prediction["samples"], "run")
    return f"{usual}, and 9 of 10 take at most {longest} ({runs} of {prediction['like']})"


def _array_text(job: JobView) -> str:
    of = job.get("array")
    return f"{of['name']}, index {of['index']} of {formats.count(of['size'], 'job')}" if of else ""


def warning_text(warning: IdleWarningView | None, now: float) -> str:
    if warning is None:
        return ""
    text = f"it is stopped {formats.ago(warning['deadline'], now)} unless it uses its GPUs"
    return f"{text}; it was given more time" if warning["extended_at"] else f"{text}; more time: corral extend JOB"


def _usage_text(usage: UsageView | None) -> str:
    """What its GPUs did, of all attempts together."""
    if usage is None or not usage["gpu_hours"]:
        return ""
    text = f"{amount(usage['gpu_hours'])} GPU-hours"
    if not usage["measured_gpu_hours"]:
        return f"{text}; its GPUs have not been measured"
    return (
        f"{text}, {formats.percent(usage['utilization'])} in use, {amount(usage['idle_gpu_hours'])} idle;"
        f" {amount(usage['energy_kwh'])} kWh; at most {formats.size(usage['memory_peak_bytes'])} of a GPU's memory"
    )


def amount(value: float) -> str:
    """Small amounts with as many digits as they need: 12.34, 0.0042."""
    return formats.number(value) if value == 0 or abs(value) >= 1 else f"{value:.2g}"


def _preset_text(job: JobView) -> str:
    given = [f"{name}={value}" for name, value in (job.get("parameters") or {}).items()]
    return " ".join([job.get("preset") or "", *given]).strip()


def _mounts(job: JobView) -> str:
    mounts = [f"{one['source']}:{one['path']}:{one['mode']}" for one in job.get("mounts", ())]
    return formats.listed(mounts) if mounts else ""


def _request_text(job: JobView) -> str:
    parts = [formats.count(job["gpus"], "GPU")]
    if job["cpus"]:
        parts.append(formats.count(job["cpus"], "CPU"))
    if job["memory_bytes"]:
        parts.append(f"{formats.size(job['memory_bytes'])} of memory")
    text = ", ".join(parts)
    if job["nodes"] > 1:
        text += f" on each of {job['nodes']} nodes"
    if job["models"]:
        text += f"; model {' or '.join(job['models'])}"
    if job["labels"]:
        text += f"; labels {formats.listed([f'{key}={value}' for key, value in sorted(job['labels'].items())])}"
    return text


def elastic_text(elastic: ElasticView | None, now: float) -> str:
    if elastic is None:
        return ""
    text = f"{elastic['min_gpus']} to {formats.count(elastic['max_gpus'], 'GPU')}"
    if elastic["next_gpus"] is not None:
        text += f"; it saves, and goes on with {len(elastic['next_gpus'])}"
    elif elastic["utilization"] is not None:
        text += f"; {formats.percent(elastic['utilization'])} in use lately"
    return f"{text}; resized {formats.ago(elastic['resized_at'], now)}" if elastic["resized_at"] else text


def _allocation_text(allocation: AllocationView | None) -> str:
    """Node by node: `gpu-01 (gpu ids)`."""
    if allocation is None:
        return ""
    shown = []
    for grant in allocation["grants"]:
        share = f"{formats.number(grant['gpu_share'])} of " if grant["gpus"] and grant["gpu_share"] < 1 else ""
        shown.append(f"{grant['node']} ({share}{', '.join(grant['gpus'])})" if grant["gpus"] else grant["node"])
    model = f"{allocation['model']}: " if allocation["model"] else ""
    return model + "; ".join(shown)


def _attempt_row(attempt: AttemptView, now: float) -> Sequence[str]:
    usage = attempt.get("usage")
    return (
        attempt["id"],
        formats.ago(attempt["started_at"], now),
        formats.between(attempt["started_at"], attempt["ended_at"], now),
        _allocation_text(attempt["allocation"]),
        formats.percent(usage["utilization"]) if usage else formats.NOTHING,
        amount(usage["gpu_hours"]) if usage else formats.NOTHING,
        amount(usage["energy_kwh"]) if usage and usage["measured_gpu_hours"] else formats.NOTHING,
        end_text(attempt) if attempt["ended_at"] else "",
    )


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
    """Say why a job waits: every rule that holds it, who is ahead, when it is planned to start, and what would help."""
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
        # the summary is the first reason in other words
        terminal.say(f"{view['job_id']} {is_now} {view['state']}. What {'holds' if cycle is None else 'held'} it:")
    else:
        terminal.say(f"{view['job_id']} {is_now} {view['state']}: {view['summary']}")
    for reason in view["reasons"]:
        terminal.say(f"  - {reason_line(reason)}")
    for line in [*_place_lines(view, terminal.now()), *_advice_lines(view, terminal.now())]:
        terminal.say(line)


def reason_line(reason: ReasonView) -> str:
    jobs = f" ({', '.join(reason['jobs'][:5])}{', …' if len(reason['jobs']) > 5 else ''})" if reason["jobs"] else ""
    return f"{reason['rule']}: {reason['detail']}{jobs}"


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


def _advice_lines(view: WhyView, now: float) -> list[str]:
    lines = []
    for advice in view.get("suggestions", []):
        effect = advice["effect"]
        when = "now" if effect["outcome"] == "start" else formats.at_and_ago(effect["start_at"], now)
        lines += [
            f"  - {advice['title']}, and it starts {when}. {advice['detail']}",
            f"    {advice_command(view['job_id'], advice)}",
        ]
    return ["What would help:", *lines] if lines else []


def advice_command(job: str, advice: SuggestionView) -> str:
    """What to type to follow a piece of advice."""
    change = advice["change"]
    if change["operation"] != "edit":
        return f"corral {change['operation']} {job}"
    flags = [f"--{word.replace('_', '-')} {_argument(word, value)}" for word, value in change["body"].items()]
    return " ".join(["corral edit", job, *flags])


def _argument(word: str, value: Any) -> str:
    if word == "time":
        return f"{value:g}s"
    return shlex.quote(",".join(value) if isinstance(value, list) else str(value))


def _reference(ref: JobRefView) -> str:
    return f"{ref['id']} ({ref['name']}, {ref['user']})" if ref["id"] else f"a job of {ref['user']}"
