"""After any appends, compactions, prunings and reopenings, answers are those of a plain list of readings."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from corral.control.ports import Metric
from corral.telemetry.history import EmbeddedHistory
from tests.unit.searching import DEAR
from tests.unit.telemetry.history_model import (
    HOUR_MS,
    HistoryModel,
    SetClock,
    assert_same_series,
    is_close,
    open_history,
)

#: values by subject, by metric
Readings = Mapping[Metric, Mapping[str, float]]

METRICS = (Metric.GPU_UTILIZATION, Metric.GPU_MEMORY_USED, Metric.GPU_ENERGY)
#: More than one block of subjects.
SUBJECTS = [f"gpu-{number}" for number in range(40)]
BEGIN = 500_000 * HOUR_MS

values = st.one_of(
    st.floats(0, 1),
    st.floats(0, 1e11),
    st.integers(0, 100).map(lambda percent: percent / 100),
    st.floats(-1e6, 0),
)
rounds = st.dictionaries(
    st.sampled_from(METRICS),
    st.dictionaries(st.sampled_from(SUBJECTS), values, max_size=40),
    min_size=1,
)
gaps = st.one_of(
    st.just(5_000),
    st.integers(0, 10_000),
    st.integers(0, 2 * HOUR_MS),
    st.sampled_from([HOUR_MS, 60_000, 30 * HOUR_MS, 200 * HOUR_MS]),
)
steps = st.one_of(st.sampled_from([1, 5_000, 60_000, 90_000, HOUR_MS, 24 * HOUR_MS]), st.integers(1, 3 * HOUR_MS))


class HistoryStory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="corral-history-")
        self.clock = SetClock(at=BEGIN / 1000)
        self.now = BEGIN

    @initialize(hours=st.tuples(st.sampled_from([1, 24, 100]), st.sampled_from([2, 72]), st.sampled_from([100, 1000])))
    def begin(self, hours: tuple[int, int, int]) -> None:
        self.hours = hours
        self.history = self.opened()
        raw, minute, hour = hours
        self.model = HistoryModel(kept_ms={"raw": raw * HOUR_MS, "minute": minute * HOUR_MS, "hour": hour * HOUR_MS})

    def opened(self) -> EmbeddedHistory:
        raw, minute, hour = self.hours
        path = Path(self.directory.name) / "history.db"
        return open_history(path, self.clock, raw_hours=raw, minute_hours=minute, hour_hours=hour)

    @rule(taken=st.lists(st.tuples(gaps, rounds), min_size=1, max_size=8))
    def append(self, taken: list[tuple[int, Readings]]) -> None:
        for gap, readings in taken:
            self.now += gap
            self.clock.at = self.now / 1000
            self.history.append(self.now / 1000, readings)
            self.model.append(self.now, readings)

    @rule(gap=st.integers(5_000, 20_000), count=st.integers(20, 200), names=st.sets(st.sampled_from(SUBJECTS)))
    def append_regularly(self, gap: int, count: int, names: set[str]) -> None:
        for number in range(count):
            value = number % 7 / 7
            self.append([(gap, {Metric.GPU_UTILIZATION: {name: value + int(name[4:]) for name in sorted(names)}})])

    @rule(back=st.integers(1, 2 * HOUR_MS), readings=rounds)
    def append_late(self, back: int, readings: Readings) -> None:
        self.history.append((self.now - back) / 1000, readings)
        self.model.append(self.now - back, readings)

    @rule()
    def tend(self) -> None:
        self.history.tend()
        self.model.tend(self.now)

    @rule()
    def reopen(self) -> None:
        self.history.close()
        self.history = self.opened()

    @rule(
        metric=st.sampled_from(METRICS),
        back=st.integers(0, 300 * HOUR_MS) | st.integers(0, HOUR_MS),
        length=st.integers(1, 300 * HOUR_MS) | st.integers(1, HOUR_MS),
        step=steps,
        names=st.none() | st.sets(st.sampled_from(SUBJECTS)),
    )
    def ask(self, metric: Metric, back: int, length: int, step: int, names: set[str] | None) -> None:
        since = self.now - back
        until = since + length
        got = self.history.series(metric, names, since / 1000, until / 1000, step / 1000)
        wanted = self.model.series(metric, since, until, step)
        if names is not None:
            wanted = {name: points for name, points in wanted.items() if name in names}
        assert_same_series(metric, got, wanted)
        means = self.history.means(metric, since / 1000, until / 1000)
        expected = self.model.means(metric, since, until)
        assert sorted(means) == sorted(expected)
        assert all(is_close(metric, means[name], mean) for name, mean in expected.items())

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "model"):
            return
        for metric in METRICS:
            got = self.history.series(metric, None, 0, self.now / 1000 + 1, 24 * 3600)
            assert_same_series(metric, got, self.model.series(metric, 0, self.now + 1000, 24 * HOUR_MS))

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.history.close()
        self.directory.cleanup()


TestHistoryStory = HistoryStory.TestCase
TestHistoryStory.settings = settings(DEAR, stateful_step_count=12)
