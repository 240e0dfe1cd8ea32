"""What a job's program has saved, on the wire."""

from __future__ import annotations

from pydantic import Field

from corral.control.ports import SavedWork
from corral.server.schemas.base import View, rfc3339_or_none


class CheckpointView(View):
    name: str
    path: str | None = Field(description="The directory; shown to the job's owner and to operators only.")
    step: int = Field(description="Steps done: where a program that resumes from it goes on.")
    saved_at: str | None = Field(description="Null if that cannot be read any more.")
    size_bytes: int
    attempt: int | None = Field(description="Which attempt saved it; null if that cannot be read any more.")
    parts: int = Field(description="How many processes of a gang saved a part of it.")
    good: bool = Field(description="As far as names and lengths tell; before an attempt resumes, every byte is read.")
    problem: str | None = Field(description="Why no attempt resumes from it.")


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
