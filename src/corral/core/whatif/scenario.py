"""A scenario: the present cluster with other rules, quotas or nodes.

What-if questions and the shadow policy use scenarios. They are stored and sent as plain data (`scenario_of` reads it);
this module applies them to a snapshot, for the server and for the simulator.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from corral.core.counts import counted, noun_for
from corral.core.model import DEFAULT_POOL, WHOLE, Blocking, Gpu, GpuHealth, JobKind, Node, NodeState, Queue
from corral.core.people.quota import Quota
from corral.core.quantities import format_duration
from corral.core.scheduling.ordering import POLICIES as ORDERINGS
from corral.core.scheduling.placement import POLICIES as PLACEMENTS
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutQuota, PutRules

#: As the name of a queue: all queues.
EVERY_QUEUE = "*"
#: As a quota: no quota.
NO_QUOTA = -1
#: A typing mistake must not fill the memory.
MOST_GPUS = 100_000
LEAST_SCALE, MOST_SCALE = 0.01, 100.0
#: Fields in which 0 means no limit.
_LIMITS = frozenset({"max_gpus", "max_job_gpus", "max_seconds"})


class BadScenario(ValueError):
    """The scenario does not fit the cluster."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        #: the path in the plain data
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedNodes:
    nodes: int
    gpus: int
    model: str
    #: None means as much as the largest node of the cluster has
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    pool: str = DEFAULT_POOL


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetChange:
    scale: float = 1.0
    add: tuple[AddedNodes, ...] = ()
    remove: tuple[str, ...] = ()
    #: the pool that a node's GPUs are moved to
    pools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """The differences from the cluster; an empty scenario is the cluster as it is."""

    #: by the queue's name or `*`: fields of the queue; those of the queue itself override those of `*`
    queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    score_memory_seconds: float | None = None
    #: fields of the preemption rules
    preemption: Mapping[str, Any] = field(default_factory=dict)
    protected_starts: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    #: GPUs that a user may hold with each kind of job
    quotas: Mapping[str, int] = field(default_factory=dict)
    fleet: FleetChange = field(default_factory=FleetChange)
    any_model: bool = False
    #: a question about each ordering policy in turn; `policies_of` has the scenario of each
    all_policies: bool = False

    @property
    def is_empty(self) -> bool:
        return self == Scenario()


def scenario_of(plain: Mapping[str, Any]) -> Scenario:
    """Reads plain data that was validated already."""
    fleet = plain.get("fleet") or {}
    return Scenario(
        queues={name: _known(fields) for name, fields in (plain.get("queues") or {}).items()},
        score_memory_seconds=plain.get("score_memory_seconds"),
        preemption=_known(plain.get("preemption") or {}),
        protected_starts=plain.get("protected_starts"),
        limits=_known(plain.get("limits") or {}),
        quotas=dict(plain.get("quotas") or {}),
        fleet=FleetChange(
            scale=fleet.get("scale") or 1.0,
            add=tuple(_added(nodes) for nodes in fleet.get("add") or ()),
            remove=tuple(fleet.get("remove") or ()),
            pools=dict(fleet.get("pools") or {}),
        ),
        any_model=bool(plain.get("any_model")),
        all_policies=bool(plain.get("all_policies")),
    )


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _added(plain: Mapping[str, Any]) -> AddedNodes:
    cpus = plain.get("cpus")
    return AddedNodes(
        nodes=plain["nodes"],
        gpus=plain["gpus"],
        model=plain["model"],
        cpu_milli=None if cpus is None else round(cpus * WHOLE),
        memory_bytes=plain.get("memory_bytes"),
        pool=plain.get("pool") or DEFAULT_POOL,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyScenario:
    """A scenario in which all queues have one ordering policy."""

    policy: str
    preempts: bool
    scenario: Scenario


def policies_of(scenario: Scenario) -> list[PolicyScenario]:
    """The scenario with each ordering policy in turn; with preemption too, if the order of the policy can preempt."""
    return [
        PolicyScenario(policy=name, preempts=preempts, scenario=_with_policy(scenario, name, preempts=preempts))
        for name, ordering in ORDERINGS.items()
        for preempts in ((False, True) if ordering.rank is not None else (False,))
    ]


def _with_policy(scenario: Scenario, policy: str, *, preempts: bool) -> Scenario:
    every = {**scenario.queues.get(EVERY_QUEUE, {}), "policy": policy, "preempts": preempts}
    preemption = {**scenario.preemption, "enabled": True} if preempts else scenario.preemption
    queues = {**scenario.queues, EVERY_QUEUE: every}
    return replace(scenario, queues=queues, preemption=preemption, all_policies=False)


# ------------------------------------------------------------------------------------------------ applying


def ruled(scenario: Scenario, change: Change) -> Change:
    """A change with the rules of the scenario: only queues and settings differ."""
    match change:
        case PutQueue(queue=queue):
            return PutQueue(queue=_queue(scenario, queue))
        case PutRules() as rules:
            return _rules(scenario, rules)
        case _:
            return change


def cluster_of(scenario: Scenario, cluster: Iterable[Change]) -> list[Change]:
    """The cluster of the scenario, from the changes that make the present cluster. Raises BadScenario."""
    plain = list(cluster)
    check(scenario, plain)
    nodes = [change.node for change in plain if isinstance(change, PutNode)]
    rest = [ruled(scenario, change) for change in plain if not isinstance(change, PutNode)]
    return [
        *(change for change in rest if not _is_replaced(scenario, change)),
        *_quotas(scenario, rest),
        *(PutNode(node=node) for node in _nodes(scenario.fleet, nodes)),
    ]


def _queue(scenario: Scenario, queue: Queue) -> Queue:
    fields = {**scenario.queues.get(EVERY_QUEUE, {}), **scenario.queues.get(queue.name, {})}
    if not fields:
        return queue
    given: dict[str, Any] = {name: None if name in _LIMITS and not value else value for name, value in fields.items()}
    if "blocking" in given:
        given["blocking"] = Blocking(given["blocking"])
    return replace(queue, **given)


def _rules(scenario: Scenario, rules: PutRules) -> PutRules:
    changed = replace(
        rules,
        limits=replace(rules.limits, **{name: value or None for name, value in scenario.limits.items()}),
        preemption=replace(rules.preemption, **scenario.preemption),
    )
    if scenario.score_memory_seconds is not None:
        changed = replace(changed, score_time_constant=scenario.score_memory_seconds)
    if scenario.protected_starts is not None:
        changed = replace(changed, backfill=replace(changed.backfill, protected=scenario.protected_starts))
    return changed


def _is_replaced(scenario: Scenario, change: Change) -> bool:
    return isinstance(change, PutQuota) and change.user in scenario.quotas


def _quotas(scenario: Scenario, cluster: Iterable[Change]) -> list[Change]:
    known = {(change.user, change.kind): change.quota for change in cluster if isinstance(change, PutQuota)}
    return [
        PutQuota(
            user=user,
            kind=kind,
            quota=replace(known.get((user, kind), Quota()), gpu_milli=None if gpus == NO_QUOTA else gpus * WHOLE),
        )
        for user, gpus in scenario.quotas.items()
        for kind in JobKind
    ]


def _nodes(fleet: FleetChange, nodes: list[Node]) -> list[Node]:
    kept = [_in_pool(node, fleet.pools.get(node.id)) for node in nodes if node.id not in fleet.remove]
    kept = _scaled(kept, fleet.scale)
    cpu_milli = max((node.cpu_milli for node in nodes), default=0)
    memory_bytes = max((node.memory_bytes for node in nodes), default=0)
    for number, added in enumerate(fleet.add, start=1):
        for place in range(1, added.nodes + 1):
            name = f"added-{number}-{place}"
            kept.append(
                Node(
                    id=name,
                    cpu_milli=cpu_milli if added.cpu_milli is None else added.cpu_milli,
                    memory_bytes=memory_bytes if added.memory_bytes is None else added.memory_bytes,
                    gpus=tuple(
                        Gpu(id=f"{name}/{index}", index=index, model=added.model, pool=added.pool)
                        for index in range(added.gpus)
                    ),
                )
            )
    return kept


def _in_pool(node: Node, pool: str | None) -> Node:
    return node if pool is None else replace(node, gpus=tuple(replace(gpu, pool=pool) for gpu in node.gpus))


def _scaled(nodes: list[Node], scale: float) -> list[Node]:
    """Multiplies the number of nodes of each shape: the last nodes are removed, or copies are added."""
    if scale == 1.0:
        return nodes
    shapes: dict[tuple[tuple[str, str], ...], list[Node]] = defaultdict(list)
    for node in nodes:
        shapes[tuple((gpu.pool, gpu.model) for gpu in node.gpus)].append(node)
    scaled: list[Node] = []
    for alike in shapes.values():
        wanted = math.floor(len(alike) * scale + 0.5)
        scaled += alike[:wanted]
        scaled += [_copy(alike[place % len(alike)], place) for place in range(len(alike), wanted)]
    return scaled


def _copy(node: Node, number: int) -> Node:
    """A copy of the node that is ready and healthy."""
    name = f"{node.id}-copy-{number}"
    gpus = (replace(gpu, id=f"{name}/{gpu.index}", health=GpuHealth.HEALTHY) for gpu in node.gpus)
    return replace(node, id=name, gpus=tuple(gpus), state=NodeState.READY, withheld=NodeState.READY)


# ------------------------------------------------------------------------------------------------ checking


def check(scenario: Scenario, cluster: Iterable[Change]) -> None:
    """Checks that all names exist and that the fleet has nodes. Raises BadScenario."""
    plain = list(cluster)
    queues = {change.queue.name: change.queue for change in plain if isinstance(change, PutQueue)}
    nodes = {change.node.id: change.node for change in plain if isinstance(change, PutNode)}
    _check_queues(scenario, queues)
    pools = {queue.pool for queue in queues.values()}
    fleet = scenario.fleet
    for node in fleet.remove:
        _check_known("fleet.remove", "node", node, nodes)
    for node, pool in fleet.pools.items():
        _check_known("fleet.pools", "node", node, nodes)
        _check_known("fleet.pools", "pool", pool, pools)
    for added in fleet.add:
        _check_known("fleet.add", "pool", added.pool, pools)
    if not LEAST_SCALE <= fleet.scale <= MOST_SCALE:
        raise BadScenario("fleet.scale", f"the fleet can be scaled by {LEAST_SCALE:g} to {MOST_SCALE:g}")
    gpus = sum(len(node.gpus) for node in nodes.values()) * fleet.scale
    gpus += sum(added.nodes * added.gpus for added in fleet.add)
    if gpus > MOST_GPUS:
        raise BadScenario(
            "fleet", f"that would be {gpus:,.0f} {noun_for(gpus, 'GPU')}: at most {MOST_GPUS:,} can be simulated"
        )
    if nodes and not _nodes(fleet, list(nodes.values())):
        raise BadScenario("fleet", "no node would be left")


def _check_queues(scenario: Scenario, queues: Mapping[str, Queue]) -> None:
    for name, fields in scenario.queues.items():
        place = f"queues.{name}"
        for option in ("policy", "preempts"):
            if scenario.all_policies and option in fields:
                raise BadScenario(f"{place}.{option}", f"all policies are compared: leave out {option}")
        if name != EVERY_QUEUE:
            _check_known(place, "queue", name, queues)
        for setting, known in (("policy", ORDERINGS), ("placement", PLACEMENTS), ("blocking", tuple(Blocking))):
            if setting in fields:
                _check_known(f"{place}.{setting}", setting, fields[setting], known)
    for queue in queues.values():
        changed = _queue(scenario, queue)
        if changed.max_gpus is not None and changed.guaranteed_gpus > changed.max_gpus:
            raise BadScenario(
                f"queues.{queue.name}.guaranteed_gpus",
                f"{counted(changed.guaranteed_gpus, 'GPU')} cannot be guaranteed, because the maximum is "
                f"{changed.max_gpus}",
            )


def _check_known(place: str, what: str, name: str, known: Iterable[str]) -> None:
    there = list(known)
    if name not in there:
        raise BadScenario(place, f"there is no {what} {name!r}; there are: {', '.join(sorted(there)[:20])}")


# ------------------------------------------------------------------------------------------------ description


def describe(scenario: Scenario) -> str:
    """The differences in one line."""
    parts = ["each policy in turn"] if scenario.all_policies else []
    parts += [
        f"{'every queue' if name == EVERY_QUEUE else f'queue {name}'}: {_fields(fields)}"
        for name, fields in scenario.queues.items()
        if fields
    ]
    if scenario.score_memory_seconds is not None:
        parts.append(f"score memory {format_duration(scenario.score_memory_seconds)}")
    if scenario.preemption:
        parts.append(f"preemption: {_fields(scenario.preemption)}")
    if scenario.protected_starts is not None:
        parts.append(f"{scenario.protected_starts} planned starts")
    if scenario.limits:
        parts.append(f"limits: {_fields(scenario.limits)}")
    for user, gpus in scenario.quotas.items():
        parts.append(f"{user}: " + ("no quota" if gpus == NO_QUOTA else f"quota {counted(gpus, 'GPU')}"))
    parts += _fleet_text(scenario.fleet)
    if scenario.any_model:
        parts.append("any GPU model will do")
    return "; ".join(parts) or "as it is"


def _fleet_text(fleet: FleetChange) -> list[str]:
    parts = [f"fleet × {fleet.scale:g}"] if fleet.scale != 1.0 else []
    parts += [f"+{added.nodes}x{added.gpus}x{added.model}" for added in fleet.add]
    if fleet.remove:
        parts.append(f"without {', '.join(fleet.remove)}")
    moved = Counter(fleet.pools.values())
    return [*parts, *(f"{counted(count, 'node')} moved to pool {pool}" for pool, count in moved.items())]


def _fields(fields: Mapping[str, Any]) -> str:
    return ", ".join(_field_text(name, value) for name, value in fields.items())


def _field_text(name: str, value: Any) -> str:
    label = name.replace("_", " ")
    if isinstance(value, bool):
        return label if value else f"not {label}"
    if not value and name.startswith("max_"):
        return f"no {label}"
    return f"{label} {value:g}" if isinstance(value, float) else f"{label} {value}"
