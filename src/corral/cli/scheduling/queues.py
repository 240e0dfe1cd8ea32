"""`corral queue`, `pin`, `unpin` and `move`: show queues, manage them, and change the order of waiting jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.jobs.jobs import JobArgument
from corral.cli.scheduling.estimates import start_text
from corral.cli.terminal import completion, formats
from corral.cli.terminal.arguments import seconds
from corral.cli.terminal.changes import check_changes
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.hints import none_yet
from corral.cli.terminal.option_groups import with_options
from corral.cli.terminal.terminal import Section, Terminal, YesOption, command, default_command

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import LineView, OrderedJobView, OrderView, QueueView

app = typer.Typer(help="Show the order of waiting jobs, and manage queues.")
top = typer.Typer()

QueueArgument = Annotated[
    str, typer.Argument(metavar="QUEUE", help="A queue's name.", autocompletion=completion.queue_names)
]
JOB_ID = re.compile(r"j-\d+")
NO_LIMIT = "none"


@default_command(app, lists=True, examples=["corral queue", "corral queue ls", "corral queue show default -o json"])
def queue(terminal: Terminal) -> None:
    """Show the waiting lines of every queue, in order; with a command, manage queues."""
    with terminal.client() as client:
        orders = [(view, client.queues.order(view["name"])) for view in client.queues.list()]
    if terminal.as_json:
        terminal.json({"items": [{"queue": view["name"], **order} for view, order in orders]})
        return
    for index, (view, order) in enumerate(orders):
        if index:
            terminal.say("")
        _say_order(terminal, view, order)


def _say_order(terminal: Terminal, queue: QueueView, order: OrderView) -> None:
    title = f"Queue {queue['name']}: {queue['policy']}, {queue['blocking']}"
    terminal.say(f"{title}; {formats.count(queue['running'], 'job')} running, {queue['queued']} waiting")
    lines = [line for line in order["lines"] if line["jobs"]]
    others = order.get("waiting_for_others", 0)
    if not lines and not others:
        terminal.say("  No job waits here.")
    if others:
        terminal.say(f"  {formats.count(others, 'job')} of them wait for other jobs: corral jobs --state queued")
    for line in lines:
        terminal.say(f"\n{_line_title(line)}")
        terminal.table(
            ("#>", "ID", "NAME~", "USER", "NODES>?", "GPUS>", "PRIO>?", "SCORE>?", "PLANNED", "WHY~"),
            line["jobs"],
            lambda job: _order_row(job, terminal.now()),
            empty="",
        )


def _line_title(line: LineView) -> str:
    model = {"any": "Any GPU model", "cpu": "Without GPUs"}.get(line["model"], f"GPU model {line['model']}")
    return f"{model}, {'gangs' if line['line'] == 'gang' else 'single node'}"


def _order_row(job: OrderedJobView, now: float) -> Sequence[str]:
    return (
        str(job["position"]),
        job["id"] or formats.NOTHING,
        job["name"] or formats.NOTHING,
        job["user"],
        str(job["nodes"]),
        formats.number(job["gpus"]),
        str(job["priority"]) + ("*" if job["pinned"] else ""),
        formats.NOTHING if job["score"] is None else f"{job['score']:.3f}",
        start_text(job["planned_start"], job.get("estimated_start"), now),
        job["detail"],
    )


@command(app, "ls", examples=["corral queue ls", "corral queue ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the queues."""
    with terminal.client() as client:
        found = list(client.queues.list())
        empty = none_yet(client, found, "queues", "corral queue create NAME")
    terminal.table(
        (
            *("NAME", "POOL?", "POLICY", "BLOCKING?", "PLACEMENT?", "RUNNING>", "WAITING>"),
            *("HELD GPUS>", "BORROWED>?", "OWED>?", "GUARANTEED>?", "MAX GPUS>"),
        ),
        found,
        lambda view: (
            view["name"],
            view["pool"],
            view["policy"],
            view["blocking"],
            view["placement"],
            str(view["running"]),
            str(view["queued"]),
            formats.number(view["held_gpus"]),
            formats.number(view["borrowed_gpus"]),
            formats.number(view["owed_gpus"]),
            formats.number(view["guaranteed_gpus"]),
            formats.number(view["max_gpus"]),
        ),
        empty=empty,
    )


@command(app, "show", examples=["corral queue show default"])
def show(terminal: Terminal, name: QueueArgument) -> None:
    """Show one queue: its settings and its waiting lines."""
    with terminal.client() as client:
        view, order = client.queues.get(name), client.queues.order(name)
    if terminal.as_json:
        terminal.json({**view, **order})
        return
    terminal.facts(
        view,
        [
            ("Name", view["name"]),
            ("Description", view["description"]),
            ("Pool", view["pool"]),
            ("Order", _order_text(view)),
            ("Placement", view["placement"]),
            ("Weight", formats.number(view["weight"])),
            ("Guaranteed", _guarantee_text(view)),
            ("Limits", _limits_text(view)),
            ("Kinds", formats.listed(view["kinds"]) if view["kinds"] else "all"),
            ("Shared with", formats.listed(view["groups"]) if view["groups"] else ""),
        ],
    )
    terminal.say("")
    _say_order(terminal, view, order)


def _order_text(view: QueueView) -> str:
    return f"{view['policy']}, {view['blocking']}" + (", preempts" if view["preempts"] else "")


def _guarantee_text(view: QueueView) -> str:
    """The guaranteed GPUs, and how many of them the queue holds, has borrowed or can reclaim."""
    parts = [formats.count(view["guaranteed_gpus"], "GPU"), f"holds {formats.number(view['held_gpus'])}"]
    if view["borrowed_gpus"]:
        parts.append(f"{formats.number(view['borrowed_gpus'])} of them borrowed")
    if view["owed_gpus"]:
        parts.append(f"{formats.number(view['owed_gpus'])} can be reclaimed")
    return ", ".join(parts)


def _limits_text(view: QueueView) -> str:
    limits = [
        (view["max_gpus"], "GPU", "at most {} held"),
        (view["max_length"], "job", "at most {} waiting"),
        (view["min_job_gpus"], "GPU", "jobs of at least {}"),
        (view["max_job_gpus"], "GPU", "jobs of at most {}"),
    ]
    texts = [text.format(formats.count(value, noun)) for value, noun, text in limits if value is not None]
    if view["max_seconds"] is not None:
        texts.append(f"at most {formats.duration(view['max_seconds'])} a job")
    return "; ".join(texts) or "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueOptions:
    """The settings of a queue that `create` and `edit` have options for."""

    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Purpose of the queue, at most 500 characters.")
    ] = None
    policy: Annotated[
        str | None, typer.Option(help="The order of waiting jobs: fair-share, priority, fcfs, shortest or weighted.")
    ] = None
    blocking: Annotated[str | None, typer.Option(help="backfill or strict.")] = None
    placement: Annotated[str | None, typer.Option(help="fragmentation, pack, spread, round-robin or least-loaded.")] = (
        None
    )
    weight: Annotated[
        float | None, typer.Option(help="The queue's weight against other queues; with 2 its waiting counts twice.")
    ] = None
    guaranteed_gpus: Annotated[
        int | None, typer.Option(metavar="N", help="GPUs that the queue can always reclaim.")
    ] = None
    preempts: Annotated[
        bool | None,
        typer.Option(
            "--preempts/--no-preempts", help="Whether jobs at the front preempt running jobs far behind them."
        ),
    ] = None
    max_gpus: Annotated[str | None, typer.Option(metavar="N", help="GPUs that the queue's jobs may hold together.")] = (
        None
    )
    max_length: Annotated[str | None, typer.Option(metavar="N", help="Jobs that may wait in the queue.")] = None
    max_time: Annotated[str | None, typer.Option(metavar="DURATION", help="Longest run time of a job.")] = None
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="An accepted job kind; repeatable.")
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="GROUP", help="A group that may use the queue, beside the group of its pool; repeatable."
        ),
    ] = None
    min_job_gpus: Annotated[str | None, typer.Option(metavar="N", help="The smallest accepted job, in GPUs.")] = None
    max_job_gpus: Annotated[str | None, typer.Option(metavar="N", help="The largest accepted job, in GPUs.")] = None


#: Options that have other names than the fields of the API.
_FIELD_NAMES = {"max_time": "max_seconds", "kind": "kinds", "group": "groups"}


def field_of(option: str) -> str:
    """The field of the API that an option sets."""
    return _FIELD_NAMES.get(option, option)


@command(
    app,
    "create",
    examples=[
        "corral queue create night --policy priority",
        "corral queue create big --min-job-gpus 4 --max-gpus 32",
        "corral queue create vision --guaranteed-gpus 8 --weight 2 --description 'Image models'",
    ],
)
@with_options(QueueOptions)
def create(
    terminal: Terminal,
    name: QueueArgument,
    pool: Annotated[str | None, typer.Option(help="The pool whose GPUs the queue allocates.")] = None,
    **typed: Any,
) -> None:
    """Create a queue (operators)."""
    changes = _changes({"pool": pool, **typed})
    with terminal.client() as client:
        view = client.queues.create({"name": name, **changes})
    terminal.answer(view, f"Created queue {view['name']}. Use it: corral submit --queue {view['name']} …")


@command(
    app,
    "edit",
    examples=[
        "corral queue edit default --blocking strict",
        "corral queue edit night --max-gpus none --max-time 12h",
        "corral queue edit urgent --policy priority --preempts",
    ],
)
@with_options(QueueOptions)
def edit(terminal: Terminal, name: QueueArgument, **typed: Any) -> None:
    """Change a queue (operators). The word none removes a limit."""
    changes = _changes(typed)
    check_changes(changes, "queue edit")
    with terminal.client() as client:
        view = client.queues.edit(name, changes)
    terminal.answer(view, f"Changed queue {view['name']}: {_options(typed)}")


def _options(typed: Mapping[str, Any]) -> str:
    """The given options as they are typed."""
    return formats.listed([f"--{option.replace('_', '-')}" for option, value in typed.items() if value is not None])


def _changes(typed: Mapping[str, Any]) -> dict[str, Any]:
    """The given options as fields of the API; the word none means no limit."""
    return {field_of(option): _value(option, value) for option, value in typed.items() if value is not None}


def _value(option: str, typed: Any) -> Any:
    if option == "max_time":
        return _seconds(typed)
    if option in _LIMITS:
        return whole_or_none(f"--{option.replace('_', '-')}", typed)
    return [] if typed == [NO_LIMIT] else typed


#: Limits are typed as a number or the word none.
_LIMITS = frozenset({"max_gpus", "max_length", "min_job_gpus", "max_job_gpus"})


def whole_or_none(flag: str, text: str) -> int | None:
    if text == NO_LIMIT:
        return None
    try:
        return int(text)
    except ValueError:
        raise WrongUsage(f"{flag}: expected a whole number or the word {NO_LIMIT}, got {text!r}") from None


def _seconds(text: str) -> float | None:
    return None if text == NO_LIMIT else seconds("--max-time", text)


@command(app, "rm", examples=["corral queue rm night", "corral queue rm night weekend"])
def rm(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="QUEUE", help="All of them or none are deleted.")],
    yes: YesOption = False,
) -> None:
    """Delete queues without waiting jobs (operators)."""
    terminal.confirm(f"Delete {formats.count(len(names), 'queue')}: {formats.listed(names)}?", assume_yes=yes)
    with terminal.client() as client:
        client.queues.delete_many(names)
    terminal.answer({"deleted": names}, f"Deleted queue {formats.listed(names)}")


@command(top, "pin", section=Section.QUEUE, examples=["corral pin j-12"])
def pin(terminal: Terminal, job: JobArgument) -> None:
    """Put a waiting job to the front (operators). The latest pin goes first."""
    with terminal.client() as client:
        view = client.jobs.pin(job)
    terminal.answer(view, f"Pinned {view['id']}. Undo: corral unpin {view['id']}")


@command(top, "unpin", section=Section.QUEUE, examples=["corral unpin j-12"])
def unpin(terminal: Terminal, job: JobArgument) -> None:
    """Undo a pin (operators)."""
    with terminal.client() as client:
        view = client.jobs.unpin(job)
    terminal.answer(view, f"{view['id']} is no longer pinned")


@command(
    top, "move", section=Section.QUEUE, examples=["corral move j-12 --before j-9", "corral move resnet --after bert"]
)
def move(
    terminal: Terminal,
    job: JobArgument,
    before: Annotated[str | None, typer.Option(metavar="JOB", help="Directly before this job.")] = None,
    after: Annotated[str | None, typer.Option(metavar="JOB", help="Directly after this job.")] = None,
) -> None:
    """Change the order of your own waiting jobs. Jobs of other users keep their positions."""
    if (before is None) == (after is None):
        raise WrongUsage("give one of --before and --after")
    with terminal.client() as client:
        other = _job_id(client, before or after or "")
        view = client.jobs.move(job, before=other) if before else client.jobs.move(job, after=other)
    terminal.answer(view, f"Moved {view['id']} to {'before' if before else 'after'} {other}")


def _job_id(client: Client, job: str) -> str:
    """The id of a job given by id or name: the API accepts only ids here."""
    return job if JOB_ID.fullmatch(job) else client.jobs.get(job)["id"]
