"""Readings of exporters that an engine finds: assigned by device, as the numbers of devices mean nothing there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from corral.control.ports import GpuReading, NodeExporter
from corral.telemetry.found_exporters import FoundExporters, assigned

GPUS = ("n-gpu0", "n-gpu1", "n-gpu2")


def readings(**utilization: float) -> list[GpuReading]:
    """The readings of devices 7, 8, … with these UUIDs."""
    return [
        GpuReading(gpu_id=f"{number} GPU-{name}", at=1.0, utilization=value)
        for number, (name, value) in enumerate(utilization.items(), 7)
    ]


def use(found: Sequence[GpuReading]) -> dict[str, float | None]:
    return {one.gpu_id: one.utilization for one in found}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({"n-gpu0": "GPU-c"}, {"n-gpu0": 0.9, "n-gpu1": 0.1, "n-gpu2": 0.2}),
        ({"n-gpu0": "9"}, {"n-gpu0": 0.9, "n-gpu1": 0.1, "n-gpu2": 0.2}),
        ({"n-gpu0": "GPU-c", "n-gpu2": "GPU-a"}, {"n-gpu0": 0.9, "n-gpu2": 0.1, "n-gpu1": 0.2}),
        # A job holds a device that is not known: it may be any of the others.
        ({"n-gpu0": "GPU-c", "n-gpu1": ""}, {"n-gpu0": 0.9}),
        ({"other-gpu0": ""}, {"n-gpu0": 0.1, "n-gpu1": 0.2, "n-gpu2": 0.9}),
    ],
)
def test_a_reading_belongs_to_the_gpu_whose_job_has_the_device(
    held: Mapping[str, str], expected: dict[str, float]
) -> None:
    assert use(assigned(readings(a=0.1, b=0.2, c=0.9), GPUS, held)) == expected


class Engine:
    found: tuple[NodeExporter, ...] = ()

    def exporters(self) -> Sequence[NodeExporter]:
        return self.found

    def held_devices(self) -> Mapping[str, str]:
        return {}


def test_exporters_come_and_go() -> None:
    engine = Engine()
    collector = FoundExporters("pods", engine, lambda: {"n": GPUS}, timeout_seconds=0.5)
    assert collector.collect(1.0).gpus == ()
    # Nothing listens on the port of a system service that no test machine has.
    engine.found = (NodeExporter(node="n", address="127.0.0.1:1"),)
    assert collector.collect(2.0).gpus == []
    assert "n=127.0.0.1:1" in collector.problem
    engine.found = ()
    assert collector.collect(3.0).gpus == ()
    assert collector.problem == ""
    collector.close()
