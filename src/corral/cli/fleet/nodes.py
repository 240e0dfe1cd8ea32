"""`corral nodes` and `corral gpus`: list nodes and GPUs, and manage them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.fleet.drain_preview import show_preview
from corral.cli.terminal import completion, formats
from corral.cli.terminal.moments import coming_moment
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command

if TYPE_CHECKING:
    from corral.client.views import GpuView, HolderView, NodeView, ReadingView

nodes_app = typer.Typer(help="List nodes; cordon, drain, uncordon and remove them.")
gpus_app = typer.Typer(help="List GPUs with readings and health; test, mark and reset them.")

GpuArgument = Annotated[str, typer.Argument(metavar="GPU", help="A GPU's id, from `corral gpus`.")]
NodesArgument = Annotated[
    list[str], typer.Argument(metavar="NODE", help="Names of nodes.", autocompletion=completion.node_names)
]
TAKEN = "taken by others"
NO_NODES = "No nodes. What is wrong: corral doctor"
NO_GPUS = "No GPUs here. Virtual ones to try things out: corral up --virtual-gpus 8xA100-80G"


@default_command(nodes_app, lists=True, examples=["corral nodes", "corral nodes -o json", "corral nodes drain gpu-03"])
def nodes(terminal: Terminal) -> None:
    """List the nodes; with a command, manage them."""
    _list_nodes(terminal)


@command(nodes_app, "ls", examples=["corral nodes ls"])
def list_nodes(terminal: Terminal) -> None:
    """List the nodes."""
    _list_nodes(terminal)


def _list_nodes(terminal: Terminal) -> None:
    with terminal.client() as client:
        found = list(client.fleet.nodes())
    terminal.table(
        (
            *("NODE", "CLUSTER?", "STATE!", "FREE>", "TAKEN>?", "GPUS>", "MODEL", "CPUS>?", "MEMORY>?", "LOAD>"),
            *("LABELS~?", "REASON~?", "JOBS~"),
        ),
        found,
        _node_row,
        empty=NO_NODES,
    )


def _node_row(node: NodeView) -> Sequence[str]:
    return (
        node["id"],
        node["cluster"],
        node["state"],
        formats.number(node["gpus_free"]),
        formats.number(node["taken"]["gpus"]) if "taken" in node else formats.NOTHING,
        formats.number(node["gpus_total"]),
        formats.listed(sorted({gpu["model"] for gpu in node["gpus"]})),
        formats.number(node["cpus"]),
        formats.size(node["memory_bytes"]),
        formats.percent(node["load"]),
        formats.listed([f"{key}={value}" for key, value in sorted(node["labels"].items())]),
        node.get("reason", ""),
        _holders(node["jobs"]),
    )


def _holders(jobs: Sequence[HolderView]) -> str:
    return formats.listed([f"{job['id']} ({job['user']})" if job["id"] else f"({job['user']})" for job in jobs])


@command(nodes_app, "show", examples=["corral nodes show gpu-03", "corral nodes show gpu-03 -o json"])
def show_node(
    terminal: Terminal,
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="A node's name, from `corral nodes`.", autocompletion=completion.node_names
        ),
    ],
) -> None:
    """Show one node with its GPUs and jobs."""
    with terminal.client() as client:
        view = client.fleet.node(node)
        held = [gpu for gpu in client.fleet.gpus() if gpu["node"] == view["id"]] if not terminal.as_json else []
    total = formats.count(view["gpus_total"], "GPU")
    terminal.facts(
        view,
        [
            ("Node", view["id"]),
            ("Cluster", view["cluster"]),
            ("State", view["state"]),
            ("Drain", _drain_text(view)),
            ("Reason", view.get("reason", "")),
            ("GPUs", f"{formats.number(view['gpus_free'])} free of {total}"),
            ("CPUs", f"{formats.number(view['cpus'])}, load {formats.percent(view['load'])}"),
            ("Memory", formats.size(view["memory_bytes"])),
            ("Labels", ", ".join(f"{key}={value}" for key, value in sorted(view["labels"].items()))),
            ("Jobs", _holders(view["jobs"])),
        ],
    )
    if held:
        terminal.say("\nGPUs")
        terminal.table(GPU_TITLES, held, _gpu_row, empty="")


def _drain_text(node: NodeView) -> str:
    drain = node.get("drain")
    if drain is None:
        return ""
    begun = f"by {drain['started_by']}, since {formats.local_time(drain['started_at'])}"
    if drain.get("maintenance"):
        begun += f", for maintenance {drain['maintenance']}"
    if drain["drained_at"] is not None:
        return f"{begun}; empty since {formats.local_time(drain['drained_at'])}"
    empty_by = drain["empty_by"]
    return f"{begun}; " + ("jobs run to their end" if empty_by is None else f"empty by {formats.local_time(empty_by)}")


@command(nodes_app, "cordon", examples=["corral nodes cordon gpu-03"])
def cordon(terminal: Terminal, nodes: NodesArgument) -> None:
    """Start no new jobs on a node; running jobs continue (operators)."""
    _change(terminal, nodes, "cordon")


@command(nodes_app, "uncordon", examples=["corral nodes uncordon gpu-03"])
def uncordon(terminal: Terminal, nodes: NodesArgument) -> None:
    """Use a node again (operators)."""
    _change(terminal, nodes, "uncordon")


@command(
    nodes_app,
    "drain",
    examples=[
        "corral nodes drain gpu-03",
        "corral nodes drain gpu-03 --preview",
        "corral nodes drain gpu-03 --preview --by 18:00",
        "corral nodes drain gpu-03 --by 18:00",
        "corral nodes drain gpu-03 --by now",
    ],
)
def drain(
    terminal: Terminal,
    nodes: NodesArgument,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show which jobs it would displace; nothing changes.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            "--at",
            metavar="WHEN",
            help="Empty by this time: now, 18:00, 2h, or an RFC 3339 time. "
            "Jobs that are left then save and continue elsewhere.",
        ),
    ] = None,
) -> None:
    """Drain a node: no new jobs start; running jobs continue to their end, or until --by (operators)."""
    now = terminal.now()
    moment = None if by is None else formats.rfc3339(now) if by == "now" else coming_moment("--by", by, now)
    if preview:
        show_preview(terminal, nodes, moment)
        return
    changed = []
    with terminal.client() as client:
        for node in nodes:
            changed.append(client.fleet.drain_node(node, moment))
            _say_changed(terminal, changed[-1])
    if terminal.as_json:
        terminal.json({"items": changed})


@command(nodes_app, "rm", examples=["corral nodes rm gpu-03", "corral nodes rm -y gpu-03 gpu-04"])
def rm(
    terminal: Terminal,
    nodes: NodesArgument,
    yes: YesOption = False,
) -> None:
    """Remove nodes that do not come back, with the pools and health states of their GPUs (operators)."""
    terminal.confirm(
        f"Remove {formats.listed(nodes)} with the pools and the health states of the GPUs?", assume_yes=yes
    )
    with terminal.client() as client:
        for node in nodes:
            client.fleet.remove_node(node)
            terminal.say(f"Removed {node}")
    if terminal.as_json:
        terminal.json({"removed": nodes})


def _change(terminal: Terminal, nodes: Sequence[str], action: str) -> None:
    changed = []
    with terminal.client() as client:
        for node in nodes:
            view = client.fleet.change_node(node, action)
            changed.append(view)
            _say_changed(terminal, view)
    if terminal.as_json:
        terminal.json({"items": changed})


def _say_changed(terminal: Terminal, view: NodeView) -> None:
    busy = f"; still there: {_holders(view['jobs'])}" if view["jobs"] else ""
    wanted = view.get("withheld", view["state"])
    later = f", and will be {wanted} when it is back" if view["state"] == "down" else ""
    drain = view.get("drain")
    until = f", empty by {formats.local_time(drain['empty_by'])}" if drain and drain["empty_by"] and busy else ""
    terminal.say(f"{view['id']} is {view['state']}{later}{until}{busy}")


GPU_TITLES = ("GPU~", "NODE?", "#>", "MODEL?", "HEALTH!", "USED>", "UTIL>", "MEMORY>", "TEMP>?", "POWER>?", "JOBS~")


@default_command(
    gpus_app,
    lists=True,
    examples=["corral gpus", "corral gpus -w", "corral gpus -o json", "corral gpus reset-health GPU-1b2c"],
)
def gpus(terminal: Terminal) -> None:
    """List the GPUs with their latest readings; with a command, show, test or mark one."""
    _list_gpus(terminal)


@command(gpus_app, "ls", examples=["corral gpus ls", "corral gpus ls -w --interval 5"])
def list_gpus(terminal: Terminal) -> None:
    """List the GPUs."""
    _list_gpus(terminal)


def _list_gpus(terminal: Terminal) -> None:
    with terminal.client() as client:
        found = list(client.fleet.gpus())
    terminal.table(GPU_TITLES, found, _gpu_row, empty=NO_GPUS)


def _gpu_row(gpu: GpuView) -> Sequence[str]:
    reading = gpu["reading"]
    utilization = memory = temperature = power = formats.NOTHING
    if reading is not None:
        # an old value has a question mark, not only a colour
        old = "?" if reading["stale"] else ""
        utilization = formats.percent(reading["utilization"]) + old
        memory = formats.size(reading["memory_used_bytes"]) + old
        if reading["temperature_celsius"] is not None:
            temperature = f"{formats.number(round(reading['temperature_celsius']))}°C{old}"
        if reading["power_watts"] is not None:
            power = f"{round(reading['power_watts'])} W{old}"
    return (
        gpu["id"],
        gpu["node"],
        str(gpu["index"]),
        gpu["model"],
        gpu["health"],
        formats.percent(gpu["allocated"]),
        utilization,
        memory,
        temperature,
        power,
        TAKEN if gpu.get("taken") and not gpu["jobs"] else _holders(gpu["jobs"]),
    )


@command(gpus_app, "show", examples=["corral gpus show GPU-1b2c", "corral gpus show GPU-1b2c -o json"])
def show_gpu(terminal: Terminal, gpu: GpuArgument) -> None:
    """Show everything about one GPU: its readings, and the evidence of faults."""
    with terminal.client() as client:
        view = client.fleet.gpu(gpu)
    terminal.facts(view, _gpu_facts(view, terminal.now()))
    if terminal.as_json or not (evidence := view.get("evidence", [])):
        return
    terminal.say("\nEvidence")
    for item in reversed(evidence):
        terminal.say(f"  {formats.at_and_ago(item['at'], terminal.now())}  {item['sign']}: {item['text']}")
    advice = [item["advice"] for item in evidence if item["advice"]]
    if view["health"] != "healthy" and advice:
        terminal.say(f"\nWhat to do: {advice[-1]}")


def _gpu_facts(gpu: GpuView, now: float) -> list[tuple[str, str]]:
    since = gpu.get("health_since")
    facts = [
        ("Id", gpu["id"]),
        ("Node", f"{gpu['node']}, GPU {gpu['index']}"),
        ("Model", f"{gpu['model']}, {formats.size(gpu['memory_bytes'])}"),
        ("Links", gpu.get("link_group", "")),
        ("Pool", f"{gpu['pool']}, moves to {after} when free" if (after := gpu.get("next_pool")) else gpu["pool"]),
        ("Health", gpu["health"] + (f" since {formats.at_and_ago(since, now)}" if since else "")),
        (
            "Held",
            f"{formats.percent(gpu['allocated'])}: {_holders(gpu['jobs'])}"
            if gpu["jobs"]
            else TAKEN
            if gpu.get("taken")
            else "no",
        ),
    ]
    reading = gpu["reading"]
    return [*facts, *_reading_facts(reading, now)] if reading is not None else [*facts, ("Read", "never")]


def _reading_facts(reading: ReadingView, now: float) -> list[tuple[str, str]]:
    """The values that the device reports; values that it does not report are left out."""
    corrected, uncorrected = reading.get("ecc_corrected"), reading.get("ecc_uncorrected")
    rows, clock = reading.get("remapped_rows"), reading.get("sm_clock_mhz")
    temperature, power, limit = reading["temperature_celsius"], reading["power_watts"], reading.get("power_limit_watts")
    memory = f"{formats.size(reading['memory_used_bytes'])} of {formats.size(reading['memory_total_bytes'])}"
    failed = "; one could not be remapped" if reading.get("remap_failed") else ""
    return [
        ("Read", formats.at_and_ago(reading["at"], now) + (", stale" if reading["stale"] else "")),
        ("Lost", "it does not respond" if reading.get("lost") else ""),
        ("In use", formats.percent(reading["utilization"]) if reading["utilization"] is not None else ""),
        ("Memory", memory if reading["memory_used_bytes"] is not None else ""),
        ("Temperature", f"{temperature:.0f} °C" if temperature is not None else ""),
        ("Power", f"{power:.0f} W" + (f" of {limit:.0f} W" if limit else "") if power is not None else ""),
        ("Clock", f"{clock:.0f} MHz" if clock is not None else ""),
        ("Throttled by", ", ".join(reading.get("throttle_reasons", []))),
        (
            "Memory errors",
            f"{uncorrected} not corrected, {corrected or 0} corrected" if uncorrected is not None else "",
        ),
        ("Remapped rows", f"{rows}{failed}" if rows is not None else ""),
        ("Processes", str(reading["processes"]) if reading.get("processes") else ""),
    ]


@command(gpus_app, "reset-health", examples=["corral gpus reset-health GPU-1b2c"])
def reset_health(terminal: Terminal, gpu: GpuArgument) -> None:
    """Mark a suspect or failed GPU as healthy after a repair (operators)."""
    with terminal.client() as client:
        view = client.fleet.reset_gpu_health(gpu)
    terminal.answer(view, f"{view['id']} is {view['health']}")


@command(gpus_app, "self-test", examples=["corral gpus self-test GPU-1b2c"])
def self_test(terminal: Terminal, gpu: GpuArgument) -> None:
    """Run a self-test of a free GPU: it is healthy again if it passes (operators). Exit code 1 if it fails."""
    if terminal.is_interactive and not terminal.as_json:
        terminal.note("Testing; this can take a minute ...")
    with terminal.client() as client:
        view = client.fleet.self_test_gpu(gpu)
    if view["health"] == "healthy":
        terminal.answer(view, f"{view['id']} has passed and is healthy")
        return
    found = view.get("evidence", [])
    terminal.answer(view, f"{view['id']} is {view['health']}: {found[-1]['text'] if found else 'it did not pass'}")
    raise typer.Exit(1)


@command(
    gpus_app,
    "mark",
    examples=[
        'corral gpus mark GPU-1b2c suspect --reason "odd noise"',
        'corral gpus mark GPU-1b2c failed --reason "goes back to the maker"',
    ],
)
def mark(
    terminal: Terminal,
    gpu: GpuArgument,
    health: Annotated[
        str, typer.Argument(metavar="HEALTH", help="suspect: no new jobs. failed: its jobs are also moved away.")
    ],
    reason: Annotated[str, typer.Option(help="The reason, which is shown with the GPU.")],
) -> None:
    """Mark a GPU as suspect or failed (operators)."""
    with terminal.client() as client:
        view = client.fleet.mark_gpu(gpu, health, reason)
    busy = f"; still there: {_holders(view['jobs'])}" if view["jobs"] else ""
    terminal.answer(view, f"{view['id']} is {view['health']}{busy}")
