"""`corral shadow`: a second policy that decides every cycle without effect, and its differences from the live one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.option_groups import group_of, with_options
from corral.cli.terminal.terminal import Terminal, command, default_command
from corral.cli.whatif import scenarios

if TYPE_CHECKING:
    from corral.client.views import ShadowView

app = typer.Typer(help="Try another policy beside the live one, without effect (operators).")

LimitOption = Annotated[int, typer.Option(min=0, max=500, metavar="N", help="At most N differences.")]


@default_command(app, examples=["corral shadow", "corral shadow start --policy shortest", "corral shadow stop"])
def shadow(terminal: Terminal, limit: LimitOption = 20) -> None:
    """Show the decisions in which the shadow policy differs; with a command, start or stop it."""
    _show(terminal, limit)


@command(
    app,
    "start",
    examples=[
        "corral shadow start --policy shortest",
        "corral shadow start --queue research --placement pack --blocking strict",
        "corral shadow start --guarantee research:8 --preempt",
    ],
)
@with_options(scenarios.RuleOptions)
def start(terminal: Terminal, **typed: Any) -> None:
    """Decide every cycle a second time with changed rules, and record the differences. Replaces a running shadow."""
    changes = scenarios.rule_changes(group_of(scenarios.RuleOptions, typed))
    if not changes:
        raise WrongUsage("a shadow policy needs a changed rule", hint="Give one, such as --policy shortest.")
    with terminal.client() as client:
        view = client.shadow.start(changes)
    terminal.answer(view, f"Shadow policy: {view['words']}. Show it: corral shadow show")


@command(app, "show", examples=["corral shadow show", "corral shadow show --limit 100 -o json"])
def show(terminal: Terminal, limit: LimitOption = 20) -> None:
    """Show the decisions in which the shadow policy differs, newest first."""
    _show(terminal, limit)


@command(app, "stop", examples=["corral shadow stop"])
def stop(terminal: Terminal) -> None:
    """Stop the shadow policy. Its differences can be shown until the next one is started."""
    with terminal.client() as client:
        client.shadow.stop()
    terminal.answer({"stopped": True}, "Stopped the shadow")


def _show(terminal: Terminal, limit: int) -> None:
    with terminal.client() as client:
        view = client.shadow.get(limit=limit)
    if terminal.as_json:
        terminal.json(view)
        return
    if view["started_at"] is None:
        terminal.note("No shadow policy was started yet. Start one: corral shadow start --policy shortest")
        return
    _say_counts(terminal, view)
    now = terminal.now()
    rows = [
        (str(item["cycle"]), formats.ago(item["at"], now), text)
        for item in view["differences"]
        for text in item["words"]
    ]
    terminal.table(("CYCLE>", "WHEN", "THE SHADOW~"), rows, lambda row: row, empty="It would have decided the same.")


def _say_counts(terminal: Terminal, view: ShadowView) -> None:
    counts = view["cycles"]
    state = "runs" if view["running"] else "was stopped"
    terminal.say(f"{view['words']}: started by {view['started_by']}, {state}")
    share = f" ({counts['different'] / counts['seen'] * 100:.0f}%)" if counts["seen"] else ""
    text = f"{counts['different']} of {formats.count(counts['seen'], 'cycle')} would have been different{share}"
    if counts["dropped"]:
        text += f"; {counts['dropped']} were not decided, because the shadow policy was behind"
    if counts["failed"]:
        text += f"; its process was restarted {formats.count(counts['failed'], 'time')}"
    terminal.say(text)
