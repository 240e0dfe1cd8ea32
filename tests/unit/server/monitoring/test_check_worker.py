"""The worker that evaluates checks: one whose result cannot be read or evaluated stops no other one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.control.monitoring import gpu_checks
from corral.control.monitoring.gpu_checks import CheckRules
from corral.control.ports import AttemptPhase, LogChunk, Store
from corral.control.records import CheckRecord, CheckState
from corral.core.model import EndReason, attempt_id
from corral.server.monitoring.check_worker import CheckWorker, read_outcome
from tests.unit.control.world import ROOT, Desk, StillClock
from tests.unit.server.reports.test_report_worker import DeskController

GOOD = {"measurements": [{"check": "compute", "metric": "tflops", "value": 1.0}], "problems": [], "skipped": []}


class Logs:
    """The output of checks by attempt; an error is raised."""

    def __init__(self) -> None:
        self.texts: dict[str, str | Exception] = {}

    def logs(self, attempt: str, rank: int, offset: int, limit: int) -> LogChunk:
        found = self.texts[attempt]
        if isinstance(found, Exception):
            raise found
        data = found.encode()
        return LogChunk(data=data, next_offset=len(data), at_end=True)


class NoDrill:
    def run(self, gpu_id: str) -> str | None:
        return None


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def ended_check(desk: Desk, gpu: str) -> CheckRecord:
    (record,) = desk.do(gpu_checks.request, ROOT, gpu, (), CheckRules())
    desk.cycle()
    job = desk.job(record.job_id)
    desk.hear(job, AttemptPhase.RUNNING)
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    return record


def state(desk: Desk, record: CheckRecord) -> CheckState:
    with desk.store.read() as tx:
        found = tx.health.check(record.job_id)
    assert found is not None
    return found.state


def test_a_check_that_cannot_be_evaluated_stops_no_other_one(desk: Desk) -> None:
    gpus = sorted(gpu.id for node in desk.state.snapshot.nodes.values() for gpu in node.gpus)
    bad, fine = [ended_check(desk, gpu) for gpu in gpus[:2]]
    logs = Logs()
    logs.texts[attempt_id(bad.job_id, 1)] = RuntimeError("the log is gone")
    logs.texts[attempt_id(fine.job_id, 1)] = f"corral-check: {json.dumps(GOOD)}"
    controller: Any = DeskController(desk)
    controller.engines = {node.cluster: logs for node in desk.state.snapshot.nodes.values()}
    worker = CheckWorker(
        controller=controller, store=desk.store, rules=CheckRules(), self_test=NoDrill(), clock=StillClock()
    )
    worker.step()
    assert state(desk, fine) is CheckState.PASSED
    assert state(desk, bad) is CheckState.OPEN, "it is tried again"
    for _ in range(3):
        worker.step()
    assert state(desk, bad) is CheckState.UNKNOWN, "but not for ever"


@pytest.mark.parametrize(
    "result",
    [
        "[" * 50_000,
        "{}",
        "[]",
        "null",
        json.dumps({**GOOD, "measurements": [{"check": "compute", "metric": "tflops", "value": 10**400}]}),
        json.dumps({**GOOD, "measurements": [{"check": "compute", "metric": "tflops", "value": float("nan")}]}),
        json.dumps({**GOOD, "measurements": [{"check": "compute", "metric": "tflops", "value": "inf"}]}),
    ],
)
def test_a_result_that_cannot_be_read_is_none(result: str) -> None:
    logs = Logs()
    logs.texts["j-1.1"] = f"corral-check: {result}"
    assert read_outcome(logs, "j-1.1") is None
