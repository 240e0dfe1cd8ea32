"""Views of all nodes, and counts of nodes and GPUs, that follow the changes of the snapshot.

A change costs what it changes: the nodes that it concerns are marked, and viewed again when they are read next. So a
page of a list, or a count of free GPUs, costs the same in a fleet of ten nodes and of ten thousand.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from corral.control.fleet.fleet_names import NameText
from corral.control.fleet.node_views import GpuView, NodeView, node_view
from corral.core.fleet.free_gpus import closed_gpus
from corral.core.model import GpuHealth, Job, NodeState
from corral.core.monitoring.health.model import Condition
from corral.core.scheduling.reservations.windows import in_force, window_of
from corral.core.snapshot.changes import Change, DropJob, DropNode, PutJob, PutNode
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import node_order

#: The key of a node, with that of its cluster.
Labels = tuple[tuple[str, str], ...]
#: A cluster, a pool and a GPU model.
Group = tuple[str, str, str]


@dataclass(slots=True)
class GpuCounts:
    gpus: int = 0
    free: int = 0
    reserved: int = 0
    #: held outside of corral
    taken: int = 0
    held_milli: int = 0
    health: Counter[GpuHealth] = field(default_factory=Counter)

    def add(self, view: GpuView, sign: int) -> None:
        self.gpus += sign
        self.free += sign * view.is_free
        self.reserved += sign * view.is_reserved
        self.taken += sign * view.is_taken
        self.held_milli += sign * view.held_milli
        self.health[view.gpu.health] += sign

    def join(self, other: GpuCounts) -> None:
        self.gpus += other.gpus
        self.free += other.free
        self.reserved += other.reserved
        self.taken += other.taken
        self.held_milli += other.held_milli
        self.health.update(other.health)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldGpus:
    """The GPUs that were held at one moment. GPUs have places: their order in the columns."""

    #: by GPU; the same mapping as long as no GPU is added or removed
    places: Mapping[str, int]
    #: by place: 1 if a job holds a part of the GPU
    held: bytes
    #: by cluster, by place: 1 if the GPU belongs to the cluster
    clusters: Mapping[str, bytes]


class LiveFleet:
    """`update` follows the changes; everything else reads."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._views: dict[str, NodeView] = {}
        #: by node: the jobs that hold resources on it, by id
        self._jobs_on: dict[str, dict[str, Job]] = {}
        self._holding: dict[str, Job] = {}
        #: nodes that have to be viewed again
        self._touched: set[str] = set(snapshot.nodes)
        #: how many nodes were viewed so far
        self.viewed = 0
        self.groups: dict[Group, GpuCounts] = {}
        self.nodes: Counter[tuple[str, NodeState]] = Counter()
        #: GPUs by the labels of their nodes and their model
        self.kinds: Counter[tuple[Labels, str]] = Counter()
        #: idle GPUs that are reserved, with their groups
        self.reserved: dict[str, Group] = {}
        #: GPUs that are to move to another pool
        self.moving: set[str] = set()
        #: names of the nodes in their order; None if it has to be made again
        self._names: list[str] | None = None
        #: names of the nodes and of the GPUs for searches; None if they have to be made again
        self._searched: tuple[NameText, NameText] | None = None
        self._closed: Set[str] = frozenset()
        #: the reservations that `_closed` was computed from, and the time in which it holds
        self._closed_of: tuple[int, float, float] = (-1, 0.0, 0.0)
        self._conditions: dict[str, Condition] = {}
        self._conditions_of: tuple[int, int] = (0, -1)
        self._places: dict[str, int] | None = None
        self._held = bytearray()
        self._clusters: dict[str, bytes] = {}
        for job in snapshot.jobs.values():
            self._enter(job)

    # ---------------------------------------------------------------- following

    def follow(self, change: Change) -> None:
        match change:
            case PutJob(job=job):
                self._leave(job.id)
                self._enter(job)
            case DropJob(id=job_id):
                self._leave(job_id)
            case PutNode(node=node):
                if node.id not in self._views:
                    self._names = None
                self._touched.add(node.id)
            case DropNode(id=node_id):
                self._names = None
                self._touched.add(node_id)

    def update(self, conditions: Mapping[str, Condition], changes: int, now: float | None) -> None:
        """View the marked nodes again. `changes` counts the changes of `conditions`. Without a time, reservations are
        those of the last read."""
        if now is not None:
            self._follow_closed(now)
        self._follow_conditions(conditions, changes)
        for node_id in self._touched:
            self._renew(node_id)
        self._touched.clear()

    def _enter(self, job: Job) -> None:
        if job.allocation is None:
            return
        self._holding[job.id] = job
        for grant in job.allocation.grants:
            self._jobs_on.setdefault(grant.node, {})[job.id] = job
            self._touched.add(grant.node)

    def _leave(self, job_id: str) -> None:
        job = self._holding.pop(job_id, None)
        if job is None or job.allocation is None:
            return
        for grant in job.allocation.grants:
            jobs = self._jobs_on.get(grant.node)
            if jobs is not None:
                jobs.pop(job_id, None)
                if not jobs:
                    del self._jobs_on[grant.node]
            self._touched.add(grant.node)

    def _follow_closed(self, now: float) -> None:
        """Windows of reservations open and close with time, and not only with changes."""
        snapshot = self._snapshot
        revision, begin, end = self._closed_of
        if revision == snapshot.reserving_revision and begin <= now < end:
            return
        edges = [edge for reservation in in_force(snapshot, now) for edge in window_of(reservation)]
        begin = max((edge for edge in edges if edge <= now), default=-math.inf)
        end = min((edge for edge in edges if edge > now), default=math.inf)
        self._closed_of = (snapshot.reserving_revision, begin, end)
        closed = frozenset(closed_gpus(snapshot, now))
        self._touch_homes(closed ^ self._closed)
        self._closed = closed

    def _follow_conditions(self, conditions: Mapping[str, Condition], changes: int) -> None:
        if self._conditions_of == (id(conditions), changes):
            return
        self._conditions_of = (id(conditions), changes)
        known, self._conditions = self._conditions, dict(conditions)
        keys = known.keys() | conditions.keys()
        self._touch_homes({gpu for gpu in keys if known.get(gpu) is not conditions.get(gpu)})

    def _touch_homes(self, gpus: Set[str]) -> None:
        homes = self._snapshot.fleet.gpu_home
        self._touched.update(homes[gpu] for gpu in gpus if gpu in homes)

    def _renew(self, node_id: str) -> None:
        fleet = self._snapshot.fleet
        before = self._views.pop(node_id, None)
        if before is not None:
            self._count(before, -1)
        if node_id not in fleet.place_of:
            self._places = self._searched = None
            return
        self.viewed += 1
        jobs = self._jobs_on.get(node_id, {}).values()
        after = node_view(fleet.slot(node_id), jobs, self._closed, self._conditions)
        self._views[node_id] = after
        self._count(after, 1)
        if before is None or _shape(before) != _shape(after):
            self._places = self._searched = None
        if self._places is not None:
            for view in after.gpus:
                self._held[self._places[view.gpu.id]] = view.held_milli > 0

    def _count(self, view: NodeView, sign: int) -> None:
        node = view.node
        self.nodes[node.cluster, view.state] += sign
        labels = node.all_labels
        for gpu in view.gpus:
            group = (node.cluster, gpu.gpu.pool, gpu.gpu.model)
            counts = self.groups.get(group)
            if counts is None:
                counts = self.groups[group] = GpuCounts()
            counts.add(gpu, sign)
            self.kinds[labels, gpu.gpu.model] += sign
            if not counts.gpus:
                del self.groups[group]
            if gpu.is_reserved:
                if sign > 0:
                    self.reserved[gpu.gpu.id] = group
                else:
                    del self.reserved[gpu.gpu.id]
            if gpu.gpu.next_pool:
                (self.moving.add if sign > 0 else self.moving.discard)(gpu.gpu.id)

    # ---------------------------------------------------------------- reading

    def view(self, node_id: str) -> NodeView | None:
        return self._views.get(node_id)

    def gpu(self, gpu_id: str) -> GpuView | None:
        home = self._snapshot.fleet.gpu_home.get(gpu_id)
        found = self._views[home].gpus if home is not None else ()
        return next((view for view in found if view.gpu.id == gpu_id), None)

    def views(self) -> list[NodeView]:
        """All nodes, gpu-2 before gpu-10."""
        return [self._views[slot.node.id] for slot in self._snapshot.fleet.slots]

    def after(self, name: str | None) -> Iterator[NodeView]:
        """The nodes behind a name, or all of them, in the order of their names as texts."""
        names = self._names
        if names is None:
            names = self._names = sorted(self._views)
        begin = 0 if name is None else bisect_right(names, name)
        return (self._views[names[place]] for place in range(begin, len(names)))

    def behind(self, name: str | None) -> Iterator[NodeView]:
        """The nodes behind one, or all of them, in the order of `views`."""
        slots = self._snapshot.fleet.slots
        begin = 0 if name is None else bisect_right(slots, node_order(name), key=lambda slot: node_order(slot.node.id))
        return (self._views[slots[place].node.id] for place in range(begin, len(slots)))

    def searched_names(self) -> tuple[NameText, NameText]:
        """The names of all nodes, and of all GPUs, for searches."""
        if self._searched is None:
            slots = self._snapshot.fleet.slots
            gpus = [gpu.id for slot in slots for gpu in slot.node.gpus]
            self._searched = NameText([slot.node.id for slot in slots]), NameText(gpus)
        return self._searched

    def total(self, cluster: str | None = None) -> GpuCounts:
        """The counts of one cluster, or of all clusters."""
        total = GpuCounts()
        for group, counts in self.groups.items():
            if cluster is None or group[0] == cluster:
                total.join(counts)
        return total

    def by_pool(self) -> dict[tuple[str, str], GpuCounts]:
        """The counts of all clusters by pool and GPU model."""
        found: dict[tuple[str, str], GpuCounts] = {}
        for (_, pool, model), counts in sorted(self.groups.items()):
            found.setdefault((pool, model), GpuCounts()).join(counts)
        return found

    def freed_for(self, user: str, now: float) -> list[Group]:
        """The group of each idle GPU that is reserved for this user, and so is free for the user."""
        if not self.reserved:
            return []
        closed = closed_gpus(self._snapshot, now, user)
        return [group for gpu, group in self.reserved.items() if gpu not in closed]

    def held_gpus(self) -> HeldGpus:
        places = self._places
        if places is None:
            gpus = [view for slot in self._snapshot.fleet.slots for view in self._views[slot.node.id].gpus]
            places = self._places = {view.gpu.id: place for place, view in enumerate(gpus)}
            self._held = bytearray(view.held_milli > 0 for view in gpus)
            names = {view.cluster for view in gpus}
            self._clusters = {name: bytes(view.cluster == name for view in gpus) for name in names}
        return HeldGpus(places=places, held=bytes(self._held), clusters=self._clusters)


def _shape(view: NodeView) -> tuple[str, list[str]]:
    return view.node.cluster, [gpu.gpu.id for gpu in view.gpus]
