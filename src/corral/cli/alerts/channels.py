"""`corral channel`: where notices are sent, by mail, chat or webhook (operators)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, delete_named, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import ChannelView, DeliveryView

app = typer.Typer(help="Manage where notices are sent: mail, chats, webhooks (operators).", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A channel's name, from `corral channel ls`.")]
UrlOption = Annotated[
    bool,
    typer.Option("--url-stdin", help="Read the channel's Apprise URL from a line of stdin; else you are asked for it."),
]
SeverityOption = Annotated[
    str | None, typer.Option("--min-severity", help="The lowest severity that is sent: info, warning or critical.")
]
Description = Annotated[str | None, typer.Option(help="Who reads the channel.")]


@command(app, "ls", examples=["corral channel ls"])
def ls(terminal: Terminal) -> None:
    """List the channels."""
    with terminal.client() as client:
        found = list(client.channels.list())
    terminal.table(
        ("NAME", "STATE", "FROM SEVERITY", "ADDRESS~", "DESCRIPTION~?"),
        found,
        lambda view: (view["name"], _state(view), view["min_severity"], view["address"], view["description"]),
        empty="No channels: no notices of alerts are sent. Create one: corral channel create --help",
    )


@command(
    app,
    "create",
    examples=[
        'echo "mailto://user:password@mail.example.org?to=ops@example.org" | corral channel create ops --url-stdin',
        'echo "slack://TOKEN_A/TOKEN_B/TOKEN_C/#gpu" | corral channel create chat --url-stdin --min-severity warning',
    ],
)
def create(
    terminal: Terminal,
    name: NameArgument,
    url_stdin: UrlOption = False,
    min_severity: SeverityOption = None,
    description: Description = None,
) -> None:
    """Create a channel. The URL contains secrets, so it is never an argument."""
    body: dict[str, Any] = {"name": name, "url": _url(terminal, from_stdin=url_stdin)}
    body |= _given(min_severity, description)
    with terminal.client() as client:
        view = client.channels.create(body)
    terminal.answer(view, f"Created channel {view['name']} to {view['address']}")
    terminal.note(f"Test it: corral channel test {view['name']}")


@command(app, "edit", examples=["corral channel edit ops --min-severity critical", "corral channel edit chat --off"])
def edit(
    terminal: Terminal,
    name: NameArgument,
    url_stdin: UrlOption = False,
    min_severity: SeverityOption = None,
    description: Description = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Switch the channel on or off.")] = None,
) -> None:
    """Change a channel. Options that are not given stay as they are, also the URL."""
    changes: dict[str, Any] = _given(min_severity, description)
    if url_stdin:
        changes["url"] = _url(terminal, from_stdin=True)
    if on is not None:
        changes["enabled"] = on
    check_changes(changes, "channel edit")
    with terminal.client() as client:
        view = client.channels.edit(name, changes)
    terminal.answer(view, f"Channel {view['name']} to {view['address']} is {_state(view)}")


@command(app, "rm", examples=["corral channel rm chat"])
def rm(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a channel. Notices that wait to be sent there are dropped."""
    delete_named(terminal, "channel", name, lambda client: client.channels.delete(name), yes=yes)


@command(app, "test", examples=["corral channel test ops"])
def test_channel(terminal: Terminal, name: NameArgument) -> None:
    """Send a test message and show the result."""
    with terminal.client() as client:
        view = client.channels.test(name)
    terminal.answer(view, _outcome(view))
    if view["state"] != "sent":
        raise typer.Exit(1)


def _outcome(view: DeliveryView) -> str:
    match view["state"]:
        case "sent":
            return f"Channel {view['channel']} accepted the test message"
        case "failed":
            return f"Channel {view['channel']} did not accept it: {view['error']}"
        case _:
            return f"Channel {view['channel']} has not answered yet: corral channel deliveries {view['channel']}"


@command(app, "deliveries", examples=["corral channel deliveries", "corral channel deliveries ops --limit 100"])
def deliveries(
    terminal: Terminal,
    channel: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only of this channel.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most N deliveries.")] = 30,
) -> None:
    """List notices that were sent, wait to be sent, or failed."""
    with terminal.client() as client:
        found = list(client.channels.deliveries(channel, limit=limit))
    now = terminal.now()
    terminal.table(
        ("#>", "CHANNEL", "STATE!", "KIND", "WHEN", "TRIES>", "TITLE~", "ERROR~?"),
        found,
        lambda view: (
            str(view["id"]),
            view["channel"],
            view["state"],
            view["kind"],
            formats.ago(view["sent_at"] or view["created_at"], now),
            str(view["attempts"]),
            view["title"],
            view["error"],
        ),
        empty="Nothing was sent yet.",
    )


@command(app, "resend", examples=["corral channel resend 17"])
def resend(
    terminal: Terminal,
    delivery: Annotated[int, typer.Argument(metavar="DELIVERY", help="A number from `corral channel deliveries`.")],
) -> None:
    """Send a failed notice again."""
    with terminal.client() as client:
        view = client.channels.resend(delivery)
    terminal.answer(view, f"Delivery {view['id']} to {view['channel']} is {view['state']}")


def _state(view: ChannelView) -> str:
    return ("on" if view["enabled"] else "off") + (", from the configuration" if view["from_config"] else "")


def _url(terminal: Terminal, *, from_stdin: bool) -> str:
    """Asked for or read from stdin, never an argument: other users of the machine could read the secrets."""
    if from_stdin:
        given = sys.stdin.readline().strip()
    elif terminal.is_interactive:
        given = str(typer.prompt("Apprise URL", hide_input=True, err=True)).strip()
    else:
        raise WrongUsage("there is no terminal to ask for the URL", hint="Pipe it in with --url-stdin.")
    if not given:
        raise WrongUsage("the URL is empty", hint="Pipe it in with --url-stdin, or type it when asked.")
    return given


def _given(min_severity: str | None, description: str | None) -> dict[str, Any]:
    values = {"min_severity": min_severity, "description": description}
    return given_fields(values)
