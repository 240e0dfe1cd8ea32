"""`corral nodes` and `corral gpus`: the machines, and what operators do with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli import words
from corral.cli.failures import WrongUsage
from corral.cli.terminal import Terminal, command, default_command
from corral.client.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import GpuView, HolderView, NodeView

nodes_app = typer.Typer(help="See the nodes; take them out of use and back.")
gpus_app = typer.Typer(help="See the GPUs and their readings; clear their health.")

NodesArgument = Annotated[list[str], typer.Argument(metavar="NODE", help="Names of nodes.")]
NO_NODES = "No nodes. What is wrong: corral doctor"
NO_GPUS = "No GPUs here. Virtual ones to try things out: corral up --virtual-gpus 8xA100-80G"


@default_command(nodes_app, examples=["corral nodes", "corral nodes -o json", "corral nodes drain gpu-03"])
def nodes(terminal: Terminal) -> None:
    """List the nodes; with a command, take them out of use and back."""
    _list_nodes(terminal)


@command(nodes_app, "ls", examples=["corral nodes ls"])
def list_nodes(terminal: Terminal) -> None:
    """List the nodes."""
    _list_nodes(terminal)


def _list_nodes(terminal: Terminal) -> None:
    with terminal.client() as client:
        found = list(client.fleet.nodes())
    terminal.table(
        ("NODE", "STATE!", "FREE>", "GPUS>", "MODEL", "CPUS>?", "MEMORY>?", "LOAD>", "LABELS~?", "JOBS~"),
        found,
        _node_row,
        empty=NO_NODES,
    )


def _node_row(node: NodeView) -> Sequence[str]:
    return (
        node["id"],
        node["state"],
        words.number(node["gpus_free"]),
        words.number(node["gpus_total"]),
        words.listed(sorted({gpu["model"] for gpu in node["gpus"]})),
        words.number(node["cpus"]),
        words.size(node["memory_bytes"]),
        words.percent(node["load"]),
        words.listed([f"{key}={value}" for key, value in sorted(node["labels"].items())]),
        _holders(node["jobs"]),
    )


def _holders(jobs: Sequence[HolderView]) -> str:
    return words.listed([f"{job['id']} ({job['user']})" if job["id"] else f"({job['user']})" for job in jobs])


@command(nodes_app, "cordon", examples=["corral nodes cordon gpu-03"])
def cordon(terminal: Terminal, nodes: NodesArgument) -> None:
    """Let nothing new start on a node; what runs goes on (operators)."""
    _change(terminal, nodes, "cordon")


@command(nodes_app, "uncordon", examples=["corral nodes uncordon gpu-03"])
def uncordon(terminal: Terminal, nodes: NodesArgument) -> None:
    """Use a node again (operators)."""
    _change(terminal, nodes, "uncordon")


@command(nodes_app, "drain", examples=["corral nodes drain gpu-03"])
def drain(terminal: Terminal, nodes: NodesArgument) -> None:
    """Let a node empty: nothing new starts, what runs goes on to its end (operators)."""
    _change(terminal, nodes, "drain")


def _change(terminal: Terminal, nodes: Sequence[str], action: str) -> None:
    changed = []
    with terminal.client() as client:
        for node in nodes:
            view = client.fleet.change_node(node, action)
            changed.append(view)
            busy = f"; still there: {_holders(view['jobs'])}" if view["jobs"] else ""
            terminal.say(f"{view['id']} is {view['state']}{busy}")
    if terminal.as_json:
        terminal.json({"items": changed})


Watch = Annotated[bool, typer.Option("-w", "--watch", help="Keep the list on the screen up to date; Ctrl-C ends it.")]
Interval = Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Between updates of --watch.")]
GPU_TITLES = ("GPU~", "NODE?", "#>", "MODEL?", "HEALTH!", "USED>", "UTIL>", "MEMORY>", "TEMP>?", "POWER>?", "JOBS~")


@default_command(
    gpus_app, examples=["corral gpus", "corral gpus -w", "corral gpus -o json", "corral gpus reset-health GPU-1b2c"]
)
def gpus(terminal: Terminal, watch: Watch = False, interval: Interval = 2.0) -> None:
    """List the GPUs with their latest readings; with a command, clear their health."""
    _list_gpus(terminal, watch, interval)


@command(gpus_app, "ls", examples=["corral gpus ls", "corral gpus ls -w --interval 5"])
def list_gpus(terminal: Terminal, watch: Watch = False, interval: Interval = 2.0) -> None:
    """List the GPUs."""
    _list_gpus(terminal, watch, interval)


def _list_gpus(terminal: Terminal, watch: bool, interval: float) -> None:
    with terminal.client() as client:
        if watch:
            _watch_gpus(terminal, client, interval)
            return
        found = list(client.fleet.gpus())
    terminal.table(GPU_TITLES, found, _gpu_row, empty=NO_GPUS)


def _watch_gpus(terminal: Terminal, client: Client, interval: float) -> None:
    if terminal.as_json:
        raise WrongUsage(
            "--watch draws on the screen and has no JSON form", hint="`corral top -o json` gives one frame."
        )
    from rich.console import Group, RenderableType

    from corral.cli import tables

    # Read once before: a server that was never there is an error, one that goes away later is only news.
    found, read_at = list(client.fleet.gpus()), terminal.now()

    def draw() -> RenderableType:
        nonlocal found, read_at
        trouble = ""
        try:
            found, read_at = list(client.fleet.gpus()), terminal.now()
        except ClientError as error:
            trouble = f"AWAY, {words.duration(terminal.now() - read_at)} old: {error.message}"
        drawn = tables.table(tables.columns(*GPU_TITLES), [_gpu_row(gpu) for gpu in found]) if found else NO_GPUS
        return Group(drawn, trouble) if trouble else drawn

    tables.watch(draw, interval)


def _gpu_row(gpu: GpuView) -> Sequence[str]:
    reading = gpu["reading"]
    utilization = memory = temperature = power = words.NOTHING
    if reading is not None:
        # a question mark, not only a colour: the number is old
        old = "?" if reading["stale"] else ""
        utilization = words.percent(reading["utilization"]) + old
        memory = words.size(reading["memory_used_bytes"]) + old
        if reading["temperature_celsius"] is not None:
            temperature = f"{words.number(round(reading['temperature_celsius']))}°C{old}"
        if reading["power_watts"] is not None:
            power = f"{round(reading['power_watts'])} W{old}"
    return (
        gpu["id"],
        gpu["node"],
        str(gpu["index"]),
        gpu["model"],
        gpu["health"],
        words.percent(gpu["allocated"]),
        utilization,
        memory,
        temperature,
        power,
        _holders(gpu["jobs"]),
    )


@command(gpus_app, "reset-health", examples=["corral gpus reset-health GPU-1b2c"])
def reset_health(
    terminal: Terminal, gpu: Annotated[str, typer.Argument(metavar="GPU", help="A GPU's id, from `corral gpus`.")]
) -> None:
    """Take a suspect or failed GPU back into use after it was repaired (operators)."""
    with terminal.client() as client:
        view = client.fleet.reset_gpu_health(gpu)
    terminal.answer(view, f"{view['id']} is {view['health']}")
