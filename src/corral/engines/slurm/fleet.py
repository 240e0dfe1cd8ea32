"""Slurm's nodes as corral's, with what jobs that are not corral's hold of them: pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.core.model import WHOLE, Gpu, Node, NodeState, Taken
from corral.engines.slurm.seen import SlurmJob, SlurmNode

MIB = 1 << 20
PARTITION_LABEL = "slurm.partition"
FEATURE_LABEL = "slurm.feature"
#: States in which a node runs jobs, and flags under which it starts no more.
_UP = frozenset({"IDLE", "MIXED", "ALLOCATED", "COMPLETING"})
_DRAINED = frozenset({"DRAIN", "DRAINING", "DRAINED"})
_WITHHELD = _DRAINED | frozenset({"MAINT", "MAINTENANCE", "RESERVED", "PLANNED_DOWN"})
_GONE = frozenset({"NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "DOWN"})


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetRules:
    """Which nodes are corral's to use, and how it calls what they have."""

    #: empty means all
    partitions: frozenset[str] = frozenset()
    #: the model behind a type of GPU, where its name does not say it
    models: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: Mapping[str, int] = field(default_factory=dict)
    rack_feature_prefix: str = "rack-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Others:
    """What jobs that are not corral's hold on a node."""

    gpus: int = 0
    cpus: int = 0
    memory_mib: int = 0
    #: which of the GPUs, as far as Slurm tells
    gpu_indexes: frozenset[int] = frozenset()


def nodes_seen(
    seen: Iterable[SlurmNode], others: Mapping[str, Others], named: Mapping[str, frozenset[str]], rules: FleetRules
) -> tuple[Node, ...]:
    """`named` are the GPUs that plans of corral's have on each node, so that none of them is taken for others'."""
    wanted = (node for node in seen if not rules.partitions or not rules.partitions.isdisjoint(node.partitions))
    return tuple(
        _node(node, others.get(node.name, Others()), named.get(node.name, frozenset()), rules)
        for node in sorted(wanted, key=lambda node: node.name)
    )


def unexplained(seen: Iterable[SlurmNode], jobs: Iterable[SlurmJob]) -> dict[str, int]:
    """GPUs that Slurm calls used although none of its jobs has them: for a moment while a job begins or ends, and for
    longer where a crashed controller has lost count. Slurm will not give them to anybody."""
    held: Counter[str] = Counter()
    for job in jobs:
        if job.holds_nodes:
            held.update(dict.fromkeys(job.nodes, job.gpus))
    return {node.name: more for node in seen if (more := node.used_gpus - held[node.name]) > 0}


def others_use(
    jobs: Iterable[SlurmJob], own: Collection[int], lost: Mapping[str, int] | None = None
) -> dict[str, Others]:
    """What jobs hold, node by node, but for corral's own. From one list: to take what corral holds from what Slurm says
    is in use would mix two moments, and call a job of corral's that has just begun or ended somebody else's. `lost` are
    GPUs that nobody has and nobody gets."""
    gpus: Counter[str] = Counter(lost or {})
    cpus: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    indexes: defaultdict[str, frozenset[int]] = defaultdict(frozenset)
    for job in jobs:
        if job.id not in own and job.holds_nodes:
            for node in job.nodes:
                gpus[node] += job.gpus
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
    return rules.models.get(kind, kind.upper() or "GPU")


def kind_of(model: str, rules: FleetRules) -> str:
    """The type by which Slurm is asked for a model; "" where it has none."""
    known = {name: kind for kind, name in rules.models.items()}
    return known.get(model, "" if model == "GPU" else model.lower())


def _node(node: SlurmNode, others: Others, named: frozenset[str], rules: FleetRules) -> Node:
    gpus = tuple(_gpus(node, rules))
    return Node(
        id=node.name,
        state=_state(node),
        cpu_milli=node.cpus * WHOLE,
        memory_bytes=node.memory_mib * MIB,
        gpus=gpus,
        labels=_labels(node, rules),
        reason=node.reason if _state(node) is not NodeState.READY else "",
        taken=Taken(
            gpus=_taken_gpus(gpus, others, named),
            cpu_milli=others.cpus * WHOLE,
            memory_bytes=others.memory_mib * MIB,
        ),
    )


def _gpus(node: SlurmNode, rules: FleetRules) -> Iterable[Gpu]:
    index = 0
    for kind in sorted(node.gpus):
        for _ in range(node.gpus[kind]):
            memory = rules.memory_bytes.get(kind, 0)
            yield Gpu(id=gpu_id(node.name, index), index=index, model=model_of(kind, rules), memory_bytes=memory)
            index += 1


def _taken_gpus(gpus: Sequence[Gpu], others: Others, named: frozenset[str]) -> tuple[str, ...]:
    """So many that no plan of corral's has named: those that others really have before any others. Slurm chooses which
    devices a job gets, and takes the first that are free; the next plan shall name the same, so that readings of a
    device are shown with the job that has it."""
    free = [gpu for gpu in reversed(gpus) if gpu.id not in named]
    theirs_first = sorted(free, key=lambda gpu: gpu.index not in others.gpu_indexes)
    return tuple(sorted(gpu.id for gpu in theirs_first[: others.gpus]))


def is_withheld(node: SlurmNode) -> bool:
    return not _DRAINED.isdisjoint(node.flags)


def is_down(node: SlurmNode) -> bool:
    return _state(node) is NodeState.DOWN


def _state(node: SlurmNode) -> NodeState:
    if node.state not in _UP or not _GONE.isdisjoint(node.flags):
        return NodeState.DOWN
    return NodeState.READY if _WITHHELD.isdisjoint(node.flags) else NodeState.CORDONED


def _labels(node: SlurmNode, rules: FleetRules) -> tuple[tuple[str, str], ...]:
    labels: dict[str, str] = defaultdict(str)
    for partition in node.partitions:
        labels[f"{PARTITION_LABEL}.{partition}"] = "yes"
    for feature in node.features:
        labels[f"{FEATURE_LABEL}.{feature}"] = "yes"
        if feature.startswith(rules.rack_feature_prefix):
            labels["rack"] = feature
    return tuple(sorted(labels.items()))
