"""The newest reading of each GPU and node, until it is too old to be believed."""

from __future__ import annotations

from corral.control.ports import GpuReading, HostReading, Round
from corral.telemetry.readings import LatestReadings


def reading(gpu_id: str, at: float, utilization: float = 0.5) -> GpuReading:
    return GpuReading(gpu_id=gpu_id, at=at, utilization=utilization)


def test_the_newest_reading_wins_and_grows_stale() -> None:
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update([reading("a", 100.0, 0.1), reading("b", 100.0)])
    latest.update([reading("a", 105.0, 0.9)])
    latest.update([reading("a", 101.0, 0.2)])  # a late one
    found = latest.get("a", now=110.0)
    assert found is not None
    assert (found.reading.utilization, found.stale) == (0.9, False)
    assert {gpu: each.stale for gpu, each in latest.all(now=116.0).items()} == {"a": False, "b": True}
    assert latest.get("c", now=110.0) is None


def test_gpus_that_are_gone_are_dropped() -> None:
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update([reading("a", 1.0), reading("b", 1.0)])
    latest.retain(["b", "c"])
    assert set(latest.all(now=1.0)) == {"b"}


def test_hosts_are_kept_like_gpus() -> None:
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.take(Round(at=100.0, hosts=[HostReading(node="n", at=100.0, cpu=0.1), HostReading(node="m", at=100.0)]))
    latest.take(Round(at=110.0, hosts=[HostReading(node="n", at=110.0, cpu=0.2)]))
    latest.update([], [HostReading(node="n", at=105.0, cpu=0.9)])  # a late one
    found = latest.host("n", now=116.0)
    assert found is not None
    assert (found.reading.cpu, found.stale) == (0.2, False)
    assert {node: each.stale for node, each in latest.hosts(now=116.0).items()} == {"n": False, "m": True}
    latest.retain([], nodes=["m"])
    assert latest.host("n", now=116.0) is None
    assert set(latest.hosts(now=116.0)) == {"m"}
