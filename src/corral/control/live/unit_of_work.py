"""One piece of work: what use cases want to change, collected and written in one transaction.

A use case validates first, then changes things through `Work`; the changes are in the picture at once, in the store
when the work is flushed, and out to the engine when it is committed. If anything fails in between, nothing is
committed and the state is loaded again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from corral.control.fleet.node_effects import NodeEffect
from corral.control.live.state import State
from corral.control.ports import Transaction
from corral.control.records import (
    USUAL_FUNCTIONS,
    AttemptRecord,
    DatasetUse,
    EventRecord,
    Function,
    JobRecord,
    JobSpec,
    ReceiptRecord,
    UsageCourse,
    UsageRecord,
)
from corral.control.scheduling.receipts import abandoned, followed, saw_saved
from corral.control.scheduling.request_mixes import keep_mix
from corral.core.jobs.dependencies import broken_text, met
from corral.core.jobs.lifecycle import Ended, Event, Instruction, Planned, Stop, StopRequested, Up, advance
from corral.core.model import DEFAULT_POOL, WHOLE, Allocation, EndReason, Job, JobState
from corral.core.people.scores import Score, change_usage, charge_afterwards
from corral.core.scheduling.forecast.run_time_model import learn, predicted
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutMix, PutScore
from corral.core.snapshot.request_mix import Mix
from corral.core.snapshot.submission_counts import count_submitted

#: The actor of what the platform does by itself.
PLATFORM = "corral"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who asks, and from where."""

    name: str
    is_operator: bool = False
    source: str = ""
    #: what the caller's permission group allows
    functions: frozenset[Function] = USUAL_FUNCTIONS

    def may(self, function: Function) -> bool:
        return self.is_operator or function in self.functions


SYSTEM = Caller(name=PLATFORM, is_operator=True)


class Work:
    def __init__(self, tx: Transaction, state: State, now: float) -> None:
        self.tx = tx
        self.state = state
        self.now = now
        self.instructions: list[Instruction] = []
        self.events: list[EventRecord] = []
        #: attempts whose end is now recorded, so that the engine may forget them
        self.recorded_ends: list[str] = []
        #: what engines are to be told about nodes, by cluster
        self.node_effects: list[tuple[str, NodeEffect]] = []
        #: jobs that are gone, whose logs and directories may go too
        self.deleted: list[Job] = []
        self.steps = 0
        self._new: dict[str, JobRecord] = {}
        self._new_names: set[tuple[str, str]] = set()
        self._changed: dict[str, Job] = {}
        self._new_attempts: dict[str, AttemptRecord] = {}
        self._changed_attempts: dict[str, AttemptRecord] = {}
        # Kept apart from the attempts: what was used is counted even when the job itself is deleted.
        self._new_usage: dict[str, UsageRecord] = {}
        self._courses: dict[str, UsageCourse] = {}
        self._scores: dict[tuple[str, str], Score] = {}
        self._mixes: dict[str, Mix] = {}
        self._receipts: dict[int, ReceiptRecord] = {}
        #: jobs that are over, whose dependents have not heard of it yet
        self._over: deque[Job] = deque()
        self._is_telling = False

    # ---------------------------------------------------------------- reading

    def job(self, job_id: str) -> Job | None:
        """The job as it is after this work so far."""
        if job_id in self._changed:
            return self._changed[job_id]
        if job_id in self._new:
            return self._new[job_id].job
        live = self.state.snapshot.jobs.get(job_id)
        if live is not None:
            return live
        record = self.tx.jobs.get(job_id)
        return record.job if record else None

    def spec(self, job_id: str) -> JobSpec:
        """What a job runs. The job must exist."""
        spec = self.state.specs.get(job_id)
        if spec is None:
            record = self._new.get(job_id) or self.tx.jobs.get(job_id)
            assert record is not None, job_id
            spec = record.spec
        return spec

    def is_new_name(self, user: str, name: str) -> bool:
        """Whether this work itself has already given out the name."""
        return (user, name) in self._new_names

    # ---------------------------------------------------------------- changing

    def change(self, *changes: Change, needs_cycle: bool = True) -> None:
        """Bring the picture up to date."""
        self.steps += 1
        self.state.apply(changes)
        self.state.needs_cycle |= needs_cycle

    def record(
        self, caller: Caller, action: str, subject: str, *, owner: str = "", detail: Mapping[str, Any] | None = None
    ) -> None:
        """A line for the audit log."""
        self.steps += 1
        self.events.append(
            EventRecord(
                at=self.now,
                actor=caller.name,
                action=action,
                subject=subject,
                owner=owner,
                detail=detail or {},
                source=caller.source,
            )
        )

    def add_job(self, record: JobRecord) -> None:
        self._new[record.job.id] = record
        self._new_names.add((record.job.user, record.job.name))
        self.state.keep_spec(record.job.id, record.spec)
        self.state.dependents.follow(None, record.job)
        self._picture(None, record.job)

    def advance(self, job: Job, event: Event) -> Job:
        """Let an event happen to a job, with everything that follows from it."""
        transition = advance(job, event)
        after = self.edit(job, self._expected(job, transition.job))
        self.instructions.extend(transition.instructions)
        self.state.told_to_stop.update(item.attempt_id for item in transition.instructions if isinstance(item, Stop))
        self._account(job, after)
        self._follow_attempt(job, after, event)
        self._follow_receipt(job, after, event)
        learn(self.state.run_times, job, after)
        if after.state.is_ended:
            self._tell_dependents(after)
        return after

    def edit(self, before: Job, after: Job) -> Job:
        """Save a changed job. The state must have been changed by `advance` only."""
        if before.id in self._new:
            self._new[before.id] = replace(self._new[before.id], job=after)
        else:
            if before.id not in self._changed:
                after = replace(after, version=before.version + 1)
            self._changed[before.id] = after
        self.state.dependents.follow(before, after)
        self._picture(before, after)
        return after

    def edit_spec(self, job: Job, spec: JobSpec) -> None:
        """Save what a job that never ran shall run, or what it was picked from."""
        if job.id in self._new:
            self._new[job.id] = replace(self._new[job.id], spec=spec)
        else:
            self.tx.jobs.save_spec(job.id, spec)
        self.state.keep_spec(job.id, spec)

    def add_receipt(self, receipt: ReceiptRecord) -> ReceiptRecord:
        """A job gives way to another: with the receipt's id."""
        numbered = self.tx.receipts.add(receipt)
        self.state.receipts[numbered.job_id] = numbered
        self.steps += 1
        return numbered

    def keep_receipt(self, receipt: ReceiptRecord) -> None:
        """Save a receipt that is open and went on."""
        before = self.state.receipts[receipt.job_id]
        if receipt == before:
            return
        self.steps += 1
        if before.saved is None and receipt.saved is not None:
            self._tell_cost(receipt)
        self._receipts[receipt.id] = receipt
        if receipt.is_open:
            self.state.receipts[receipt.job_id] = receipt
        else:
            del self.state.receipts[receipt.job_id]

    def forget_mix(self, pool: str) -> None:
        """The pool is gone, and with it what it was asked for."""
        self.state.mixes.pop(pool, None)
        if pool in self.state.snapshot.mixes:
            self._mixes[pool] = Mix()
            self.change(PutMix(pool=pool, mix=Mix()), needs_cycle=False)

    def forget_job(self, job: Job, *, files_later: bool = False) -> None:
        """Delete the job for good, with its files unless they are removed later."""
        if not files_later:
            self.deleted.append(job)
        # What this work itself has done to the job must not be written after its deletion.
        if self._new.pop(job.id, None):
            self._new_names.discard((job.user, job.name))
        self._changed.pop(job.id, None)
        for attempts in (self._new_attempts, self._changed_attempts):
            for key in [key for key, attempt in attempts.items() if attempt.job_id == job.id]:
                del attempts[key]
        self.tx.jobs.delete([job.id])
        if job.id in self.state.receipts:
            self.keep_receipt(abandoned(self.state.receipts[job.id]))
        self.state.specs.pop(job.id, None)
        self.state.dependents.follow(job, None)
        self.steps += 1
        self._tell_dependents(job)

    def flush(self) -> list[EventRecord]:
        """Write everything to the transaction; the events with their ids."""
        if self._new:
            self.tx.jobs.add(list(self._new.values()))
        if self._changed:
            self.tx.jobs.save(list(self._changed.values()))
        if self._new_attempts:
            self.tx.attempts.add(list(self._new_attempts.values()))
        if self._changed_attempts:
            self.tx.attempts.save(list(self._changed_attempts.values()))
        if self._new_usage:
            self.tx.usage.save(list(self._new_usage.values()))
        if self._courses:
            self.tx.usage.save_course(list(self._courses.values()))
        if self._receipts:
            self.tx.receipts.save(list(self._receipts.values()))
        if self._scores:
            self.tx.scores.save(self._scores)
        for pool, mix in self._mixes.items():
            keep_mix(self.tx, pool, mix)
        return self.tx.events.append(self.events) if self.events else []

    # ---------------------------------------------------------------- inside

    def _picture(self, before: Job | None, after: Job) -> None:
        if after.state is JobState.QUEUED and (before is None or not before.state.is_active):
            self._count_submitted(after)
        if after.state.is_active:
            # That processes are up changes no decision, unless the job can be resized; everything else can.
            only_up = before is not None and before.state.holds_resources and after.state.holds_resources
            is_elsewhere = before is not None and before.is_moving and not after.is_moving
            self.change(PutJob(job=after), needs_cycle=not only_up or after.elastic is not None or is_elsewhere)
        elif before is not None and before.state.is_active:
            self.change(DropJob(id=after.id))
        else:
            self.steps += 1

    def _expected(self, before: Job, after: Job) -> Job:
        """Whoever is queued, or goes on elsewhere, is told how long it will run, as far as that is known now."""
        enters = after.state is JobState.QUEUED and before.state is not JobState.QUEUED
        enters = enters or (before.is_moving and after.state is JobState.STARTING)
        return predicted(self.state.run_times, after) if enters else after

    def _count_submitted(self, job: Job) -> None:
        change = count_submitted(self.state.snapshot, self.state.mixes, job)
        if change is not None:
            self._mixes[change.pool] = change.mix
            self.change(change)

    def _tell_dependents(self, over: Job) -> None:
        """Those who wait for a job that is over may start, or will never: then they are over too. One after the other
        and not one within the other: a chain may have thousands of jobs."""
        self._over.append(over)
        if self._is_telling:
            return
        self._is_telling = True
        while self._over:
            over = self._over.popleft()
            for job_id in self.state.dependents.of(over.id):
                job = self.job(job_id)
                assert job is not None, f"{job_id} waits for {over.id} and is unknown"
                if over.state is JobState.COMPLETED:
                    self._let_go_on(job, over)
                elif job.state is JobState.QUEUED:
                    self._give_up(job, over)
                # One that is not started yet can wait: the other may be started again and complete.
        self._is_telling = False

    def _let_go_on(self, job: Job, completed: Job) -> None:
        free = met(job, completed.id, self.now)
        if free.state is JobState.QUEUED and not free.after:
            # What it waited for may have taught something, and its line must know it as it enters.
            free = predicted(self.state.run_times, free)
        free = self.edit(job, free)
        if free.state is JobState.QUEUED and not free.after:
            self.record(SYSTEM, "job.dependencies-met", job.id, owner=job.user, detail={"last": completed.id})

    def _give_up(self, job: Job, over: Job) -> None:
        message = broken_text(over, is_gone=not over.state.is_ended)
        self.advance(job, StopRequested(at=self.now, reason=EndReason.DEPENDENCY_FAILED, message=message))
        detail = {"reason": EndReason.DEPENDENCY_FAILED, "after": over.id, "message": message}
        self.record(SYSTEM, "job.stopped", job.id, owner=job.user, detail=detail)

    def _account(self, before: Job, after: Job) -> None:
        """Usage changes when an attempt begins or ends, and with it the score.

        What is kept for a job's next attempt while the present one ends is not counted yet: corral keeps it, not the
        user, and so the score says the same as the lines of usage.
        """
        held = self._held_by_attempt(before)
        holds = held if after.attempt == before.attempt else after.allocation
        if after.allocation is None:
            holds = None
        model = (holds or held or Allocation(grants=())).model
        delta = ((holds.total_gpu_milli if holds else 0) - (held.total_gpu_milli if held else 0)) / WHOLE
        if not delta:
            return
        key = (after.user, model)
        score = self.state.snapshot.scores.get(key, Score(at=self.now))
        score = change_usage(score, delta, self.now, self.state.snapshot.score_time_constant)
        self._scores[key] = score
        self.change(PutScore(user=after.user, model=model, score=score), needs_cycle=False)

    def charge_overrun(self, record: UsageRecord, until: float) -> None:
        """An attempt that is over held its GPUs for longer than was known."""
        key, now = (record.user, record.model), self.now
        seconds = until - (record.ended_at or until)
        self._courses[record.attempt_id] = UsageCourse(
            attempt_id=record.attempt_id,
            started_at=record.started_at,
            ended_at=until,
            end_reason=record.end_reason,
            outcome=record.outcome,
        )
        if record.gpu_milli:
            score = self.state.snapshot.scores.get(key, Score(at=now))
            constant = self.state.snapshot.score_time_constant
            self._scores[key] = charge_afterwards(score, record.gpu_milli / WHOLE, seconds, now, constant)
            self.change(PutScore(user=record.user, model=record.model, score=self._scores[key]), needs_cycle=False)

    def _held_by_attempt(self, job: Job) -> Allocation | None:
        if job.allocation is None:
            return None
        attempt = self.state.attempts.get(job.attempt_id)
        return job.allocation if attempt is None else attempt.allocation

    def _follow_attempt(self, before: Job, after: Job, event: Event) -> None:
        """Keep the record of the attempt in step with its job."""
        match event:
            case Planned(at=at):
                self._begin_attempt(after, at)
            case Up(at=at):
                self._follow_usage(self._edit_attempt(before.attempt_id, started_at=at))
                self._note_datasets(after, at)
            case Ended(at=at, reason=reason, exit_code=exit_code, message=message):
                ended = self._edit_attempt(
                    before.attempt_id,
                    ended_at=at,
                    end_reason=before.stopping_for or reason,
                    exit_code=exit_code,
                    # why corral stopped it says more than how it died of that
                    message=before.message if before.stopping_for and before.message else message,
                )
                self._follow_usage(ended, outcome=after.state)
                self.recorded_ends.append(before.attempt_id)
                self.state.told_to_stop.discard(before.attempt_id)
                if after.attempt != before.attempt:
                    # It goes on with other GPUs at once, having waited for nothing.
                    self._begin_attempt(after, at, waited_since=at)
            case _:
                pass

    def _note_datasets(self, job: Job, at: float) -> None:
        """Which versions an attempt reads, so that they can be traced to it when it is gone."""
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
            for mount in self.spec(job.id).mounts
            if mount.dataset_id is not None and mount.version is not None
        ]
        if uses:
            self.tx.datasets.add_uses(uses)

    def _tell_cost(self, receipt: ReceiptRecord) -> None:
        detail = {
            "attempt": receipt.attempt,
            "rule": receipt.rule,
            "receipt": receipt.id,
            "for": receipt.for_job,
            "saved": receipt.saved,
            "lost_gpu_seconds": receipt.lost_gpu_seconds,
        }
        self.record(SYSTEM, "job.gave-way", receipt.job_id, owner=receipt.user, detail=detail)

    def _follow_receipt(self, before: Job, after: Job, event: Event) -> None:
        receipt = self.state.receipts.get(after.id)
        if receipt is None:
            return
        receipt = followed(receipt, before, after, event)
        if not self.state.policies.checkpoints.enabled:
            # Nobody looks for what programs save: what is known at the end is the last word.
            receipt = saw_saved(receipt, after, after.checkpointed_at)
        self.keep_receipt(receipt)

    def _begin_attempt(self, job: Job, at: float, waited_since: float | None = None) -> None:
        assert job.allocation is not None
        attempt = AttemptRecord(
            id=job.attempt_id, job_id=job.id, number=job.attempt, allocation=job.allocation, planned_at=at
        )
        self._new_attempts[attempt.id] = self.state.attempts[attempt.id] = attempt
        queued_at = job.queued_at if waited_since is None else waited_since
        self._new_usage[attempt.id] = self._usage_of(job, attempt, at if queued_at is None else queued_at)

    def _edit_attempt(self, of: str, **values: Any) -> AttemptRecord:
        attempt = self.state.attempts.get(of)
        assert attempt is not None, f"attempt {of} is live and unknown"
        edited = replace(attempt, **values)
        (self._new_attempts if of in self._new_attempts else self._changed_attempts)[of] = edited
        if edited.ended_at is None:
            self.state.attempts[of] = edited
        else:
            del self.state.attempts[of]
        return edited

    def _usage_of(self, job: Job, attempt: AttemptRecord, queued_at: float) -> UsageRecord:
        """The first line of what an attempt holds: whose it is, by the groups and pools of this moment."""
        queue = self.state.snapshot.queues.get(job.queue)
        membership = self.state.snapshot.memberships.get(job.user)
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
        self._courses[attempt.id] = UsageCourse(
            attempt_id=attempt.id,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            end_reason=attempt.end_reason,
            outcome=outcome,
        )
