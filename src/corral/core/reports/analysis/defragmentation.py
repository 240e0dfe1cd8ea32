"""A short list of moves that would free whole nodes. It is a proposal, which an operator approves.

A node is worth emptying if all its jobs can be restarted on other nodes that are in use anyway. The cheapest nodes are
emptied first. A freed node gets no job, and a node that got a job is not emptied, so that the moves can be made one
after the other and each finds its place free.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.fleet.resources import grant_on
from corral.core.model import WHOLE, Allocation, Job, JobKind, JobState
from corral.core.reports.analysis.model import HOUR, AnalysisInput, DefragmentationPlan, FreedNode, Move
from corral.core.reports.analysis.present_fleet import (
    fleet_now,
    fleet_seen,
    free_on,
    gpu_domains,
    unreserved,
    waiting_jobs,
)
from corral.core.scheduling.placement.search import choose_gpus, find_place, has_cpu_and_memory
from corral.core.snapshot.node_index import Domain, DomainIndex, Fleet, Slot, places

#: Not workbenches: a move would interrupt their users.
MOVABLE_KINDS = frozenset({JobKind.TRAINING, JobKind.PRESET})


def plan_everywhere(seen: AnalysisInput) -> DefragmentationPlan:
    """The moves of all pools and models together, with a common limit."""
    plans: list[DefragmentationPlan] = []
    left = seen.rules.most_moves
    for domain in gpu_domains(fleet_seen(seen)):
        plan = plan_moves(seen, domain, most_moves=left)
        left -= len(plan.moves)
        plans.append(plan)
    return DefragmentationPlan(
        moves=tuple(move for plan in plans for move in plan.moves),
        frees=tuple(node for plan in plans for node in plan.frees),
        # One job may wait for several models.
        helps=tuple(dict.fromkeys(job for plan in plans for job in plan.helps)),
    )


def plan_moves(seen: AnalysisInput, domain: Domain, most_moves: int | None = None) -> DefragmentationPlan:
    """The moves within one pool and model."""
    most_moves = seen.rules.most_moves if most_moves is None else most_moves
    fleet = fleet_now(seen)
    index = fleet.domains[domain]
    stuck = [
        job for job in waiting_jobs(seen, domain) if find_place(fleet, unreserved(seen, job), domain[0], "pack") is None
    ]
    planner = _Planner(seen, fleet, index)
    for node_id in planner.worth_emptying():
        planner.try_to_empty(node_id, most_moves)
    helps = tuple(job.id for job in stuck if find_place(fleet, unreserved(seen, job), domain[0], "pack") is not None)
    return DefragmentationPlan(moves=tuple(planner.moves), frees=tuple(planner.frees), helps=helps)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tenancy:
    """The jobs on a node's GPUs of the domain."""

    jobs: tuple[Job, ...]
    held_milli: int


class _Planner:
    """Tries moves on its own copy of the fleet."""

    def __init__(self, seen: AnalysisInput, fleet: Fleet, index: DomainIndex) -> None:
        self._seen = seen
        self._fleet = fleet
        self._index = index
        self.moves: list[Move] = []
        self.frees: list[FreedNode] = []
        self._freed: set[str] = set()
        self._receiving: set[str] = set()
        self._tenancies = self._read_tenancies()

    def worth_emptying(self) -> list[str]:
        """Nodes in part use whose jobs can all be moved, the least lost work per GPU first."""
        found = []
        for place in places(self._index.members):
            slot = self._fleet.slots[place]
            tenancy = self._tenancies.get(slot.node.id)
            gpus = slot.domains[self._index.domain]
            # A node with one GPU cannot be fragmented; a full node has nothing to gain.
            if tenancy is None or len(gpus) < 2 or tenancy.held_milli >= len(gpus) * WHOLE:
                continue
            if all(self._can_move(job) for job in tenancy.jobs):
                lost = sum(self._lost_gpu_hours(job) for job in tenancy.jobs)
                found.append((lost / len(gpus), len(tenancy.jobs), place, slot.node.id))
        return [node_id for *_, node_id in sorted(found)]

    def try_to_empty(self, node_id: str, most_moves: int) -> None:
        """Move all jobs off the node, or none."""
        slot = self._fleet.slot(node_id)
        tenancy = self._tenancies[node_id]
        if node_id in self._receiving or len(self.moves) + len(tenancy.jobs) > most_moves:
            return
        free_before = len(free_on(self._seen, slot, self._index.domain))
        made: list[tuple[Move, Slot]] = []
        # The largest job first: it has the fewest places.
        for job in sorted(tenancy.jobs, key=lambda job: (-job.request.total_gpu_milli, job.serial)):
            move = self._place_elsewhere(job, node_id)
            if move is None:
                for undone, _ in reversed(made):
                    self._fleet.give_back(undone.after)
                    self._fleet.take(undone.before)
                return
            made.append(move)
        self.moves += [move for move, _ in made]
        self._receiving |= {target.node.id for _, target in made}
        self._freed.add(node_id)
        pool, model = self._index.domain
        self.frees.append(
            FreedNode(
                node=node_id,
                pool=pool,
                model=model,
                gpus=slot.domains[self._index.domain],
                free_before=free_before,
            )
        )

    def _place_elsewhere(self, job: Job, away_from: str) -> tuple[Move, Slot] | None:
        assert job.allocation is not None
        avoiding = unreserved(self._seen, job)
        best: tuple[int, int, Slot, tuple[str, ...]] | None = None
        for place in places(self._index.members & self._fleet.eligible(job.request.labels, job.avoid_nodes)):
            slot = self._fleet.slots[place]
            if slot.node.id == away_from or slot.node.id in self._freed or not self._is_in_use(slot):
                continue
            gpus = choose_gpus(slot, self._index, avoiding)
            if gpus is None or not has_cpu_and_memory(slot, job.request):
                continue
            left = sum(slot.free_milli[gpu] for gpu in slot.domains[self._index.domain])
            if best is None or (left, place) < best[:2]:
                best = (left, place, slot, gpus)
        if best is None:
            return None
        _, _, slot, gpus = best
        after = Allocation(grants=(grant_on(slot.node.id, gpus, job.request),), model=job.allocation.model)
        self._fleet.give_back(job.allocation)
        self._fleet.take(after)
        move = Move(
            job_id=job.id,
            job_name=job.name,
            user=job.user,
            from_node=away_from,
            to_node=slot.node.id,
            before=job.allocation,
            after=after,
            lost_gpu_hours=self._lost_gpu_hours(job),
        )
        return move, slot

    def _is_in_use(self, slot: Slot) -> bool:
        """Whether the node has jobs: a move to an empty node would free nothing."""
        gpus = slot.domains[self._index.domain]
        return any(slot.free_milli[gpu] < WHOLE for gpu in gpus)

    def _can_move(self, job: Job) -> bool:
        return job.state is JobState.RUNNING and job.kind in MOVABLE_KINDS and not job.request.is_gang

    def _lost_gpu_hours(self, job: Job) -> float:
        """Work that has to be repeated: at most the time between two checkpoints."""
        assert job.allocation is not None
        ran = self._seen.until - (job.started_at if job.started_at is not None else self._seen.until)
        seconds = min(max(0.0, ran), self._seen.rules.checkpoint_seconds)
        return seconds * job.allocation.total_gpu_milli / WHOLE / HOUR

    def _read_tenancies(self) -> dict[str, _Tenancy]:
        """The jobs that hold usable GPUs of the domain, by node."""
        found: dict[str, list[tuple[Job, int]]] = {}
        for job in self._seen.jobs:
            for grant in job.allocation.grants if job.allocation is not None else ():
                place = self._fleet.place_of.get(grant.node)
                usable = () if place is None else self._fleet.slots[place].domains.get(self._index.domain, ())
                held = sum(grant.gpu_milli for gpu in grant.gpus if gpu in usable)
                if held:
                    found.setdefault(grant.node, []).append((job, held))
        return {
            node: _Tenancy(jobs=tuple(job for job, _ in jobs), held_milli=sum(held for _, held in jobs))
            for node, jobs in found.items()
        }
