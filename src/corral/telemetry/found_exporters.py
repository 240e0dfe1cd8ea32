"""Readings from exporters that an engine finds by itself on its nodes.

Where nodes give devices to jobs by themselves, the number of a device says nothing about the GPU of a plan: readings
are assigned by the devices that jobs have reported at their start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from corral.control.ports import Collected, GpuReading, HasExporters
from corral.telemetry.dcgm import GpuLabels
from corral.telemetry.scraper import ScrapingCollector

_AT_ONCE = 8


class FoundExporters:
    """Implements `Collector`. `gpus` has the ids of the GPUs of each node."""

    def __init__(
        self,
        cluster: str,
        engine: HasExporters,
        gpus: Callable[[], Mapping[str, Sequence[str]]],
        *,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._engine = engine
        self._gpus = gpus
        self._timeout = timeout_seconds
        self._collectors: dict[str, ScrapingCollector] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="exporters")
        self.name = f"exporters {cluster}"
        self.label = f"pods of {cluster}"

    @property
    def problem(self) -> str:
        """The problems of exporters that fail or answer badly; "" if there are none."""
        problems = [
            f"{collector.label}: {collector.problem}"
            for collector in list(self._collectors.values())
            if collector.problem
        ]
        return "; ".join(problems[:3])

    def collect(self, at: float) -> Collected:
        found = {f"{exporter.node}={exporter.address}": exporter.node for exporter in self._engine.exporters()}
        for target in self._collectors.keys() - found.keys():
            self._collectors.pop(target).close()
        for target in found.keys() - self._collectors.keys():
            self._collectors[target] = ScrapingCollector(target, identify=device_name, timeout_seconds=self._timeout)
        if not found:
            return Collected()
        looks = list(self._pool.map(lambda collector: collector.collect(at), self._collectors.values()))
        held, gpus = self._engine.held_devices(), self._gpus()
        readings: list[GpuReading] = []
        for target, look in zip(self._collectors, looks, strict=True):
            readings += assigned(look.gpus, gpus.get(found[target], ()), held)
        return Collected(gpus=readings, hosts=[host for look in looks for host in look.hosts if host.node in gpus])

    def close(self) -> None:
        self._pool.shutdown()
        for collector in self._collectors.values():
            collector.close()


def device_name(labels: GpuLabels) -> str:
    """The index and the UUID of a device: a job may have seen either."""
    return f"{'' if labels.index is None else labels.index} {labels.uuid}"


def assigned(readings: Sequence[GpuReading], gpus: Sequence[str], held: Mapping[str, str]) -> list[GpuReading]:
    """Readings by device as readings by GPU of one node. `held` has the device of each GPU that a job holds, by its
    UUID or its number, or "" if that is unknown: then nothing is known about the devices that no job has reported,
    either. Otherwise they are, in any order, the GPUs that no job holds."""
    mine = {gpu: held[gpu] for gpu in gpus if gpu in held}
    by_device = {device: gpu for gpu, device in mine.items() if device}
    rest = iter([gpu for gpu in gpus if gpu not in mine] if len(by_device) == len(mine) else ())
    found = []
    for reading in sorted(readings, key=lambda known: known.gpu_id):
        number, uuid = reading.gpu_id.split(" ", 1)
        gpu = by_device.get(uuid) or by_device.get(number) or next(rest, None)
        if gpu is not None:
            found.append(replace(reading, gpu_id=gpu))
    return found
