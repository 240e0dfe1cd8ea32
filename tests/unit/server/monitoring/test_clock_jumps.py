"""The clock is set back and forth by hours: no reading is lost, no cycle is late, no job waits for hours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from corral.control.live.controller import Controller
from corral.control.ports import AttemptPhase, Collected, GpuReading, Metric, Round, Store
from corral.control.records import DeliveryRecord
from corral.control.system.policies import Policies
from corral.core.model import EndReason, JobState
from corral.core.monitoring.idleness import IdleRules, Recent, observe
from corral.server.alerts.notice_delivery import due_by_channel
from corral.server.monitoring.sampling import Sampling
from corral.telemetry.history import EmbeddedHistory
from corral.telemetry.readings import LatestReadings
from tests.unit.control.live.test_controller import House
from tests.unit.control.world import NoWorkspace, eventually, status

HOUR = 3600.0
JUMPS = pytest.mark.parametrize("jump", [5 * HOUR, -5 * HOUR, 600.0, -600.0])


@dataclass
class JumpyClock:
    """The time may be set; the steady clock goes on."""

    time: float = 1_000_000.0
    steady: float = 50.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.steady

    def pass_(self, seconds: float) -> None:
        self.time += seconds
        self.steady += seconds


class JumpyHouse(House):
    def __init__(self, store: Store) -> None:
        super().__init__(store)

    def _new(self) -> Controller:
        self.jumpy = JumpyClock()
        self.cycles: list[float] = []
        return Controller(
            store=self.store,
            engines={"local": self.engine},
            clock=self.jumpy,
            policies=Policies(),
            workspace=NoWorkspace(),
            observe_cycle=self.cycles.append,
            observe_seconds=3600.0,
        )


@pytest.fixture
def house(store: Store) -> Iterator[JumpyHouse]:
    house = JumpyHouse(store)
    house.controller.start()
    yield house
    house.controller.stop()


def look(house: JumpyHouse) -> None:
    """A read makes the controller look at its clocks."""
    house.controller.inspect(lambda state: None).result(10)


@JUMPS
def test_a_job_that_backs_off_starts_after_its_pause_and_not_after_hours(house: JumpyHouse, jump: float) -> None:
    house.submit("training")
    eventually(lambda: house.launched() == ["j-1.1"])
    at = house.jumpy.time
    house.engine.report(status("j-1.1", AttemptPhase.ENDED, at + 1, reason=EndReason.LOST))
    eventually(lambda: house.job("j-1").state is JobState.QUEUED)
    house.jumpy.time += jump
    for _ in range(12):
        house.jumpy.pass_(30.0)
        look(house)
    eventually(lambda: house.launched() == ["j-1.1", "j-1.2"])


@JUMPS
def test_a_jump_causes_a_cycle_at_once(house: JumpyHouse, jump: float) -> None:
    cycles = house.cycles
    cycles.clear()
    house.jumpy.time += jump
    look(house)
    eventually(lambda: len(cycles) == 1)
    for _ in range(3):
        look(house)
    assert len(cycles) == 1, "and one is enough"
    house.jumpy.pass_(31.0)
    look(house)
    eventually(lambda: len(cycles) == 2)


class OneGpu:
    name = "one"

    def collect(self, at: float) -> Collected:
        return Collected(gpus=(GpuReading(gpu_id="g1", at=at, utilization=0.5),))

    def close(self) -> None:
        pass


class Kept:
    def __init__(self) -> None:
        self.rounds: list[Round] = []

    def take(self, taken: Round) -> None:
        self.rounds.append(taken)


@JUMPS
def test_rounds_and_latest_readings_follow_the_clock(jump: float) -> None:
    clock, kept, latest = JumpyClock(), Kept(), LatestReadings(stale_after_seconds=15.0)
    sampling = Sampling([OneGpu()], [kept, latest], holders=dict, clock=clock, interval_seconds=5.0)
    for number in range(10):
        if number == 5:
            clock.time += jump
        clock.pass_(5.0)
        sampling.sample()
        assert kept.rounds[-1].at == kept.rounds[-1].gpus[0].at == clock.time
        found = latest.get("g1", clock.time)
        assert found is not None
        assert (found.reading.at, found.stale) == (clock.time, False)


@JUMPS
def test_the_history_keeps_every_reading(tmp_path: Path, jump: float) -> None:
    clock = JumpyClock()
    history = EmbeddedHistory(
        tmp_path / "history.db",
        raw_seconds=100 * HOUR,
        minute_seconds=1000 * HOUR,
        hour_seconds=1000 * HOUR,
        clock=clock,
        tended=False,
    )
    expected: list[float] = []
    for number in range(400):
        if number == 200:
            clock.time += jump
            history.tend()
        if number % 57 == 0:
            history.tend()
        clock.pass_(61.7)
        history.append(clock.time, {Metric.GPU_UTILIZATION: {"g1": number / 400}})
        expected.append(round(clock.time, 3))
    for _ in range(2):
        found = history.series(Metric.GPU_UTILIZATION, ["g1"], 0.0, 2_000_000.0, 0.001)["g1"]
        assert sorted(point.at for point in found) == sorted(expected)
        assert sum(point.count for point in found) == 400
        coarse = history.series(Metric.GPU_UTILIZATION, ["g1"], 0.0, 2_000_000.0, 3600.0)["g1"]
        assert sum(point.count for point in coarse) == 400
        history.tend()
    history.close()


def test_readings_from_before_a_clock_jump_do_not_hide_new_readings() -> None:
    rules = IdleRules(enabled=True)
    recent = Recent()
    for minute in range(60):
        recent = observe(recent, 1_000_000.0 + 60 * minute, 0.0, rules)
    for minute in range(60):
        recent = observe(recent, 900_000.0 + 60 * minute, 1.0, rules)
    assert recent.mean == 1.0


def test_a_notice_does_not_wait_for_the_clock_to_catch_up() -> None:
    waits = DeliveryRecord(
        id=1, channel="ops", kind="alert", title="", body="", created_at=0.0, next_try_at=1_000_030.0
    )
    assert due_by_channel([waits], 1_000_000.0) == {}
    assert due_by_channel([waits], 1_000_031.0) == {"ops": [1]}
    assert due_by_channel([waits], 1_000_000.0 - 5 * HOUR) == {"ops": [1]}
