"""Kinds, states and end reasons of jobs."""

from __future__ import annotations

from enum import StrEnum


class JobKind(StrEnum):
    WORKBENCH = "workbench"
    TRAINING = "training"
    DISTRIBUTED = "distributed"
    PRESET = "preset"

    @property
    def is_preemptible(self) -> bool:
        """Whether jobs of this kind are preemptible by default. Workbenches are not: a user works in them, and they
        write no checkpoints by themselves."""
        return self is not JobKind.WORKBENCH


class JobState(StrEnum):
    CREATED = "created"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def holds_resources(self) -> bool:
        return self in HOLDING

    @property
    def is_active(self) -> bool:
        """Queued or holding resources. Such a job cannot be deleted."""
        return self is JobState.QUEUED or self in HOLDING

    @property
    def is_ended(self) -> bool:
        return self in ENDED


HOLDING = frozenset({JobState.STARTING, JobState.RUNNING, JobState.STOPPING})
ENDED = frozenset({JobState.STOPPED, JobState.COMPLETED, JobState.FAILED})


class EndReason(StrEnum):
    EXIT_CODE = "exit_code"
    OOM_KILLED = "oom_killed"
    EVICTED = "evicted"
    IMAGE_PULL_ERROR = "image_pull_error"
    LAUNCH_ERROR = "launch_error"
    NODE_LOST = "node_lost"
    GPU_FAILED = "gpu_failed"
    TIMED_OUT = "timed_out"
    PREEMPTED = "preempted"
    STOPPED_BY_USER = "stopped_by_user"
    STOPPED_BY_OPERATOR = "stopped_by_operator"
    LOST = "lost"
    #: the next attempt continues with other GPUs
    RESIZED = "resized"
    #: the next attempt continues on another node, so that another job has room
    MOVED = "moved"
    #: a job that this one depends on has not completed
    DEPENDENCY_FAILED = "dependency_failed"
    #: the job used more local disk than allowed
    DISK_QUOTA = "disk_quota"
    #: the program did no step for long, and its owner wants a restart then
    HUNG = "hung"
