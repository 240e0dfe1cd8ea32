"""`corral events`: the audit log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.moments import moment_option
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.views import EventView

app = typer.Typer()

TITLES = ("AT", "ACTOR", "ACTION", "SUBJECT", "DETAIL~")


NO_EVENTS = "Nothing has happened yet."
NO_MATCH = "No event matches. Without filters: corral events"


@command(
    app,
    "events",
    section=Section.CLUSTER,
    examples=[
        "corral events",
        "corral events --subject j-12",
        "corral events --actor maria --since 2h",
        "corral events -f -o json",
        "corral events --search resnet",
        "corral events --since 30d --export csv > events.csv",
    ],
)
def events(
    terminal: Terminal,
    actor: Annotated[str | None, typer.Option(help="Only by this user.")] = None,
    action: Annotated[str | None, typer.Option(help="Only of this kind, such as job.submitted.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this object, such as j-12.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Only since: RFC 3339, or 2h for 2h ago.")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Only until.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only events that contain this text.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N events.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print new events as they happen.")] = False,
    export: Annotated[
        str | None, typer.Option(metavar="csv|jsonl", help="Print all matching events in this format (operators).")
    ] = None,
) -> None:
    """Show the audit log: actor, action and object, newest last."""
    now = terminal.now()
    if follow and (export or search):
        raise WrongUsage("--follow goes with neither --search nor --export")
    if export is not None:
        times = {"since": moment_option("--since", since, now), "until": moment_option("--until", until, now)}
        with terminal.client() as client:
            for piece in client.events.export(export, actor=actor, action=action, subject=subject, q=search, **times):
                terminal.raw(piece)
        return
    is_filtered = any((actor, action, subject, since, until, search))
    with terminal.client() as client:
        newest_first = list(
            client.events.list(
                actor=actor,
                action=action,
                subject=subject,
                since=moment_option("--since", since, now),
                until=moment_option("--until", until, now),
                text=search,
                limit=limit,
            )
        )
        past = newest_first[::-1]
        if not follow:
            terminal.table(TITLES, past, lambda event: _row(event, now), empty=NO_MATCH if is_filtered else NO_EVENTS)
            return
        for event in past:
            _say_event(terminal, event)
        # without a past event the stream begins with the next one
        for event in client.events.follow(after=past[-1]["id"] if past else None):
            if _matches(event, actor, action, subject):
                _say_event(terminal, event)


def _matches(event: EventView, actor: str | None, action: str | None, subject: str | None) -> bool:
    wanted = ((actor, event["actor"]), (action, event["action"]), (subject, event["subject"]))
    return all(want is None or want == got for want, got in wanted)


def _say_event(terminal: Terminal, event: EventView) -> None:
    if terminal.as_json:
        terminal.json_line(event)
    else:
        line = f"{event['actor']:<12} {event['action']:<18} {event['subject']:<10}"
        terminal.say(f"{formats.local_time(event['at'])} {line} {_detail(event)}")


def _row(event: EventView, now: float) -> Sequence[str]:
    return (formats.ago(event["at"], now), event["actor"], event["action"], event["subject"], _detail(event))


def _detail(event: EventView) -> str:
    shown = []
    for key, value in event["detail"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown.append(f"{key}={text}")
    return " ".join(shown)
