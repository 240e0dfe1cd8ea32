"""A quota as a value: the most resources that one user may hold with jobs of one kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """The most that one user may hold with jobs of one kind; None means no limit."""

    gpu_milli: int | None = None
    cpu_milli: int | None = None
    memory_bytes: int | None = None
