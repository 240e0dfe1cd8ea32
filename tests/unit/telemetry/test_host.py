"""This machine's own readings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from corral.control.ports import HostReading
from corral.telemetry.host import HostCollector


def read(collector: HostCollector, at: float) -> HostReading:
    (reading,) = collector.collect(at).hosts
    return reading


def test_the_real_machine(tmp_path: Path) -> None:
    collector = HostCollector("me", tmp_path)
    first, second = read(collector, 10.0), read(collector, 12.0)
    assert (first.node, first.at, first.cpu, first.network_receive_bytes) == ("me", 10.0, None, None)
    assert second.cpu is not None
    assert 0 <= second.cpu <= 1
    assert second.memory_total_bytes == psutil.virtual_memory().total
    assert 0 < (second.memory_used_bytes or 0) < (second.memory_total_bytes or 0)
    assert second.disk_total_bytes == psutil.disk_usage(str(tmp_path)).total
    assert second.network_receive_bytes is not None
    collector.close()


def test_rates_are_per_second_without_the_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = {
        "eth0": SimpleNamespace(bytes_recv=1000, bytes_sent=500),
        "lo": SimpleNamespace(bytes_recv=9, bytes_sent=9),
    }
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: dict(cards))
    collector = HostCollector("me", tmp_path)
    read(collector, 10.0)
    cards["eth0"] = SimpleNamespace(bytes_recv=3000, bytes_sent=700)
    cards["lo"] = SimpleNamespace(bytes_recv=10**9, bytes_sent=10**9)
    reading = read(collector, 14.0)
    assert (reading.network_receive_bytes, reading.network_send_bytes) == (500.0, 50.0)
    cards["eth0"] = SimpleNamespace(bytes_recv=0, bytes_sent=0)  # the card was taken out and put in again
    assert read(collector, 15.0).network_receive_bytes == 0.0


def test_values_unknown_to_the_system_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise OSError("not here")

    for name in ("cpu_percent", "virtual_memory", "disk_usage", "net_io_counters"):
        monkeypatch.setattr(psutil, name, fails)
    assert read(HostCollector("me", tmp_path), 1.0) == HostReading(node="me", at=1.0)
