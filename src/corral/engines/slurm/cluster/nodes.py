"""Converts Slurm's nodes to corral's, with the GPUs, CPUs and memory that other jobs hold on them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.core.model import WHOLE, Gpu, Node, NodeState, Taken
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob, SlurmNode

MIB = 1 << 20
PARTITION_LABEL = "slurm.partition"
FEATURE_LABEL = "slurm.feature"
#: States in which a node runs jobs. Only a node that Slurm calls down has lost its jobs: Slurm ends them then.
_UP = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_LOST = frozenset({"DOWN", "FUTURE"})
_DRAINED = frozenset({"DRAIN", "DRAINING", "DRAINED"})
#: Flags of nodes that are reserved.
_RESERVED = frozenset({"MAINT", "MAINTENANCE", "RESERVED"})
#: Flags of nodes that are powered off, or starting: Slurm starts them for a job, and hears nothing from them before
#: that.
_ASLEEP = frozenset({"POWERED_DOWN", "POWERING_UP"})
#: Flags with which a node starts no new job while running jobs continue, and the text that is shown if Slurm has no
#: reason of its own.
_WITHHELD = {
    **dict.fromkeys(sorted(_DRAINED), "drained in Slurm"),
    "FAIL": "about to fail, according to Slurm",
    "MAINT": "in maintenance",
    "MAINTENANCE": "in maintenance",
    "RESERVED": "reserved in Slurm",
    "NOT_RESPONDING": "does not answer Slurm at the moment",
    "INVALID_REG": "has less than Slurm's settings say",
    "POWER_DOWN": "about to be powered down",
    "POWER_DRAIN": "about to be powered down",
    "POWERING_DOWN": "being powered down",
    "REBOOT_ISSUED": "being rebooted",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetRules:
    """The nodes that corral may use, and the names of their GPU models."""

    #: empty means all
    partitions: frozenset[str] = frozenset()
    #: the model of a GPU type, if its name is not the model
    models: Mapping[str, str] = field(default_factory=dict)
    rack_feature_prefix: str = "rack-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Others:
    """The resources that jobs of others hold on a node."""

    gpus: int = 0
    cpus: int = 0
    memory_mib: int = 0
    #: the indexes of these GPUs, as far as Slurm reports them
    gpu_indexes: frozenset[int] = frozenset()


def nodes_seen(
    seen: Iterable[SlurmNode],
    others: Mapping[str, Others],
    named: Mapping[str, frozenset[str]],
    rules: FleetRules,
    reserved: Collection[str] | None = None,
    closed: Mapping[str, str] | None = None,
) -> tuple[Node, ...]:
    """`named` are the GPUs that plans of corral use on each node, so that they are not counted as held by other jobs.
    If corral submits to a reservation, `reserved` are its nodes; `closed` gives the reason why no job can start on a
    node. A node with a plan is included even if it has left the partitions: otherwise it would count as lost, with its
    jobs."""
    wanted = (node for node in seen if _is_in(node, rules) or node.name in named)
    return tuple(
        _node(node, others.get(node.name, Others()), named.get(node.name, frozenset()), rules, reserved, closed or {})
        for node in sorted(wanted, key=lambda node: node.name)
    )


def vanished(seen: Iterable[SlurmNode], known: Mapping[str, SlurmNode], held: Iterable[str]) -> list[SlurmNode]:
    """The last known state of the nodes in `held` that Slurm no longer lists: the state of the jobs shows whether they
    are over.
    """
    listed = {node.name for node in seen}
    gone = sorted(name for name in held if name not in listed and name in known)
    return [replace(known[name], state="UNKNOWN") for name in gone]


def unexplained(seen: Iterable[SlurmNode], jobs: Iterable[SlurmJob]) -> dict[str, int]:
    """GPUs that Slurm counts as used although no job has them: for a moment while a job begins or ends, and longer if a
    crashed controller has lost count. Slurm gives them to no job."""
    held: Counter[str] = Counter()
    for job in jobs:
        if job.holds_nodes:
            held.update({node: job.gpus_on(node) for node in job.nodes})
    return {node.name: more for node in seen if (more := node.used_gpus - held[node.name]) > 0}


def others_use(
    jobs: Iterable[SlurmJob], own: Collection[int], lost: Mapping[str, int] | None = None
) -> dict[str, Others]:
    """The resources that jobs other than corral's hold on each node. Computed from one list: subtracting corral's jobs
    from Slurm's totals would mix two moments, and count a job of corral that has just begun or ended as another user's.
    `lost` are GPUs that no job has and no job can get.
    """
    gpus: Counter[str] = Counter(lost or {})
    cpus: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    indexes: defaultdict[str, frozenset[int]] = defaultdict(frozenset)
    for job in jobs:
        if job.id not in own and job.holds_nodes:
            for node in job.nodes:
                gpus[node] += job.gpus_on(node)
                indexes[node] |= job.gpu_indexes.get(node, frozenset())
                cpus[node] += job.cpus
                memory[node] += job.memory_mib
    return {
        node: Others(gpus=gpus[node], cpus=cpus[node], memory_mib=memory[node], gpu_indexes=indexes[node])
        for node in {*gpus, *cpus, *memory}
    }


def gpu_id(node: str, index: int) -> str:
    return f"{node}-gpu{index}"


def model_of(kind: str, rules: FleetRules) -> str:
    """Case-insensitive: `a100` and `A100` are the same model."""
    known = {name.casefold(): model for name, model in rules.models.items()}
    return known.get(kind.casefold(), kind.upper() or "GPU")


def kinds_of(node: SlurmNode) -> tuple[str, ...]:
    """The type of each GPU, by its index: Slurm numbers them in the order in which it lists their types."""
    return tuple(kind for kind, count in node.gpus.items() for _ in range(count))


def gpus_asked(plan: Mapping[str, Sequence[str]], nodes: Mapping[str, SlurmNode]) -> dict[str, int]:
    """How many GPUs of which type to request from Slurm on each node, for the GPUs of a plan by node; "" means any
    type. The type is given if a node has several, as Slurm would choose any of them otherwise. A Slurm job requests the
    same on all its nodes: if the plan differs between nodes, types are left open."""
    known = [nodes[name] for name in plan if name in nodes]
    kinds = {gpu_id(node.name, index): kind for node in known for index, kind in enumerate(kinds_of(node))}
    asked = [Counter(kinds.get(gpu, "") for gpu in gpus) for gpus in plan.values()]
    if any(len(node.gpus) > 1 for node in known) and all(count == asked[0] for count in asked):
        return dict(asked[0])
    count = asked[0].total()
    return {"": count} if count else {}


def _node(
    node: SlurmNode,
    others: Others,
    named: frozenset[str],
    rules: FleetRules,
    reserved: Collection[str] | None,
    closed: Mapping[str, str],
) -> Node:
    gpus = tuple(_gpus(node, rules))
    why = _why_withheld(node, rules, reserved) or closed.get(node.name, "")
    state = NodeState.DOWN if is_down(node) else NodeState.CORDONED if why else NodeState.READY
    return Node(
        id=node.name,
        state=state,
        cpu_milli=node.cpus * WHOLE,
        memory_bytes=node.memory_mib * MIB,
        gpus=gpus,
        labels=_labels(node, rules),
        reason=node.reason or why if state is not NodeState.READY else "",
        taken=Taken(
            gpus=_taken_gpus(gpus, kinds_of(node), others, named),
            cpu_milli=others.cpus * WHOLE,
            memory_bytes=others.memory_mib * MIB,
        ),
    )


def _gpus(node: SlurmNode, rules: FleetRules) -> Iterable[Gpu]:
    for index, kind in enumerate(kinds_of(node)):
        yield Gpu(id=gpu_id(node.name, index), index=index, model=model_of(kind, rules), memory_bytes=0)


def _taken_gpus(gpus: Sequence[Gpu], kinds: Sequence[str], others: Others, named: frozenset[str]) -> tuple[str, ...]:
    """The GPUs to count as held by other jobs, as many as they have, of their types: first GPUs that no plan of corral
    names, and of these first those that the jobs really have. Slurm chooses the devices of a job, the first free ones;
    the next plan should name the same, so that readings of a device are shown with the job that has it. If other jobs
    have more than plans leave, a plan waits in Slurm for them: its GPUs count as held, also at the moment when it
    ends."""
    last_first = gpus[::-1]
    theirs_first = sorted(last_first, key=lambda gpu: (gpu.id in named, gpu.index not in others.gpu_indexes))
    left = Counter(kinds[index] for index in others.gpu_indexes if index < len(kinds))
    of_any = others.gpus - left.total()
    taken = []
    for gpu in theirs_first:
        kind = kinds[gpu.index]
        if left[kind] > 0:
            left[kind] -= 1
        elif of_any > 0:
            of_any -= 1
        else:
            continue
        taken.append(gpu.id)
    return tuple(sorted(taken))


def is_withheld(node: SlurmNode) -> bool:
    return not _DRAINED.isdisjoint(node.flags)


def is_down(node: SlurmNode) -> bool:
    return node.state in _LOST


def _is_in(node: SlurmNode, rules: FleetRules) -> bool:
    return not rules.partitions or not rules.partitions.isdisjoint(node.partitions)


def _why_withheld(node: SlurmNode, rules: FleetRules, reserved: Collection[str] | None) -> str:
    """ "" for a node on which Slurm would start corral's jobs."""
    if not _is_in(node, rules):
        return f"in none of the partitions {', '.join(sorted(rules.partitions))} any more"
    if reserved is not None and node.name not in reserved:
        return "not in the reservation that corral's jobs are given to"
    ours = _RESERVED if reserved is not None else frozenset[str]()
    awaited = frozenset({"NOT_RESPONDING"}) if not _ASLEEP.isdisjoint(node.flags) else frozenset[str]()
    flags = node.flags - ours - awaited
    reason = next((text for flag, text in _WITHHELD.items() if flag in flags), "")
    return reason or ("" if node.state in _UP else f"in state {node.state}")


def _labels(node: SlurmNode, rules: FleetRules) -> tuple[tuple[str, str], ...]:
    labels: dict[str, str] = defaultdict(str)
    for partition in node.partitions:
        labels[f"{PARTITION_LABEL}.{partition}"] = "yes"
    for feature in node.features:
        labels[f"{FEATURE_LABEL}.{feature}"] = "yes"
        if feature.startswith(rules.rack_feature_prefix):
            labels["rack"] = feature
    return tuple(sorted(labels.items()))
