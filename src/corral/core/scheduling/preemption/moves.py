"""Moves: running jobs that continue on other nodes, so that a waiting job gets enough room on one node.

Small jobs scattered over many nodes can keep a whole-node job waiting although enough GPUs are free in total. A moved
job may stand before the job that it makes room for: it does not wait again, because it continues at once on GPUs that
are free or that are freed by jobs behind both. Its cost is the restart. So only jobs are moved that are known to write
checkpoints, only in a queue whose order preempts, and as few as possible.

Moves cannot repeat in a cycle: with every move a waiting job starts, and a job that is requeued for the move stands
strictly behind the waiting job. So the set of running jobs moves towards the front of the order each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from corral.core.model import WHOLE, Allocation, Job, JobState, Queue
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.placement.search import domains_for
from corral.core.scheduling.preemption.preemption import PreemptionView, lost_gpu_seconds
from corral.core.scheduling.preemption.rules import writes_checkpoints
from corral.core.scheduling.preemption.victims import Candidate, Loss, Room, choose_victims, loss_of
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place
from corral.core.snapshot.node_index import DomainIndex, Fleet, places

#: Limits of the search: failed tries per cycle, and nodes tried per job. A large cluster has more combinations than are
#: worth trying.
_MOST_TRIES = 8
_MOST_NODES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    job: Job
    to: Allocation


@dataclass(frozen=True, kw_only=True, slots=True)
class Rearrangement:
    """The jobs that are moved and the jobs that are requeued, so that a job has room."""

    moves: tuple[Move, ...]
    victims: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class _Clearing:
    """The jobs that must leave a node so that one instance fits."""

    moved_gpus: int
    loss: Loss
    place: int
    movers: tuple[Job, ...]
    victims: tuple[Candidate, ...]

    @property
    def effort(self) -> tuple[int, Loss, int]:
        """Sorts clearings: the fewest moved GPUs first, then the least loss."""
        return self.moved_gpus, self.loss, self.place


class MoveSearch:
    """The search for jobs that may be moved, within one cycle."""

    def __init__(self, preempting: PreemptionView, reserved: Reserved) -> None:
        self._view = preempting
        self._snapshot = preempting.snapshot
        self._fleet: Fleet = preempting.snapshot.fleet
        self._reserved = reserved
        self._tries = 0
        #: by queue and node: jobs that may be moved
        self._movable: dict[str, dict[str, list[Job]]] = {}

    def could_help(self, queue: Queue) -> bool:
        is_ranked = queue.preempts and POLICIES[queue.policy].rank is not None
        return self._snapshot.preemption.moves and is_ranked and self._tries < _MOST_TRIES

    def find(self, queue: Queue, job: Job) -> Rearrangement | None:
        """How the job gets room by moves; None if it does not. Jobs that are leaving already must be out of the
        fleet."""
        if not self.could_help(queue) or job.request.gpu_milli:
            return None
        candidates = self._view.candidates(job)
        for index in domains_for(self._fleet, job.request, queue.pool):
            if self._could_be_enough(index, job, candidates):
                found = self._find_in(index, queue, job, candidates)
                if found is not None:
                    return found
                self._tries += 1
        return None

    def _could_be_enough(self, index: DomainIndex, job: Job, candidates: Sequence[Candidate]) -> bool:
        """Whether free GPUs and those of all candidates together are enough; if not, no node needs to be tried."""
        held = sum(len(candidate.job.allocation.gpus) for candidate in candidates if candidate.job.allocation)
        return index.free_gpus + held >= job.request.nodes * job.request.gpus

    def _find_in(
        self, index: DomainIndex, queue: Queue, job: Job, candidates: Sequence[Candidate]
    ) -> Rearrangement | None:
        behind = {candidate.job.id for candidate in candidates}
        clearings = sorted(self._clearings(index, queue, job, candidates, behind), key=lambda clearing: clearing.effort)
        if len(clearings) < job.request.nodes:
            return None
        for first in range(min(_MOST_NODES, len(clearings) - job.request.nodes + 1)):
            found = self._with_places(queue, clearings[first : first + job.request.nodes], candidates)
            if found is not None:
                return found
        return None

    def _clearings(
        self, index: DomainIndex, queue: Queue, job: Job, candidates: Sequence[Candidate], behind: Iterable[str]
    ) -> Iterator[_Clearing]:
        """How each node would get room for one instance."""
        movable = self._movable_in(queue)
        there: dict[int, list[Candidate]] = {}
        for candidate in candidates:
            for grant in (
                candidate.job.allocation.grants if candidate.job.allocation and candidate.frees is None else ()
            ):
                if grant.node in self._fleet.place_of:
                    there.setdefault(self._fleet.place_of[grant.node], []).append(candidate)
        for place in places(self._fleet.eligible(job.request.labels, job.avoid_nodes) & index.members):
            here = movable.get(self._fleet.slots[place].node.id, ())
            # Some of them may have been chosen in this cycle since the list was made.
            movers = [mover for mover in here if mover.id not in behind and self._view.may_be_moved(mover)]
            found = self._clearing(index, job, place, there.get(place, []), movers)
            if found is not None:
                yield found

    def _clearing(
        self, index: DomainIndex, job: Job, place: int, victims: Sequence[Candidate], movers: Sequence[Job]
    ) -> _Clearing | None:
        request, room = job.request, Room.of(self._fleet.slots[place], index, job, victims)
        if room.fits(request):
            return _Clearing(0, Loss(), place, (), ())
        missing = request.gpus - room.free_gpus - sum(len(grant.gpus) for _, grant in room.candidates)
        moved = _fewest_gpus(movers, missing)
        if moved is None:
            return None
        for move in moved:
            room.give_back(move)
        chosen = [] if room.fits(request) else room.least(request, None)
        if chosen is None:
            return None
        lost = Loss(sum(lost_gpu_seconds(move, self._view.now) for move in moved), len(moved))
        return _Clearing(
            sum(_gpus(move) for move in moved), lost.and_of(loss_of(chosen)), place, tuple(moved), tuple(chosen)
        )

    def _with_places(
        self, queue: Queue, clearings: Sequence[_Clearing], candidates: Sequence[Candidate]
    ) -> Rearrangement | None:
        """Find places on other nodes for all jobs that must leave these nodes."""
        cleared = tuple(self._fleet.slots[clearing.place].node.id for clearing in clearings)
        victims = {victim.job.id: victim for clearing in clearings for victim in clearing.victims}
        movers = sorted(
            (job for clearing in clearings for job in clearing.movers), key=lambda job: (-_gpus(job), job.serial)
        )
        if not movers:
            return None
        moves: list[Move] = []
        with self._undone() as fleet:
            for victim in victims.values():
                fleet.give_back(victim.job.allocation)
            for job in movers:
                searched = replace(job, avoid_nodes=(*job.avoid_nodes, *cleared))
                more = self._make_place(
                    queue, searched, [candidate for candidate in candidates if candidate.job.id not in victims]
                )
                for victim in more or ():
                    victims[victim.job.id] = victim
                    fleet.give_back(victim.job.allocation)
                to = find_open_place(self._reserved, self._fleet, searched, queue, job.expected_end)
                if to is None:
                    return None
                fleet.take(to)
                moves.append(Move(job=job, to=to))
        return Rearrangement(moves=tuple(moves), victims=tuple(victims.values()))

    def _make_place(self, queue: Queue, job: Job, candidates: Sequence[Candidate]) -> list[Candidate] | None:
        """The jobs that must be requeued to make a place for the moved job; None if it has room or cannot get any."""
        if find_open_place(self._reserved, self._fleet, job, queue, job.expected_end) is not None:
            return None
        searched = self._reserved.widest(job, queue.pool, end_if_started(job, self._view.now))
        return choose_victims(self._fleet, searched, queue.pool, candidates)

    def _movable_in(self, queue: Queue) -> dict[str, list[Job]]:
        found = self._movable.get(queue.name)
        if found is None:
            found = self._movable[queue.name] = {}
            for job_id in sorted(self._snapshot.holding.get(queue.name, ())):
                job = self._snapshot.jobs[job_id]
                if job.allocation is not None and is_movable(job):
                    found.setdefault(job.allocation.grants[0].node, []).append(job)
        return found

    @contextmanager
    def _undone(self) -> Iterator[_Changes]:
        changes = _Changes(self._fleet)
        try:
            yield changes
        finally:
            changes.undo()


class _Changes:
    """Allocations taken and given back in the fleet, to be undone."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._done: list[tuple[Allocation, bool]] = []

    def take(self, allocation: Allocation) -> None:
        self._fleet.take(allocation)
        self._done.append((allocation, True))

    def give_back(self, allocation: Allocation | None) -> None:
        if allocation is not None:
            self._fleet.give_back(allocation)
            self._done.append((allocation, False))

    def undo(self) -> None:
        for allocation, is_taken in reversed(self._done):
            if is_taken:
                self._fleet.give_back(allocation)
            else:
                self._fleet.take(allocation)


def is_movable(job: Job) -> bool:
    """Whether the job can continue on another node and loses only the restart: it is known to write checkpoints."""
    is_simple = job.request.nodes == 1 and job.request.gpus > 0 and job.elastic is None and job.pinned_at is None
    return job.state is JobState.RUNNING and job.preemptible and writes_checkpoints(job) and is_simple


def _fewest_gpus(movers: Sequence[Job], missing: int) -> list[Job] | None:
    """Jobs that hold at least `missing` GPUs together, and as few more as possible; None if all together hold fewer."""
    if missing <= 0:
        return []
    best: dict[int, list[Job]] = {0: []}
    for job in movers:
        for gpus, jobs in [*best.items()]:
            if gpus < missing:
                best.setdefault(gpus + _gpus(job), [*jobs, job])
    enough = [gpus for gpus in best if gpus >= missing]
    return best[min(enough)] if enough else None


def _gpus(job: Job) -> int:
    return job.request.total_gpu_milli // WHOLE
