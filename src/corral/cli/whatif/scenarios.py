"""What is different about a cluster, from the words of a command line: for what-if questions and the shadow policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from corral.cli.terminal.failures import WrongUsage

EVERY_QUEUE = "*"
NODES_FORM = "+NODESxGPUSxMODEL[:CPUS[:MEMORY]][@POOL], such as +2x8xH100"
_NODES = re.compile(r"\+(\d+)x(\d+)x([^\s:@,]+)(?::(\d+(?:\.\d+)?)(?::([^\s:@,]+))?)?(?:@(\S+))?")

QueueOption = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="Whose policy, placement and blocking change.  [default: all]")
]
PolicyOption = Annotated[str | None, typer.Option(metavar="NAME", help="Who goes first.")]
PlacementOption = Annotated[str | None, typer.Option(metavar="NAME", help="Which GPUs a job gets.")]
BlockingOption = Annotated[str | None, typer.Option(metavar="strict|backfill", help="Whether smaller jobs may pass.")]
PreemptOption = Annotated[
    bool | None, typer.Option("--preempt/--no-preempt", help="Whether those in front take GPUs from those behind.")
]
GuaranteeOption = Annotated[
    list[str] | None, typer.Option("--guarantee", metavar="QUEUE:GPUS", help="GPUs guaranteed to a queue; repeatable.")
]
WeightOption = Annotated[
    list[str] | None, typer.Option("--weight", metavar="QUEUE:WEIGHT", help="A queue's weight; repeatable.")
]
MemoryOption = Annotated[
    str | None, typer.Option("--score-memory", metavar="DURATION", help="How long past usage counts: 6h, 7d.")
]
ProtectedOption = Annotated[
    int | None, typer.Option("--protected", min=0, metavar="N", help="Waiting jobs with a protected start, per line.")
]


def rule_changes(
    *,
    queue: str,
    policy: str | None,
    placement: str | None,
    blocking: str | None,
    preempt: bool | None,
    guarantees: Sequence[str] | None,
    weights: Sequence[str] | None,
    memory: str | None,
    protected: int | None,
) -> dict[str, Any]:
    """The part that the shadow can have, too."""
    fields = {"policy": policy, "placement": placement, "blocking": blocking, "preempts": preempt}
    queues: dict[str, dict[str, Any]] = {}
    given = {name: value for name, value in fields.items() if value is not None}
    if given:
        queues[queue] = given
    for name, gpus in pairs("--guarantee", guarantees, whole=True):
        queues.setdefault(name, {})["guaranteed_gpus"] = gpus
    for name, weight in pairs("--weight", weights):
        queues.setdefault(name, {})["weight"] = weight
    changes: dict[str, Any] = {"queues": queues} if queues else {}
    if preempt is not None or guarantees:
        changes["preemption"] = {"enabled": preempt is not False}
    if memory is not None:
        changes["score_memory_seconds"] = _duration("--score-memory", memory)
    if protected is not None:
        changes["protected_starts"] = protected
    return changes


def fleet_changes(
    nodes: Sequence[str] | None, without: Sequence[str] | None, pools: Sequence[str] | None, scale: float | None
) -> dict[str, Any]:
    fleet: dict[str, Any] = {}
    if scale is not None:
        fleet["scale"] = scale
    if nodes:
        fleet["add"] = [_added(part.strip()) for text in nodes for part in text.split(",")]
    if without:
        fleet["remove"] = list(without)
    if pools:
        fleet["pools"] = dict(_divided("--pool", text) for text in pools)
    return {"fleet": fleet} if fleet else {}


def pairs(
    option: str, texts: Sequence[str] | None, *, whole: bool = False, none: bool = False
) -> list[tuple[str, Any]]:
    """`name:number`; with `none`, the word none means -1."""
    found: list[tuple[str, Any]] = []
    for text in texts or ():
        name, value = _divided(option, text)
        if none and value == "none":
            found.append((name, -1))
            continue
        try:
            found.append((name, int(value) if whole else float(value)))
        except ValueError:
            raise WrongUsage(f"{option}: {value!r} in {text!r} is not a {'whole ' if whole else ''}number") from None
    return found


def _divided(option: str, text: str) -> tuple[str, str]:
    name, colon, value = text.rpartition(":")
    if not colon or not name or not value:
        raise WrongUsage(f"{option}: {text!r} is not NAME:VALUE")
    return name, value


def _added(text: str) -> dict[str, Any]:
    from corral.core.quantities import parse_bytes

    found = _NODES.fullmatch(text)
    if found is None:
        raise WrongUsage(f"--nodes: {text!r} adds no nodes: write {NODES_FORM}")
    nodes: dict[str, Any] = {"nodes": int(found[1]), "gpus": int(found[2]), "model": found[3]}
    if found[4]:
        nodes["cpus"] = float(found[4])
    if found[5]:
        try:
            nodes["memory_bytes"] = parse_bytes(found[5])
        except ValueError as error:
            raise WrongUsage(f"--nodes: {error}") from error
    if found[6]:
        nodes["pool"] = found[6]
    return nodes


def _duration(option: str, text: str) -> float:
    from corral.core.quantities import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise WrongUsage(f"{option}: {error}") from error
