"""Tables of jobs, attempts, events, usage, receipts and scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from corral.control.records import (
    EVERY_JOB,
    AttemptRecord,
    CycleRecord,
    EventFilter,
    EventRecord,
    JobFilter,
    JobRecord,
    JobSpec,
    Page,
    ReceiptFilter,
    ReceiptRecord,
    ScorePoint,
    UsageRecord,
    UsageUpdate,
)
from corral.core.model import Job
from corral.core.monitoring.attempt_usage import Measured
from corral.core.people.scores import Score
from corral.core.scheduling.plan.plan import PreemptionRule

#: Fields of a job that stay the same while it only progresses: none of them changes by a start or an end.
STEADY_FIELDS = ("name", "user", "kind", "queue", "priority", "created_at")


class JobTable(Protocol):
    def skip_ids(self, used: int) -> int:
        """Give no id up to this number any more; how many are skipped that were still to come."""

    def next_ids(self, count: int) -> list[str]:
        """Ids that are never used again, growing: j-1, j-2, …"""

    def add(self, records: Sequence[JobRecord]) -> None:
        """Raises NameTaken if one of these names is taken by the same user."""

    def save(self, jobs: Sequence[Job]) -> None:
        """Write each job if its stored version is `version - 1` (the caller has counted up), in one statement
        for all of them. Raises StoreConflict otherwise, and then none was written."""

    def save_progress(self, jobs: Sequence[Job]) -> None:
        """The same for jobs whose STEADY_FIELDS are those that are stored: these are not written."""

    def save_spec(self, job_id: str, spec: JobSpec) -> None:
        """Replaces the job's spec; an unknown id is ignored."""

    def get(self, job_id: str) -> JobRecord | None: ...

    def find(self, user: str | None, name: str) -> list[JobRecord]:
        """Jobs of that exact name, of one user or of all, newest first."""

    def find_task(self, user: str, task: str) -> JobRecord | None:
        """The user's newest job that holds GPUs for the task of this name."""

    def names_taken(self, user: str, names: Sequence[str]) -> set[str]:
        """The names among these that jobs of the user have."""

    def delete(self, job_ids: Sequence[str]) -> None:
        """Deletes these jobs with their attempts. Unknown ids are ignored."""

    def some(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """The jobs with these ids; unknown ids are left out."""

    def ended(self, after: str | None, limit: int) -> list[JobRecord]:
        """Jobs that are over, in the order of their ids, from the one behind `after` on."""

    def count_ended(self) -> int: ...

    def live(self) -> list[Job]:
        """Every job that is not ended, in the order of their ids."""

    def page(self, where: JobFilter, *, sort: str, cursor: str | None, limit: int) -> Page[JobRecord]:
        """Keyset paging. `sort` is one of id, name, priority, created_at, with "-" in front for descending.
        Raises ValueError with a readable message for a bad cursor or sort."""

    def counts(self, where: JobFilter = EVERY_JOB) -> dict[str, int]:
        """Number of jobs per state; states without any are left out."""


class AttemptTable(Protocol):
    def add(self, attempts: Sequence[AttemptRecord]) -> None: ...

    def save(self, attempts: Sequence[AttemptRecord]) -> None:
        """Save their start and end; the allocation never changes."""

    def get(self, attempt_ids: Collection[str]) -> dict[str, AttemptRecord]: ...

    def of_job(self, job_id: str) -> list[AttemptRecord]:
        """Oldest first."""

    def all_allocations(self) -> Iterable[AttemptRecord]:
        """Every attempt ever made, in the order of planning: the audit of who held which GPU when."""


class UsageTable(Protocol):
    """The resources that attempts held and used. Rows outlive their jobs."""

    def save(self, records: Sequence[UsageRecord]) -> None:
        """Insert or replace by attempt, without touching what was measured."""

    def save_updates(self, updates: Sequence[UsageUpdate]) -> None:
        """Stores the changes of these attempts' usage; unknown attempts are ignored."""

    def save_measured(self, measured: Mapping[str, Measured]) -> None:
        """Stores the measured use of these attempts so far; unknown attempts are ignored."""

    def of_job(self, job_id: str) -> list[UsageRecord]:
        """Oldest first."""

    def open(self) -> list[UsageRecord]:
        """The usage of attempts that have not ended."""

    def between(self, since: float, until: float) -> list[UsageRecord]:
        """Every attempt that held something within the span, or was planned in it, in the order of planning."""

    def wanted(self, since: float, until: float, *, after: UsageRecord | None, limit: int) -> list[UsageRecord]:
        """Attempts of jobs that were queued before `until` and held something from `since` on, or were planned since,
        in the order of planning; the next ones after one of them."""

    def begins_at(self) -> float | None:
        """When the first job was queued; None without attempts."""

    def completed(self, limit: int, before: float | None = None) -> list[UsageRecord]:
        """The attempts with which jobs completed last, or last before a time, the earliest end first."""

    def prune(self, before: float) -> int:
        """Drop attempts that ended earlier."""


class ReceiptTable(Protocol):
    """The receipts of preemptions. Rows outlive the jobs of both sides."""

    def add(self, receipt: ReceiptRecord) -> ReceiptRecord:
        """The same with its id."""

    def save(self, receipts: Sequence[ReceiptRecord]) -> None:
        """Replace by id."""

    def open(self) -> list[ReceiptRecord]:
        """The open receipts, oldest first."""

    def of_job(self, job_id: str, limit: int) -> list[ReceiptRecord]:
        """Receipts in which the job is the victim or the preemptor; newest first."""

    def page(self, where: ReceiptFilter, *, cursor: str | None, limit: int) -> Page[ReceiptRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def counts(self) -> dict[PreemptionRule, int]:
        """How many there are; rules without any are left out."""

    def prune(self, before: float) -> int:
        """Drop those that are older and not open."""


class ScoreTable(Protocol):
    def all(self) -> dict[tuple[str, str], Score]:
        """The scores by user and GPU model."""

    def save(self, scores: Mapping[tuple[str, str], Score]) -> None:
        """Insert or replace, and remember the point for the history."""

    def history(self, user: str, model: str, since: float) -> list[ScorePoint]:
        """The points from that time on, oldest first, and the last one before it."""

    def prune(self, before: float) -> int:
        """Drop points of the history that are older, but each user's and model's last one before."""


class EventTable(Protocol):
    def append(self, events: Sequence[EventRecord]) -> list[EventRecord]:
        """The same events with their ids."""

    def after(self, event_id: int, limit: int) -> list[EventRecord]:
        """The events that followed, oldest first."""

    def last_id(self) -> int: ...

    def page(self, where: EventFilter, *, cursor: str | None, limit: int) -> Page[EventRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def count(self, where: EventFilter) -> int: ...

    def prune(self, before: float, limit: int) -> int:
        """Drop at most so many of the oldest, those that are older than this; how many went."""


class CycleTable(Protocol):
    """The scheduler's journal."""

    def append(self, cycle: CycleRecord) -> int:
        """Stores a cycle and returns its id."""

    def since_base(self) -> list[CycleRecord]:
        """The newest base and all entries after it, oldest first."""

    def since(self, cycle_id: int, limit: int) -> list[CycleRecord]:
        """The entries after that one, oldest first."""

    def count_since(self, cycle_id: int) -> int:
        """How many entries followed that one."""

    def first_base_at(self) -> float | None:
        """When the journal begins; None while it is empty."""

    def run_until(self, at: float) -> list[CycleRecord]:
        """The entries that lead to a moment: the last one at or before it, and all from its base on, oldest first;
        then the next entry, whose changes happened in between. Empty if the journal begins later."""

    def prune(self, before: float) -> int:
        """Drop whole runs (a base and its entries) that ended before that time; how many entries went."""
