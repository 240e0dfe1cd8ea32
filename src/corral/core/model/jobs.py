"""A job with its attempts, and the ids of both."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from corral.core.model.job_states import EndReason, JobKind, JobState
from corral.core.model.scheduling import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    Allocation,
    Ceiling,
    Elastic,
    Prediction,
    Request,
)
from corral.core.storage.volumes import VolumeMount


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    id: str
    name: str
    user: str
    kind: JobKind = JobKind.TRAINING
    state: JobState = JobState.CREATED
    queue: str = DEFAULT_QUEUE
    request: Request = field(default_factory=Request)
    #: smaller numbers go first
    priority: int = DEFAULT_PRIORITY
    created_at: float = 0.0
    queued_at: float | None = None
    #: when it was first queued; kept when the job is requeued
    aged_from: float | None = None
    #: when an operator put the job to the front; the latest pin goes first
    pinned_at: float | None = None
    #: the position among the user's own jobs; 0 until the user moves one
    user_order: int = 0
    #: the longest run time; None means that the job runs until it is stopped
    time_limit_seconds: float | None = None
    grace_seconds: float = 30.0
    #: the number of the latest attempt; 0 before the first
    attempt: int = 0
    allocation: Allocation | None = None
    #: when the present attempt got its allocation, and when its processes ran
    allocated_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    #: why a stopping job is being stopped
    stopping_for: EndReason | None = None
    end_reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""
    #: attempts after failures of the program. With `max_retries` 0 the job is never run twice by itself.
    retries: int = 0
    max_retries: int = 3
    #: failures of the program that lead to another attempt: words and exit codes of `core.jobs.retries`
    retry_on: tuple[str, ...] = ()
    #: whether it may hold GPUs without using them for long: then zero use is no sign of a fault
    idles: bool = False
    #: whether it is restarted elsewhere if its program reports no more steps; that uses up a retry
    restart_if_hung: bool = False
    #: since when the present attempt does no step, or does fewer than usual; None if it does
    hung_since: float | None = None
    slow_since: float | None = None
    #: platform failures in a row without a checkpoint in between; they are no retries
    faults: int = 0
    #: no start before this time: a back-off after a failure, or after the cluster returned the job
    not_before: float = 0.0
    #: how often in a row the cluster returned the job before it ran
    given_back: int = 0
    avoid_nodes: tuple[str, ...] = ()
    avoid_gpus: tuple[str, ...] = ()
    #: a check runs on exactly these GPUs of one node, whatever their health; empty for every other job
    only_gpus: tuple[str, ...] = ()
    #: jobs that must complete before this one may start; completed ones are removed
    after: tuple[str, ...] = ()
    #: None for a job with a fixed number of GPUs
    elastic: Elastic | None = None
    #: an elastic job may be restarted for a resize although it never wrote a checkpoint
    restart_unsaved: bool = False
    #: while the job is resized or moved: the allocation of the next attempt. It is part of `allocation` already.
    next_allocation: Allocation | None = None
    resized_at: float | None = None
    #: run time of earlier attempts that were resized: it counts for the time limit
    ran_seconds: float = 0.0
    #: measured utilization of an elastic job's GPUs over the recent window; None until the attempt has run that long
    utilization: float | None = None
    ceiling: Ceiling | None = None
    #: when the program wrote its last checkpoint
    checkpointed_at: float | None = None
    #: run time of earlier attempts that is not lost: up to their last checkpoints
    saved_seconds: float = 0.0
    #: run time of all earlier attempts since the owner started the job, saved or lost
    attained_seconds: float = 0.0
    #: the most work that an earlier attempt had done, saved or lost, when it ended or was asked to stop: the job takes
    #: longer than that
    reached_seconds: float = 0.0
    #: as of the last time it was queued; None without similar runs
    predicted: Prediction | None = None
    #: whether the job may be preempted; if not, it never uses GPUs that other queues are owed
    preemptible: bool = True
    #: the job that this one was preempted or moved for, until its next start: the freed resources are for that job
    preempted_for: str | None = None
    #: how often the job was preempted since its owner started it
    preemptions: int = 0
    #: volumes that are mounted while the job runs
    mounts: tuple[VolumeMount, ...] = ()
    #: the most that the job may use of the local disks of all its nodes together
    local_bytes: int = 0
    #: grows with every stored change; a writer with an older version is refused
    version: int = 0

    @property
    def serial(self) -> int:
        """The number in the id: later jobs have larger ones."""
        return _serial_of(self.id)

    @property
    def attempt_id(self) -> str:
        return attempt_id(self.id, self.attempt)

    @property
    def notified_user(self) -> str:
        """The user in whose inbox events of the job are shown; "" for a check, which is no work of its user."""
        return "" if self.only_gpus else self.user

    @property
    def time_left_seconds(self) -> float | None:
        """The longest run time of the present attempt."""
        return None if self.time_limit_seconds is None else max(0.0, self.time_limit_seconds - self.ran_seconds)

    @property
    def expected_end(self) -> float:
        """The latest time at which the job releases its GPUs; infinite without a time limit."""
        if self.time_left_seconds is None or self.allocated_at is None:
            return math.inf
        return (self.started_at or self.allocated_at) + self.time_left_seconds + self.grace_seconds

    @property
    def likely_end(self) -> float:
        """When the job releases its GPUs: at the latest, or without a time limit by the p90 of the prediction; infinite
        without both."""
        if self.time_limit_seconds is not None or self.predicted is None or self.allocated_at is None:
            return self.expected_end
        return (self.started_at or self.allocated_at) + self.predicted.p90_seconds + self.grace_seconds

    def likely_end_after(self, now: float) -> float:
        """The likely end of a job that still runs: beyond its prediction twice the predicted time is assumed, and so
        on."""
        end = self.likely_end
        if end > now or self.time_limit_seconds is not None or self.predicted is None or self.allocated_at is None:
            return end
        since = self.started_at or self.allocated_at
        seconds = max(1.0, self.predicted.p90_seconds)
        while since + seconds + self.grace_seconds <= now:
            seconds *= 2
        return since + seconds + self.grace_seconds

    @property
    def is_resizing(self) -> bool:
        """Whether the job continues with other GPUs as soon as it has saved: resized or moved."""
        return self.state is JobState.STOPPING and self.stopping_for in (EndReason.RESIZED, EndReason.MOVED)

    @property
    def is_moving(self) -> bool:
        """Whether the job continues on another node, so that another job can start on its present one."""
        return self.state is JobState.STOPPING and self.stopping_for is EndReason.MOVED


@lru_cache(maxsize=65_536)
def _serial_of(job_id: str) -> int:
    return int(job_id.rpartition("-")[2])


def attempt_id(job_id: str, number: int) -> str:
    return f"{job_id}.{number}"


def job_of_attempt(attempt: str) -> tuple[str, int]:
    """The job id and the attempt number in an attempt id."""
    job_id, _, number = attempt.rpartition(".")
    return job_id, int(number)
