"""`corral about` and `corral licence`: the server's version, the health of its parts, and its licence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import LicenceView

app = typer.Typer()
licence_app = typer.Typer(help="See the licence; set it (operators).", no_args_is_help=True)


@command(app, "about", section=Section.CLUSTER, examples=["corral about", "corral about -o json"])
def about(terminal: Terminal) -> None:
    """Show the server's version, the health of its parts, and its licence."""
    with terminal.client() as client:
        view = client.system.about()
    # The name of a cluster keeps its capital letters.
    parts = [(f"{part['name'][:1].upper()}{part['name'][1:]}", part["detail"] or "ok") for part in view["parts"]]
    isolation, shares = view.get("isolation"), view.get("gpu_shares")
    terminal.facts(
        view,
        (
            ("Version", view["version"]),
            ("Build", view["build"]),
            ("Running for", formats.duration(view["uptime_seconds"])),
            ("Store", " ".join(str(value) for value in view["store"].values())),
            ("Engines", formats.listed(view["engines"])),
            *parts,
            ("Isolation", isolation["detail"] if isolation is not None else "not reported"),
            ("Shares of GPUs", shares["detail"] if shares is not None else "not reported"),
            ("Licence", view["licence"]["detail"]),
        ),
    )


@command(licence_app, "show", examples=["corral licence show"])
def show_licence(terminal: Terminal) -> None:
    """Show the licence. No function depends on it."""
    with terminal.client() as client:
        _show(terminal, client.system.about()["licence"])


@command(licence_app, "set", examples=["corral licence set corral-licence-1.eyJ…", "corral licence set - < licence"])
def set_licence(
    terminal: Terminal,
    text: Annotated[str, typer.Argument(metavar="TOKEN", help="The licence token, or - for stdin.")],
) -> None:
    """Store a licence token on the server (operators)."""
    given = sys.stdin.read().strip() if text == "-" else text
    with terminal.client() as client:
        _show(terminal, client.system.set_licence(given))


@command(licence_app, "rm", examples=["corral licence rm", "corral licence rm -y"])
def remove_licence(terminal: Terminal, yes: YesOption = False) -> None:
    """Remove the licence token (operators)."""
    terminal.confirm("Remove the licence?", assume_yes=yes)
    with terminal.client() as client:
        client.system.remove_licence()
    terminal.answer({"deleted": True}, "Removed the licence. Everything works without one.")


def _show(terminal: Terminal, view: LicenceView) -> None:
    terminal.answer(view, f"{view['state']}: {view['detail']}")
