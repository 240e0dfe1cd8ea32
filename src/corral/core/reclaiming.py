"""The rule by which what was lent comes back: the owner of reserved GPUs preempts others who run on them.

An owner's right ends where the reservation does. Whatever else a victim holds comes back too, but nobody is preempted
for that: the job must fit on what is reserved for it and what is free already. So two owners who borrow from each
other never take turns in preempting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from corral.core.model import Allocation, Job, Reservation
from corral.core.plan import PreemptionRule
from corral.core.reservations import window_words
from corral.core.resources import gpus_text
from corral.core.snapshot import ClusterSnapshot
from corral.core.victims import Candidate

if TYPE_CHECKING:
    from corral.core.preempting import Preempting


class ByReservation:
    """Within the window, owners get back what was lent."""

    @staticmethod
    def counts(snapshot: ClusterSnapshot) -> bool:
        return bool(snapshot.reservations)

    @staticmethod
    def could_help(view: Preempting, job: Job) -> bool:
        pool = view.snapshot.queues[job.queue].pool
        return any(gpus for _, gpus in view.reserved.lent(pool).values())

    @staticmethod
    def candidates(view: Preempting, job: Job) -> Iterator[Candidate]:
        pool = view.snapshot.queues[job.queue].pool
        owned = view.reserved.owned_by(job.user, pool)
        borrowers: dict[str, tuple[Reservation, list[str]]] = {}
        for name, (reservation, borrowed) in view.reserved.lent(pool).items():
            for job_id, gpus in borrowed.items() if name in owned else ():
                borrowers.setdefault(job_id, (reservation, []))[1].extend(gpus)
        for job_id, (reservation, gpus) in borrowers.items():
            victim = view.snapshot.jobs[job_id]
            if view.may_be_preempted(victim, job):
                words = _words(view, reservation, job, len(gpus))
                found = view.candidate(victim, PreemptionRule.RESERVATION, words)
                yield replace(found, frees=_only(victim, frozenset(gpus)))


def _only(victim: Job, gpus: frozenset[str]) -> Allocation:
    """What it holds of these; CPUs and memory come back as a whole."""
    assert victim.allocation is not None
    grants = (
        replace(grant, gpus=tuple(gpu for gpu in grant.gpus if gpu in gpus)) for grant in victim.allocation.grants
    )
    return replace(victim.allocation, grants=tuple(grant for grant in grants if grant.gpus))


def _words(view: Preempting, reservation: Reservation, job: Job, count: int) -> Callable[[], str]:
    return lambda: (
        f"reservation {reservation.name} has {len(reservation.gpus)} GPUs for {job.user} "
        f"{window_words(reservation, view.now)}; {job.id} asks for {gpus_text(job.request.total_gpu_milli)}, "
        f"and {count} of them were lent"
    )
