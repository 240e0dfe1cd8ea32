"""Matches attempts with Slurm's jobs: with the live jobs first, then with all that the controller remembers, then with
the accounting.

A job belongs to an attempt by the id that Slurm gave it, by its account, and by the attempt's secret in its name. If no
id is known, after a crash, it is the account's first job with that name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from corral.control.ports import EngineUnavailable
from corral.core.model import EndReason
from corral.engines.slurm.attempts.ends import why_not_begun
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt, conclude
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob

log = logging.getLogger("corral.engines.slurm")

_Answer = TypeVar("_Answer")

DAY = 86_400.0
#: the job may have been submitted after the query
FRESH_SECONDS = 5.0
#: the accounting may be written late
LOST_SECONDS = 30.0
#: accounting that does not answer is not queried for this long, and attempts wait for it this long
PAUSE_SECONDS = 30.0
AWAY_SECONDS = 900.0
#: the number of jobs in one query
AT_ONCE = 200


def asked(ask: Callable[[], _Answer]) -> _Answer:
    """Call Slurm. Raises EngineUnavailable."""
    try:
        return ask()
    except (SlurmUnavailable, SlurmRefused) as error:
        raise EngineUnavailable(f"Slurm: {error}") from error


class JobTracker:
    """`adopt` is called for an attempt whose job is found although its id was not stored. Attempts are changed under
    `lock`, and Slurm is queried without it, so that other calls do not wait for a slow controller."""

    def __init__(
        self,
        slurm: Slurm,
        layout: Layout,
        mark: str,
        adopt: Callable[[Attempt, int], None],
        lock: AbstractContextManager[object],
    ) -> None:
        self._lock = lock
        self._slurm = slurm
        self._layout = layout
        self._mark = mark
        self._adopt = adopt
        self._accounting_again_at = 0.0

    def follow(self, attempts: Iterable[Attempt], live: Sequence[SlurmJob], now: float) -> None:
        """Update attempts from Slurm's jobs. Attempts whose job is over without a report of their nodes are searched
        for in the controller's memory, then in the accounting."""
        with self._lock:
            pending = [attempt for attempt in attempts if not attempt.is_over]
            for attempt in pending:
                attempt.read_reports(self._layout)
            known = {job.id: job for job in live}
            pending = [
                attempt
                for attempt in pending
                if _is_doubtful(attempt, now) or not self._is_followed(attempt, known, now)
            ]
        if not pending:
            return
        remembered = asked(self._slurm.jobs)
        with self._lock:
            for attempt in pending:
                if _is_doubtful(attempt, now):
                    self._settle_claim(attempt, remembered)
            known = {job.id: job for job in remembered}
            pending = [attempt for attempt in pending if not self._is_followed(attempt, known, now)]
        if not pending:
            return
        # If the id belongs to a job of another account now, it is not searched for: accounting may not show the
        # account.
        wanted = [attempt.job_id for attempt in pending if attempt.job_id is not None and attempt.job_id not in known]
        accounted = self._accounted(wanted, now)
        with self._lock:
            self._settle(pending, accounted, now)

    def job_of(self, attempt: Attempt) -> SlurmJob | None:
        """Searched for in the queue and, as that forgets after a while, in the accounting."""
        found = self._named_as(attempt, asked(self._slurm.jobs))
        found = found or self._named_as(attempt, asked(lambda: self._accounted_as(attempt)))
        claimed = [job for job in found if job.id == attempt.claimed_by]
        return next(iter(claimed or found), None)

    def _named_as(self, attempt: Attempt, jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
        """The first is corral's own: until then no user could know the name."""
        named = ((job, (job.name, job.name_in_comment)) for job in jobs if attempt.owner.owns(job))
        mine = [job for job, names in named if any(attempt.is_named(name, self._mark) for name in names)]
        return sorted(mine, key=lambda job: job.id)

    def is_its(self, attempt: Attempt, job: SlurmJob) -> bool:
        """Whether the job with the attempt's id is the attempt's. A controller that crashed may reuse the id of a lost
        job, for a job of the same account, too; the name distinguishes the two."""
        return attempt.owner.owns(job) and (not job.name or attempt.is_named(job.name, self._mark))

    def confirms(self, attempt: Attempt) -> bool:
        """Whether Slurm confirms that the job with the attempt's id is the attempt's: a wrong id must not end the job
        of another user. Raises EngineUnavailable."""
        if not attempt.is_confirmed:
            jobs = asked(self._slurm.live)
            attempt.is_confirmed = any(job.id == attempt.job_id and self.is_its(attempt, job) for job in jobs)
        return attempt.is_confirmed

    def take_back(self, attempts: Iterable[Attempt], now: float, pending_seconds: float) -> None:
        """Cancel jobs that have been pending in Slurm for `pending_seconds`, because jobs of other users hold the
        planned GPUs. Their attempts end as preempted, and corral plans them again. Raises EngineUnavailable."""
        late = {
            attempt.job_id: (attempt, attempt.seen)
            for attempt in attempts
            if attempt.job_id is not None and attempt.waits_in_slurm and attempt.seen is not None
            if now - max(attempt.given_at, attempt.created_at) >= pending_seconds
        }
        if not late:
            return
        asked(lambda: self._slurm.cancel(*late, only_pending=True))
        states = {job.id: job.state for job in asked(self._slurm.jobs)}
        with self._lock:
            for job_id, (attempt, job) in late.items():
                if states.get(job_id, "CANCELLED") == "CANCELLED" and not attempt.is_over:
                    conclude(self._layout, attempt, EndReason.PREEMPTED, why_not_begun(job))

    def _settle_claim(self, attempt: Attempt, jobs: Iterable[SlurmJob]) -> None:
        """Accept the job that claims the attempt only if Slurm confirms it: a job can write anything into its files."""
        claimed_by, attempt.claimed_by = attempt.claimed_by, None
        if claimed_by is not None and any(job.id == claimed_by for job in self._named_as(attempt, jobs)):
            self._adopt(attempt, claimed_by)

    def _is_followed(self, attempt: Attempt, known: Mapping[int, SlurmJob], now: float) -> bool:
        """False if the attempt is not over, and Slurm lists no job for it although it should."""
        job = known.get(attempt.job_id) if attempt.job_id is not None else None
        if job is not None and self.is_its(attempt, job):
            attempt.follow(job, self._layout, now)
            return True
        if job is not None:
            attempt.is_confirmed = False
        return attempt.is_over or not attempt.was_submitted or now - attempt.created_at < FRESH_SECONDS

    def _settle(self, missing: Sequence[Attempt], accounted: Sequence[SlurmJob] | None, now: float) -> None:
        """The controller has forgotten these jobs. The accounting knows how they ended; while it does not answer, only
        these attempts wait."""
        patience = AWAY_SECONDS if accounted is None else LOST_SECONDS
        kept = {job.id: job for job in accounted or ()}
        for attempt in missing:
            job = kept.get(attempt.job_id) if attempt.job_id is not None else None
            if job is not None and self.is_its(attempt, job):
                attempt.follow(job, self._layout, now)
            elif attempt.over_since is None:
                attempt.over_since = now
            elif now > attempt.over_since + patience:
                attempt.lose(f"Slurm does not know its job {attempt.job_id} any more", now)

    def _accounted(self, job_ids: Sequence[int], now: float) -> list[SlurmJob] | None:
        """The jobs in Slurm's accounting; None if it does not answer. Not every cluster has one."""
        if now < self._accounting_again_at:
            return None
        try:
            parts = [job_ids[first : first + AT_ONCE] for first in range(0, len(job_ids), AT_ONCE)]
            return [job for part in parts for job in self._slurm.ended(part)]
        except SlurmRefused as refusal:
            log.info("no accounting: %s", refusal)
            return []
        except SlurmUnavailable as error:
            log.warning("Slurm's accounting was queried for %s jobs that ended unobserved: %s", len(job_ids), error)
            self._accounting_again_at = now + PAUSE_SECONDS
            return None

    def _accounted_as(self, attempt: Attempt) -> list[SlurmJob]:
        try:
            return self._slurm.named(attempt.job_name(self._mark), attempt.created_at - DAY)
        except SlurmRefused as refusal:
            log.info("no accounting: %s", refusal)
            return []


def _is_doubtful(attempt: Attempt, now: float) -> bool:
    """Whether another job than the known one claims the attempt: the job was submitted twice, after an answer that
    never came, or a program has written the claim itself. The id of a job that was just submitted is about to be
    stored."""
    if attempt.job_id is None and now - attempt.created_at < FRESH_SECONDS:
        return False
    return attempt.claimed_by not in (None, attempt.job_id)
