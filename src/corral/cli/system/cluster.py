"""`corral cluster`: the parts of the platform and their health, and the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command
from corral.client.http.errors import NotFound

if TYPE_CHECKING:
    from corral.client.views import ClusterView, PartStatusView
    from corral.engines.kubernetes.api.client import ApiClient

app = typer.Typer(help="The health of each part of the platform (operators), and the clusters.")

TITLES = ("PART", "KIND", "CLUSTER?", "NODE?", "STATE!", "SINCE>", "RESTARTS>", "DETAIL~", "LAST ERROR~?")


@default_command(
    app, lists=True, examples=["corral cluster", "corral cluster --failing", "corral cluster log controller"]
)
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
        lambda part: (
            part["name"],
            part["engine"],
            _state(part),
            formats.ago(part["since"], terminal.now()),
            f"{part['nodes_ready']}/{part['nodes']}",
            formats.number(part["gpus"]),
            formats.number(part["gpus_free"]),
            part["detail"],
        ),
        empty="No cluster is configured.",
    )


@command(app, "show", examples=["corral cluster show gpu-cluster-01", "corral cluster show slurm-1 -o json"])
def show(
    terminal: Terminal, name: Annotated[str, typer.Argument(metavar="CLUSTER", help="From `corral cluster ls`.")]
) -> None:
    """Show one cluster with its engine and the daemons that corral uses there (operators)."""
    with terminal.client() as client:
        known = [cluster["name"] for cluster in client.fleet.clusters()]
        if name not in known:
            raise NotFound(404, {"detail": f"there is no cluster {name!r}"})
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


@command(app, "servers", examples=["corral cluster servers", "corral cluster servers -o json"])
def servers(terminal: Terminal) -> None:
    """List the servers over the store: the leader, and those that stand by (operators)."""
    with terminal.client() as client:
        found = client.system.servers()
    terminal.table(
        ("SERVER", "ROLE", "STATE!", "LEADS SINCE>", "BEHIND>", "VERSION", "URL", "DETAIL~?"),
        found["items"],
        lambda part: (
            part["name"],
            part["role"],
            "ok" if part["alive"] else "failed",
            formats.ago(part["leads_since"], terminal.now()) if part["leads_since"] else "-",
            formats.number(part["behind_events"]),
            part["version"],
            part["url"],
            part["detail"],
        ),
        empty="There is no server.",
    )


@command(app, "clean", examples=["corral cluster clean k8s-1", "corral cluster clean k8s-1 --installation 5b1f09ac -y"])
def clean(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="CLUSTER", help="A Kubernetes cluster of the configuration.")],
    installation: Annotated[
        str | None, typer.Option(metavar="ID", help="End and remove everything of this installation.")
    ] = None,
    yes: YesOption = False,
) -> None:
    """List what installations of corral have left in a Kubernetes cluster, and remove what one has left.

    Runs on the server's machine, with the server's configuration. A server that runs removes what its jobs leave by
    itself: this is for an installation that is gone.
    """
    from corral.control.ports import EngineUnavailable
    from corral.engines.kubernetes import leftovers
    from corral.engines.kubernetes.api.client import ApiError, ApiUnavailable
    from corral.engines.kubernetes.api.kubeconfig import KubeconfigError

    try:
        api, namespaces = _kubernetes_api(name)
        found = leftovers.installations(api, namespaces)
        if installation is not None and installation in found:
            counts = _counted(found[installation])
            terminal.confirm(f"End and remove {counts} of installation {installation} in {name}?", assume_yes=yes)
            removed = leftovers.remove(api, namespaces, installation)
            text = f"Removed of {installation}: {_counted(removed)}."
            terminal.answer({"installation": installation, **removed}, text)
            return
        withheld = leftovers.withheld_nodes(api)
    except (KubeconfigError, ApiError, ApiUnavailable, EngineUnavailable) as error:
        raise WrongUsage(f"{name}: {error}") from error
    if installation is not None:
        raise WrongUsage(f"{name} has nothing of an installation {installation!r}")
    terminal.table(
        ("INSTALLATION", "PODS>", "SECRETS>", "CLAIMS>"),
        [{"installation": installation, **found[installation]} for installation in sorted(found)],
        lambda row: (
            row["installation"],
            *(str(row.get(kind, 0)) for kind in ("pods", "secrets", "resourceclaims")),
        ),
        empty="No installation has left anything there.",
    )
    if withheld and not terminal.as_json:
        typer.echo(f"Cordoned by corral: {formats.listed(withheld)}. `kubectl uncordon NODE` releases one.")


def _counted(kinds: Mapping[str, int]) -> str:
    return ", ".join(formats.count(number, kind.removesuffix("s")) for kind, number in sorted(kinds.items()))


def _kubernetes_api(name: str) -> tuple[ApiClient, tuple[str, ...]]:
    """Access to a cluster of the configuration, and the namespaces of its jobs. Raises KubeconfigError."""
    from corral.engines.kubernetes.api.client import ApiClient
    from corral.engines.kubernetes.factory import access_of, namespace_of, rules_of
    from corral.server.settings.settings_sources import load_settings

    clusters = {
        cluster.name: cluster.kubernetes for cluster in load_settings().cluster if cluster.engine == "kubernetes"
    }
    if name not in clusters:
        hint = f"The Kubernetes clusters are: {formats.listed(list(clusters)) or 'none'}."
        raise WrongUsage(f"{name!r} is not a Kubernetes cluster of the configuration", hint=hint)
    access = access_of(clusters[name])
    return ApiClient(access), rules_of(clusters[name], namespace_of(clusters[name], access), 0).namespaces


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


def _state(part: PartStatusView | ClusterView) -> str:
    return "ok" if part["healthy"] else "failed"
