"""Recording of readings in the history, at any pace of collectors and with any failure of the history."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest

from corral.control.live.state import State
from corral.control.ports import (
    CLUSTER,
    CLUSTER_METRICS,
    GPU_METRICS,
    NODE_METRICS,
    GpuReading,
    History,
    HistoryUnavailable,
    HostReading,
    Metric,
    Round,
)
from corral.control.system.policies import Policies
from corral.core.model import Queue, Request
from corral.core.snapshot.changes import PutJob, PutNode, PutQueue
from corral.server.monitoring.fleet_metrics import FleetFacts, read_fleet
from corral.server.monitoring.recorder import MAX_WAITING, Recorder, fleet_values
from corral.telemetry.reading_sums import GpuSums
from corral.telemetry.readings import LatestReadings
from tests.unit.core.builders import node, running, waiting
from tests.unit.telemetry.history_model import NoHistory, SetClock, open_history

T = 1_800_000_000.0
FULL = GpuReading(
    gpu_id="g0",
    at=T,
    utilization=0.5,
    memory_used_bytes=1 << 30,
    temperature_celsius=60,
    power_watts=250,
    energy_joules=1e6,
    sm_clock_mhz=1400,
    memory_clock_mhz=900,
    throttle_reasons=("sw_power_cap",),
)


class Notebook(NoHistory):
    """Remembers what was appended; fails or blocks on request."""

    def __init__(self) -> None:
        self.moments: list[tuple[float, Mapping[Metric, Mapping[str, float]]]] = []
        self.failure: Exception | None = None
        self.go_on = threading.Event()
        self.go_on.set()
        self.asked = threading.Event()

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        self.asked.set()
        self.go_on.wait(30)
        if self.failure is not None:
            raise self.failure
        self.moments.append((at, {metric: dict(by) for metric, by in values.items()}))


def reading(gpu: str, at: float, use: float = 0.5) -> GpuReading:
    return GpuReading(gpu_id=gpu, at=at, utilization=use)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(at=T)


def recorder(notebook: History, clock: SetClock, fleet: FleetFacts | None = None) -> Recorder:
    def inspect() -> Future[FleetFacts]:
        answer: Future[FleetFacts] = Future()
        assert fleet is not None
        answer.set_result(fleet)
        return answer

    return Recorder(
        notebook,
        clock=clock,
        interval_seconds=5.0,
        inspect_fleet=None if fleet is None else inspect,
    )


def test_everything_in_a_reading_is_recorded(clock: SetClock) -> None:
    notebook = Notebook()
    host = HostReading(
        node="n1",
        at=T,
        cpu=0.25,
        memory_used_bytes=5,
        disk_used_bytes=6,
        network_receive_bytes=7.0,
        network_send_bytes=8.0,
    )
    keeper = recorder(notebook, clock)
    keeper.take(Round(at=T, gpus=[FULL], hosts=[host]))
    clock.at += 5
    keeper.record()
    ((at, values),) = notebook.moments
    assert at == T
    assert set(values) == {*GPU_METRICS, *NODE_METRICS}
    assert values[Metric.GPU_THROTTLED] == {"g0": 1.0}
    assert values[Metric.NODE_CPU] == {"n1": 0.25}


def test_a_value_that_is_not_reported_is_absent(clock: SetClock) -> None:
    notebook = Notebook()
    keeper = recorder(notebook, clock)
    keeper.take(Round(at=T, gpus=[reading("g0", T), GpuReading(gpu_id="g1", at=T, lost=True)]))
    clock.at += 5
    keeper.record()
    ((_, values),) = notebook.moments
    assert values == {Metric.GPU_UTILIZATION: {"g0": 0.5}, Metric.GPU_THROTTLED: {"g0": 0.0}}


def test_looks_of_several_collectors_are_one_moment(clock: SetClock) -> None:
    notebook = Notebook()
    keeper = recorder(notebook, clock)
    for begin in (T, T + 5, T + 10):
        clock.at = begin
        keeper.take(Round(at=begin, gpus=[reading("g0", begin)]))
        keeper.take(Round(at=begin + 3, gpus=[reading("g1", begin + 3)]))
        clock.at = begin + 4
        keeper.record()
    # The third is not whole yet: another collector may still add to it.
    assert [at for at, _ in notebook.moments] == [T + 3, T + 8]
    assert all(set(values[Metric.GPU_UTILIZATION]) == {"g0", "g1"} for _, values in notebook.moments)


def test_a_collector_that_is_late_is_kept_at_the_newest_moment(clock: SetClock) -> None:
    notebook = Notebook()
    keeper = recorder(notebook, clock)
    for at in (T + 8, T + 1):
        keeper.take(Round(at=at, gpus=[reading(f"g{at}", at)]))
        clock.at += 5
        keeper.record()
    assert [at for at, _ in notebook.moments] == [T + 8, T + 8]


def test_a_clock_that_was_set_back_is_left_to_the_history(clock: SetClock) -> None:
    notebook = Notebook()
    keeper = recorder(notebook, clock)
    for at in (T, T - 3600):
        clock.at = at
        keeper.take(Round(at=at, gpus=[reading("g0", at)]))
    clock.at -= 5
    keeper.record()
    assert [at for at, _ in notebook.moments] == [T, T - 3600]


def test_a_history_that_fails_is_logged_once_and_counted(clock: SetClock, caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook()
    notebook.failure = HistoryUnavailable("disk full")
    keeper = recorder(notebook, clock)
    with caplog.at_level(logging.WARNING):
        for number in range(4):
            keeper.take(Round(at=T + 5 * number, gpus=[reading("g0", T + 5 * number)]))
            clock.at += 5
            keeper.record()
            notebook.failure = None if number == 2 else notebook.failure
    assert keeper.dropped == 3
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert [at for at, _ in notebook.moments] == [T + 15]


def test_a_history_that_hangs_delays_no_reading(clock: SetClock) -> None:
    notebook = Notebook()
    notebook.go_on.clear()
    keeper = recorder(notebook, clock)
    keeper.start()
    # The batch is closed by the next look, so that the thread has something to hang on.
    keeper.take(Round(at=T, gpus=[reading("g0", T)]))
    keeper.take(Round(at=T + 5, gpus=[reading("g0", T + 5)]))
    assert notebook.asked.wait(30)
    for number in range(2, MAX_WAITING + 12):
        keeper.take(Round(at=T + 5 * number, gpus=[reading("g0", T + 5 * number)]))
    notebook.go_on.set()
    keeper.stop()
    # One was being written, and the newest were waiting.
    assert len(notebook.moments) == MAX_WAITING + 1
    assert keeper.dropped == 11
    assert notebook.moments[-1][0] == T + 5 * (MAX_WAITING + 11)


def test_stopping_writes_what_was_taken(clock: SetClock, tmp_path: Path) -> None:
    history = open_history(tmp_path / "history.db", clock)
    keeper = recorder(history, clock)
    keeper.start()
    keeper.take(Round(at=T, gpus=[reading("g0", T, 0.25)]))
    keeper.stop()
    assert history.means(Metric.GPU_UTILIZATION, T, T + 1) == {"g0": 0.25}
    history.close()


def a_fleet() -> FleetFacts:
    state = State(Policies())
    state.apply(
        [
            PutQueue(queue=Queue(name="default")),
            PutQueue(queue=Queue(name="empty")),
            PutNode(node=node("n1", gpus=4)),
            PutJob(job=running(1, on={"n1": (0, 1)})),
            PutJob(job=waiting(2, request=Request(gpus=1), queued_at=T - 300)),
            PutJob(job=waiting(3, request=Request(gpus=1), queued_at=T - 60)),
        ]
    )
    return read_fleet(state, T)


def test_the_fleet_in_a_few_numbers() -> None:
    fleet = a_fleet()
    ids = [gpu.gpu.id for gpu in fleet.nodes[0].gpus]
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update(
        [
            GpuReading(gpu_id=ids[0], at=T, utilization=0.8, power_watts=200.0, temperature_celsius=70.0),
            GpuReading(gpu_id=ids[1], at=T, utilization=0.4, power_watts=150.0, temperature_celsius=60.0),
            GpuReading(gpu_id=ids[2], at=T, utilization=0.9, power_watts=50.0, temperature_celsius=75.0),
            GpuReading(gpu_id=ids[3], at=T, lost=True),
        ]
    )
    values = fleet_values(fleet, latest.sums(fleet.held, T, idle_below=0.0), T)
    assert {metric: values[metric][CLUSTER] for metric in CLUSTER_METRICS} == {
        Metric.CLUSTER_ALLOCATION: 1.0,
        # activity of a GPU that no job holds is not use
        Metric.CLUSTER_UTILIZATION: pytest.approx(0.3),
        Metric.CLUSTER_POWER: 400.0,
        Metric.CLUSTER_TEMPERATURE: 75.0,
        Metric.CLUSTER_GPUS: 4,
        Metric.CLUSTER_GPUS_HELD: 2.0,
        Metric.CLUSTER_RUNNING: 1,
        Metric.CLUSTER_QUEUED: 2,
    }
    assert values[Metric.QUEUE_LENGTH] == {"default": 2, "empty": 0}
    assert values[Metric.QUEUE_WAIT] == {"default": 300.0, "empty": 0.0}


def test_without_readings_use_and_power_are_unknown_not_zero() -> None:
    values = fleet_values(a_fleet(), GpuSums(), T)
    unknown = {Metric.CLUSTER_UTILIZATION, Metric.CLUSTER_POWER, Metric.CLUSTER_TEMPERATURE}
    assert unknown.isdisjoint(values)
    assert values[Metric.CLUSTER_GPUS_HELD] == {CLUSTER: 2.0}


def test_the_fleet_is_kept_once_per_interval_even_without_readings(clock: SetClock) -> None:
    notebook = Notebook()
    keeper = recorder(notebook, clock, a_fleet())
    for _ in range(10):
        keeper.record()
        clock.at += 1
    assert [at for at, _ in notebook.moments] == [T, T + 5]
