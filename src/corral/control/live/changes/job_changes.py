"""Changes of jobs, with everything that follows from them: attempts, usage, scores, receipts, and dependent jobs."""

from __future__ import annotations

from collections import deque
from operator import attrgetter

from corral.control.live.changes.attempt_changes import AttemptChanges
from corral.control.live.changes.audit_events import AuditEvents
from corral.control.live.changes.budget_changes import BudgetChanges
from corral.control.live.changes.callers import SYSTEM
from corral.control.live.changes.counted import Counted
from corral.control.live.changes.pending_effects import PendingEffects
from corral.control.live.changes.receipt_changes import ReceiptChanges
from corral.control.live.changes.request_mix_changes import RequestMixChanges
from corral.control.live.changes.score_changes import ScoreChanges
from corral.control.live.state import State
from corral.control.ports import STEADY_FIELDS, Transaction
from corral.control.records import JobRecord, JobSpec
from corral.core.copies import replace
from corral.core.jobs.dependencies import broken_text, met
from corral.core.jobs.lifecycle import Event, Stop, StopRequested, Up, advance
from corral.core.model import EndReason, Job, JobState
from corral.core.scheduling.forecast.run_time_model import learn, predicted
from corral.core.snapshot.changes import DropJob, PutJob

#: what stays the same while a job only progresses
_steady_part = attrgetter(*STEADY_FIELDS)


class JobChanges:
    def __init__(
        self,
        tx: Transaction,
        state: State,
        now: float,
        *,
        audit: AuditEvents,
        effects: PendingEffects,
        attempts: AttemptChanges,
        scores: ScoreChanges,
        budgets: BudgetChanges,
        receipts: ReceiptChanges,
        mixes: RequestMixChanges,
    ) -> None:
        self._tx = tx
        self._state = state
        self._now = now
        self._audit = audit
        self._effects = effects
        self._attempts = attempts
        self._scores = scores
        self._budgets = budgets
        self._receipts = receipts
        self._mixes = mixes
        self._new: Counted[str, JobRecord] = Counted()
        self._new_names: set[tuple[str, str]] = set()
        self._changed: Counted[str, Job] = Counted()
        #: changed jobs of which more than the progress changed
        self._rewritten: set[str] = set()
        #: ended or deleted jobs whose dependents are not updated yet
        self._ended: deque[Job] = deque()
        self._is_updating_dependents = False

    @property
    def changes(self) -> int:
        return self._new.changes + self._changed.changes

    # ---------------------------------------------------------------- reads

    def get(self, job_id: str) -> Job | None:
        """The job with the changes of this unit of work."""
        if job_id in self._changed:
            return self._changed[job_id]
        if job_id in self._new:
            return self._new[job_id].job
        live = self._state.snapshot.jobs.get(job_id)
        if live is not None:
            return live
        record = self._tx.jobs.get(job_id)
        return record.job if record else None

    def spec(self, job_id: str) -> JobSpec:
        """The spec of a job that exists."""
        spec = self._state.specs.get(job_id)
        if spec is None:
            record = self._new.get(job_id) or self._tx.jobs.get(job_id)
            assert record is not None, job_id
            spec = record.spec
        return spec

    def is_new_name(self, user: str, name: str) -> bool:
        """Whether this unit of work itself has added a job of this name for the user."""
        return (user, name) in self._new_names

    # ---------------------------------------------------------------- changes

    def add(self, record: JobRecord) -> None:
        self._new[record.job.id] = record
        self._new_names.add((record.job.user, record.job.name))
        self._state.keep_spec(record.job.id, record.spec)
        self._state.dependents.follow(None, record.job)
        self._state.count_job(None, record.job)
        self._put_into_snapshot(None, record.job)

    def advance(self, job: Job, event: Event) -> Job:
        """Apply an event to a job, with everything that follows from it. Returns the job after the event."""
        transition = advance(job, event)
        after = self.edit(job, self._predicted(job, transition.job))
        self._effects.instructions.extend(transition.instructions)
        for item in transition.instructions:
            if isinstance(item, Stop):
                self._state.stops_sent[item.attempt_id] = None
        self._scores.follow_job(job, after, event)
        self._budgets.follow_job(job, event)
        self._attempts.follow_job(job, after, event)
        if isinstance(event, Up):
            self._attempts.record_datasets(after, self.spec(after.id), event.at)
        self._receipts.follow_job(job, after, event)
        learn(self._state.run_times, job, after)
        if after.state.is_ended:
            self._update_dependents(after)
        return after

    def edit(self, before: Job, after: Job) -> Job:
        """Save a changed job. Only `advance` may change the job's state."""
        if before.id in self._new:
            self._new[before.id] = replace(self._new[before.id], job=after)
        else:
            if before.id not in self._changed:
                after = replace(after, version=before.version + 1)
            self._changed[before.id] = after
            if _steady_part(before) != _steady_part(after):
                self._rewritten.add(before.id)
        self._state.dependents.follow(before, after)
        self._state.count_job(before, after)
        self._put_into_snapshot(before, after)
        return after

    def edit_spec(self, job: Job, spec: JobSpec) -> None:
        """Save a changed spec of a job."""
        if job.id in self._new:
            self._new[job.id] = replace(self._new[job.id], spec=spec)
        else:
            self._tx.jobs.save_spec(job.id, spec)
        self._state.keep_spec(job.id, spec)

    def delete(self, job: Job, *, files_later: bool = False) -> None:
        """Delete an inactive job. Its logs and directories are removed after the commit, unless another part of the
        server removes them later."""
        if not files_later:
            self._effects.deleted_jobs.append(job)
        # Changes that this unit of work made to the job must not be written after its deletion.
        if self._new.pop(job.id, None):
            self._new_names.discard((job.user, job.name))
        self._changed.pop(job.id, None)
        self._attempts.drop_job(job.id)
        self._tx.jobs.delete([job.id])
        self._receipts.abandon(job.id)
        self._state.specs.pop(job.id, None)
        self._state.dependents.follow(job, None)
        self._state.count_job(job, None)
        self._update_dependents(job)

    def flush(self) -> None:
        if self._new:
            self._tx.jobs.add(list(self._new.values()))
        if self._changed:
            self._tx.jobs.save_progress([job for job in self._changed.values() if job.id not in self._rewritten])
            self._tx.jobs.save([job for job in self._changed.values() if job.id in self._rewritten])

    # ---------------------------------------------------------------- consequences

    def _put_into_snapshot(self, before: Job | None, after: Job) -> None:
        if after.state is JobState.QUEUED and (before is None or not before.state.is_active):
            self._mixes.count_submitted(after)
        if after.state.is_active:
            # A start of processes changes no decision, unless the job can be resized; every other change can.
            only_up = before is not None and before.state.holds_resources and after.state.holds_resources
            is_elsewhere = before is not None and before.is_moving and not after.is_moving
            self._state.change(PutJob(job=after), needs_cycle=not only_up or after.elastic is not None or is_elsewhere)
        elif before is not None and before.state.is_active:
            if before.state.holds_resources:
                self._mixes.count_ended(before)
            self._state.change(DropJob(id=after.id))

    def _predicted(self, before: Job, after: Job) -> Job:
        """Updates the predicted run time of queued and moved jobs."""
        enters = after.state is JobState.QUEUED and before.state is not JobState.QUEUED
        enters = enters or (before.is_moving and after.state is JobState.STARTING)
        return predicted(self._state.run_times, after) if enters else after

    def _update_dependents(self, ended: Job) -> None:
        """Release or stop the jobs that wait for an ended or deleted job. Iterative, not recursive: a chain may have
        thousands of jobs."""
        self._ended.append(ended)
        if self._is_updating_dependents:
            return
        self._is_updating_dependents = True
        while self._ended:
            ended = self._ended.popleft()
            for job_id in self._state.dependents.of(ended.id):
                job = self.get(job_id)
                assert job is not None, f"{job_id} waits for {ended.id} and is unknown"
                if ended.state is JobState.COMPLETED:
                    self._release(job, ended)
                elif job.state is JobState.QUEUED:
                    self._stop_dependent(job, ended)
                # A job that is not started yet can wait: the other job may be started again and complete.
        self._is_updating_dependents = False

    def _release(self, job: Job, completed: Job) -> None:
        released = met(job, completed.id, self._now)
        if released.state is JobState.QUEUED and not released.after:
            # The completed job may have changed the prediction, which the job's place in its waiting line depends on.
            released = predicted(self._state.run_times, released)
        released = self.edit(job, released)
        if released.state is JobState.QUEUED and not released.after:
            detail = {"last": completed.id}
            self._audit.add(SYSTEM, "job.dependencies-met", job.id, owner=job.user, detail=detail)

    def _stop_dependent(self, job: Job, ended: Job) -> None:
        message = broken_text(ended, is_gone=not ended.state.is_ended)
        self.advance(job, StopRequested(at=self._now, reason=EndReason.DEPENDENCY_FAILED, message=message))
        detail = {"reason": EndReason.DEPENDENCY_FAILED, "after": ended.id, "message": message}
        self._audit.add(SYSTEM, "job.stopped", job.id, owner=job.notified_user, detail=detail)
