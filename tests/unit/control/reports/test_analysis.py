"""An analysis of a small world that use cases made: findings from the state, the store and the history together."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.monitoring.attempt_usage import save_measured
from corral.control.ports import AttemptPhase, HistoryUnavailable, Metric
from corral.control.records import FlavorRecord, PackageRecord
from corral.control.reports.analysis import past_of, preview_defragmentation, run_analysis, snapshot_of
from corral.core.model import EndReason
from corral.core.monitoring.attempt_usage import Measured
from corral.core.reports.analysis.model import AnalysisRules, FindingKind
from tests.unit.control.histories import MemoryHistory
from tests.unit.control.world import BOB, Desk, draft

HOUR = 3600.0
RULES = AnalysisRules()


def analysis(desk: Desk, history: Any, since: float = 0.0) -> Any:
    with desk.store.read() as tx:
        past = past_of(tx, since, desk.now)
    return run_analysis(snapshot_of(desk.state, desk.now), past, history, since, desk.now, RULES)


def test_findings_and_usage_of_one_story(desk: Desk) -> None:
    idle, small = desk.started(draft("idle", gpus=2), draft("small", gpus=4), caller=BOB)
    with desk.store.write() as tx:
        tx.catalog.save_flavor(FlavorRecord(name="a10", models=("A10",)))
        tx.catalog.save_package(PackageRecord(name="one", gpus=1, flavor="a10"))
    history = MemoryHistory()
    desk.now += 2 * HOUR
    gpus = [*idle.allocation.gpus, *small.allocation.gpus]  # type: ignore[union-attr]
    history.append(desk.now - 60, {Metric.GPU_UTILIZATION: dict.fromkeys(gpus, 0.0) | {gpus[2]: 0.9}})
    history.append(desk.now - 60, {Metric.GPU_TEMPERATURE: dict.fromkeys(gpus, 40.0) | {gpus[0]: 91.0}})
    measured = {
        idle.attempt_id: Measured(gpu_seconds=4 * HOUR, idle_gpu_seconds=4 * HOUR, energy_joules=3.6e6),
        small.attempt_id: Measured(gpu_seconds=8 * HOUR, busy_gpu_seconds=3 * HOUR, used_gpu_ids=(gpus[2],)),
    }
    desk.do(save_measured, measured)
    found = analysis(desk, history)
    by_kind = {finding.kind: finding for finding in found.findings}
    assert by_kind.keys() == {FindingKind.IDLE_ALLOCATION, FindingKind.OVERSIZED_REQUEST, FindingKind.HOT_GPU}
    assert by_kind[FindingKind.IDLE_ALLOCATION].subject == idle.id
    assert by_kind[FindingKind.IDLE_ALLOCATION].evidence["idle_gpu_hours"] == 4
    assert by_kind[FindingKind.OVERSIZED_REQUEST].proposal.endswith("--package one")
    assert by_kind[FindingKind.HOT_GPU].subject == gpus[0]
    assert found.notes == ()
    (bob,) = found.usage.by_user
    assert (bob.key, bob.gpu_hours, bob.idle_gpu_hours, bob.jobs) == ("bob", 12, 4, 2)
    assert bob.energy_kwh == pytest.approx(1.0)


def test_without_a_history_the_rest_is_shown(desk: Desk) -> None:
    class Away(MemoryHistory):
        def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
            raise HistoryUnavailable("it is away")

    desk.started(draft("train", gpus=2))
    desk.now += HOUR
    found = analysis(desk, Away())
    assert found.findings == ()
    assert "it is away" in found.notes[0]
    assert found.usage.total.gpu_hours == 2


def test_a_preview_changes_nothing(desk: Desk) -> None:
    first, second, third = desk.started(draft("first", gpus=3), draft("second", gpus=3), draft("third", gpus=1))
    desk.hear(desk.job(first.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.now += HOUR
    before = snapshot_of(desk.state, desk.now)
    plan = preview_defragmentation(before, desk.now, RULES)
    assert [(move.job_id, move.from_node, move.to_node) for move in plan.moves] == [(third.id, "n1", "n2")]
    assert second.allocation is not None
    assert snapshot_of(desk.state, desk.now) == before
