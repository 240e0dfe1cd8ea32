"""The protected start: when and where the first job that waits will run, and what is kept for it until then.

The answer follows from when the present allocations end: at the latest, or without a time limit as predicted, and then
it is not firm. What the job will need and what is free already is held; the rest comes back in time. A later job may
pass on everything else, or on the held part if it is gone before the planned start.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from corral.core.fleet.resources import grant_on
from corral.core.model import WHOLE, Allocation, Grant, Job, Request
from corral.core.scheduling.placement.search import choose_gpus, could_hold, domains_for, has_cpu_and_memory
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.scheduling.reservations.windows import Terms
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import DomainIndex, Fleet, Slot, places


class Return(NamedTuple):
    """An end of an allocation."""

    at: float
    #: a tie-break
    serial: int
    #: what comes back
    allocation: Allocation
    #: whether it is at the latest then
    is_firm: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtectedStart:
    job: Job
    at: float
    #: what the job will get at that time
    allocation: Allocation
    #: the part of it that is free now and is kept
    held: Allocation
    #: whether it rests on time limits alone, and on no prediction
    is_firm: bool = True

    @property
    def ends_at(self) -> float:
        return likely_end_if_started(self.job, self.at)


def end_if_started(job: Job, at: float) -> float:
    """When the job's resources are free again at the latest, if it starts at that time."""
    return math.inf if job.time_limit_seconds is None else at + job.time_limit_seconds + job.grace_seconds


def is_limited(job: Job) -> bool:
    return job.time_limit_seconds is not None


def likely_end_if_started(job: Job, at: float) -> float:
    """The same, and without a time limit as it is predicted."""
    if job.time_limit_seconds is not None or job.predicted is None:
        return end_if_started(job, at)
    return at + job.predicted.p90_seconds + job.grace_seconds


def protect(
    snapshot: ClusterSnapshot,
    job: Job,
    pool: str,
    now: float,
    *,
    started: Sequence[Return],
    others: Sequence[ProtectedStart],
    reserved: Reserved,
    sooner: Mapping[str, float] = MappingProxyType({}),
) -> ProtectedStart | None:
    """The earliest protected start of a job that does not fit now; nothing if it cannot be told where it could ever
    run.

    `started` are this cycle's starts, sorted; the fleet has them and the holds of other protected starts taken already.
    `sooner` says when running jobs are gone that give way, or could be made to: sooner than they would end.
    """
    best: ProtectedStart | None = None
    promised = _Promised(others)
    terms = reserved.terms(job, pool)
    confined = reserved.ever(job, pool)
    for index in domains_for(snapshot.fleet, job.request, pool):
        found = _earliest(snapshot, confined, index, now, started, promised, terms, sooner)
        if found is not None and (best is None or found.at < best.at):
            best = found
    return None if best is None else replace(best, job=job)


class _Promised:
    """What other protected starts will take of resources that are yet to come back."""

    def __init__(self, others: Sequence[ProtectedStart]) -> None:
        self.gpus = frozenset(gpu for r in others for gpu in r.allocation.gpus)
        self.cpu_milli: dict[str, int] = {}
        self.memory_bytes: dict[str, int] = {}
        for protected in others:
            for sign, part in ((1, protected.allocation), (-1, protected.held)):
                for grant in part.grants:
                    _add(self.cpu_milli, grant.node, sign * grant.cpu_milli)
                    _add(self.memory_bytes, grant.node, sign * grant.memory_bytes)
        self.returns = sorted(
            (Return(r.ends_at, r.job.serial, r.allocation, r.is_firm and is_limited(r.job)) for r in others),
            key=lambda item: item[:2],
        )
        # A GPU that is promised to one after the other is free again when the last of them is done.
        last = {gpu: one.serial for one in self.returns for gpu in one.allocation.gpus}
        self.returns = [one._replace(allocation=_less(one.allocation, one.serial, last)) for one in self.returns]


class _Outlook:
    """One node as it will be when some allocations have ended."""

    __slots__ = ("cpu_milli", "free_milli", "is_firm", "job", "memory_bytes", "slot", "terms", "usable")

    def __init__(self, slot: Slot, index: DomainIndex, job: Job, promised: _Promised, terms: Terms | None) -> None:
        self.slot = slot
        self.job = job
        self.is_firm = True
        self.terms = terms
        there = slot.domains.get(index.domain, ())
        self.usable = [gpu for gpu in there if gpu not in job.avoid_gpus] if job.avoid_gpus else there
        self.free_milli = {gpu: slot.free_milli[gpu] for gpu in self.usable if gpu not in promised.gpus}
        self.cpu_milli = slot.free_cpu_milli - promised.cpu_milli.get(slot.node.id, 0)
        self.memory_bytes = slot.free_memory_bytes - promised.memory_bytes.get(slot.node.id, 0)

    def give_back(self, grant: Grant, promised: _Promised, *, by_protected: bool) -> None:
        for gpu in grant.gpus:
            if gpu in promised.gpus and not by_protected:
                continue  # it goes to the one it was promised to
            if gpu in self.free_milli:
                self.free_milli[gpu] += grant.gpu_milli
            elif by_protected and gpu in self.usable:
                self.free_milli[gpu] = grant.gpu_milli
        self.cpu_milli += grant.cpu_milli
        self.memory_bytes += grant.memory_bytes

    def open_milli(self, at: float) -> dict[str, int]:
        """What will be free of the GPUs that the job may start on at that time."""
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
        """GPUs that are still in use now come first, so that those free now stay open to others."""
        if request.gpu_milli:
            fitting = [gpu for gpu, left in self.open_milli(at).items() if left >= request.gpu_milli]
            return (min(fitting, key=lambda gpu: self.slot.free_milli[gpu]),)
        whole = [gpu for gpu, left in self.open_milli(at).items() if left >= WHOLE]
        whole.sort(key=lambda gpu: self.slot.free_milli[gpu])
        return tuple(whole[: request.gpus])


class _Outlooks:
    """The nodes on which something comes back. One is looked at only when it could have enough GPUs: most never come
    so far."""

    def __init__(self, index: DomainIndex, job: Job, promised: _Promised, terms: Terms | None) -> None:
        self._index = index
        self._job = job
        self._promised = promised
        self._terms = terms
        self._needed = 0 if job.request.gpu_milli else job.request.gpus
        self._looked_at: dict[str, _Outlook] = {}
        self._unread: dict[str, list[tuple[Grant, bool, bool]]] = {}
        #: at most so many whole GPUs
        self._most: dict[str, int] = {}

    def give_back(self, slot: Slot, grant: Grant, *, by_protected: bool, is_firm: bool) -> _Outlook | None:
        """The node as it is with that; None if it cannot have room."""
        outlook = self._looked_at.get(grant.node)
        if outlook is not None:
            self._read(outlook, grant, by_protected, is_firm)
            return outlook
        unread = self._unread.setdefault(grant.node, [])
        unread.append((grant, by_protected, is_firm))
        most = self._most.get(grant.node)
        if most is None:
            most = slot.seen[self._index.domain][0]
        self._most[grant.node] = most = most + len(grant.gpus)
        if most < self._needed:
            return None
        outlook = self._looked_at[grant.node] = _Outlook(slot, self._index, self._job, self._promised, self._terms)
        for one in unread:
            self._read(outlook, *one)
        return outlook

    def _read(self, outlook: _Outlook, grant: Grant, by_protected: bool, is_firm: bool) -> None:
        outlook.give_back(grant, self._promised, by_protected=by_protected)
        outlook.is_firm &= is_firm


def _earliest(
    snapshot: ClusterSnapshot,
    job: Job,
    index: DomainIndex,
    now: float,
    started: Sequence[Return],
    promised: _Promised,
    terms: Terms | None,
    sooner: Mapping[str, float],
) -> ProtectedStart | None:
    """Walk through the coming ends, of allocations and of windows, until enough nodes have room."""
    fleet, request = snapshot.fleet, job.request
    among = fleet.eligible(request.labels, job.avoid_nodes) & index.members
    outlooks = _Outlooks(index, job, promised, terms)
    ready = [_Outlook(slot, index, job, promised, terms) for slot in _fitting_now(fleet, index, job, among)]
    ready = [outlook for outlook in ready if outlook.fits(request, now)]
    ready_nodes = {outlook.slot.node.id for outlook in ready}
    for (end, _, allocation, is_firm), by_protected in _coming(
        snapshot, index, request, now, started, promised, terms, sooner
    ):
        if not math.isfinite(end):
            break
        at = max(end, now)
        if terms is not None:
            # What is free until a window opens is not free any more when the job would run into it.
            ready = [outlook for outlook in ready if outlook.fits(request, at)]
            ready_nodes = {outlook.slot.node.id for outlook in ready}
        for grant in allocation.grants:
            place = fleet.place_of.get(grant.node)
            if place is None or not among >> place & 1:
                continue
            outlook = outlooks.give_back(fleet.slots[place], grant, by_protected=by_protected, is_firm=is_firm)
            if outlook is not None and grant.node not in ready_nodes and outlook.fits(request, at):
                ready.append(outlook)
                ready_nodes.add(grant.node)
        if len(ready) >= request.nodes:
            chosen = ready[-request.nodes :]
            return _protected(job, at, now, index, chosen, [outlook.choose(request, at) for outlook in chosen])
    return _without_end(fleet, job, index, among, promised, terms, now)


def _coming(
    snapshot: ClusterSnapshot,
    index: DomainIndex,
    request: Request,
    now: float,
    started: Sequence[Return],
    promised: _Promised,
    terms: Terms | None,
    sooner: Mapping[str, float],
) -> Iterator[tuple[Return, bool]]:
    """All ends of allocations that can matter to the request in this domain, and of windows; soonest first. With each,
    whether it is the end of one that is yet to start."""
    model = index.domain[1]
    # CPUs and memory come back from work on any model, and from work without GPUs.
    needs_host = request.cpu_milli > 0 or request.memory_bytes > 0

    def running() -> Iterator[Return]:
        for end, serial, job_id in snapshot.ends(now):
            if job_id not in sooner:
                job = snapshot.jobs[job_id]
                assert job.allocation is not None
                yield Return(end, serial, job.allocation, is_limited(job))

    def openings() -> Iterator[Return]:
        """Nothing comes back, but what is free on these nodes may now be had."""
        home = snapshot.fleet.gpu_home
        for at, gpus in terms.openings if terms is not None else ():
            nodes = dict.fromkeys(home[gpu] for gpu in gpus if gpu in home)
            yield Return(at, -1, Allocation(grants=tuple(Grant(node=node) for node in nodes), model=model))

    def tagged(returns: Iterable[Return], by_protected: bool) -> Iterator[tuple[Return, bool]]:
        return ((one, by_protected) for one in returns)

    sources = [tagged(running(), False), tagged(started, False), tagged(promised.returns, True)]
    if terms is not None:
        sources.append(tagged(openings(), False))
    if sooner:
        jobs = ((at, snapshot.jobs[job_id]) for job_id, at in sooner.items())
        gone = [Return(at, one.serial, one.allocation, False) for at, one in jobs if one.allocation]
        sources.append(tagged(sorted(gone, key=lambda item: item[:2]), False))
    for item in heapq.merge(*sources, key=lambda item: item[0][:2]):
        if needs_host or item[0].allocation.model == model:
            yield item


def _fitting_now(fleet: Fleet, index: DomainIndex, job: Job, among: int) -> Iterator[Slot]:
    """A gang waits although some nodes have room: those."""
    if job.request.nodes == 1:
        return
    least = 0 if job.request.gpu_milli else job.request.gpus
    for place in places(index.with_whole(least) & among):
        slot = fleet.slots[place]
        if choose_gpus(slot, index, job) is not None and has_cpu_and_memory(slot, job.request):
            yield slot


def _without_end(
    fleet: Fleet,
    job: Job,
    index: DomainIndex,
    among: int,
    promised: _Promised,
    terms: Terms | None,
    now: float,
) -> ProtectedStart | None:
    """Nothing it waits for has a known end: keep what is free on the nodes that miss the least."""
    chosen: list[_Outlook] = []
    for bits in reversed(index.whole):
        for place in places(bits & among):
            slot = fleet.slots[place]
            if not could_hold(slot, index, job) or any(
                gpu in promised.gpus for gpu in slot.domains.get(index.domain, ())
            ):
                continue
            chosen.append(_Outlook(slot, index, job, promised, terms))
            if len(chosen) == job.request.nodes:
                needed = 1 if job.request.gpu_milli else job.request.gpus
                # The freest GPUs first: what is free is held, the rest is hoped for.
                gpus = [
                    tuple(sorted(outlook.free_milli, key=lambda gpu: -outlook.slot.free_milli[gpu])[:needed])
                    for outlook in chosen
                ]
                return _protected(job, math.inf, now, index, chosen, gpus)
    return None


def _protected(
    job: Job, at: float, now: float, index: DomainIndex, chosen: Sequence[_Outlook], gpus: Sequence[tuple[str, ...]]
) -> ProtectedStart:
    request, model = job.request, index.domain[1]
    full = tuple(grant_on(outlook.slot.node.id, picked, request) for outlook, picked in zip(chosen, gpus, strict=True))
    held = [
        grant
        for outlook, picked in zip(chosen, gpus, strict=True)
        for grant in _held_on(outlook, picked, request, now, known=math.isfinite(at))
    ]
    return ProtectedStart(
        job=job,
        at=at,
        allocation=Allocation(grants=full, model=model),
        held=Allocation(grants=tuple(held), model=model),
        is_firm=all(outlook.is_firm for outlook in chosen),
    )


def _held_on(outlook: _Outlook, gpus: tuple[str, ...], request: Request, now: float, *, known: bool) -> Iterator[Grant]:
    """What must stay free on one node:

    The need, less what comes back in time. One grant for each GPU, one for the rest.
    """
    slot, terms = outlook.slot, outlook.terms
    for gpu in gpus:
        if terms is not None and terms.is_reserved(gpu, now):
            continue  # promised to its owners for as long as the window lasts: nothing is kept from them
        # With nothing known to come back, all that is free and needed is kept.
        later = outlook.free_milli[gpu] if known else slot.free_milli[gpu]
        milli = _short(request.gpu_milli or WHOLE, later, slot.free_milli[gpu])
        if milli:
            yield Grant(node=slot.node.id, gpus=(gpu,), gpu_milli=milli)
    yield Grant(
        node=slot.node.id,
        cpu_milli=_short(request.cpu_milli, outlook.cpu_milli, slot.free_cpu_milli),
        memory_bytes=_short(request.memory_bytes, outlook.memory_bytes, slot.free_memory_bytes),
    )


def free_part(fleet: Fleet, allocation: Allocation) -> Allocation:
    """What is free now of an allocation: one grant for each GPU, one for the rest of each node."""
    grants = []
    for grant in allocation.grants:
        slot = fleet.slot(grant.node)
        for gpu in grant.gpus:
            milli = min(grant.gpu_milli, slot.free_milli[gpu])
            if milli:
                grants.append(Grant(node=grant.node, gpus=(gpu,), gpu_milli=milli))
        grants.append(
            Grant(
                node=grant.node,
                cpu_milli=min(grant.cpu_milli, max(0, slot.free_cpu_milli)),
                memory_bytes=min(grant.memory_bytes, max(0, slot.free_memory_bytes)),
            )
        )
    return replace(allocation, grants=tuple(grants))


def still_held(fleet: Fleet, protected: ProtectedStart) -> ProtectedStart:
    """The protected start after another job, which will be gone in time, took some of what was held."""
    grants = []
    for grant in protected.held.grants:
        slot = fleet.slot(grant.node)
        if grant.gpus:
            milli = min(grant.gpu_milli, slot.free_milli[grant.gpus[0]])
            if milli:
                grants.append(replace(grant, gpu_milli=milli))
        else:
            cpu_milli = min(grant.cpu_milli, max(0, slot.free_cpu_milli))
            memory_bytes = min(grant.memory_bytes, max(0, slot.free_memory_bytes))
            grants.append(replace(grant, cpu_milli=cpu_milli, memory_bytes=memory_bytes))
    return replace(protected, held=Allocation(grants=tuple(grants), model=protected.held.model))


def _short(needed: int, later: int, now: int) -> int:
    """How much of what is free now must stay free, when `later` will be free at the planned start."""
    coming = max(0, later - max(0, now))
    return min(max(0, needed - coming), max(0, now))


def _less(allocation: Allocation, serial: int, last: Mapping[str, int]) -> Allocation:
    """The allocation without GPUs that go on to somebody else."""
    if all(last[gpu] == serial for gpu in allocation.gpus):
        return allocation
    grants = (
        replace(grant, gpus=tuple(gpu for gpu in grant.gpus if last[gpu] == serial)) for grant in allocation.grants
    )
    return replace(allocation, grants=tuple(grants))


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    counts[key] = counts.get(key, 0) + amount
