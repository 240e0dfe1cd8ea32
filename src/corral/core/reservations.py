"""Reserved GPUs: who may start where, now and later.

A reservation sets GPUs aside for users and groups, for a window of time or standing. Its owners use them within the
window. Others may use them if they are surely gone when the window opens; or, where the reservation lends, if they can
be preempted when an owner comes. Under the strategy `static` a job runs on GPUs that are reserved for it, and nowhere
else.

A search knows nothing of all that: the job that it is given avoids what is closed to it, as it avoids what failed it.
All answers are made once per cycle and kind of user, and cost nothing where nothing is reserved.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from corral.core.fleet import Fleet
from corral.core.model import Allocation, Job, Queue, Reservation, Strategy
from corral.core.placing import find_place
from corral.core.quantities import format_duration
from corral.core.rules import Reason
from corral.core.snapshot import ClusterSnapshot

#: From when until when, the latter infinite for a standing reservation.
Window = tuple[float, float]
#: The names of reservations that somebody owns: users who own the same may start on the same GPUs.
Owned = frozenset[str]

#: how many reservations in the way are put into words; their number is always complete
TOLD = 5


def window_of(reservation: Reservation) -> Window:
    return reservation.since, math.inf if reservation.until is None else reservation.until


def is_active(reservation: Reservation, at: float) -> bool:
    since, until = window_of(reservation)
    return since <= at < until


def owns(snapshot: ClusterSnapshot, reservation: Reservation, user: str) -> bool:
    """Whether the user is named, or is in a group that is."""
    if user in reservation.users:
        return True
    member = snapshot.memberships.get(user)
    return member is not None and member.group is not None and member.group in reservation.groups


def in_force(snapshot: ClusterSnapshot, now: float) -> list[Reservation]:
    """Those that count from now on, soonest first. Where nothing is reserved standing, what once was does not count."""
    is_dynamic = snapshot.allocation.strategy is Strategy.DYNAMIC
    return sorted(
        (
            reservation
            for reservation in snapshot.reservations.values()
            if window_of(reservation)[1] > now and not (is_dynamic and reservation.until is None)
        ),
        key=lambda reservation: (reservation.since, reservation.name),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """When one kind of job may hold which GPUs of a pool."""

    #: windows in which others have a GPU reserved, by GPU
    others: Mapping[str, tuple[Window, ...]]
    #: those of them that are not lent to it
    closed: Mapping[str, tuple[Window, ...]]
    #: its own windows by GPU; None where what nobody has reserved is open to everybody
    own: Mapping[str, tuple[Window, ...]] | None
    #: when GPUs open to it, and which; only times to come, soonest first
    openings: tuple[tuple[float, tuple[str, ...]], ...]

    def allows(self, gpu: str, at: float, end: float) -> bool:
        """Whether it may start on the GPU at that time, if it stays until `end`."""
        if self.own is not None and not any(since <= at < until for since, until in self.own.get(gpu, ())):
            return False
        return not any(at < until and end > since for since, until in self.closed.get(gpu, ()))

    def ever_allows(self, gpu: str) -> bool:
        if self.own is not None and gpu not in self.own:
            return False
        return not any(until == math.inf for _, until in self.closed.get(gpu, ()))

    def is_anothers(self, gpu: str, at: float, end: float) -> bool:
        """Whether others have the GPU reserved at any moment of that time, lent or not."""
        return any(at < until and end > since for since, until in self.others.get(gpu, ()))

    def is_reserved(self, gpu: str, at: float) -> bool:
        """Whether it is others' turn on the GPU at that time, or not yet the job's own."""
        if self.own is not None and not any(since <= at < until for since, until in self.own.get(gpu, ())):
            return True
        return any(since <= at < until for since, until in self.others.get(gpu, ()))


class Reserved:
    """What is reserved, as of one moment."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self._snapshot = snapshot
        self._now = now
        self._is_static = snapshot.allocation.strategy is Strategy.STATIC
        #: by pool, soonest first
        self._pools: dict[str, list[Reservation]] = {}
        for reservation in in_force(snapshot, now) if snapshot.reservations else ():
            self._pools.setdefault(reservation.pool, []).append(reservation)
        #: by pool: when windows open
        self._sinces = {pool: sorted({one.since for one in found}) for pool, found in self._pools.items()}
        self._owned: dict[tuple[str, str], Owned] = {}
        self._terms: dict[tuple[str, Owned, bool], Terms] = {}
        self._lent: dict[str, dict[str, tuple[Reservation, dict[str, list[str]]]]] = {}
        #: nodes and GPUs that are shut to a kind of search
        self._shut: dict[tuple[object, ...], tuple[tuple[str, ...], tuple[str, ...]]] = {}

    @property
    def next_edge(self) -> float | None:
        """When a window opens or closes next."""
        edges = (edge for found in self._pools.values() for one in found for edge in window_of(one))
        return min((edge for edge in edges if self._now < edge < math.inf), default=None)

    def concerns(self, pool: str) -> bool:
        """Whether anything of the pool is closed to anybody, now or later."""
        return self._is_static or pool in self._pools

    def kind_of(self, pool: str) -> Callable[[str], Owned] | None:
        """Tells apart users of whom one may start where another may not; nothing where all are alike."""
        return (lambda user: self.owned_by(user, pool)) if self.concerns(pool) else None

    def owned_by(self, user: str, pool: str) -> Owned:
        known = self._owned.get((user, pool))
        if known is None:
            mine = (one.name for one in self._pools.get(pool, ()) if owns(self._snapshot, one, user))
            known = self._owned[user, pool] = frozenset(mine)
        return known

    def last_since(self, pool: str) -> float:
        """Who stays until then or longer may start where all may that stay longer still."""
        return self._sinces[pool][-1] if pool in self._sinces else -math.inf

    def searches(self, job: Job, pool: str, ends_at: float) -> tuple[Job, ...]:
        """The job as it is to be searched for now: one search, or better ones and then worse.

        Owners use their own GPUs first, then those that all share; what somebody might ask back comes last.
        """
        if not self.concerns(pool) or not job.request.wants_gpu:
            return (job,)
        now, terms, owned = self._now, self.terms(job, pool), self.owned_by(job.user, pool)
        kind = (pool, owned, self._may_borrow(job), bisect_left(self._sinces.get(pool, ()), ends_at))
        anywhere = self._avoiding(job, pool, (*kind, "any"), lambda gpu: terms.allows(gpu, now, ends_at))
        searches = [anywhere]
        if terms.others != terms.closed:
            safe = self._avoiding(
                job,
                pool,
                (*kind, "safe"),
                lambda gpu: not terms.is_anothers(gpu, now, ends_at) and terms.allows(gpu, now, ends_at),
            )
            searches.insert(0, safe)
        own = self.own_now(job.user, pool)
        if own and not self._is_static:
            mine = self._avoiding(job, pool, (*kind, "own"), lambda gpu: gpu in own and terms.allows(gpu, now, ends_at))
            searches.insert(0, mine)
        return tuple(searches)

    def ever(self, job: Job, pool: str) -> Job:
        """The job, avoiding what will never be open to it."""
        if not self.concerns(pool) or not job.request.wants_gpu:
            return job
        terms = self.terms(job, pool)
        kind = (pool, self.owned_by(job.user, pool), self._may_borrow(job), "ever")
        return self._avoiding(job, pool, kind, terms.ever_allows)

    def terms(self, job: Job, pool: str) -> Terms:
        key = (pool, self.owned_by(job.user, pool), self._may_borrow(job))
        known = self._terms.get(key)
        if known is None:
            known = self._terms[key] = self._terms_of(*key)
        return known

    def own_now(self, user: str, pool: str) -> frozenset[str]:
        """GPUs that are reserved for the user at this moment."""
        owned = self.owned_by(user, pool)
        if not owned:
            return frozenset()
        mine = (one for one in self._pools[pool] if one.name in owned and is_active(one, self._now))
        return frozenset(gpu for one in mine for gpu in one.gpus)

    def lent(self, pool: str) -> dict[str, tuple[Reservation, dict[str, list[str]]]]:
        """Reservations whose windows are open, and which of their GPUs jobs of others hold, by job."""
        known = self._lent.get(pool)
        if known is None:
            active = [one for one in self._pools.get(pool, ()) if is_active(one, self._now)]
            holders = self._holders({gpu for one in active for gpu in one.gpus})
            known = self._lent[pool] = {}
            for one in active:
                borrowed: dict[str, list[str]] = {}
                for gpu in one.gpus:
                    for job in holders.get(gpu, ()):
                        if one.name not in self.owned_by(job.user, pool):
                            borrowed.setdefault(job.id, []).append(gpu)
                known[one.name] = (one, borrowed)
        return known

    def shields(self, victim: Job, for_job: Job) -> bool:
        """Whether it runs on GPUs that are reserved for it and not for the other: those it would only get back."""
        queue = self._snapshot.queues.get(victim.queue)
        if queue is None or queue.pool not in self._pools or victim.allocation is None:
            return False
        own = self.own_now(victim.user, queue.pool)
        theirs = self.own_now(for_job.user, queue.pool) if own else own
        return any(gpu in own and gpu not in theirs for gpu in victim.allocation.gpus)

    def closed_to(self, job: Job, pool: str, ends_at: float) -> list[tuple[Reservation, tuple[str, ...]]]:
        """Reservations of others that keep the job from GPUs now, and from which; soonest first."""
        terms, owned = self.terms(job, pool), self.owned_by(job.user, pool)
        found = []
        for one in self._pools.get(pool, ()) if job.request.wants_gpu else ():
            if one.name not in owned and one.since < ends_at:
                gpus = tuple(gpu for gpu in one.gpus if window_of(one) in terms.closed.get(gpu, ()))
                if gpus:
                    found.append((one, gpus))
        return found

    def _holders(self, gpus: Collection[str]) -> dict[str, list[Job]]:
        found: dict[str, list[Job]] = {}
        if gpus:
            for _, _, job_id in self._snapshot.releases:
                job = self._snapshot.jobs[job_id]
                for gpu in job.allocation.gpus if job.allocation is not None else ():
                    if gpu in gpus:
                        found.setdefault(gpu, []).append(job)
        return found

    def _may_borrow(self, job: Job) -> bool:
        """What is lent comes back by preempting: where nobody is preempted, nothing is lent."""
        return job.preemptible and self._snapshot.preemption.enabled and not self._is_static

    def _terms_of(self, pool: str, owned: Owned, may_borrow: bool) -> Terms:
        found = self._pools.get(pool, [])
        own = [one for one in found if one.name in owned]
        others = [one for one in found if one.name not in owned]
        closed = [one for one in others if not (one.lends and may_borrow)]
        opening: dict[float, dict[str, None]] = {}
        for one in own if self._is_static else ():
            opening.setdefault(one.since, {}).update(dict.fromkeys(one.gpus))
        for one in closed:
            opening.setdefault(window_of(one)[1], {}).update(dict.fromkeys(one.gpus))
        return Terms(
            others=_by_gpu(others),
            closed=_by_gpu(closed),
            own=_by_gpu(own) if self._is_static else None,
            openings=tuple((at, tuple(opening[at])) for at in sorted(opening) if self._now < at < math.inf),
        )

    def _avoiding(self, job: Job, pool: str, kind: tuple[object, ...], is_open: Callable[[str], bool]) -> Job:
        shut = self._shut.get(kind)
        if shut is None:
            shut = self._shut[kind] = self._shut_places(pool, is_open)
        nodes, gpus = shut
        if not nodes and not gpus:
            return job
        return replace(job, avoid_nodes=(*job.avoid_nodes, *nodes), avoid_gpus=(*job.avoid_gpus, *gpus))

    def _shut_places(self, pool: str, is_open: Callable[[str], bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nodes of which no GPU of the pool is open, and single GPUs of the others: a search looks at no node twice."""
        nodes: list[str] = []
        gpus: list[str] = []
        for slot in self._snapshot.fleet.slots:
            mine = [gpu for gpu in slot.node.gpus if gpu.pool == pool]
            shut = [gpu.id for gpu in mine if not is_open(gpu.id)]
            if shut and len(shut) == len(mine):
                nodes.append(slot.node.id)
            else:
                gpus += shut
        return tuple(nodes), tuple(gpus)


def find_open_place(reserved: Reserved, fleet: Fleet, job: Job, queue: Queue, ends_at: float) -> Allocation | None:
    """Where the job may start now, around what is reserved for others."""
    for searched in reserved.searches(job, queue.pool, ends_at):
        allocation = find_place(fleet, searched, queue.pool, queue.placement)
        if allocation is not None:
            return allocation
    return None


def reserved_reason(
    snapshot: ClusterSnapshot, reserved: Reserved, job: Job, pool: str, now: float, ends_at: float
) -> Reason | None:
    """What is reserved for others, or, under `static`, not reserved for this job; in words and numbers."""
    if not reserved.concerns(pool) or not job.request.wants_gpu:
        return None
    if snapshot.allocation.strategy is Strategy.STATIC:
        return _not_reserved_for(snapshot, reserved, job, pool, now)
    closed = reserved.closed_to(job, pool, ends_at)
    if not closed:
        return None
    gpus = {gpu for _, names in closed for gpu in names}
    words = "; ".join(
        f"{len(names)} by {one.name} for {_owners(one)} {window_words(one, now)}" for one, names in closed[:TOLD]
    )
    more = f"; {len(closed) - TOLD} more reservations" if len(closed) > TOLD else ""
    detail = f"{_gpus(len(gpus))} of pool {pool} {'is' if len(gpus) == 1 else 'are'} reserved: {words}{more}"
    lending = [one.name for one, _ in closed if one.lends]
    if lending and not job.preemptible:
        detail += "; what is lent is lent to preemptible jobs only"
    return Reason(
        rule="reserved",
        detail=detail,
        numbers={
            "reserved_gpus": len(gpus),
            "free_reserved_gpus": sum(_is_free(snapshot, gpu) for gpu in gpus),
            "reservations": ", ".join(one.name for one, _ in closed),
            **_opens_in(reserved.terms(job, pool), now),
        },
    )


def window_words(reservation: Reservation, now: float) -> str:
    """When, as seen from now."""
    since, until = window_of(reservation)
    if since <= now:
        return "standing" if until == math.inf else f"for {format_duration(max(1.0, until - now))} more"
    begins = f"from {format_duration(max(1.0, since - now))} from now on"
    return begins if until == math.inf else f"{begins}, for {format_duration(until - since)}"


def _not_reserved_for(snapshot: ClusterSnapshot, reserved: Reserved, job: Job, pool: str, now: float) -> Reason | None:
    terms = reserved.terms(job, pool)
    own = reserved.own_now(job.user, pool)
    detail = (
        f"allocation is static: {job.user} may use what is reserved for {job.user} in pool {pool}, "
        f"which is {_gpus(len(own)) if own else 'nothing'} now"
    )
    opens = _opens_in(terms, now)
    if opens:
        detail += f"; more opens in {format_duration(max(1.0, opens['opens_in_seconds']))}"
    numbers: dict[str, float | int | str] = {
        "own_gpus": len(own),
        "free_own_gpus": sum(_is_free(snapshot, gpu) for gpu in own),
        **opens,
    }
    return Reason(rule="reserved", detail=detail, numbers=numbers)


def _opens_in(terms: Terms, now: float) -> dict[str, float]:
    return {"opens_in_seconds": terms.openings[0][0] - now} if terms.openings else {}


def _owners(reservation: Reservation) -> str:
    names = [*reservation.users, *(f"group {group}" for group in reservation.groups)]
    return ", ".join(names[:TOLD]) + (f" and {len(names) - TOLD} more" if len(names) > TOLD else "")


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _is_free(snapshot: ClusterSnapshot, gpu: str) -> bool:
    fleet = snapshot.fleet
    home = fleet.gpu_home.get(gpu)
    return home is not None and fleet.slot(home).free_milli[gpu] > 0


def _by_gpu(reservations: Iterable[Reservation]) -> dict[str, tuple[Window, ...]]:
    found: dict[str, tuple[Window, ...]] = {}
    for one in reservations:
        for gpu in one.gpus:
            found[gpu] = (*found.get(gpu, ()), window_of(one))
    return found
