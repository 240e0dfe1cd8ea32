"""The watchers over a real controller and store: from readings to what is decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from corral.control.fleet.gpu_holders import holders
from corral.control.jobs.jobs import submit
from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.monitoring import gpu_health
from corral.control.ports import AttemptPhase, GpuReading, Round, Store
from corral.control.records import EventFilter
from corral.control.system.policies import Policies
from corral.core.model import EndReason, GpuHealth, JobState
from corral.core.monitoring.health.model import HealthRules
from corral.core.monitoring.idleness import IdleRules
from corral.server.monitoring.health_watch import HealthWatch, IdleWatch
from tests.unit.control.world import (
    ANN,
    ROOT,
    NoWorkspace,
    RecordingEngine,
    StillClock,
    draft,
    eventually,
    status,
)

RULES = HealthRules(confirm_readings=3, idle_grace_seconds=600.0, idle_fail_seconds=1200.0, recover_seconds=60.0)
IDLE_RULES = IdleRules(enabled=True, window_seconds=600.0, warning_seconds=120.0, interval_seconds=10.0)


class Hall:
    """A controller with two nodes of four GPUs, and readings of them every ten seconds."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = StillClock()
        self.engine = RecordingEngine()
        self.controller = Controller(
            store=store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=NoWorkspace(),
            observe_seconds=3600.0,
            tidy_seconds=3600.0,
        )
        self.controller.start()

    def running(self, name: str, **values: Any) -> str:
        (record,) = self.controller.execute(submit, ANN, [draft(name, **values)]).result(10)
        job_id = record.job.id
        self.engine.report(status(f"{job_id}.1", AttemptPhase.RUNNING, self.clock.time))
        eventually(lambda: self.state_of(job_id) is JobState.RUNNING)
        return job_id

    def settle(self) -> None:
        """Waits until everything that was handed over before is written."""
        self.controller.execute(lambda work: None).result(10)

    def state_of(self, job_id: str) -> JobState | None:
        self.settle()
        found = self.controller.inspect(lambda state: state.snapshot.jobs.get(job_id)).result(10)
        return found.state if found is not None else None

    def health_of(self, gpu_id: str) -> GpuHealth:
        def read(state: State) -> GpuHealth:
            return next(gpu.health for node in state.snapshot.nodes.values() for gpu in node.gpus if gpu.id == gpu_id)

        self.settle()
        found: GpuHealth = self.controller.inspect(read).result(10)
        return found

    def actions(self, subject: str) -> list[str]:
        self.settle()
        with self.store.read() as tx:
            page = tx.events.page(EventFilter(subject=subject), cursor=None, limit=100)
        return [event.action for event in page.items][::-1]

    def look(self, **values: Any) -> Round:
        """All GPUs ten seconds later; values of single ones by names such as n1_0."""
        self.clock.time += 10.0
        gpus = [
            GpuReading(
                gpu_id=f"{node}/{index}",
                at=self.clock.time,
                **{"utilization": 0.0, "temperature_celsius": 40.0, **values.get(f"{node}_{index}", {})},
            )
            for node in ("n1", "n2")
            for index in range(4)
        ]
        held = self.controller.inspect(holders).result(10)
        return Round(at=self.clock.time, gpus=gpus, holders=held)


@pytest.fixture
def hall(store: Store) -> Iterator[Hall]:
    hall = Hall(store)
    yield hall
    hall.controller.stop()


def test_a_hot_gpu_becomes_suspect_then_failed_and_its_job_moves(hall: Hall) -> None:
    job_id = hall.running("training")
    watch = HealthWatch(hall.controller, RULES)
    hot = {"n1_0": {"temperature_celsius": 97.0, "utilization": 0.9}}
    watch.take(hall.look(**hot))
    assert hall.health_of("n1/0") is GpuHealth.SUSPECT
    assert hall.state_of(job_id) is JobState.RUNNING
    for _ in range(2):
        watch.take(hall.look(**hot))
    assert hall.health_of("n1/0") is GpuHealth.FAILED
    assert hall.state_of(job_id) is JobState.STOPPING
    eventually(lambda: hall.engine.stopped == [(f"{job_id}.1", 30.0)])
    watch.take(hall.look(**hot))
    assert hall.actions("n1/0") == ["gpu.suspect", "gpu.failed"]


def test_an_operators_reset_is_heard_at_once(hall: Hall) -> None:
    watch = HealthWatch(hall.controller, RULES)
    for _ in range(3):
        watch.take(hall.look(n1_0={"lost": True}))
    assert hall.health_of("n1/0") is GpuHealth.FAILED
    hall.controller.execute(gpu_health.reset, ROOT, "n1/0").result(10)
    watch.take(hall.look())
    assert hall.health_of("n1/0") is GpuHealth.HEALTHY
    watch.take(hall.look(n1_0={"lost": True}))
    assert hall.health_of("n1/0") is GpuHealth.SUSPECT
    for _ in range(6):
        watch.take(hall.look())
    assert hall.health_of("n1/0") is GpuHealth.HEALTHY
    assert hall.actions("n1/0")[-2:] == ["gpu.suspect", "gpu.healthy"]


def test_a_new_watcher_goes_on_from_what_is_stored(hall: Hall) -> None:
    HealthWatch(hall.controller, RULES).take(hall.look(n1_0={"temperature_celsius": 90.0}))
    watch = HealthWatch(hall.controller, RULES)
    for _ in range(6):
        watch.take(hall.look())
        assert hall.health_of("n1/0") is GpuHealth.SUSPECT
    watch.take(hall.look())
    assert hall.health_of("n1/0") is GpuHealth.HEALTHY


def test_a_hung_job_fails_its_gpu_once_and_not_the_next_one(hall: Hall) -> None:
    job_id = hall.running("hung")
    watch = HealthWatch(hall.controller, RULES)
    watch.take(hall.look(n1_0={"utilization": 0.8}))
    for _ in range(122):
        watch.take(hall.look())
    assert hall.health_of("n1/0") is GpuHealth.FAILED
    end = status(f"{job_id}.1", AttemptPhase.ENDED, hall.clock.time, reason=EndReason.EXIT_CODE, exit_code=143)
    hall.engine.report(end)
    eventually(lambda: hall.state_of(job_id) is JobState.QUEUED)
    hall.clock.time += 10.0
    hall.controller.execute(lambda work: setattr(work.state, "needs_cycle", True)).result(10)
    eventually(lambda: hall.state_of(job_id) is JobState.STARTING)
    hall.engine.report(status(f"{job_id}.2", AttemptPhase.RUNNING, hall.clock.time))
    eventually(lambda: hall.state_of(job_id) is JobState.RUNNING)
    for _ in range(130):
        watch.take(hall.look())
    assert hall.health_of("n1/1") is GpuHealth.SUSPECT, "found, but the job stays: it is the likely cause"
    assert hall.state_of(job_id) is JobState.RUNNING


def test_errors_of_the_driver_are_reported_and_not_in_floods(hall: Hall) -> None:
    job_id = hall.running("training")
    watch = HealthWatch(hall.controller, RULES)
    for _ in range(5):
        watch.take(hall.look(n1_0={"xids": (31, 31)}))
    assert hall.health_of("n1/0") is GpuHealth.HEALTHY, "it is the program's own error"
    hall.settle()
    with hall.store.read() as tx:
        (event,) = tx.events.page(EventFilter(action="gpu.xid"), cursor=None, limit=100).items
    assert (event.detail["code"], event.detail["jobs"]) == (31, [job_id])


def test_readings_of_unknown_gpus_and_after_the_end_do_no_harm(hall: Hall) -> None:
    watch = HealthWatch(hall.controller, RULES)
    strange = GpuReading(gpu_id="elsewhere", at=hall.clock.time, lost=True, xids=(79,))
    look = hall.look(n1_0={"lost": True})
    watch.take(replace(look, gpus=[strange]))
    assert [action for action in hall.actions("elsewhere") if action != "gpu.xid"] == []
    hall.controller.stop()
    watch.take(look)
    IdleWatch(hall.controller, IDLE_RULES).take(look)


def test_an_idle_job_is_warned_and_stopped_and_a_busy_one_is_not(hall: Hall) -> None:
    idle, busy = hall.running("idle"), hall.running("busy")
    watch = IdleWatch(hall.controller, IDLE_RULES)
    at_work = {"n1_1": {"utilization": 0.7}}
    for _ in range(64):
        watch.take(hall.look(**at_work))
    assert hall.actions(idle)[-1] == "job.idle-warned"
    watch = IdleWatch(hall.controller, IDLE_RULES)
    for _ in range(16):
        watch.take(hall.look(**at_work))
    assert hall.state_of(idle) is JobState.STOPPING
    assert hall.state_of(busy) is JobState.RUNNING
    assert [action for action in hall.actions(idle) if "idle" in action] == ["job.idle-warned", "job.idle-stopped"]


def test_idle_jobs_are_not_watched_unless_switched_on(hall: Hall) -> None:
    idle = hall.running("idle")
    watch = IdleWatch(hall.controller, replace(IDLE_RULES, enabled=False))
    for _ in range(100):
        watch.take(hall.look())
    assert hall.actions(idle)[-1] == "job.running"
