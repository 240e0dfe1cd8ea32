"""The preemption rule by which lent GPUs return: jobs of a reservation's owner preempt other jobs on the reserved GPUs.

An owner has a right to the reserved GPUs only. A victim also releases its other resources, but no job is preempted for
those: the owner's job must fit on the reserved GPUs and what is free already. So two owners that borrow from each other
never preempt each other in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from corral.core.counts import counted
from corral.core.fleet.resources import gpus_text
from corral.core.model import Allocation, Job
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.reservations import window_text
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

if TYPE_CHECKING:
    from corral.core.scheduling.backfill.planned_allocation import PlannedAllocation
    from corral.core.scheduling.preemption.preemption import PreemptionView


class ByReservation:
    """Within the window, lent GPUs return to the owners of the reservation."""

    rule = PreemptionRule.RESERVATION

    def counts(self, snapshot: ClusterSnapshot) -> bool:
        return bool(snapshot.reservations)

    def could_help(self, view: PreemptionView, job: Job) -> bool:
        lent = view.reserved.lent(view.snapshot.queues[job.queue].pool)
        return any(borrowed for _, borrowed in lent.values())

    def after(self, view: PreemptionView, job: Job) -> Iterator[tuple[Job, Callable[[], str]]]:
        for reservation, borrowed in _lent_by(view, job):
            for job_id, gpus in borrowed.items():
                yield view.snapshot.jobs[job_id], self._detail(view, reservation, job, len(gpus))

    def can_reclaim(self, view: PreemptionView, job: Job, planned: PlannedAllocation) -> bool:
        """The resources held for an owner may be shared ones, for which no job is preempted."""
        return False

    def _detail(self, view: PreemptionView, reservation: Reservation, job: Job, count: int) -> Callable[[], str]:
        return lambda: (
            f"reservation {reservation.name} has {counted(len(reservation.gpus), 'GPU')} for {job.user} "
            f"{window_text(reservation, view.now)}; {job.id} asks for {gpus_text(job.request.total_gpu_milli)}, "
            f"and {count} of them were lent"
        )


def own_part(view: PreemptionView, job: Job, victim: Job) -> Allocation | None:
    """The part of the victim's allocation that is reserved for the job; None if that is all of it.

    CPUs and memory are released as a whole.
    """
    assert victim.allocation is not None
    own = {gpu for _, borrowed in _lent_by(view, job) for gpu in borrowed.get(victim.id, ())}
    if own.issuperset(victim.allocation.gpus):
        return None
    grants = (replace(grant, gpus=tuple(gpu for gpu in grant.gpus if gpu in own)) for grant in victim.allocation.grants)
    return replace(victim.allocation, grants=tuple(grant for grant in grants if grant.gpus))


def _lent_by(view: PreemptionView, job: Job) -> Iterator[tuple[Reservation, dict[str, list[str]]]]:
    """The reservations of the job's owner, and the GPUs of them that other jobs hold."""
    pool = view.snapshot.queues[job.queue].pool
    owned = view.reserved.owned_by(job.user, pool)
    for name, lent in view.reserved.lent(pool).items() if owned else ():
        if name in owned:
            yield lent
