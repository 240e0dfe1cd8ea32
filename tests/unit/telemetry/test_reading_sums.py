"""Sums over readings equal what adding them up one by one gives."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.fleet.live_fleet import HeldGpus
from corral.control.ports import GpuReading
from corral.telemetry.reading_sums import GpuSums
from corral.telemetry.readings import LatestReadings

NOW = 1000.0
STALE = 15.0
GPUS = tuple(f"g{number}" for number in range(8))
#: `away` is read, and is no part of the fleet.
READ = (*GPUS, "away")

values = st.none() | st.floats(0, 1)
readings = st.builds(
    GpuReading,
    gpu_id=st.sampled_from(READ),
    at=st.sampled_from((NOW - 100, NOW - STALE, NOW - 1, NOW, NOW + 100)),
    utilization=values,
    sm_activity=values,
    power_watts=values,
    power_limit_watts=values,
    temperature_celsius=values,
    lost=st.booleans(),
)


def counted(latest: LatestReadings, held: HeldGpus, cluster: str | None) -> GpuSums:
    """One by one."""
    own = {gpu for gpu in GPUS if cluster is None or held.clusters[cluster][held.places[gpu]]}
    known = [
        each.reading for gpu, each in latest.all(NOW).items() if gpu in own and not each.stale and not each.reading.lost
    ]
    on_held = [reading for reading in known if held.held[held.places[reading.gpu_id]]]
    used = [reading.utilization for reading in on_held if reading.utilization is not None]
    active = [reading.sm_activity for reading in on_held if reading.sm_activity is not None]
    watts = [reading.power_watts for reading in known if reading.power_watts is not None]
    limits = [reading.power_limit_watts for reading in known if reading.power_limit_watts is not None]
    celsius = [reading.temperature_celsius for reading in known if reading.temperature_celsius is not None]
    return GpuSums(
        read=len(known),
        utilization=sum(used) if used else None,
        sm_activity=fmean(active) if active else None,
        idle=sum(use < 0.1 for use in used),
        power_watts=sum(watts) if watts else None,
        power_limit_watts=sum(limits) if limits else None,
        temperature_celsius=max(celsius, default=None),
        temperature_mean_celsius=fmean(celsius) if celsius else None,
    )


@given(st.lists(st.lists(readings, max_size=12), max_size=4), st.lists(st.booleans(), min_size=8, max_size=8))
def test_sums_equal_a_count_of_everything(rounds: list[list[GpuReading]], flags: list[bool]) -> None:
    held = HeldGpus(
        places={gpu: place for place, gpu in enumerate(reversed(GPUS))},
        held=bytes(flags),
        clusters={"here": bytes([1, 0] * 4), "there": bytes([0, 1] * 4)},
    )
    latest = LatestReadings(stale_after_seconds=STALE)
    for taken in rounds:
        latest.update(taken)
        for cluster in (None, "here", "there"):
            found = latest.sums(held, NOW, idle_below=0.1, cluster=cluster)
            expected = counted(latest, held, cluster)
            for name in GpuSums.__slots__:
                assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


def test_forgotten_gpus_are_not_added() -> None:
    held = HeldGpus(places={"g0": 0, "g1": 1}, held=b"\x01\x01", clusters={})
    latest = LatestReadings(stale_after_seconds=STALE)
    latest.update(GpuReading(gpu_id=gpu, at=NOW, power_watts=100.0) for gpu in ("g0", "g1"))
    assert latest.sums(held, NOW, idle_below=0.0).power_watts == 200.0
    latest.retain(["g1"])
    assert latest.sums(held, NOW, idle_below=0.0).power_watts == 100.0
    latest.retain([])
    assert latest.sums(held, NOW, idle_below=0.0) == GpuSums()
    latest.update([GpuReading(gpu_id="g0", at=NOW, power_watts=50.0)])
    assert latest.sums(held, NOW, idle_below=0.0).power_watts == 50.0


def test_a_cluster_that_has_no_gpu_has_no_sums() -> None:
    held = HeldGpus(places={}, held=b"", clusters={})
    latest = LatestReadings(stale_after_seconds=STALE)
    latest.update([GpuReading(gpu_id="away", at=NOW, power_watts=50.0)])
    assert latest.sums(held, NOW, idle_below=0.0) == GpuSums()
    assert latest.sums(held, NOW, idle_below=0.0, cluster="none") == GpuSums()
