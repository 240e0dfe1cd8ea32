"""API schemas: checkpoints of jobs."""

from __future__ import annotations

from pydantic import Field

from corral.control.ports import SavedWork
from corral.server.schemas.base import View, rfc3339_or_none


class CheckpointView(View):
    name: str
    path: str | None = Field(description="The directory; shown to the job's owner and to operators only.")
    step: int = Field(description="Number of steps done; a program that resumes from the checkpoint continues there.")
    saved_at: str | None = Field(description="Null if it cannot be read any more.")
    size_bytes: int
    attempt: int | None = Field(
        description="The attempt that saved the checkpoint; null if it cannot be read any more."
    )
    parts: int = Field(description="Number of processes of a gang that saved a part.")
    good: bool = Field(
        description="Judged by file names and lengths; before an attempt resumes, every byte is checked."
    )
    problem: str | None = Field(description="Why no attempt resumes from this checkpoint.")


def checkpoint_view(saved: SavedWork, *, may_see_path: bool) -> CheckpointView:
    return CheckpointView(
        name=saved.name,
        path=saved.path if may_see_path else None,
        step=saved.step,
        saved_at=rfc3339_or_none(saved.at),
        size_bytes=saved.size_bytes,
        attempt=saved.attempt or None,
        parts=saved.parts,
        good=saved.is_good,
        problem=saved.problem,
    )
