"""API schemas: the shadow policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from corral.control.records import DifferenceRecord, ShadowRecord
from corral.core.whatif.scenario import describe, scenario_of
from corral.server.schemas.base import View, rfc3339, rfc3339_or_none
from corral.server.whatif.shadow_runner import ShadowProgress


class CountsView(View):
    seen: int
    same: int
    different: int
    dropped: int = Field(description="Cycles that were skipped because the shadow policy had fallen behind.")
    failed: int


class LastCycleView(View):
    id: int
    at: str


class StartView(View):
    job: str
    name: str
    user: str
    nodes: dict[str, list[str]]
    gpus: int


class ShadowDifferenceView(View):
    cycle: int
    at: str
    words: list[str]
    live: list[StartView]
    shadow: list[StartView]


class ShadowView(View):
    running: bool
    changes: dict[str, Any]
    words: str
    started_by: str | None
    started_at: str | None
    stopped_at: str | None
    cycles: CountsView
    behind_cycles: int
    last_cycle: LastCycleView | None
    differences: list[ShadowDifferenceView] = Field(description="Differences from the live policy, the newest first.")


def shadow_view(
    record: ShadowRecord | None, progress: ShadowProgress, differences: Sequence[DifferenceRecord]
) -> ShadowView:
    counts, last = progress.counts, progress.last
    return ShadowView(
        running=record is not None and record.stopped_at is None,
        changes=dict(record.changes) if record else {},
        words=describe(scenario_of(record.changes)) if record else "",
        started_by=record.started_by if record else None,
        started_at=rfc3339(record.started_at) if record else None,
        stopped_at=rfc3339_or_none(record.stopped_at) if record else None,
        cycles=CountsView(
            seen=counts.seen,
            same=counts.same,
            different=counts.different,
            dropped=counts.dropped,
            failed=counts.failed,
        ),
        behind_cycles=progress.behind,
        last_cycle=None if last is None else LastCycleView(id=last.id, at=rfc3339(last.at)),
        differences=[
            ShadowDifferenceView(
                cycle=item.cycle,
                at=rfc3339(item.at),
                words=list(item.texts),
                live=[StartView.model_validate(start) for start in item.live],
                shadow=[StartView.model_validate(start) for start in item.shadow],
            )
            for item in differences
        ],
    )
