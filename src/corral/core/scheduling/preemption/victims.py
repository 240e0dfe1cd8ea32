"""The choice of victims: of the jobs that may be preempted, those that lose the least work, and no more than needed.

For candidates that run on one node each the answer is exact: the cheapest set of victims is computed for every node,
and the cheapest nodes are taken. If gangs are among the candidates, the result is a set from which no victim can be
removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from corral.core.model import WHOLE, Allocation, Grant, Job, Request
from corral.core.scheduling.placement.search import domains_for
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.snapshot.node_index import DomainIndex, Fleet, Slot, places

#: How many sets of jobs are tried on one node; then the best set so far is taken. Where jobs have whole GPUs, no node
#: comes near this limit.
_MOST_SETS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A running job that may be preempted for a waiting job."""

    job: Job
    rule: PreemptionRule
    #: GPU-seconds of work since the last checkpoint
    lost_gpu_seconds: float
    #: the part of its allocation that the waiting job has a right to; None if that is all of it
    frees: Allocation | None = None
    #: describes the rule with its numbers; called for victims only
    detail: Callable[[], str] = field(repr=False)

    @property
    def loss(self) -> Loss:
        return Loss(self.lost_gpu_seconds, 1, -(self.job.allocated_at or 0.0))


class Loss(NamedTuple):
    """The cost of a set of victims: lost work first, then their number, then how long they have held their GPUs."""

    gpu_seconds: float = 0.0
    jobs: int = 0
    #: smaller for jobs that were allocated later
    seniority: float = 0.0

    def and_of(self, other: Loss) -> Loss:
        return Loss(self.gpu_seconds + other.gpu_seconds, self.jobs + other.jobs, self.seniority + other.seniority)


def choose_victims(fleet: Fleet, job: Job, pool: str, candidates: Sequence[Candidate]) -> list[Candidate] | None:
    """The cheapest candidates whose end makes room for the job; None if all of them together do not.

    Jobs that are leaving already must be out of the fleet: their resources count as free.
    """
    among = fleet.eligible(job.request.labels, job.avoid_nodes)
    found = [
        chosen
        for index in domains_for(fleet, job.request, pool)
        if (chosen := _choose_in(fleet, index, job, among & index.members, candidates)) is not None
    ]
    return min(found, key=loss_of, default=None)


def _choose_in(
    fleet: Fleet, index: DomainIndex, job: Job, among: int, candidates: Sequence[Candidate]
) -> list[Candidate] | None:
    request = job.request
    rooms = _rooms(fleet, index, job, among, candidates)
    ready = _ready_now(fleet, index, job, among)
    if ready >= request.nodes:
        return []
    cheapest: list[tuple[Loss, int, list[Candidate]]] = []
    for place, room in rooms.items():
        if room.fits(request):
            continue  # counted in `ready`
        bound = cheapest[-1][0] if len(cheapest) == request.nodes - ready else None
        if bound is not None and room.candidates[0][0].loss >= bound:
            break  # nodes come in the order of their cheapest candidates
        chosen = room.least(request, bound)
        if chosen is not None:
            cheapest = sorted([*cheapest, (loss_of(chosen), place, chosen)], key=lambda item: item[:2])
            cheapest = cheapest[: request.nodes - ready]
    if len(cheapest) + ready < request.nodes:
        return None
    victims = {victim.job.id: victim for _, _, chosen in cheapest for victim in chosen}
    if len(cheapest) == 1:
        return [*victims.values()]
    return needed_victims([*victims.values()], [rooms[place] for _, place, _ in cheapest], request)


def needed_victims(victims: Sequence[Candidate], rooms: Sequence[Room], request: Request) -> list[Candidate]:
    """Reduces victims, whose end makes room on each of these nodes, to those that are needed, cheapest first.

    A gang that was chosen for one node may make victims on another node unnecessary.
    """
    kept = sorted(victims, key=lambda victim: victim.loss)
    ids = {victim.job.id for victim in kept}
    grants: dict[str, list[tuple[Room, Grant]]] = {}
    for room in rooms:
        for candidate, grant in room.candidates:
            if candidate.job.id in ids:
                grants.setdefault(candidate.job.id, []).append((room, grant))
                room.shift(grant, 1)
    needed: list[Candidate] = []
    for victim in reversed(kept):
        own = grants.pop(victim.job.id, [])
        _shift_all(own, -1)
        if not all(room.fits(request) for room in rooms):
            _shift_all(own, 1)
            grants[victim.job.id] = own
            needed.append(victim)
    for left in grants.values():
        _shift_all(left, -1)
    return needed[::-1]


def _shift_all(grants: Iterable[tuple[Room, Grant]], sign: int) -> None:
    for room, grant in grants:
        room.shift(grant, sign)


def _rooms(fleet: Fleet, index: DomainIndex, job: Job, among: int, candidates: Iterable[Candidate]) -> dict[int, Room]:
    """The nodes on which candidates run, with the candidates there, the smallest loss first."""
    rooms: dict[int, Room] = {}
    for candidate in sorted(candidates, key=lambda victim: (victim.loss, victim.job.serial)):
        back = candidate.frees or candidate.job.allocation
        assert back is not None
        for grant in back.grants:
            place = fleet.place_of.get(grant.node)
            if place is None or not among >> place & 1:
                continue
            room = rooms.get(place)
            if room is None:
                room = rooms[place] = Room(fleet.slots[place], index, job)
            room.candidates.append((candidate, grant))
    return rooms


def _ready_now(fleet: Fleet, index: DomainIndex, job: Job, among: int) -> int:
    """How many nodes have room already; not more are counted than the job asks for."""
    request, found = job.request, 0
    if request.nodes == 1:
        return 0  # a single-node job that had room would have started
    least = 0 if request.gpu_milli else request.gpus
    for place in places(index.with_whole(least) & among if least else among):
        found += Room(fleet.slots[place], index, job).fits(request)
        if found == request.nodes:
            break
    return found


class Room:
    """One node: its free resources, and the candidates on it, the smallest loss first."""

    __slots__ = ("candidates", "cpu_milli", "free_milli", "memory_bytes", "slot")

    def __init__(self, slot: Slot, index: DomainIndex, job: Job) -> None:
        self.slot = slot
        self.free_milli = {
            gpu: slot.free_milli[gpu] for gpu in slot.domains.get(index.domain, ()) if gpu not in job.avoid_gpus
        }
        self.cpu_milli = slot.free_cpu_milli
        self.memory_bytes = slot.free_memory_bytes
        self.candidates: list[tuple[Candidate, Grant]] = []

    @classmethod
    def of(cls, slot: Slot, index: DomainIndex, job: Job, candidates: Iterable[Candidate]) -> Room:
        room = cls(slot, index, job)
        for candidate in sorted(candidates, key=lambda victim: (victim.loss, victim.job.serial)):
            for grant in candidate.job.allocation.grants if candidate.job.allocation is not None else ():
                if grant.node == slot.node.id:
                    room.candidates.append((candidate, grant))
        return room

    @property
    def free_gpus(self) -> int:
        return sum(left >= WHOLE for left in self.free_milli.values())

    def give_back(self, job: Job) -> None:
        """Count the job's resources as released."""
        for grant in job.allocation.grants if job.allocation is not None else ():
            if grant.node == self.slot.node.id:
                self.shift(grant, 1)

    def fits(self, request: Request) -> bool:
        if request.cpu_milli > max(0, self.cpu_milli) or request.memory_bytes > max(0, self.memory_bytes):
            return False
        if request.gpu_milli:
            return any(left >= request.gpu_milli for left in self.free_milli.values())
        return self.free_gpus >= request.gpus

    def least(self, request: Request, bound: Loss | None) -> list[Candidate] | None:
        """The cheapest set of candidates without which the request fits, if it costs less than `bound`.

        Exact if few sets have to be tried; otherwise the best set of those tried, without unnecessary victims.
        """
        best: list[int] | None = None
        chosen: list[int] = []
        losses = [Loss()]
        reach = self._emptied()
        number, looked_at, most = 0, 0, len(self.candidates) + _MOST_SETS
        while True:
            # `reach` is the room without the chosen candidates and without all from `number` on: the most that this
            # branch of the search can free.
            if number < len(self.candidates) and looked_at <= most:
                candidate, grant = self.candidates[number]
                more = losses[-1].and_of(candidate.loss)
                looked_at += 1
                # The candidates are sorted by their loss: those that follow cost no less.
                if (bound is None or more < bound) and reach.fits(request):
                    is_useful = self._needs(grant, reach, request)
                    if is_useful:
                        self.shift(grant, 1)
                        if self.fits(request):
                            best, bound, is_useful = [*chosen, number], more, False
                            self.shift(grant, -1)
                    if is_useful:
                        chosen.append(number)
                        losses.append(more)
                    else:
                        reach.shift(grant, -1)
                    number += 1
                    continue
            if not chosen:
                break
            # No further set begins with these: continue without the last of them.
            last = chosen.pop()
            losses.pop()
            for skipped in range(last + 1, number):
                reach.shift(self.candidates[skipped][1], 1)
            for room in (self, reach):
                room.shift(self.candidates[last][1], -1)
            number = last + 1
        if best is None:
            return None
        found = [self.candidates[index][0] for index in best]
        return needed_victims(found, [self], request) if looked_at > most else found

    def _needs(self, grant: Grant, reach: Room, request: Request) -> bool:
        """Whether releasing the grant can help: it has CPUs or memory that are missing, or a GPU that can still become
        free enough."""
        if (self.cpu_milli < request.cpu_milli and grant.cpu_milli) or (
            self.memory_bytes < request.memory_bytes and grant.memory_bytes
        ):
            return True
        return any(reach.free_milli.get(gpu, 0) >= (request.gpu_milli or WHOLE) for gpu in grant.gpus)

    def _emptied(self) -> Room:
        """The same node without any of the candidates."""
        room = Room.__new__(Room)
        room.slot, room.candidates = self.slot, self.candidates
        room.free_milli = {**self.free_milli}
        room.cpu_milli, room.memory_bytes = self.cpu_milli, self.memory_bytes
        for _, grant in self.candidates:
            room.shift(grant, 1)
        return room

    def shift(self, grant: Grant, sign: int) -> None:
        """Count a grant as released (1) or as held again (-1)."""
        for gpu in grant.gpus:
            if gpu in self.free_milli:
                self.free_milli[gpu] += sign * grant.gpu_milli
        self.cpu_milli += sign * grant.cpu_milli
        self.memory_bytes += sign * grant.memory_bytes


def loss_of(chosen: Iterable[Candidate]) -> Loss:
    total = Loss()
    for victim in chosen:
        total = total.and_of(victim.loss)
    return total
