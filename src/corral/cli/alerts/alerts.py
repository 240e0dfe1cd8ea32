"""`corral alert`: list and acknowledge alerts, silence them, and manage their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.habits.habit_group import HabitGroup
from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, delete_named, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.client.views import AlertView, RuleView

app = typer.Typer(help="List and acknowledge alerts, and manage their rules.")
rule_app = typer.Typer(help="Manage alert rules (operators).", no_args_is_help=True)
app.add_typer(rule_app, name="rule", cls=HabitGroup)

LIVE = ("pending", "firing")
SEVERITIES = "info, warning or critical"

AlertArgument = Annotated[int, typer.Argument(metavar="ALERT", help="An alert's number, from `corral alert ls`.")]
RuleArgument = Annotated[str, typer.Argument(metavar="RULE", help="A rule's name, from `corral alert rules`.")]


@default_command(app, lists=True, examples=["corral alert", "corral alert ls --all", "corral alert ack 12"])
def alert(terminal: Terminal) -> None:
    """List the alerts that are not over; with a command, manage alerts."""
    _list(terminal, LIVE, (), None, None, 50)


@command(
    app, "ls", examples=["corral alert ls", "corral alert ls --all --limit 200", "corral alert ls --severity critical"]
)
def ls(
    terminal: Terminal,
    all: Annotated[bool, typer.Option("-a", "--all", help="Also alerts that are over.")] = False,
    state: Annotated[list[str] | None, typer.Option(help="pending, firing or resolved; repeatable.")] = None,
    severity: Annotated[list[str] | None, typer.Option(help=f"{SEVERITIES}; repeatable.")] = None,
    rule: Annotated[str | None, typer.Option(metavar="RULE", help="Only of this rule.")] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only about this GPU, node, job or queue.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most N alerts.")] = 50,
) -> None:
    """List alerts, newest first; without options those that are not over."""
    _list(terminal, state or (() if all else LIVE), severity or (), rule, subject, limit)


def _list(
    terminal: Terminal,
    states: Sequence[str],
    severities: Sequence[str],
    rule: str | None,
    subject: str | None,
    limit: int,
) -> None:
    with terminal.client() as client:
        found = list(client.alerts.list(states=states, severities=severities, rule=rule, subject=subject, limit=limit))
    now = terminal.now()
    terminal.table(
        ("#>", "SEVERITY!", "STATE!", "RULE", "SUBJECT", "SINCE", "ACK?", "TEXT~"),
        found,
        lambda view: (
            str(view["id"]),
            view["severity"],
            view["state"],
            view["rule"],
            view["subject"],
            formats.ago(view["fired_at"] or view["pending_since"], now),
            _attention(view),
            view["text"],
        ),
        empty="No alerts." if set(states) != set(LIVE) else "No alert is active. Past alerts: corral alert ls --all",
    )


def _attention(view: AlertView) -> str:
    """The user who acknowledged the alert, or the reason why no notice was sent."""
    if view["acknowledged_by"]:
        return view["acknowledged_by"]
    return "silenced" if view["silenced"] else "folded" if view["folded_into"] else formats.NOTHING


@command(app, "show", examples=["corral alert show 12"])
def show(terminal: Terminal, alert: AlertArgument) -> None:
    """Show one alert."""
    with terminal.client() as client:
        view = client.alerts.get(alert)
    now = terminal.now()
    terminal.facts(
        view,
        [
            ("Alert", f"#{view['id']} {view['rule']} {view['subject']}"),
            ("State", view["state"]),
            ("Severity", view["severity"]),
            ("Text", view["text"]),
            ("Value", f"{_value(view['value'], view['unit'])}, at worst {_value(view['worst'], view['unit'])}"),
            ("Owner", view["owner"] or ""),
            ("Began", formats.ago(view["pending_since"], now)),
            ("Fired", formats.ago(view["fired_at"], now) if view["fired_at"] else ""),
            ("Over", formats.ago(view["resolved_at"], now) if view["resolved_at"] else ""),
            ("Acknowledged by", view["acknowledged_by"] or ""),
            ("Note", view["note"]),
            ("Notices", "none: it is silenced" if view["silenced"] else ""),
            ("Explained by", view["folded_into"] or ""),
        ],
    )


def _value(value: float, unit: str) -> str:
    if len(unit) > 2 and unit.endswith("s"):  # a noun, such as GPUs or jobs
        return formats.count(value, unit[:-1])
    return f"{formats.number(value)} {unit}".strip()


@command(app, "ack", examples=["corral alert ack 12", 'corral alert ack 12 13 --note "fans are ordered"'])
def ack(
    terminal: Terminal,
    alerts: Annotated[list[int], typer.Argument(metavar="ALERT", help="Numbers from `corral alert ls`.")],
    note: Annotated[str, typer.Option(help="What you do about the alert.")] = "",
) -> None:
    """Acknowledge alerts: you take care of them (operators)."""
    with terminal.client() as client:
        done = [client.alerts.acknowledge(number, note) for number in alerts]
    if terminal.as_json:
        terminal.json({"items": done})
    for view in done:
        terminal.say(f"#{view['id']} {view['rule']} {view['subject']}: acknowledged by {view['acknowledged_by']}")


@command(
    app,
    "silence",
    examples=[
        'corral alert silence --subject "gpu-03*" --time 4h --reason "new fans"',
        "corral alert silence --rule queue-length --time 2d",
    ],
)
def silence(
    terminal: Terminal,
    time: Annotated[str, typer.Option(metavar="DURATION", help="For how long, such as 2h.")],
    rule: Annotated[str, typer.Option(metavar="PATTERN", help="Rules; * and ? are wildcards.")] = "*",
    subject: Annotated[str, typer.Option(metavar="PATTERN", help="GPUs, nodes, queues, …")] = "*",
    reason: Annotated[str, typer.Option(help="The reason, for other operators.")] = "",
) -> None:
    """Send no notices of some alerts for a while (operators). Alerts that still fire afterwards are sent then."""
    with terminal.client() as client:
        view = client.alerts.silence({"rule": rule, "subject": subject, "duration": time, "reason": reason})
    terminal.answer(
        view, f"Silence {view['id']} until {view['ends_at']}. End it sooner: corral alert unsilence {view['id']}"
    )


@command(app, "unsilence", examples=["corral alert unsilence 3f2a91c0"])
def unsilence(
    terminal: Terminal,
    silence: Annotated[str, typer.Argument(metavar="SILENCE", help="An id from `corral alert silences`.")],
) -> None:
    """End a silence now (operators)."""
    with terminal.client() as client:
        client.alerts.unsilence(silence)
    terminal.answer({"id": silence, "deleted": True}, f"Silence {silence} is over")


@command(app, "silences", examples=["corral alert silences"])
def silences(terminal: Terminal) -> None:
    """List the silences that are not over (operators)."""
    with terminal.client() as client:
        found = list(client.alerts.silences())
    now = terminal.now()
    terminal.table(
        ("ID", "RULE", "SUBJECT", "ENDS", "BY", "REASON~"),
        found,
        lambda view: (
            view["id"],
            view["rule"],
            view["subject"],
            formats.ago(view["ends_at"], now),
            view["created_by"],
            view["reason"],
        ),
        empty="No silences.",
    )


@command(app, "rules", examples=["corral alert rules", "corral alert rules -o json"])
def rules(terminal: Terminal) -> None:
    """List the alert rules (operators)."""
    with terminal.client() as client:
        found = list(client.alerts.rules())
    terminal.table(
        ("RULE", "STATE", "SEVERITY!", "WHEN~", "FOR", "ACTIONS~?", "CHANNELS~?"),
        found,
        lambda view: (
            view["name"],
            "on" if view["enabled"] else "off",
            view["severity"],
            _condition(view),
            formats.duration(view["for_seconds"]) if view["for_seconds"] else "at once",
            formats.listed(view["actions"]),
            formats.listed(view["channels"]) if view["channels"] else "all",
        ),
        empty="No rules.",
    )


def _condition(view: RuleView) -> str:
    comparison = view["comparison"].replace("-", " ")
    about = f" ({formats.listed(view['subjects'])})" if view["subjects"] else ""
    return f"{view['signal']} {comparison} {_value(view['threshold'], view['unit'])}{about}"


@command(app, "signals", examples=["corral alert signals"])
def signals(terminal: Terminal) -> None:
    """List the signals that rules can watch (operators)."""
    with terminal.client() as client:
        found = client.alerts.signals()
    terminal.table(
        ("SIGNAL", "ABOUT A", "UNIT", "DESCRIPTION~"),
        found,
        lambda view: (view["name"], view["scope"], view["unit"] or formats.NOTHING, view["description"]),
        empty="No signals.",
    )


# ------------------------------------------------------------------------------------------------ rules

Above = Annotated[float | None, typer.Option(metavar="N", help="Fire when the value is above this.")]
Below = Annotated[float | None, typer.Option(metavar="N", help="Fire when the value is below this.")]
AtLeast = Annotated[float | None, typer.Option(metavar="N", help="Fire when the value is this or more.")]
AtMost = Annotated[float | None, typer.Option(metavar="N", help="Fire when the value is this or less.")]
For = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="Fire after the condition held this long, such as 2m.")
]
Clear = Annotated[
    str | None, typer.Option("--clear", metavar="DURATION", help="Resolve after the condition was false this long.")
]
SeverityOption = Annotated[str | None, typer.Option(help=f"{SEVERITIES}.")]
Subjects = Annotated[
    list[str] | None,
    typer.Option("--subject", metavar="PATTERN", help="Only these subjects; * and ? are wildcards; repeatable."),
]
ChannelsOption = Annotated[
    list[str] | None, typer.Option("--channel", metavar="NAME", help="Send only to these channels; repeatable.")
]
Actions = Annotated[
    list[str] | None,
    typer.Option("--action", help="cordon-node, mark-gpu, stop-job or requeue-job; repeatable."),
]
Resolved = Annotated[
    bool | None, typer.Option("--tell-resolved/--no-tell-resolved", help="Also send a notice when it is over.")
]
Description = Annotated[str | None, typer.Option(help="What the rule means, for other operators.")]


@command(rule_app, "show", examples=["corral alert rule show gpu-temperature"])
def show_rule(terminal: Terminal, name: RuleArgument) -> None:
    """Show one rule."""
    with terminal.client() as client:
        view = client.alerts.rule(name)
    terminal.facts(
        view,
        [
            ("Rule", view["name"] + (" (built in)" if view["builtin"] else "")),
            ("Description", view["description"]),
            ("State", "on" if view["enabled"] else "off"),
            ("When", _condition(view)),
            ("For", formats.duration(view["for_seconds"])),
            ("Over after", formats.duration(view["clear_seconds"])),
            ("Severity", view["severity"]),
            ("Channels", formats.listed(view["channels"]) if view["channels"] else "all"),
            ("Notice at the end", "yes" if view["notify_resolved"] else "no"),
            ("Actions", formats.listed(view["actions"]) if view["actions"] else "none"),
        ],
    )


@command(
    rule_app,
    "create",
    examples=[
        "corral alert rule create a10-hot --signal gpu-temperature --above 75 --for 5m --subject 'a10-*'",
        "corral alert rule create hung --signal gpu-idle --at-least 60 --action requeue-job --severity critical",
    ],
)
def create_rule(
    terminal: Terminal,
    name: RuleArgument,
    signal: Annotated[str, typer.Option(help="The signal to watch, from `corral alert signals`.")],
    above: Above = None,
    below: Below = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    for_: For = None,
    clear: Clear = None,
    severity: SeverityOption = None,
    subject: Subjects = None,
    channel: ChannelsOption = None,
    action: Actions = None,
    tell_resolved: Resolved = None,
    description: Description = None,
) -> None:
    """Create a rule."""
    threshold = _threshold(above, below, at_least, at_most)
    if not threshold:
        raise WrongUsage("give one of --above, --below, --at-least and --at-most")
    body = {"name": name, "signal": signal, **threshold}
    body |= _given(for_, clear, severity, subject, channel, action, tell_resolved, description)
    with terminal.client() as client:
        view = client.alerts.create_rule(body)
    terminal.answer(view, f"Created rule {view['name']}: {_condition(view)}")


@command(
    rule_app,
    "edit",
    examples=[
        "corral alert rule edit gpu-temperature --above 80",
        "corral alert rule edit gpu-utilization --on",
        "corral alert rule edit gpu-failed --action cordon-node --channel pager",
    ],
)
def edit_rule(
    terminal: Terminal,
    name: RuleArgument,
    above: Above = None,
    below: Below = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    for_: For = None,
    clear: Clear = None,
    severity: SeverityOption = None,
    subject: Subjects = None,
    all_subjects: Annotated[bool, typer.Option("--all-subjects", help="Watch all subjects again.")] = False,
    channel: ChannelsOption = None,
    all_channels: Annotated[bool, typer.Option("--all-channels", help="Send to all channels.")] = False,
    action: Actions = None,
    no_actions: Annotated[bool, typer.Option("--no-actions", help="Only send notices.")] = False,
    tell_resolved: Resolved = None,
    description: Description = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Switch the rule on or off.")] = None,
) -> None:
    """Change a rule. Options that are not given stay as they are."""
    changes: dict[str, Any] = _threshold(above, below, at_least, at_most)
    changes |= _given(
        for_,
        clear,
        severity,
        [] if all_subjects else subject,
        [] if all_channels else channel,
        [] if no_actions else action,
        tell_resolved,
        description,
    )
    if on is not None:
        changes["enabled"] = on
    check_changes(changes, "alert rule edit")
    with terminal.client() as client:
        view = client.alerts.edit_rule(name, changes)
    terminal.answer(view, f"{view['name']} is {'on' if view['enabled'] else 'off'}: {_condition(view)}")


@command(rule_app, "reset", examples=["corral alert rule reset gpu-temperature"])
def reset_rule(terminal: Terminal, name: RuleArgument) -> None:
    """Reset a built-in rule to the settings."""
    with terminal.client() as client:
        view = client.alerts.reset_rule(name)
    terminal.answer(view, f"{view['name']} is {'on' if view['enabled'] else 'off'}: {_condition(view)}")


@command(rule_app, "rm", examples=["corral alert rule rm a10-hot"])
def delete_rule(terminal: Terminal, name: RuleArgument, yes: YesOption = False) -> None:
    """Delete a rule; its alerts end. Built-in rules can be switched off instead."""
    delete_named(terminal, "alert rule", name, lambda client: client.alerts.delete_rule(name), yes=yes)


def _threshold(
    above: float | None, below: float | None, at_least: float | None, at_most: float | None
) -> dict[str, Any]:
    options = {"above": above, "below": below, "at-least": at_least, "at-most": at_most}
    given = [(comparison, value) for comparison, value in options.items() if value is not None]
    if len(given) > 1:
        raise WrongUsage("give only one of --above, --below, --at-least and --at-most")
    return {"comparison": given[0][0], "threshold": given[0][1]} if given else {}


def _given(
    for_: str | None,
    clear: str | None,
    severity: str | None,
    subject: list[str] | None,
    channel: list[str] | None,
    action: list[str] | None,
    tell_resolved: bool | None,
    description: str | None,
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "for_seconds": for_,
        "clear_seconds": clear,
        "severity": severity,
        "subjects": subject,
        "channels": channel,
        "actions": action,
        "notify_resolved": tell_resolved,
        "description": description,
    }
    return given_fields(values)
