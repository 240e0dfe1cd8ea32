"""`corral inbox channels`: where one's inbox is also sent, by mail, to a chat or to a URL."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, delete_named
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command

if TYPE_CHECKING:
    from corral.client.views import InboxChannelView

app = typer.Typer(help="Have your inbox sent by mail, to a chat or to a URL.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A channel's name, from `corral inbox channels`.")]
KindsOption = Annotated[
    list[str] | None,
    typer.Option("--send", metavar="KIND", help="Send only items of this kind; repeatable. `--send all` sends all."),
]


@default_command(app, examples=["corral inbox channels", "corral inbox channels create phone --mail ann@example.org"])
def channels(terminal: Terminal) -> None:
    """Show where your inbox is also sent; with a command, manage it."""
    with terminal.client() as client:
        found = client.inbox.channels()
    if terminal.as_json:
        terminal.json(found)
        return
    now = terminal.now()
    terminal.table(
        ("NAME", "KIND", "STATE!", "ADDRESS~", "SENDS~", "LAST SENT", "ERROR~?"),
        found["items"],
        lambda view: (
            view["name"],
            view["kind"],
            _state(view),
            view["address"],
            formats.listed(view["kinds"]) if view["kinds"] else "all",
            formats.ago(view["sent_at"], now) if view["sent_at"] is not None else "",
            view["error"],
        ),
        empty=_empty(found["allowed"]),
    )


@command(
    app,
    "create",
    examples=[
        "corral inbox channels create phone --mail ann@example.org --send failed --send preempted",
        'echo "https://hooks.slack.com/services/…" | corral inbox channels create chat --kind slack --url-stdin',
    ],
)
def create(
    terminal: Terminal,
    name: NameArgument,
    mail: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Send mail to this address, which gets a code first.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="The receiver of a URL: webhook, slack (also Mattermost), discord or teams.")
    ] = None,
    url_stdin: Annotated[
        bool, typer.Option("--url-stdin", help="Read the URL from a line of stdin; else you are asked for it.")
    ] = False,
    send: KindsOption = None,
) -> None:
    """Send new items of your inbox to an address. A URL contains a secret, so it is never an argument."""
    if (mail is None) == (kind is None):
        raise WrongUsage("give either --mail or --kind", hint="--mail ADDRESS, or --kind slack and the URL on stdin.")
    body: dict[str, Any] = {"name": name, "kinds": _kinds(send)}
    if mail is not None:
        body |= {"kind": "mail", "address": mail}
    else:
        body |= {"kind": kind, "address": _url(terminal, from_stdin=url_stdin)}
    with terminal.client() as client:
        view = client.inbox.create_channel(body)
    if view["confirmed"]:
        terminal.answer(view, f"Created channel {name} to {view['address']}")
        terminal.note(f"Test it: corral inbox channels test {name}")
    else:
        _say_code(terminal, view)


@command(app, "confirm", examples=["corral inbox channels confirm phone 12345678"])
def confirm(
    terminal: Terminal,
    name: NameArgument,
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", help="The code that was mailed; without it, another is mailed."),
    ] = None,
) -> None:
    """Confirm a mail address with the code that was mailed there."""
    with terminal.client() as client:
        if code is None:
            _say_code(terminal, client.inbox.renew_code(name))
            return
        view = client.inbox.confirm_channel(name, code)
    terminal.answer(view, f"Channel {name} sends to {view['address']} from now on")


@command(app, "test", examples=["corral inbox channels test chat"])
def test_channel(terminal: Terminal, name: NameArgument) -> None:
    """Send a test message and show the result."""
    with terminal.client() as client:
        view = client.inbox.test_channel(name)
    failed = f"Channel {name} did not accept it: {view['error']}"
    terminal.answer(view, failed if view["error"] else f"Channel {name} accepted the test message")
    if view["error"]:
        raise typer.Exit(1)


@command(
    app, "edit", examples=["corral inbox channels edit chat --send failed", "corral inbox channels edit chat --off"]
)
def edit(
    terminal: Terminal,
    name: NameArgument,
    send: KindsOption = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Switch the channel on or off.")] = None,
) -> None:
    """Choose what is sent to a channel, or switch it on or off."""
    changes: dict[str, Any] = {}
    if send is not None:
        changes["kinds"] = _kinds(send)
    if on is not None:
        changes["enabled"] = on
    check_changes(changes, "inbox channels edit")
    with terminal.client() as client:
        view = client.inbox.edit_channel(name, changes)
    sends = formats.listed(view["kinds"]) if view["kinds"] else "everything"
    terminal.answer(view, f"Channel {name} is {_state(view)} and sends {sends}")


@command(app, "rm", examples=["corral inbox channels rm chat"])
def rm(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Send nothing to this address any more, and forget it."""
    delete_named(terminal, "channel", name, lambda client: client.inbox.delete_channel(name), yes=yes)


def _say_code(terminal: Terminal, view: InboxChannelView) -> None:
    name = view["name"]
    if view["error"]:
        terminal.answer(view, f"The code could not be mailed to {view['address']}: {view['error']}")
        raise typer.Exit(1)
    terminal.answer(view, f"A code was mailed to {view['address']}")
    terminal.note(f"Type it: corral inbox channels confirm {name} CODE")


def _state(view: InboxChannelView) -> str:
    if not view["confirmed"]:
        return "not confirmed"
    return "on" if view["enabled"] else "off"


def _kinds(given: list[str] | None) -> list[str]:
    return [kind for kind in given or [] if kind != "all"]


def _empty(allowed: Sequence[str]) -> str:
    if not allowed:
        return "No channels, and operators allow none."
    return "No channels: your inbox is only here. Create one: corral inbox channels create --help"


def _url(terminal: Terminal, *, from_stdin: bool) -> str:
    """Asked for or read from stdin: other users of the machine could read the secret in an argument."""
    if from_stdin:
        given = sys.stdin.readline().strip()
    elif terminal.is_interactive:
        given = str(typer.prompt("URL", hide_input=True, err=True)).strip()
    else:
        raise WrongUsage("there is no terminal to ask for the URL", hint="Pipe it in with --url-stdin.")
    if not given:
        raise WrongUsage("the URL is empty", hint="Pipe it in with --url-stdin, or type it when asked.")
    return given
