"""The planned start: when and where a waiting job will run, and which free resources are held for it until then.

The first jobs of each waiting line that find no room get a planned start. It follows from the ends of the present
allocations: with a time limit the latest possible end, without one the predicted end, and then the planned start is
not firm. Of the resources that the job will get, those that are free now are held for it; the others are released
before the planned start. A job further back in the line may be backfilled: it may start on all resources that are not
held, and also on held ones if it ends before the planned start. How much later that may be than the soonest possible
start is decided in `job_decisions`.

`PlannedStartSearch` is built once per job by the scheduling cycle. For each domain (a pool and a GPU model) it goes
through the coming ends in the order of time, adds what each end releases to the nodes concerned, and stops as soon as
enough nodes have room. It reads the fleet and changes nothing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from corral.core.copies import replace
from corral.core.fleet.resources import grant_on
from corral.core.model import WHOLE, Allocation, Grant, Job, Request
from corral.core.scheduling.backfill.planned_allocation import PlannedAllocation, end_if_started, is_limited
from corral.core.scheduling.placement.search import choose_gpus, could_hold, domains_for, has_cpu_and_memory
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.scheduling.reservations.windows import Terms
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import DomainIndex, Slot, places


class AllocationEnd(NamedTuple):
    at: float
    #: orders ends at the same time
    serial: int
    #: the resources that are released
    allocation: Allocation
    #: whether the allocation ends at this time at the latest; False if the end is a prediction
    is_firm: bool = True


#: An end as the search goes through it: time, serial number, source, what is released, and whether it is firm. Ends
#: with the same time and number differ by their source, so that allocations are never compared.
_End = tuple[float, int, int, Allocation, bool]
#: the source of ends of allocations that are planned and have not started yet
_PLANNED = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStartSearch:
    """Finds the earliest planned start of jobs that do not fit now.

    The fleet must already have the starts of this cycle and the resources held for other planned starts taken.
    """

    snapshot: ClusterSnapshot
    now: float
    reserved: Reserved
    #: ends of the starts of this cycle, soonest first
    started: Sequence[AllocationEnd] = ()
    #: planned starts that exist already
    others: Sequence[PlannedAllocation] = ()
    #: by job id: when running jobs end that are being preempted, or can be preempted, before their regular end
    sooner: Mapping[str, float] = field(default_factory=dict)

    def find(self, job: Job, pool: str) -> PlannedAllocation | None:
        """The earliest planned start over all domains that the job may use; None if no place can be named."""
        best: PlannedAllocation | None = None
        promises = _Promises(self.others)
        terms = self.reserved.terms(job, pool)
        confined = self.reserved.ever(job, pool)
        for index in domains_for(self.snapshot.fleet, job.request, pool):
            search = _DomainSearch(self, confined, index, promises, terms)
            if not search.could_ever_fit():
                continue
            found = search.earliest() if best is None else search.earliest_before(best.at)
            best = found or best
        return None if best is None else replace(best, job=job)


class _Promises:
    """Resources that other planned starts will take of what is yet to be released."""

    def __init__(self, others: Sequence[PlannedAllocation]) -> None:
        self.gpus = frozenset(gpu for planned in others for gpu in planned.allocation.gpus)
        self.cpu_milli: dict[str, int] = {}
        self.memory_bytes: dict[str, int] = {}
        for planned in others:
            for sign, part in ((1, planned.allocation), (-1, planned.held)):
                for grant in part.grants:
                    _add(self.cpu_milli, grant.node, sign * grant.cpu_milli)
                    _add(self.memory_bytes, grant.node, sign * grant.memory_bytes)
        self.ends = sorted(
            (
                AllocationEnd(
                    promised.ends_at,
                    promised.job.serial,
                    promised.allocation,
                    promised.is_firm and is_limited(promised.job),
                )
                for promised in others
            ),
            key=lambda item: item[:2],
        )
        # A GPU that is promised to several jobs, one after the other, is free again when the last of them ends.
        last = {gpu: end.serial for end in self.ends for gpu in end.allocation.gpus}
        self.ends = [end._replace(allocation=_less(end.allocation, end.serial, last)) for end in self.ends]


class _FutureNode:
    """One node as it will be when some allocations have ended."""

    __slots__ = ("cpu_milli", "free_milli", "is_firm", "job", "memory_bytes", "slot", "terms", "usable")

    def __init__(self, slot: Slot, index: DomainIndex, job: Job, promises: _Promises, terms: Terms | None) -> None:
        self.slot = slot
        self.job = job
        self.is_firm = True
        self.terms = terms
        there = slot.domains.get(index.domain, ())
        self.usable = [gpu for gpu in there if gpu not in job.avoid_gpus] if job.avoid_gpus else there
        self.free_milli = {gpu: slot.free_milli[gpu] for gpu in self.usable if gpu not in promises.gpus}
        self.cpu_milli = slot.free_cpu_milli - promises.cpu_milli.get(slot.node.id, 0)
        self.memory_bytes = slot.free_memory_bytes - promises.memory_bytes.get(slot.node.id, 0)

    def release(self, grant: Grant, promises: _Promises, *, by_planned: bool) -> None:
        for gpu in grant.gpus:
            if gpu in promises.gpus and not by_planned:
                continue  # the GPU goes to the job that it is promised to
            if gpu in self.free_milli:
                self.free_milli[gpu] += grant.gpu_milli
            elif by_planned and gpu in self.usable:
                self.free_milli[gpu] = grant.gpu_milli
        self.cpu_milli += grant.cpu_milli
        self.memory_bytes += grant.memory_bytes

    def open_milli(self, at: float) -> dict[str, int]:
        """The free part of each GPU that the job may start on at that time."""
        terms = self.terms
        if terms is None:
            return self.free_milli
        end = end_if_started(self.job, at)
        return {gpu: left for gpu, left in self.free_milli.items() if terms.allows(gpu, at, end)}

    def fits(self, request: Request, at: float) -> bool:
        if request.cpu_milli > max(0, self.cpu_milli) or request.memory_bytes > max(0, self.memory_bytes):
            return False
        if request.gpu_milli:
            return any(left >= request.gpu_milli for left in self.open_milli(at).values())
        return sum(left >= WHOLE for left in self.open_milli(at).values()) >= request.gpus

    def choose(self, request: Request, at: float) -> tuple[str, ...]:
        """GPUs that are in use now come first, so that GPUs that are free now stay open to other jobs."""
        if request.gpu_milli:
            fitting = [gpu for gpu, left in self.open_milli(at).items() if left >= request.gpu_milli]
            return (min(fitting, key=lambda gpu: self.slot.free_milli[gpu]),)
        whole = [gpu for gpu, left in self.open_milli(at).items() if left >= WHOLE]
        whole.sort(key=lambda gpu: self.slot.free_milli[gpu])
        return tuple(whole[: request.gpus])


class _FutureNodes:
    """The nodes on which resources are released. A `_FutureNode` is built only when the node could have enough GPUs:
    most nodes never get that far."""

    def __init__(self, index: DomainIndex, job: Job, promises: _Promises, terms: Terms | None) -> None:
        self._index = index
        self._job = job
        self._promises = promises
        self._terms = terms
        self._needed = 0 if job.request.gpu_milli else job.request.gpus
        self._built: dict[str, _FutureNode] = {}
        self._pending: dict[str, list[tuple[Grant, bool, bool]]] = {}
        #: an upper bound of the whole GPUs that the node will have free
        self._most: dict[str, int] = {}

    def release(self, slot: Slot, grant: Grant, *, by_planned: bool, is_firm: bool) -> _FutureNode | None:
        """The node after the release; None if it cannot have room yet."""
        node = self._built.get(grant.node)
        if node is not None:
            self._apply(node, grant, by_planned, is_firm)
            return node
        pending = self._pending.setdefault(grant.node, [])
        pending.append((grant, by_planned, is_firm))
        most = self._most.get(grant.node)
        if most is None:
            most = slot.seen[self._index.domain][0]
        self._most[grant.node] = most = most + len(grant.gpus)
        if most < self._needed:
            return None
        node = self._built[grant.node] = _FutureNode(slot, self._index, self._job, self._promises, self._terms)
        for promised in pending:
            self._apply(node, *promised)
        return node

    def _apply(self, node: _FutureNode, grant: Grant, by_planned: bool, is_firm: bool) -> None:
        node.release(grant, self._promises, by_planned=by_planned)
        node.is_firm &= is_firm


class _DomainSearch:
    """The search within one domain."""

    __slots__ = ("_among", "_fleet", "_index", "_job", "_now", "_promises", "_request", "_search", "_terms")

    def __init__(
        self, search: PlannedStartSearch, job: Job, index: DomainIndex, promises: _Promises, terms: Terms | None
    ) -> None:
        """`job` avoids the GPUs that reservations never open to it."""
        self._search = search
        self._fleet = search.snapshot.fleet
        self._now = search.now
        self._job = job
        self._request = job.request
        self._index = index
        self._promises = promises
        self._terms = terms
        #: the nodes that the job may use
        self._among = self._fleet.eligible(job.request.labels, job.avoid_nodes) & index.members

    def could_ever_fit(self) -> bool:
        """Whether the job would fit in the domain if all its nodes were empty."""
        slots = (self._fleet.slots[place] for place in places(self._among))
        holding = (slot for slot in slots if could_hold(slot, self._index, self._job))
        return len(list(islice(holding, self._request.nodes))) == self._request.nodes

    def earliest(self) -> PlannedAllocation | None:
        """The planned start at the soonest end that makes room; where no end is known to, without a time."""
        return self.earliest_before(math.inf) or self._without_end()

    def earliest_before(self, latest: float) -> PlannedAllocation | None:
        """Goes through the coming ends, of allocations and of reservation windows, until enough nodes have room. None
        if that is not before `latest`."""
        fleet, request, among, now, terms = self._fleet, self._request, self._among, self._now, self._terms
        future = _FutureNodes(self._index, self._job, self._promises, terms)
        ready = [node for slot in self._fitting_now() if (node := self._future(slot)).fits(request, now)]
        ready_nodes = {node.slot.node.id for node in ready}
        for end, _, source, allocation, is_firm in self._ends():
            at = max(end, now)
            if at >= latest:
                break
            by_planned = source == _PLANNED
            if terms is not None:
                # A GPU that is free until a window opens is not free any more when the job would run into the window.
                ready = [node for node in ready if node.fits(request, at)]
                ready_nodes = {node.slot.node.id for node in ready}
            for grant in allocation.grants:
                place = fleet.place_of.get(grant.node)
                if place is None or not among >> place & 1:
                    continue
                found = future.release(fleet.slots[place], grant, by_planned=by_planned, is_firm=is_firm)
                if found is not None and grant.node not in ready_nodes and found.fits(request, at):
                    ready.append(found)
                    ready_nodes.add(grant.node)
            if len(ready) >= request.nodes:
                chosen = ready[-request.nodes :]
                return self._planned(at, chosen, [node.choose(request, at) for node in chosen])
        return None

    def _ends(self) -> Iterator[_End]:
        """All ends of allocations that can matter to the request in this domain, and the openings of windows; soonest
        first."""
        search, terms, sooner = self._search, self._terms, self._search.sooner
        snapshot, model = search.snapshot, self._index.domain[1]
        # Jobs on other GPU models, and jobs without GPUs, release CPUs and memory too.
        needs_host = self._request.cpu_milli > 0 or self._request.memory_bytes > 0

        def running() -> Iterator[_End]:
            jobs = snapshot.jobs
            for end, serial, job_id in snapshot.ends(search.now):
                if job_id not in sooner:
                    job = jobs[job_id]
                    allocation = job.allocation
                    assert allocation is not None
                    if needs_host or allocation.model == model:
                        yield end, serial, 0, allocation, job.time_limit_seconds is not None

        def openings() -> Iterator[_End]:
            """Yields the times from which the job may use free GPUs of reserved nodes; nothing is released there."""
            home = snapshot.fleet.gpu_home
            for at, gpus in terms.openings if terms is not None else ():
                nodes = dict.fromkeys(home[gpu] for gpu in gpus if gpu in home)
                yield at, -1, 3, Allocation(grants=tuple(Grant(node=node) for node in nodes), model=model), True

        def others(ends: Iterable[AllocationEnd], source: int) -> Iterator[_End]:
            for at, serial, allocation, is_firm in ends:
                if needs_host or allocation.model == model:
                    yield at, serial, source, allocation, is_firm

        sources = [running()]
        if search.started:
            sources.append(others(search.started, 1))
        if self._promises.ends:
            sources.append(others(self._promises.ends, _PLANNED))
        if terms is not None:
            sources.append(openings())
        if sooner:
            jobs = ((at, snapshot.jobs[job_id]) for job_id, at in sooner.items())
            gone = [AllocationEnd(at, job.serial, job.allocation, False) for at, job in jobs if job.allocation]
            sources.append(others(sorted(gone, key=lambda item: item[:2]), 4))
        return heapq.merge(*sources) if len(sources) > 1 else sources[0]

    def _future(self, slot: Slot) -> _FutureNode:
        return _FutureNode(slot, self._index, self._job, self._promises, self._terms)

    def _fitting_now(self) -> Iterator[Slot]:
        """Nodes that have room now: a gang waits although some nodes have."""
        request = self._request
        if request.nodes == 1:
            return
        least = 0 if request.gpu_milli else request.gpus
        for place in places(self._index.with_whole(least) & self._among):
            slot = self._fleet.slots[place]
            if choose_gpus(slot, self._index, self._job) is not None and has_cpu_and_memory(slot, request):
                yield slot

    def _without_end(self) -> PlannedAllocation | None:
        """No end is known that would make room: hold the free GPUs of the nodes that miss the fewest."""
        job, index, fleet = self._job, self._index, self._fleet
        chosen: list[_FutureNode] = []
        for bits in reversed(index.whole):
            for place in places(bits & self._among):
                slot = fleet.slots[place]
                if not could_hold(slot, index, job) or any(
                    gpu in self._promises.gpus for gpu in slot.domains.get(index.domain, ())
                ):
                    continue
                chosen.append(self._future(slot))
                if len(chosen) == job.request.nodes:
                    needed = 1 if job.request.gpu_milli else job.request.gpus
                    # The freest GPUs first: free ones are held, when the others will be free is not known.
                    gpus = [
                        tuple(sorted(node.free_milli, key=lambda gpu: -node.slot.free_milli[gpu])[:needed])
                        for node in chosen
                    ]
                    return self._planned(math.inf, chosen, gpus)
        return None

    def _planned(self, at: float, chosen: Sequence[_FutureNode], gpus: Sequence[tuple[str, ...]]) -> PlannedAllocation:
        request, model, is_known = self._request, self._index.domain[1], math.isfinite(at)
        pairs = list(zip(chosen, gpus, strict=True))
        full = tuple(grant_on(node.slot.node.id, picked, request) for node, picked in pairs)
        held = [grant for node, picked in pairs for grant in self._held_on(node, picked, is_known=is_known)]
        return PlannedAllocation(
            job=self._job,
            at=at,
            allocation=Allocation(grants=full, model=model),
            held=Allocation(grants=tuple(held), model=model),
            is_firm=all(node.is_firm for node in chosen),
        )

    def _held_on(self, node: _FutureNode, gpus: tuple[str, ...], *, is_known: bool) -> Iterator[Grant]:
        """The resources of one node that must stay free: those that are needed and not released in time. One grant for
        each GPU, one for CPUs and memory."""
        request, slot, terms = self._request, node.slot, node.terms
        for gpu in gpus:
            if terms is not None and terms.is_reserved(gpu, self._now):
                continue  # reserved for its owners as long as the window is open: it cannot be held for this job
            # If the planned start is not known, all free resources that the job needs are held.
            later = node.free_milli[gpu] if is_known else slot.free_milli[gpu]
            milli = _short(request.gpu_milli or WHOLE, later, slot.free_milli[gpu])
            if milli:
                yield Grant(node=slot.node.id, gpus=(gpu,), gpu_milli=milli)
        yield Grant(
            node=slot.node.id,
            cpu_milli=_short(request.cpu_milli, node.cpu_milli, slot.free_cpu_milli),
            memory_bytes=_short(request.memory_bytes, node.memory_bytes, slot.free_memory_bytes),
        )


def _short(needed: int, later: int, now: int) -> int:
    """How much of what is free now must stay free, if `later` will be free at the planned start."""
    coming = max(0, later - max(0, now))
    return min(max(0, needed - coming), max(0, now))


def _less(allocation: Allocation, serial: int, last: Mapping[str, int]) -> Allocation:
    """The allocation without the GPUs that are promised to a later job."""
    if all(last[gpu] == serial for gpu in allocation.gpus):
        return allocation
    grants = (
        replace(grant, gpus=tuple(gpu for gpu in grant.gpus if last[gpu] == serial)) for grant in allocation.grants
    )
    return replace(allocation, grants=tuple(grants))


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    counts[key] = counts.get(key, 0) + amount
