"""`corral app` and `corral open`: web programs in jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, YesOption, command
from corral.cli.workbenches.workbenches import has_display
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import AppView

app = typer.Typer(help="Apps: web programs in jobs, such as TensorBoard.", no_args_is_help=True)
top = typer.Typer()

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's name or id.")]
GroupOption = Annotated[str | None, typer.Option(metavar="GROUP", help="The members of this group.")]
#: How long a command waits until an app is ready.
READY_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


@command(app, "ls", examples=["corral app ls", "corral app ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the apps of your jobs, and those that others share with your group."""
    with terminal.client() as client:
        found = list(client.apps.list())
    terminal.table(
        ("JOB", "NAME~", "USER?", "STATE!", "APP~", "READY", "SHARED~?", "ADDRESS~"),
        found,
        lambda view: (
            view["job_id"],
            view["name"],
            view["user"],
            view["state"],
            view["title"],
            "yes" if view["ready"] else "no",
            formats.listed([f"{share['kind']} {share['name']}" for share in view["shares"]]),
            view["address"],
        ),
        empty="No apps. Start one: corral submit --app tensorboard",
    )


@command(app, "known", examples=["corral app known"])
def known(terminal: Terminal) -> None:
    """List the programs that `corral submit --app` starts."""
    with terminal.client() as client:
        found = client.apps.known()
    terminal.table(
        ("NAME", "TITLE~", "PROGRAM~", "SOCKET"),
        found,
        lambda view: (view["name"], view["title"], view["command"][0], "yes" if view["socket"] else "no"),
        empty="None.",
    )


@command(app, "show", examples=["corral app show board"])
def show(terminal: Terminal, job: JobArgument) -> None:
    """Show the app of a job, with its shares."""
    with terminal.client() as client:
        view = client.apps.get(job)
    lines = [
        ("Job", f"{view['name']} ({view['job_id']})"),
        ("App", view["title"]),
        ("State", f"{view['state']}, {'ready' if view['ready'] else 'not ready'}"),
        ("Address", view["address"]),
        *(
            ("Shared", f"{share['kind']} {share['name']} until {share['expires_at'] or 'removed'}")
            for share in view["shares"]
        ),
    ]
    terminal.answer(view, "\n".join(f"{label + ':':<9} {value}" for label, value in lines))


@command(
    app,
    "share",
    examples=["corral app share board --group vision", "corral app share board --link --for 2h"],
)
def share(
    terminal: Terminal,
    job: JobArgument,
    group: GroupOption = None,
    link: Annotated[bool, typer.Option("--link", help="Make a link for every user who has it and signs in.")] = False,
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="How long; a link lasts 1d unless you say so.")
    ] = None,
) -> None:
    """Let other users open the app of your job."""
    if (group is None) != link:
        raise WrongUsage("share with a group or by a link", hint="Give --group GROUP, or --link.")
    with terminal.client() as client:
        view = client.apps.share(job, group=group, lasts=lasts)
    until = f" until {view['expires_at']}" if view["expires_at"] else ""
    shown = f"{view['address']}\nLink {view['name']} works{until}." if link else f"Shared with group {group}{until}."
    terminal.answer(view, shown)


@command(
    app, "unshare", examples=["corral app unshare board --group vision", "corral app unshare board --link 5f3a91c2"]
)
def unshare(
    terminal: Terminal,
    job: JobArgument,
    group: GroupOption = None,
    link: Annotated[str | None, typer.Option(metavar="LINK", help="The id of a link, from `corral app show`.")] = None,
    yes: YesOption = False,
) -> None:
    """End a share; users who are connected lose access within seconds."""
    if (group is None) == (link is None):
        raise WrongUsage("which share?", hint="Give --group GROUP, or --link LINK.")
    kind, name = ("group", group) if group is not None else ("link", link)
    terminal.confirm(f"End the share with {kind} {name}?", assume_yes=yes)
    with terminal.client() as client:
        client.apps.unshare(job, kind, str(name))
    terminal.answer({"job": job, "kind": kind, "name": name, "deleted": True}, f"Ended the share with {kind} {name}")


@command(top, "open", section=Section.DAILY, examples=["corral open board"])
def open_app(
    terminal: Terminal,
    job: JobArgument,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it where there is a display.")] = True,
) -> None:
    """Print the address of a job's app, and open it where there is a browser.

    The address leads to the console, which redirects to the app's own origin after the sign-in.
    """
    with terminal.client() as client:
        view = _ready(terminal, client, job)
    terminal.answer(view, view["address"])
    if browser and not terminal.as_json and has_display():
        typer.launch(view["address"])


def _ready(terminal: Terminal, client: Client, job: str) -> AppView:
    """Wait until the app accepts connections; raises if that will not happen soon."""
    deadline, seen = time.monotonic() + READY_SECONDS, ""
    while True:
        view = client.apps.get(job)
        if view["ready"] and view["state"] == "running":
            return view
        if view["state"] not in ("queued", "starting", "running") or time.monotonic() > deadline:
            raise ClientError(
                f"the app of {view['name']} does not answer: the job is {view['state']}. "
                f"See corral logs {view['job_id']}"
            )
        if view["state"] != seen:
            seen = view["state"]
            terminal.note(f"Job {view['name']} is {seen} …")
        time.sleep(_PAUSE_SECONDS)
