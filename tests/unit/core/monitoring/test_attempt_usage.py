"""Sums of readings: which part counts for which attempt, and which part counts for none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.monitoring.attempt_usage import NOTHING_MEASURED, Measured, Sample, Share, add, countable_seconds

ALL = Share(gpu_milli=1000, held_milli=1000)


def sample(at: float, **values: Any) -> Sample:
    return Sample(gpu_id="n1/0", at=at, **values)


@dataclass(frozen=True, kw_only=True)
class Story:
    what: str
    before: Sample
    sample: Sample
    share: Share = ALL
    seconds: float = 5.0
    expected: dict[str, Any] = field(default_factory=dict)


STORIES = [
    Story(
        what="a busy GPU with an energy counter",
        before=sample(0, energy_joules=1000.0),
        sample=sample(5, utilization=0.8, energy_joules=2500.0, power_watts=999.0, memory_used_bytes=70),
        expected={"gpu_seconds": 5, "busy_gpu_seconds": 4, "energy_joules": 1500}
        | {"memory_peak_bytes": 70, "used_gpu_ids": ("n1/0",)},
    ),
    Story(
        what="without a counter energy is power times time",
        before=sample(0),
        sample=sample(5, utilization=0.0, power_watts=60.0),
        expected={"gpu_seconds": 5, "idle_gpu_seconds": 5, "energy_joules": 300},
    ),
    Story(
        what="a counter that began anew is not believed",
        before=sample(0, energy_joules=9e9),
        sample=sample(5, utilization=0.01, power_watts=100.0, energy_joules=50.0),
        expected={"gpu_seconds": 5, "busy_gpu_seconds": 0.05, "idle_gpu_seconds": 5, "energy_joules": 500},
    ),
    Story(
        what="a device that does not tell its utilisation is neither busy nor idle",
        before=sample(0, energy_joules=0.0),
        sample=sample(5, energy_joules=100.0, memory_used_bytes=7),
        expected={"energy_joules": 100, "memory_peak_bytes": 7},
    ),
    Story(
        what="of a GPU shared with others everybody has a part",
        before=sample(0, energy_joules=0.0),
        sample=sample(5, utilization=0.6, energy_joules=400.0, memory_used_bytes=80),
        share=Share(gpu_milli=250, held_milli=1000),
        expected={"gpu_seconds": 1.25, "busy_gpu_seconds": 0.75, "energy_joules": 100}
        | {"memory_peak_bytes": 20, "used_gpu_ids": ("n1/0",)},
    ),
    Story(
        what="the only holder of a part cannot be busier than all of that part",
        before=sample(0, energy_joules=0.0),
        sample=sample(5, utilization=1.0, energy_joules=400.0),
        share=Share(gpu_milli=250, held_milli=250),
        expected={"gpu_seconds": 1.25, "busy_gpu_seconds": 1.25, "energy_joules": 400, "used_gpu_ids": ("n1/0",)},
    ),
    Story(
        what="of a reading that began under another holder only the rest counts",
        before=sample(0, energy_joules=0.0),
        sample=sample(5, utilization=1.0, energy_joules=500.0),
        seconds=2.0,
        expected={"gpu_seconds": 2, "busy_gpu_seconds": 2, "energy_joules": 200, "used_gpu_ids": ("n1/0",)},
    ),
    Story(what="no time, nothing", before=sample(0), sample=sample(5, utilization=1.0), seconds=0.0),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.what)
def test_adding(story: Story) -> None:
    found = add(NOTHING_MEASURED, story.sample, story.before, story.share, story.seconds)
    expected = Measured(**story.expected)
    for name in ("gpu_seconds", "busy_gpu_seconds", "idle_gpu_seconds", "energy_joules", "memory_peak_bytes"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name
    assert found.used_gpu_ids == expected.used_gpu_ids


def test_earlier_usage_is_kept() -> None:
    known = Measured(gpu_seconds=10, energy_joules=5, memory_peak_bytes=99, used_gpu_ids=("n0/7",))
    found = add(known, sample(5, utilization=0.5, power_watts=1.0, memory_used_bytes=98), sample(0), ALL, 5.0)
    assert found == Measured(
        gpu_seconds=15, busy_gpu_seconds=2.5, energy_joules=10, memory_peak_bytes=99, used_gpu_ids=("n0/7", "n1/0")
    )


@pytest.mark.parametrize(
    ("before", "held_since", "seconds"),
    [
        (None, 0.0, 0.0),  # the first reading stands for nothing
        (sample(95), 0.0, 5.0),
        (sample(95), 98.0, 2.0),
        (sample(95), 101.0, 0.0),  # its processes will be up: a clock that is a little off
        (sample(84), 0.0, 0.0),  # a gap
        (sample(85), 0.0, 15.0),
        (sample(100), 0.0, 0.0),  # the same reading again
        (sample(101), 0.0, 0.0),  # time went backwards
    ],
)
def test_reading_stands_for_a_limited_time(before: Sample | None, held_since: float, seconds: float) -> None:
    assert countable_seconds(before, sample(100), 15.0, held_since) == seconds


@given(
    steps=st.lists(
        st.tuples(st.floats(0.5, 10), st.floats(0, 1), st.floats(0, 700), st.integers(0, 1 << 36)), min_size=1
    ),
    shares=st.lists(st.integers(1, 250), min_size=1, max_size=4),
)
def test_holders_together_have_what_the_gpu_had(steps: list[Any], shares: list[int]) -> None:
    held = sum(shares)
    sums = [NOTHING_MEASURED] * len(shares)
    before, energy, busy, lasted = sample(0.0), 0.0, 0.0, 0.0
    for seconds, utilization, power, memory in steps:
        now = sample(before.at + seconds, utilization=utilization, power_watts=power, memory_used_bytes=memory)
        share_of = [Share(gpu_milli=milli, held_milli=held) for milli in shares]
        sums = [add(one, now, before, share, seconds) for one, share in zip(sums, share_of, strict=True)]
        energy += power * seconds
        busy += min(utilization, held / 1000) * seconds
        lasted += seconds
        before = now
    assert sum(one.energy_joules for one in sums) == pytest.approx(energy)
    assert sum(one.busy_gpu_seconds for one in sums) == pytest.approx(busy)
    assert sum(one.gpu_seconds for one in sums) == pytest.approx(lasted * held / 1000)
    for one in sums:
        assert one.busy_gpu_seconds <= one.gpu_seconds + 1e-9
        assert one.idle_gpu_seconds <= one.gpu_seconds + 1e-9
