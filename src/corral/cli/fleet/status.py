"""`corral status`: the whole installation on one page: totals, nodes and running jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.views import JobView, NodeView, OverviewView

app = typer.Typer()

WIDE_RULE = "=" * 60
RULE = "-" * 40
NO_NODES = "No nodes. What is wrong: corral doctor"


@command(
    app,
    "status",
    section=Section.CLUSTER,
    examples=["corral status", "corral status -o json", "corral status --classic"],
)
def status(
    terminal: Terminal,
    classic: Annotated[bool, typer.Option("--classic", help="The page of a GPU manager script.")] = False,
) -> None:
    """Show nodes, free and allocated GPUs, and running jobs."""
    from corral.client.jobs.jobs import HOLDING_STATES

    with terminal.client() as client:
        overview = client.fleet.overview()
        nodes = list(client.fleet.nodes())
        holding = list(client.jobs.list(states=HOLDING_STATES, sort="id"))
        # users know the job of a task by the task's name
        names = {view["job"]["id"]: view["task"] for view in client.tasks.list()}
    if terminal.as_json:
        terminal.json(_document(overview, nodes, holding, names))
        return
    if classic:
        terminal.say("\n".join(_classic_page(overview, nodes, holding, names)))
    else:
        _show(terminal, overview, nodes, holding, names)


def _show(
    terminal: Terminal,
    overview: OverviewView,
    nodes: list[NodeView],
    holding: list[JobView],
    names: Mapping[str, str],
) -> None:
    """Totals, nodes and jobs that hold GPUs, within 80 columns."""
    active = _active(overview)
    ready = sum(node["state"] == "ready" for node in nodes)
    terminal.facts(
        overview,
        [
            ("GPUs", _gpu_totals(overview)),
            ("Nodes", f"{ready} ready of {formats.count(overview['nodes'], 'node')}"),
            ("Jobs", f"{active} running, {overview['queued']} queued"),
            *(("Attention", text) for text in _troubles(overview)),
        ],
    )
    terminal.say("")
    terminal.table(
        ("NODE~", "STATE!", "FREE>", "GPUS>", "MODEL~?"),
        nodes,
        _node_row,
        empty=NO_NODES,
    )
    if holding:
        now = terminal.now()
        terminal.say("")
        terminal.table(
            ("JOB", "NAME~", "USER", "STATE!", "GPUS>", "RAN>", "ON~"),
            holding,
            lambda job: _job_row(job, names, now),
            empty="",
        )
    hidden = active - len(holding)
    if hidden > 0:
        terminal.say(f"{formats.count(hidden, 'job')} of other users")
    elif not holding:
        terminal.say("\nNothing runs. Submit a job: corral submit --gpus 1 -- python train.py")


def _gpu_totals(overview: OverviewView) -> str:
    reserved = overview.get("gpus_reserved", 0)
    parts = [
        f"{formats.number(overview['gpus_free'])} free of {formats.count(overview['gpus'], 'GPU')}",
        f"{formats.number(overview['gpus_allocated'])} allocated",
    ]
    if reserved:
        parts.append(f"{reserved} reserved and idle")
    if overview["utilization"] is not None:
        parts.append(f"{formats.percent(overview['utilization'])} utilization")
    return ", ".join(parts)


def _node_row(node: NodeView) -> Sequence[str]:
    models = formats.listed(sorted({gpu["model"] for gpu in node["gpus"]}))
    free, total = formats.number(node["gpus_free"]), formats.number(node["gpus_total"])
    return node["id"], node["state"], free, total, models


def _job_row(job: JobView, names: Mapping[str, str], now: float) -> Sequence[str]:
    name = names.get(job["id"], job["name"])
    gpus = formats.number(held_gpus(job))
    ran = formats.between(job["started_at"], None, now)
    return job["id"], name, job["user"], job["state"], gpus, ran, _where(job)


def _classic_page(
    overview: OverviewView, nodes: list[NodeView], holding: list[JobView], names: Mapping[str, str]
) -> list[str]:
    reserved = overview.get("gpus_reserved", 0)
    lines = [
        WIDE_RULE,
        "corral Status",
        WIDE_RULE,
        f"Total Nodes: {overview['nodes']}",
        f"Total GPUs: {overview['gpus']}",
        f"Free GPUs: {formats.number(overview['gpus_free'])}",
        *([f"Reserved GPUs: {reserved} (idle, for the owners of reservations)"] if reserved else []),
        f"Allocated GPUs: {formats.number(overview['gpus_allocated'])}",
        f"Active Tasks: {_active(overview)}",
        f"Queued Tasks: {overview['queued']}",
        f"GPU Utilization: {formats.percent(overview['utilization'])}",
        *(f"Attention: {text}" for text in _troubles(overview)),
        "",
        "Node Details:",
        RULE,
        *(_node_line(node) for node in nodes),
    ]
    if not nodes:
        lines.append(NO_NODES)
    lines += ["", "Task Allocations:", RULE, *(_task_line(job, names) for job in holding)]
    hidden = _active(overview) - len(holding)
    if hidden > 0:
        lines.append(f"{formats.count(hidden, 'task')} of other users")
    elif not holding:
        lines.append("Nothing runs. Submit a job: corral submit --gpus 1 -- python train.py")
    return lines


def _troubles(overview: OverviewView) -> list[str]:
    """Problems for an operator, with the command that shows them."""
    alerts = [f"{count} {severity}" for severity, count in reversed(overview["alerts"].items()) if count]
    counted = [
        (overview["gpus_failed"], "failed: corral gpus"),
        (overview["gpus_suspect"], "suspected of a fault: corral gpus"),
        (overview["gpus_stale"], "without a fresh reading: corral gpus"),
    ]
    found = [f"{formats.count(count, 'GPU')} {text}" for count, text in counted if count]
    return [*found, f"firing alerts, {', '.join(alerts)}: corral alert ls"] if alerts else found


def _active(overview: OverviewView) -> int:
    """The jobs of all users; most users see only the number of other users' jobs."""
    from corral.client.jobs.jobs import HOLDING_STATES

    return sum(overview["jobs"].get(state, 0) for state in HOLDING_STATES)


def _node_line(node: NodeView) -> str:
    free, total = formats.number(node["gpus_free"]), formats.number(node["gpus_total"])
    state = "" if node["state"] == "ready" else f" [{node['state']}]"
    return f"{node['id']}: {free}/{total} free ({formats.number(node['gpus_allocated'])} allocated){state}"


def _task_line(job: JobView, names: Mapping[str, str]) -> str:
    name = names.get(job["id"], job["name"])
    return f"Task {name}: {formats.count(held_gpus(job), 'GPU')} on {_where(job)} ({job['state']})"


def held_gpus(job: JobView) -> float:
    grants = job["allocation"]["grants"] if job["allocation"] else []
    return sum(len(grant["gpus"]) * grant["gpu_share"] for grant in grants)


def _where(job: JobView) -> str:
    return formats.listed([grant["node"] for grant in job["allocation"]["grants"]] if job["allocation"] else [])


def _document(
    overview: OverviewView, nodes: list[NodeView], holding: list[JobView], names: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "total_nodes": overview["nodes"],
        "total_gpus": overview["gpus"],
        "free_gpus": overview["gpus_free"],
        "reserved_gpus": overview.get("gpus_reserved", 0),
        "allocated_gpus": overview["gpus_allocated"],
        "active_tasks": _active(overview),
        "queued_tasks": overview["queued"],
        "utilization": overview["utilization"],
        "suspect_gpus": overview["gpus_suspect"],
        "failed_gpus": overview["gpus_failed"],
        "stale_gpus": overview["gpus_stale"],
        "firing_alerts": overview["alerts"],
        "nodes": [
            {
                "node": node["id"],
                "state": node["state"],
                "total": node["gpus_total"],
                "free": node["gpus_free"],
                "allocated": node["gpus_allocated"],
            }
            for node in nodes
        ],
        "tasks": [
            {
                "task": names.get(job["id"], job["name"]),
                "job": job["id"],
                "user": job["user"],
                "gpus": held_gpus(job),
                "nodes": [grant["node"] for grant in job["allocation"]["grants"]] if job["allocation"] else [],
                "state": job["state"],
            }
            for job in holding
        ],
    }
