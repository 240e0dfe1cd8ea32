"""`corral cluster`: the parts of the platform and their health, and the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, command, default_command

if TYPE_CHECKING:
    from corral.client.views import ClusterView, PartStatusView

app = typer.Typer(help="The health of each part of the platform (operators), and the clusters.")

TITLES = ("PART", "KIND", "CLUSTER?", "NODE?", "STATE!", "SINCE>", "RESTARTS>", "DETAIL~", "LAST ERROR~?")


@default_command(app, examples=["corral cluster", "corral cluster --failing", "corral cluster log controller"])
def status(
    terminal: Terminal,
    failing: Annotated[bool, typer.Option("--failing", help="Only parts that do not work.")] = False,
) -> None:
    """List the parts of the platform: server, store, workers, and the daemons of each cluster (operators)."""
    with terminal.client() as client:
        found = [part for part in client.system.parts() if not (failing and part["healthy"])]
    terminal.table(TITLES, found, lambda part: _row(terminal, part), empty="Every part works.")


@command(app, "ls", examples=["corral cluster ls", "corral cluster ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the clusters."""
    with terminal.client() as client:
        found = list(client.fleet.clusters())
    terminal.table(
        ("CLUSTER", "ENGINE", "STATE!", "SINCE>", "NODES>", "GPUS>", "FREE>", "DETAIL~"),
        found,
        lambda one: (
            one["name"],
            one["engine"],
            _state(one),
            formats.ago(one["since"], terminal.now()),
            f"{one['nodes_ready']}/{one['nodes']}",
            formats.number(one["gpus"]),
            formats.number(one["gpus_free"]),
            one["detail"],
        ),
        empty="No cluster is configured.",
    )


@command(app, "show", examples=["corral cluster show gpu-cluster-01", "corral cluster show slurm-1 -o json"])
def show(
    terminal: Terminal, name: Annotated[str, typer.Argument(metavar="CLUSTER", help="From `corral cluster ls`.")]
) -> None:
    """Show one cluster with its engine and the daemons that corral uses there (operators)."""
    with terminal.client() as client:
        known = [one["name"] for one in client.fleet.clusters()]
        if name not in known:
            raise WrongUsage(f"there is no cluster {name!r}", hint=f"The clusters are: {formats.listed(known)}.")
        found = [part for part in client.system.parts() if part["cluster"] == name]
    terminal.table(TITLES, found, lambda part: _row(terminal, part), empty="This cluster has no parts.")


@command(app, "log", examples=["corral cluster log controller", 'corral cluster log "worker alerting"'])
def log(
    terminal: Terminal,
    part: Annotated[str, typer.Argument(metavar="PART", help="A part's name, from `corral cluster`.")],
) -> None:
    """Show the last lines that a part has logged since the server was started (operators)."""
    with terminal.client() as client:
        text = client.system.part_log(part)
    lines = text.splitlines()
    terminal.answer({"part": part, "lines": lines}, text.rstrip("\n") or f"{part} has logged nothing.")


def _row(terminal: Terminal, part: PartStatusView) -> Sequence[str]:
    return (
        part["name"],
        part["kind"],
        part["cluster"] or "",
        part["node"] or "",
        _state(part),
        formats.ago(part["since"], terminal.now()),
        str(part["restarts"]),
        part["detail"],
        part["last_error"] or "",
    )


def _state(one: PartStatusView | ClusterView) -> str:
    return "ok" if one["healthy"] else "failed"
