"""Changes of a cluster, made of command-line options: for what-if questions and for the shadow policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from corral.cli.terminal.changes import given_fields
from corral.cli.terminal.failures import WrongUsage

EVERY_QUEUE = "*"
NODES_FORM = "+NODESxGPUSxMODEL[:CPUS[:MEMORY]][@POOL], such as +2x8xH100"
_NODES = re.compile(r"\+(\d+)x(\d+)x([^\s:@,]+)(?::(\d+(?:\.\d+)?)(?::([^\s:@,]+))?)?(?:@(\S+))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleOptions:
    """Changed scheduling rules: of what-if questions and of the shadow policy."""

    policy: Annotated[str | None, typer.Option(metavar="NAME", help="The order of waiting jobs.")] = None
    placement: Annotated[str | None, typer.Option(metavar="NAME", help="Which GPUs a job gets.")] = None
    blocking: Annotated[str | None, typer.Option(metavar="strict|backfill", help="Whether smaller jobs may pass.")] = (
        None
    )
    preempt: Annotated[
        bool | None,
        typer.Option("--preempt/--no-preempt", help="Whether jobs at the front preempt running jobs behind them."),
    ] = None
    queue: Annotated[
        str,
        typer.Option("--queue", metavar="NAME", help="Whose policy, placement and blocking change.  [default: all]"),
    ] = EVERY_QUEUE
    guarantee: Annotated[
        list[str] | None,
        typer.Option("--guarantee", metavar="QUEUE:GPUS", help="GPUs guaranteed to a queue; repeatable."),
    ] = None
    weight: Annotated[
        list[str] | None, typer.Option("--weight", metavar="QUEUE:WEIGHT", help="A queue's weight; repeatable.")
    ] = None
    score_memory: Annotated[
        str | None, typer.Option("--score-memory", metavar="DURATION", help="How long past usage counts: 6h, 7d.")
    ] = None
    protected: Annotated[
        int | None,
        typer.Option("--protected", min=0, metavar="N", help="Waiting jobs with a planned start, per line."),
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetOptions:
    """A changed fleet and changed limits: of what-if questions."""

    nodes: Annotated[list[str] | None, typer.Option("--nodes", metavar="+FLEET", help=f"More nodes: {NODES_FORM}.")] = (
        None
    )
    without: Annotated[list[str] | None, typer.Option("--without", metavar="NODE", help="A node less.")] = None
    scale: Annotated[float | None, typer.Option(metavar="X", help="So many times the nodes of every kind.")] = None
    pool: Annotated[list[str] | None, typer.Option("--pool", metavar="NODE:POOL", help="Move a node's GPUs.")] = None
    quota: Annotated[
        list[str] | None, typer.Option("--quota", metavar="USER:GPUS", help="A user's quota; none for no quota.")
    ] = None
    user_limit: Annotated[
        int | None,
        typer.Option("--user-limit", min=0, metavar="GPUS", help="How many GPUs a user may hold; 0 for no limit."),
    ] = None
    any_model: Annotated[bool, typer.Option("--any-model", help="Every job accepts every GPU model.")] = False


def rule_changes(options: RuleOptions) -> dict[str, Any]:
    """The changed rules, as the API names them."""
    fields = {
        "policy": options.policy,
        "placement": options.placement,
        "blocking": options.blocking,
        "preempts": options.preempt,
    }
    queues: dict[str, dict[str, Any]] = {}
    given = given_fields(fields)
    if given:
        queues[options.queue] = given
    for name, gpus in _numbers("--guarantee", options.guarantee, whole=True):
        queues.setdefault(name, {})["guaranteed_gpus"] = gpus
    for name, weight in _numbers("--weight", options.weight):
        queues.setdefault(name, {})["weight"] = weight
    changes: dict[str, Any] = {"queues": queues} if queues else {}
    if options.preempt is not None or options.guarantee:
        changes["preemption"] = {"enabled": options.preempt is not False}
    if options.score_memory is not None:
        changes["score_memory_seconds"] = _duration("--score-memory", options.score_memory)
    if options.protected is not None:
        changes["protected_starts"] = options.protected
    return changes


def fleet_changes(options: FleetOptions) -> dict[str, Any]:
    """The changed fleet and limits, as the API names them."""
    fleet: dict[str, Any] = {}
    if options.scale is not None:
        fleet["scale"] = options.scale
    if options.nodes:
        fleet["add"] = [_added(part.strip()) for text in options.nodes for part in text.split(",")]
    if options.without:
        fleet["remove"] = list(options.without)
    if options.pool:
        fleet["pools"] = dict(_divided("--pool", text) for text in options.pool)
    changes: dict[str, Any] = {"fleet": fleet} if fleet else {}
    if options.quota:
        changes["quotas"] = dict(_numbers("--quota", options.quota, whole=True, none=True))
    if options.user_limit is not None:
        changes["limits"] = {"max_gpus_per_user": options.user_limit}
    if options.any_model:
        changes["any_model"] = True
    return changes


def _numbers(
    option: str, texts: Sequence[str] | None, *, whole: bool = False, none: bool = False
) -> list[tuple[str, Any]]:
    """`NAME:NUMBER` texts; with `none`, the word none means -1."""
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
