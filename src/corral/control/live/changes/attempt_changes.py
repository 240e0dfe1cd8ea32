"""Changes of attempts, and of the usage that is recorded for each attempt.

Usage rows are kept apart from attempts: the usage of a deleted job still counts.
"""

from __future__ import annotations

from typing import Any

from corral.control.live.changes.budget_changes import BudgetChanges
from corral.control.live.changes.counted import Counted
from corral.control.live.changes.pending_effects import PendingEffects
from corral.control.live.changes.score_changes import ScoreChanges
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.control.records import AttemptRecord, DatasetUse, JobSpec, UsageRecord, UsageUpdate
from corral.core.copies import replace
from corral.core.jobs.lifecycle import Ended, Event, Planned, Up
from corral.core.model import DEFAULT_POOL, Job, JobState


class AttemptChanges:
    def __init__(
        self, tx: Transaction, state: State, effects: PendingEffects, scores: ScoreChanges, budgets: BudgetChanges
    ) -> None:
        self._tx = tx
        self._state = state
        self._effects = effects
        self._scores = scores
        self._budgets = budgets
        self._new: Counted[str, AttemptRecord] = Counted()
        self._changed: Counted[str, AttemptRecord] = Counted()
        self._new_usage: Counted[str, UsageRecord] = Counted()
        self._changed_usage: Counted[str, UsageUpdate] = Counted()

    @property
    def changes(self) -> int:
        return self._new.changes + self._changed.changes + self._new_usage.changes + self._changed_usage.changes

    def follow_job(self, before: Job, after: Job, event: Event) -> None:
        """Updates the record of the job's attempt after an event of the job."""
        match event:
            case Planned(at=at):
                self._begin(after, at)
            case Up(at=at):
                self._follow_usage(self._edit(before.attempt_id, started_at=at))
            case Ended(at=at):
                self._end(before, after, event)
                if after.attempt != before.attempt:
                    # The job continues on other GPUs at once, without a waiting time.
                    self._begin(after, at, waited_since=at)
            case _:
                pass

    def record_datasets(self, job: Job, spec: JobSpec, at: float) -> None:
        """Store which dataset versions the job's attempt reads; the rows stay when the job is deleted."""
        uses = [
            DatasetUse(
                job_id=job.id,
                attempt=job.attempt,
                dataset=mount.dataset_id,
                version=mount.version,
                job_name=job.name,
                user=job.user,
                at=at,
            )
            for mount in spec.mounts
            if mount.dataset_id is not None and mount.version is not None
        ]
        if uses:
            self._tx.datasets.add_uses(uses)

    def charge_overrun(self, record: UsageRecord, until: float) -> None:
        """Correct the usage of an ended attempt that held its GPUs for longer than was recorded."""
        seconds = until - (record.ended_at or until)
        self._changed_usage[record.attempt_id] = UsageUpdate(
            attempt_id=record.attempt_id,
            started_at=record.started_at,
            ended_at=until,
            end_reason=record.end_reason,
            outcome=record.outcome,
        )
        if record.gpu_milli:
            self._scores.charge_afterwards(record.user, record.model, record.gpu_milli, seconds)
            self._budgets.charge_overrun(record, until)

    def drop_job(self, job_id: str) -> None:
        """Write no attempt of a job that is deleted."""
        for attempts in (self._new, self._changed):
            for key in [key for key, attempt in attempts.items() if attempt.job_id == job_id]:
                del attempts[key]

    def flush(self) -> None:
        if self._new:
            self._tx.attempts.add(list(self._new.values()))
        if self._changed:
            self._tx.attempts.save(list(self._changed.values()))
        if self._new_usage:
            self._tx.usage.save(list(self._new_usage.values()))
        if self._changed_usage:
            self._tx.usage.save_updates(list(self._changed_usage.values()))

    def _begin(self, job: Job, at: float, waited_since: float | None = None) -> None:
        assert job.allocation is not None
        attempt = AttemptRecord(
            id=job.attempt_id, job_id=job.id, number=job.attempt, allocation=job.allocation, planned_at=at
        )
        self._new[attempt.id] = self._state.attempts[attempt.id] = attempt
        queued_at = job.queued_at if waited_since is None else waited_since
        self._new_usage[attempt.id] = self._usage_of(job, attempt, at if queued_at is None else queued_at)

    def _end(self, before: Job, after: Job, event: Ended) -> None:
        ended = self._edit(
            before.attempt_id,
            ended_at=event.at,
            end_reason=before.stopping_for or event.reason,
            exit_code=event.exit_code,
            # The reason why corral stopped the attempt explains more than the exit that followed from it.
            message=before.message if before.stopping_for and before.message else event.message,
        )
        self._follow_usage(ended, outcome=after.state)
        self._effects.recorded_ends.append(before.attempt_id)
        self._state.stops_sent.pop(before.attempt_id, None)

    def _edit(self, attempt_id: str, **values: Any) -> AttemptRecord:
        attempt = self._state.attempts.get(attempt_id)
        assert attempt is not None, f"attempt {attempt_id} is live and unknown"
        edited = replace(attempt, **values)
        (self._new if attempt_id in self._new else self._changed)[attempt_id] = edited
        if edited.ended_at is None:
            self._state.attempts[attempt_id] = edited
        else:
            del self._state.attempts[attempt_id]
        return edited

    def _usage_of(self, job: Job, attempt: AttemptRecord, queued_at: float) -> UsageRecord:
        """The usage row of a new attempt, with the job's group and pool at this moment."""
        queue = self._state.snapshot.queues.get(job.queue)
        membership = self._state.snapshot.memberships.get(job.user)
        return UsageRecord(
            attempt_id=attempt.id,
            job_id=job.id,
            job_name=job.name,
            user=job.user,
            group=membership.group if membership else None,
            kind=job.kind,
            queue=job.queue,
            pool=queue.pool if queue else DEFAULT_POOL,
            model=attempt.allocation.model,
            nodes=len(attempt.allocation.grants),
            gpu_milli=attempt.allocation.total_gpu_milli,
            gpu_ids=attempt.allocation.gpus,
            queued_at=queued_at,
            planned_at=attempt.planned_at,
        )

    def _follow_usage(self, attempt: AttemptRecord, outcome: JobState | None = None) -> None:
        self._changed_usage[attempt.id] = UsageUpdate(
            attempt_id=attempt.id,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            end_reason=attempt.end_reason,
            outcome=outcome,
        )
