"""Port: the checkpoints that programs of jobs have saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedWork:
    """One checkpoint, or what is left of one."""

    name: str
    #: the directory, which the next attempt resumes from
    path: str
    #: steps done: where a program that resumes from it goes on
    step: int
    #: when it was saved; None if that cannot be known
    at: float | None
    size_bytes: int
    #: which attempt saved it; 0 if that cannot be known
    attempt: int
    #: how many ranks of a gang saved a part of it
    parts: int = 1
    #: why it cannot be used
    problem: str | None = None

    @property
    def is_good(self) -> bool:
        return self.problem is None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepReport:
    """How far a program says that it has come."""

    step: int
    attempt: int
    #: when the last step was done; never in the future
    at: float


class Lookup(Protocol):
    """A search for a checkpoint that is under way."""

    def cancel(self) -> None: ...


class Checkpoints(Protocol):
    """The checkpoint directory of every job. Safe for use by several threads.

    The job can write anything there: all content is checked, and no link is followed.
    An OSError means that the directory cannot be read at this moment.
    """

    def mark(self, job_id: str) -> int | None:
        """The time, in nanoseconds, of the last file that was added, renamed or removed; None if there is no directory.
        Reads only the directory's own entry.
        """

    def has_any(self, job_id: str) -> bool:
        """Whether anything is there that could be resumed from. Quick: names only."""

    def list(self, job_id: str) -> Sequence[SavedWork]:
        """Newest first, damaged ones too as far as their lengths show it. Quick: no content is read."""

    def last_saved_at(self, job_id: str) -> float | None:
        """When the program last saved its work, also one that has formats of its own. As quick as `list`."""

    def progress(self, job_id: str) -> StepReport | None:
        """The steps that the program has reported last; None if it reports none. Quick: one small file."""

    def look_up(self, job_id: str, user: str, found: Callable[[SavedWork | None], None]) -> Lookup:
        """Find the newest of which every byte is as it was saved, on threads of its own that users share fairly. Calls
        `found` once, from any thread, unless it is cancelled before. What cannot be read counts as nothing. If reading
        takes too long, it is the newest of which every length is right: the program verifies what it restores."""

    def request(self, job_id: str) -> None:
        """Ask the job's program to save soon. Never in the controller's thread."""
