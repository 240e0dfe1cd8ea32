"""Port: readings of GPUs and nodes, and the collectors that take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from corral.core.model import JobKind


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuProcess:
    pid: int
    memory_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MigSlice:
    """A part of a partitioned GPU that is a device of its own."""

    id: str
    profile: str = ""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuReading:
    """One GPU at one moment; None where the device reports no value."""

    gpu_id: str
    at: float
    utilization: float | None = None  # 0 … 1
    #: the part of the time in which an SM had work, averaged over all SMs, 0 … 1: the compute efficiency
    sm_activity: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    #: since the driver was loaded
    energy_joules: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    #: why its clocks are held down, such as sw_power_cap or hw_thermal; idle clocks are no reason
    throttle_reasons: tuple[str, ...] = ()
    #: errors since the driver was loaded that could not, and that could, be corrected
    ecc_uncorrected: int | None = None
    ecc_corrected: int | None = None
    remapped_rows: int | None = None
    remap_failed: bool | None = None
    #: XID codes that came since the reading before
    xids: tuple[int, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    mig_slices: tuple[MigSlice, ...] = ()
    #: the device was there and does not answer any more; then nothing else is known
    lost: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class HostReading:
    """One node at one moment; None where it is unknown. Rates are per second since the reading before."""

    node: str
    at: float
    cpu: float | None = None  # 0 … 1, of all CPUs
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    disk_used_bytes: int | None = None
    disk_total_bytes: int | None = None
    network_receive_bytes: float | None = None
    network_send_bytes: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """The readings of one collector in one round."""

    gpus: Sequence[GpuReading] = ()
    hosts: Sequence[HostReading] = ()


class Collector(Protocol):
    """Looks at a part of the fleet. Slow or failing devices must not raise: they are left out of the answer."""

    #: for messages and threads
    name: str

    def collect(self, at: float) -> Collected: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """An attempt that holds a GPU, or a share of it."""

    job_id: str
    attempt_id: str
    user: str
    kind: JobKind
    #: its part of the GPU, in thousandths
    gpu_milli: int
    #: since when its processes are up; None while it is starting
    running_since: float | None
    #: it is an attempt after one that a GPU's failure ended
    after_gpu_failure: bool = False
    #: the job's owner has stated that it may hold GPUs without using them
    idles: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """The readings of a part of the fleet at one moment, with the holders of each GPU then."""

    at: float
    gpus: Sequence[GpuReading] = ()
    hosts: Sequence[HostReading] = ()
    #: the holders in the whole fleet, by GPU; free GPUs are absent
    holders: Mapping[str, Sequence[Holder]] = field(default_factory=dict)


class ReadingSink(Protocol):
    """Wants every reading. Called from one thread, one round after the other; must be quick."""

    def take(self, taken: Round) -> None: ...
