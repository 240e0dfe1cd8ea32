"""The meter against a naive recount, over restarts, gaps and failed writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.ports import GpuReading, Holder, Round
from corral.control.records import UsageRecord
from corral.core.model import JobKind
from corral.core.monitoring.attempt_usage import NOTHING_MEASURED, Measured
from corral.server.monitoring.usage_meter import REMEMBER_SECONDS, UsageMeter

GPUS = ("n1/0", "n1/1")


class Ledger:
    """A controller and a store in one: keeps what is saved, and fails on request."""

    def __init__(self) -> None:
        self.saved: dict[str, Measured] = {}
        self.writes = 0
        self.is_failing = False

    def execute(self, use_case: Any, *args: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        if self.is_failing:
            answer.set_exception(OSError("the disk is full"))
            return answer
        self.writes += 1
        tables = SimpleNamespace(usage=SimpleNamespace(save_measured=self.saved.update))
        answer.set_result(use_case(SimpleNamespace(tx=tables), *args))
        return answer

    @contextmanager
    def read(self) -> Iterator[Any]:
        records = [replace(RECORD, attempt_id=attempt, measured=what) for attempt, what in self.saved.items()]
        yield SimpleNamespace(usage=SimpleNamespace(open=lambda: records))

    def meter(self, now: float = 0.0) -> UsageMeter:
        return UsageMeter(controller=self, store=self, now=now, interval_seconds=5.0)  # type: ignore[arg-type]


RECORD = UsageRecord(
    attempt_id="j-1.1",
    job_id="j-1",
    job_name="train",
    user="ann",
    group=None,
    kind=JobKind.TRAINING,
    queue="default",
    pool="default",
    model="A10",
    nodes=1,
    gpu_milli=1000,
    queued_at=0.0,
    planned_at=0.0,
)


def holder(attempt: str, gpu_milli: int = 1000, running_since: float | None = 0.0) -> Holder:
    return Holder(
        job_id=attempt.partition(".")[0],
        attempt_id=attempt,
        user="ann",
        kind=JobKind.TRAINING,
        gpu_milli=gpu_milli,
        running_since=running_since,
    )


def look(at: float, *held: Holder, utilization: float = 0.5, gpu: str = GPUS[0], **values: Any) -> Round:
    reading = GpuReading(gpu_id=gpu, at=at, utilization=utilization, power_watts=100.0, **values)
    return Round(at=at, gpus=(reading,), holders={gpu: held} if held else {})


def test_meter_writes_periodically_and_at_the_end_of_an_attempt() -> None:
    ledger = Ledger()
    meter = ledger.meter()
    for at in range(100, 131, 5):
        meter.take(look(at, holder("j-1.1")))
    assert ledger.writes == 2
    assert ledger.saved["j-1.1"].gpu_seconds == 30
    meter.take(look(135, holder("j-1.1")))
    meter.take(look(140))
    assert ledger.writes == 3
    assert ledger.saved["j-1.1"] == Measured(
        gpu_seconds=35, busy_gpu_seconds=17.5, energy_joules=3500, used_gpu_ids=(GPUS[0],)
    )


def test_the_last_seconds_are_written_at_the_end() -> None:
    ledger = Ledger()
    meter = ledger.meter()
    meter.take(look(100, holder("j-1.1")))
    meter.take(look(105, holder("j-1.1")))
    assert ledger.saved == {}
    meter.stop()
    assert ledger.saved["j-1.1"].gpu_seconds == 5


def test_unknown_time_is_counted_as_nothing() -> None:
    ledger = Ledger()
    meter = ledger.meter()
    meter.take(look(100, holder("j-1.1")))
    meter.take(look(200, holder("j-1.1")))  # a gap
    meter.take(look(205, holder("j-1.1"), lost=True))
    old = look(190, holder("j-1.1"))
    meter.take(replace(old, at=210))  # a reading that has stood still
    meter.stop()
    assert ledger.saved == {}
    meter.take(look(210, holder("j-1.1")))
    meter.stop()
    assert ledger.saved["j-1.1"].gpu_seconds == 10


def test_a_new_holder_has_the_time_since_it_runs_and_the_old_one_no_more() -> None:
    ledger = Ledger()
    meter = ledger.meter()
    meter.take(look(100, holder("j-1.1")))
    meter.take(look(105, holder("j-2.1", running_since=103.0)))
    meter.take(look(110, holder("j-3.1", running_since=None)))
    meter.stop()
    assert {attempt: what.gpu_seconds for attempt, what in ledger.saved.items()} == {"j-2.1": 2.0}


def test_a_write_that_failed_is_made_good() -> None:
    ledger = Ledger()
    meter = ledger.meter()
    meter.take(look(100, holder("j-1.1")))
    meter.take(look(105, holder("j-1.1")))
    ledger.is_failing = True
    meter.take(look(110))
    assert ledger.saved == {}
    ledger.is_failing = False
    meter.take(look(130))
    assert ledger.saved["j-1.1"].gpu_seconds == 5


def test_an_attempt_that_was_out_of_sight_goes_on() -> None:
    ledger = Ledger()
    meter = ledger.meter()
    for at, held in ((100, True), (105, True), (110, False), (115, True), (120, True)):
        meter.take(look(at, *([holder("j-1.1")] if held else [])))
    meter.take(look(120 + REMEMBER_SECONDS + 20))
    meter.stop()
    assert ledger.saved["j-1.1"].gpu_seconds == 15


rounds = st.lists(
    st.tuples(
        st.sampled_from([1.0, 5.0, 14.0, 16.0]),  # seconds since the round before; the last is a gap
        st.sampled_from([(), ("j-1.1",), ("j-2.1",), ("j-1.1", "j-2.1")]),
        st.floats(0, 1),
        st.floats(0, 500),
        st.sampled_from(GPUS),
    ),
    max_size=30,
)


def naive(looks: Sequence[Round]) -> dict[str, float]:
    """Joules by attempt: power times time between two readings of a GPU, for the attempt that held it at both."""
    sums: dict[str, float] = {}
    last: dict[str, Round] = {}
    for taken in looks:
        (reading,) = taken.gpus
        before = last.get(reading.gpu_id)
        holders = taken.holders.get(reading.gpu_id, ())
        if before is not None and taken.at - before.at <= 15.0:
            known = {one.attempt_id for one in before.holders.get(reading.gpu_id, ())}
            for one in holders:
                if one.attempt_id in known:
                    joules = (reading.power_watts or 0.0) * (taken.at - before.at) / len(holders)
                    sums[one.attempt_id] = sums.get(one.attempt_id, 0.0) + joules
        last[reading.gpu_id] = taken
    return sums


def looks_of(steps: list[Any]) -> list[Round]:
    looks, at = [], 0.0
    for seconds, held, utilization, power, gpu in steps:
        at += seconds
        # Not known to run yet: then only time between two looks counts, which a naive count can follow.
        holders = tuple(holder(attempt, 1000 // len(held), running_since=None) for attempt in held)
        reading = GpuReading(gpu_id=gpu, at=at, utilization=utilization, power_watts=power)
        looks.append(Round(at=at, gpus=(reading,), holders={gpu: holders} if holders else {}))
    return looks


@given(steps=rounds, cut=st.integers(0, 30))
def test_sums_are_those_of_a_naive_recount_and_a_restart_changes_nothing_else(steps: list[Any], cut: int) -> None:
    looks = looks_of(steps)
    ledger = Ledger()
    for part in (looks[:cut], looks[cut:]):
        meter = ledger.meter(now=part[0].at if part else 0.0)
        for taken in part:
            meter.take(taken)
        meter.stop()
    # It is unknown what happened while the meter was away: the time between the two parts counts for no attempt.
    expected = naive(looks[:cut])
    for attempt, joules in naive(looks[cut:]).items():
        expected[attempt] = expected.get(attempt, 0.0) + joules
    assert ledger.saved.keys() == expected.keys()
    for attempt, joules in expected.items():
        assert ledger.saved[attempt].energy_joules == pytest.approx(joules)


@given(steps=rounds, cut=st.integers(0, 30))
def test_a_crash_loses_only_what_was_not_written(steps: list[Any], cut: int) -> None:
    looks = looks_of(steps)
    ledger = Ledger()
    meter = ledger.meter()
    for taken in looks[:cut]:
        meter.take(taken)
    written = dict(ledger.saved)
    again = ledger.meter(now=looks[cut].at if cut < len(looks) else 0.0)
    for taken in looks[cut:]:
        again.take(taken)
    again.stop()
    later = naive(looks[cut:])
    for attempt in written.keys() | later.keys():
        before = written.get(attempt, NOTHING_MEASURED).energy_joules
        assert ledger.saved[attempt].energy_joules == pytest.approx(before + later.get(attempt, 0.0))
