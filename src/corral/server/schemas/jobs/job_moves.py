"""API schemas: previews of resizes and moves."""

from __future__ import annotations

import math

from pydantic import Field

from corral.control.scheduling.moves.preview import ChangePreview, WaitingEffect
from corral.server.events.visibility import JobIdFilter
from corral.server.schemas.base import View, rfc3339, rfc3339_or_none
from corral.server.schemas.jobs.jobs import AllocationView, allocation_view


class WaitingEffectView(View):
    job: str
    name: str
    user: str
    start_before: str | None = Field(description="The planned start without the change; null: none is planned.")
    start_after: str | None = Field(description="The planned start after the change; null: none is planned.")
    starts_now: bool = Field(description="The job would start as soon as the change is done.")


class ChangePreviewView(View):
    """The preview of a resize or a move. Nothing was changed."""

    job: str
    before: AllocationView
    after: AllocationView
    checkpointed_at: str | None = Field(description="The last checkpoint; null: the job never saved.")
    lost_gpu_seconds: float = Field(
        description="Upper bound of the work that is repeated: the time since the last checkpoint. Nothing is repeated "
        "if the program saves when it is warned."
    )
    grace_seconds: float = Field(description="The time that the program has to save.")
    waiting: list[WaitingEffectView] = Field(description="Waiting jobs that would start earlier or later.")
    hidden_waiting: int = Field(description="The number of such jobs that the caller may not see.")


def change_preview_view(found: ChangePreview, now: float, id_filter: JobIdFilter) -> ChangePreviewView:
    shown = [effect for effect in found.waiting if not id_filter.hides(effect.job)]
    return ChangePreviewView(
        job=found.job.id,
        before=allocation_view(found.before),
        after=allocation_view(found.after),
        checkpointed_at=rfc3339_or_none(found.job.checkpointed_at),
        lost_gpu_seconds=found.lost_gpu_seconds,
        grace_seconds=found.job.grace_seconds,
        waiting=[_effect_view(effect, now) for effect in shown],
        hidden_waiting=len(found.waiting) - len(shown),
    )


def _effect_view(effect: WaitingEffect, now: float) -> WaitingEffectView:
    return WaitingEffectView(
        job=effect.job.id,
        name=effect.job.name,
        user=effect.job.user,
        start_before=_start(effect.start_before),
        start_after=_start(effect.start_after),
        starts_now=effect.start_after is not None and effect.start_after <= now,
    )


def _start(at: float | None) -> str | None:
    return None if at is None or at == math.inf else rfc3339(at)
