"""The rule by which what was lent comes back: the owner of reserved GPUs preempts others who run on them.

An owner's right ends where the reservation does. Whatever else a victim holds comes back too, but nobody is preempted
for that: the job must fit on what is reserved for it and what is free already. So two owners who borrow from each
other never take turns in preempting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from corral.core.fleet.resources import gpus_text
from corral.core.model import Allocation, Job
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.reservations import window_text
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

if TYPE_CHECKING:
    from corral.core.scheduling.backfill.planned_start import ProtectedStart
    from corral.core.scheduling.preemption.preemption import Preempting


class ByReservation:
    """Within the window, owners get back what was lent."""

    rule = PreemptionRule.RESERVATION

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return bool(snapshot.reservations)

    def could_help(self, view: Preempting, job: Job) -> bool:
        lent = view.reserved.lent(view.snapshot.queues[job.queue].pool)
        return any(borrowed for _, borrowed in lent.values())

    def after(self, view: Preempting, job: Job) -> Iterator[tuple[Job, Callable[[], str]]]:
        for reservation, borrowed in _lent_by(view, job):
            for job_id, gpus in borrowed.items():
                yield view.snapshot.jobs[job_id], self._words(view, reservation, job, len(gpus))

    def gives_back(self, view: Preempting, job: Job, protected: ProtectedStart) -> bool:
        """What is held for an owner may be what all share, for which nobody gives way."""
        return False

    def _words(self, view: Preempting, reservation: Reservation, job: Job, count: int) -> Callable[[], str]:
        return lambda: (
            f"reservation {reservation.name} has {len(reservation.gpus)} GPUs for {job.user} "
            f"{window_text(reservation, view.now)}; {job.id} asks for {gpus_text(job.request.total_gpu_milli)}, "
            f"and {count} of them were lent"
        )


def own_part(view: Preempting, job: Job, victim: Job) -> Allocation | None:
    """What the victim holds of the GPUs that are reserved for the job; nothing if that is all it holds.

    CPUs and memory come back as a whole.
    """
    assert victim.allocation is not None
    own = {gpu for _, borrowed in _lent_by(view, job) for gpu in borrowed.get(victim.id, ())}
    if own.issuperset(victim.allocation.gpus):
        return None
    grants = (replace(grant, gpus=tuple(gpu for gpu in grant.gpus if gpu in own)) for grant in victim.allocation.grants)
    return replace(victim.allocation, grants=tuple(grant for grant in grants if grant.gpus))


def _lent_by(view: Preempting, job: Job) -> Iterator[tuple[Reservation, dict[str, list[str]]]]:
    """The job's reservations, and what others hold of them."""
    pool = view.snapshot.queues[job.queue].pool
    owned = view.reserved.owned_by(job.user, pool)
    for name, lent in view.reserved.lent(pool).items() if owned else ():
        if name in owned:
            yield lent
