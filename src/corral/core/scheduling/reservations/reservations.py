"""Reserved GPUs: which jobs may start on which GPUs, now and later.

A reservation reserves GPUs for users and groups, for a window of time or standing. Its owners use them within the
window. Other jobs may use them if they surely end before the window opens; or, if the reservation lends its GPUs, if
they can be preempted when a job of an owner needs them. Under the strategy `static` a job runs only on GPUs that are
reserved for its owner.

The placement search does not know reservations: the job that it gets avoids the GPUs that are closed to it, in the same
way as GPUs that failed under it. Which GPUs are closed to which users is kept between cycles (`windows`), and costs
nothing where nothing is reserved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from corral.core.counts import counted
from corral.core.model import WHOLE, Allocation, Job, Queue
from corral.core.quantities import format_duration
from corral.core.scheduling.limits.hold_rules import Reason
from corral.core.scheduling.placement.search import find_place
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.windows import (
    ClosedPlaces,
    Layout,
    Owned,
    Terms,
    is_active,
    layout_of,
    window_of,
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Strategy
from corral.core.snapshot.node_index import Fleet

#: how many reservations a description names; the number in it always counts all of them
MOST_NAMED = 5
#: A reservation, and by job id the GPUs of it that jobs of other users hold.
Lent = tuple[Reservation, dict[str, list[str]]]


class Reserved:
    """The reservations as of one moment."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self._snapshot = snapshot
        self._now = now
        is_plain = not snapshot.reservations and snapshot.allocation.strategy is not Strategy.STATIC
        self._layout: Layout | None = None if is_plain else layout_of(snapshot, now)
        self._lent: dict[str, dict[str, Lent]] = {}

    @property
    def next_edge(self) -> float | None:
        """When a window opens or closes next."""
        return None if self._layout is None or math.isinf(self._layout.ends) else self._layout.ends

    def concerns(self, pool: str) -> bool:
        """Whether any GPU of the pool is closed to any user, now or later."""
        return self._layout is not None and self._layout.concerns(pool)

    def kind_of(self, pool: str) -> Callable[[str], Owned] | None:
        """A function with different values for users that may start on different GPUs; None if all users are alike."""
        return (lambda user: self.owned_by(user, pool)) if self.concerns(pool) else None

    def owned_by(self, user: str, pool: str) -> Owned:
        return frozenset() if self._layout is None else self._layout.owned_by(user, pool)

    def own_now(self, user: str, pool: str) -> frozenset[str]:
        """The GPUs that are reserved for the user now."""
        return frozenset() if self._layout is None else self._layout.own_now(user, pool)

    def last_opening(self, pool: str) -> float:
        """When the last window opens: all jobs that run until then or longer may start on the same GPUs."""
        return -math.inf if self._layout is None else self._layout.opening_times.get(pool, (-math.inf,))[-1]

    def terms(self, job: Job, pool: str) -> Terms | None:
        """When the job may hold which GPUs of the pool; None if it may hold all of them at any time."""
        if self._layout is None or not job.request.wants_gpu or not self._layout.concerns(pool):
            return None
        return self._layout.terms(job, pool)

    def searches(self, job: Job, pool: str, ends_at: float) -> Iterator[Job]:
        """The job with the GPUs that each search must avoid, the best search first.

        Jobs of owners use the reserved GPUs first, then shared ones; GPUs that could be reclaimed come last.
        """
        layout, terms = self._layout, self.terms(job, pool)
        if layout is None or terms is None:
            yield job
            return
        own = () if layout.is_static else layout.own_now(job.user, pool)
        if any(_is_free(self._snapshot, gpu) for gpu in own):
            yield _avoiding(job, layout.places_not_reserved_for_owner(job, pool, ends_at))
        if terms.borrows:
            yield _avoiding(job, layout.closed_or_reclaimable_places(job, pool, ends_at))
        yield _avoiding(job, layout.closed_places(job, pool, ends_at))

    def widest(self, job: Job, pool: str, ends_at: float) -> Job:
        """The last of these searches: for all GPUs that the job may start on now."""
        if self._layout is None or self.terms(job, pool) is None:
            return job
        return _avoiding(job, self._layout.closed_places(job, pool, ends_at))

    def ever(self, job: Job, pool: str) -> Job:
        """The job, avoiding the GPUs that will never be open to it."""
        if self._layout is None or self.terms(job, pool) is None:
            return job
        return _avoiding(job, self._layout.never_open_places(job, pool))

    def lent(self, pool: str) -> dict[str, Lent]:
        """The reservations with open windows, by name, and their GPUs that jobs of other users hold."""
        known = self._lent.get(pool)
        if known is None:
            known = self._lent[pool] = self._find_lent(pool)
        return known

    def shields(self, victim: Job, for_job: Job) -> bool:
        """Whether the victim runs on GPUs reserved for its owner and not for the other job's: it would reclaim them."""
        queue = self._snapshot.queues.get(victim.queue)
        if queue is None or not self.concerns(queue.pool) or victim.allocation is None:
            return False
        own = self.own_now(victim.user, queue.pool)
        own_of_other = self.own_now(for_job.user, queue.pool) if own else own
        return any(gpu in own and gpu not in own_of_other for gpu in victim.allocation.gpus)

    def closing_reservations(self, job: Job, pool: str, ends_at: float) -> list[tuple[Reservation, tuple[str, ...]]]:
        """Reservations of other users that keep the job from GPUs now, with these GPUs; soonest first."""
        terms, owned = self.terms(job, pool), self.owned_by(job.user, pool)
        found = []
        for reservation in self._of(pool) if terms is not None else ():
            if reservation.name not in owned and reservation.since < ends_at:
                gpus = tuple(
                    gpu for gpu in reservation.gpus if terms and window_of(reservation) in terms.closed.get(gpu, ())
                )
                if gpus:
                    found.append((reservation, gpus))
        return found

    def _of(self, pool: str) -> list[Reservation]:
        return [] if self._layout is None else self._layout.pools.get(pool, [])

    def _find_lent(self, pool: str) -> dict[str, Lent]:
        active = [reservation for reservation in self._of(pool) if is_active(reservation, self._now)]
        holders = self._holders([gpu for reservation in active for gpu in reservation.gpus])
        found: dict[str, Lent] = {}
        for reservation in active:
            borrowed: dict[str, list[str]] = {}
            for gpu in reservation.gpus:
                for job in holders.get(gpu, ()):
                    if reservation.name not in self.owned_by(job.user, pool):
                        borrowed.setdefault(job.id, []).append(gpu)
            found[reservation.name] = (reservation, borrowed)
        return found

    def _holders(self, gpus: list[str]) -> dict[str, list[Job]]:
        snapshot = self._snapshot
        home, fleet = snapshot.fleet.gpu_home, snapshot.fleet
        held = {gpu for gpu in gpus if gpu in home and fleet.slot(home[gpu]).free_milli[gpu] < WHOLE}
        nodes = {home[gpu] for gpu in held}
        found: dict[str, list[Job]] = {}
        for _, _, job_id in snapshot.releases if nodes else ():
            job = snapshot.jobs[job_id]
            for grant in job.allocation.grants if job.allocation is not None else ():
                if grant.node in nodes:
                    for gpu in held.intersection(grant.gpus):
                        found.setdefault(gpu, []).append(job)
        return found


def _avoiding(job: Job, closed: ClosedPlaces) -> Job:
    nodes, gpus = closed
    if not nodes and not gpus:
        return job
    return replace(job, avoid_nodes=(*job.avoid_nodes, *nodes), avoid_gpus=(*job.avoid_gpus, *gpus))


def find_open_place(reserved: Reserved, fleet: Fleet, job: Job, queue: Queue, ends_at: float) -> Allocation | None:
    """A place where the job may start now, respecting reservations. A check is short, preemptible and ordered for this
    very GPU: a reservation does not stop it."""
    if job.only_gpus:
        return find_place(fleet, job, queue.pool, queue.placement)
    for searched in reserved.searches(job, queue.pool, ends_at):
        allocation = find_place(fleet, searched, queue.pool, queue.placement)
        if allocation is not None:
            return allocation
    return None


def reserved_reason(
    snapshot: ClusterSnapshot, reserved: Reserved, job: Job, pool: str, now: float, ends_at: float
) -> Reason | None:
    """The reservations of other users that hold the job, or, under `static`, the missing reservation for it."""
    terms = reserved.terms(job, pool)
    if terms is None:
        return None
    if snapshot.allocation.strategy is Strategy.STATIC:
        return _not_reserved_for(snapshot, reserved, terms, job, pool, now)
    closed = reserved.closing_reservations(job, pool, ends_at)
    if not closed:
        return None
    gpus = {gpu for _, names in closed for gpu in names}
    listed = "; ".join(
        f"{len(names)} by {reservation.name} for {_owners(reservation)} {window_text(reservation, now)}"
        for reservation, names in closed[:MOST_NAMED]
    )
    more = f"; {len(closed) - MOST_NAMED} more reservations" if len(closed) > MOST_NAMED else ""
    detail = f"{_gpus(len(gpus))} of pool {pool} {'is' if len(gpus) == 1 else 'are'} reserved: {listed}{more}"
    lending = [reservation.name for reservation, _ in closed if reservation.lends]
    if lending and not job.preemptible:
        detail += "; what is lent is lent to preemptible jobs only"
    return Reason(
        rule="reserved",
        detail=detail,
        numbers={
            "reserved_gpus": len(gpus),
            "free_reserved_gpus": sum(_is_free(snapshot, gpu) for gpu in gpus),
            "reservations": ", ".join(reservation.name for reservation, _ in closed),
            **_opens_in(terms, now),
        },
    )


def window_text(reservation: Reservation, now: float) -> str:
    """The window relative to now."""
    since, until = window_of(reservation)
    if since <= now:
        return "standing" if until == math.inf else f"for {format_duration(max(1.0, until - now))} more"
    begins = f"from {format_duration(max(1.0, since - now))} from now on"
    return begins if until == math.inf else f"{begins}, for {format_duration(until - since)}"


def _not_reserved_for(
    snapshot: ClusterSnapshot, reserved: Reserved, terms: Terms, job: Job, pool: str, now: float
) -> Reason:
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
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _gpus(count: int) -> str:
    return counted(count, "GPU")


def _is_free(snapshot: ClusterSnapshot, gpu: str) -> bool:
    """Whether a part of the GPU is free."""
    fleet = snapshot.fleet
    home = fleet.gpu_home.get(gpu)
    return home is not None and fleet.slot(home).free_milli[gpu] > 0
