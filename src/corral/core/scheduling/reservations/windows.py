"""Windows of reserved GPUs: their owners, when they are open, and which GPUs are closed to which kind of job.

Which GPUs are closed changes when a window opens or closes, and with reservations, groups, rules and nodes; not with
starts and ends of jobs. So it is computed once and kept until then (`Layout`), however many cycles there are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from corral.core.model import Job
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Strategy

#: Since when and until when; the latter is infinite for a standing reservation.
Window = tuple[float, float]
#: The names of the reservations of a user: users with the same reservations may start on the same GPUs.
Owned = frozenset[str]
#: Nodes and single GPUs that a search must avoid.
ClosedPlaces = tuple[tuple[str, ...], tuple[str, ...]]


def window_of(reservation: Reservation) -> Window:
    return reservation.since, math.inf if reservation.until is None else reservation.until


def is_active(reservation: Reservation, at: float) -> bool:
    since, until = window_of(reservation)
    return since <= at < until


def owns(snapshot: ClusterSnapshot, reservation: Reservation, user: str) -> bool:
    """Whether the reservation names the user or the user's group."""
    if user in reservation.users:
        return True
    member = snapshot.memberships.get(user)
    return member is not None and member.group is not None and member.group in reservation.groups


def in_force(snapshot: ClusterSnapshot, now: float) -> list[Reservation]:
    """The reservations that apply from now on, soonest first. Under `dynamic` standing ones do not apply."""
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

    #: by GPU: windows in which other users have reserved it
    others: Mapping[str, tuple[Window, ...]]
    #: by GPU: those of the windows in which it is not lent to the job
    closed: Mapping[str, tuple[Window, ...]]
    #: by GPU: windows of the job's owner; None unless the strategy is `static`: then GPUs without a reservation are
    #: open
    own: Mapping[str, tuple[Window, ...]] | None
    #: whether other users lend GPUs to the job
    borrows: bool
    #: when GPUs open to the job, and which; only future times, soonest first
    openings: tuple[tuple[float, tuple[str, ...]], ...]

    def allows(self, gpu: str, at: float, end: float) -> bool:
        """Whether the job may start on the GPU at that time and run until `end`."""
        if self.own is not None and not any(since <= at < until for since, until in self.own.get(gpu, ())):
            return False
        return not any(at < until and end > since for since, until in self.closed.get(gpu, ()))

    def ever_allows(self, gpu: str) -> bool:
        if self.own is not None and gpu not in self.own:
            return False
        return not any(until == math.inf for _, until in self.closed.get(gpu, ()))

    def is_reserved_by_others(self, gpu: str, at: float, end: float) -> bool:
        """Whether other users have reserved the GPU at any moment of that time, lent or not."""
        return any(at < until and end > since for since, until in self.others.get(gpu, ()))

    def is_reserved(self, gpu: str, at: float) -> bool:
        """Whether the GPU is reserved for other users at that time or, under `static`, not for the job's owner."""
        if self.own is not None and not any(since <= at < until for since, until in self.own.get(gpu, ())):
            return True
        return any(since <= at < until for since, until in self.others.get(gpu, ()))


class Layout:
    """The GPUs that each kind of job may start on, from one edge of a window to the next."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self._snapshot = snapshot
        self._revision = snapshot.reserving_revision
        self._now = now
        self.is_static = snapshot.allocation.strategy is Strategy.STATIC
        #: by pool, soonest first
        self.pools: dict[str, list[Reservation]] = {}
        for reservation in in_force(snapshot, now):
            self.pools.setdefault(reservation.pool, []).append(reservation)
        #: by pool: when windows open
        self.opening_times = {
            pool: sorted({reservation.since for reservation in found}) for pool, found in self.pools.items()
        }
        edges = [edge for found in self.pools.values() for reservation in found for edge in window_of(reservation)]
        self._begins = max((edge for edge in edges if edge <= now), default=-math.inf)
        self.ends = min((edge for edge in edges if edge > now), default=math.inf)
        self._owned: dict[tuple[str, str], Owned] = {}
        self._own_now: dict[tuple[str, Owned], frozenset[str]] = {}
        self._terms: dict[tuple[str, Owned, bool], Terms] = {}
        self._closed: dict[tuple[object, ...], ClosedPlaces] = {}
        self._gpus_on: dict[str, list[tuple[str, list[str]]]] = {}

    def holds(self, snapshot: ClusterSnapshot, now: float) -> bool:
        return self._revision == snapshot.reserving_revision and self._begins <= now < self.ends

    def concerns(self, pool: str) -> bool:
        """Whether any GPU of the pool is closed to any user, now or later."""
        return self.is_static or pool in self.pools

    def owned_by(self, user: str, pool: str) -> Owned:
        known = self._owned.get((user, pool))
        if known is None:
            own = (
                reservation.name for reservation in self.pools.get(pool, ()) if owns(self._snapshot, reservation, user)
            )
            known = self._owned[user, pool] = frozenset(own)
        return known

    def own_now(self, user: str, pool: str) -> frozenset[str]:
        """GPUs that are reserved for the user in open windows."""
        key = (pool, self.owned_by(user, pool))
        known = self._own_now.get(key)
        if known is None:
            own = (
                reservation
                for reservation in self.pools.get(pool, ())
                if reservation.name in key[1] and is_active(reservation, self._now)
            )
            known = self._own_now[key] = frozenset(gpu for reservation in own for gpu in reservation.gpus)
        return known

    def may_borrow(self, job: Job) -> bool:
        """Whether other users lend GPUs to the job: only with preemption, by which lent GPUs are reclaimed."""
        return job.preemptible and self._snapshot.preemption.enabled and not self.is_static

    def terms(self, job: Job, pool: str) -> Terms:
        key = (pool, self.owned_by(job.user, pool), self.may_borrow(job))
        known = self._terms.get(key)
        if known is None:
            known = self._terms[key] = self._terms_of(*key)
        return known

    def closed_places(self, job: Job, pool: str, ends_at: float) -> ClosedPlaces:
        """The places that the job may not start on now."""
        terms, now = self.terms(job, pool), self._now
        return self._find_closed("any", job, pool, ends_at, lambda gpu: terms.allows(gpu, now, ends_at))

    def closed_or_reclaimable_places(self, job: Job, pool: str, ends_at: float) -> ClosedPlaces:
        """The places that the job may not start on, and those that owners could reclaim from it."""
        terms, now = self.terms(job, pool), self._now
        return self._find_closed(
            "safe",
            job,
            pool,
            ends_at,
            lambda gpu: not terms.is_reserved_by_others(gpu, now, ends_at) and terms.allows(gpu, now, ends_at),
        )

    def places_not_reserved_for_owner(self, job: Job, pool: str, ends_at: float) -> ClosedPlaces:
        """All places except those reserved for the job's owner now."""
        terms, now, own = self.terms(job, pool), self._now, self.own_now(job.user, pool)
        return self._find_closed(
            "own", job, pool, ends_at, lambda gpu: gpu in own and terms.allows(gpu, now, ends_at), among_all=True
        )

    def never_open_places(self, job: Job, pool: str) -> ClosedPlaces:
        return self._find_closed("ever", job, pool, math.inf, self.terms(job, pool).ever_allows)

    def _terms_of(self, pool: str, owned: Owned, may_borrow: bool) -> Terms:
        found = self.pools.get(pool, [])
        own = [reservation for reservation in found if reservation.name in owned]
        others = [reservation for reservation in found if reservation.name not in owned]
        closed = [reservation for reservation in others if not (reservation.lends and may_borrow)]
        opening: dict[float, dict[str, None]] = {}
        for reservation in own if self.is_static else ():
            opening.setdefault(reservation.since, {}).update(dict.fromkeys(reservation.gpus))
        for reservation in closed:
            opening.setdefault(window_of(reservation)[1], {}).update(dict.fromkeys(reservation.gpus))
        return Terms(
            others=_by_gpu(others),
            closed=_by_gpu(closed),
            borrows=len(closed) < len(others),
            own=_by_gpu(own) if self.is_static else None,
            openings=tuple((at, tuple(opening[at])) for at in sorted(opening) if self._now < at < math.inf),
        )

    def _find_closed(
        self,
        what: str,
        job: Job,
        pool: str,
        ends_at: float,
        is_open: Callable[[str], bool],
        *,
        among_all: bool = False,
    ) -> ClosedPlaces:
        """Cached: of the job's end only the number of windows that open before it matters."""
        reached = bisect_left(self.opening_times.get(pool, ()), ends_at)
        key = (what, pool, self.owned_by(job.user, pool), self.may_borrow(job), reached)
        known = self._closed.get(key)
        if known is None:
            known = self._closed[key] = self._list_closed(pool, is_open, among_all=among_all or self.is_static)
        return known

    def _list_closed(self, pool: str, is_open: Callable[[str], bool], *, among_all: bool) -> ClosedPlaces:
        """Nodes without an open GPU of the pool, so that a search skips them as a whole; and single closed GPUs of the
        other nodes."""
        nodes: list[str] = []
        gpus: list[str] = []
        reserved = {gpu for reservation in self.pools.get(pool, ()) for gpu in reservation.gpus}
        for node, present in self._gpus_of(pool):
            closed = [gpu for gpu in present if (among_all or gpu in reserved) and not is_open(gpu)]
            if closed and len(closed) == len(present):
                nodes.append(node)
            else:
                gpus += closed
        return tuple(nodes), tuple(gpus)

    def _gpus_of(self, pool: str) -> list[tuple[str, list[str]]]:
        known = self._gpus_on.get(pool)
        if known is None:
            slots = self._snapshot.fleet.slots
            found = ((slot.node.id, [gpu.id for gpu in slot.node.gpus if gpu.pool == pool]) for slot in slots)
            known = self._gpus_on[pool] = [(node, gpus) for node, gpus in found if gpus]
        return known


def layout_of(snapshot: ClusterSnapshot, now: float) -> Layout:
    """The cached layout, if it is still valid; otherwise a new one."""
    kept = snapshot.reserving
    if not isinstance(kept, Layout) or not kept.holds(snapshot, now):
        kept = snapshot.reserving = Layout(snapshot, now)
    return kept


def _by_gpu(reservations: Iterable[Reservation]) -> dict[str, tuple[Window, ...]]:
    found: dict[str, tuple[Window, ...]] = {}
    for reservation in reservations:
        for gpu in reservation.gpus:
            found[gpu] = (*found.get(gpu, ()), window_of(reservation))
    return found
