"""A quota as a value: the most resources that one user may hold with jobs of one kind."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.model import Job, JobKind

_COUNTED_IN = {kind: (kind,) for kind in JobKind} | {JobKind.PRESET: (JobKind.PRESET, JobKind.TRAINING)}
_GANG_OF_PRESET = (JobKind.PRESET, JobKind.DISTRIBUTED)


def quota_kinds(job: Job) -> tuple[JobKind, ...]:
    """The kinds whose quota counts the job: the job of a preset is a training too, or a distributed one."""
    return _GANG_OF_PRESET if job.kind is JobKind.PRESET and job.request.is_gang else _COUNTED_IN[job.kind]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """The most that one user may hold with jobs of one kind; None means no limit."""

    gpu_milli: int | None = None
    cpu_milli: int | None = None
    memory_bytes: int | None = None
