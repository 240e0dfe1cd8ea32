"""The measured usage of an attempt: samples of its GPUs, summed up.

A sample counts for the time since the sample before. The usage of two holders of one GPU cannot be measured separately,
so utilization, energy and memory are split in proportion to their shares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.core.model import WHOLE

#: Utilization below this counts as idle, unless the settings name another one.
IDLE_UTILIZATION = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Sums over all GPUs of an attempt. A share of a GPU counts as that much of it."""

    #: GPU time that was measured
    gpu_seconds: float = 0.0
    #: utilisation times GPU time
    busy_gpu_seconds: float = 0.0
    #: GPU time without any use
    idle_gpu_seconds: float = 0.0
    energy_joules: float = 0.0
    #: the most memory in use on one of its GPUs
    memory_peak_bytes: int = 0
    #: the GPUs that were in use at any time, sorted
    used_gpu_ids: tuple[str, ...] = ()

    @property
    def utilization(self) -> float | None:
        return self.busy_gpu_seconds / self.gpu_seconds if self.gpu_seconds else None


NOTHING_MEASURED = Measured()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One GPU at one moment; None for values that the device does not report."""

    gpu_id: str
    at: float
    utilization: float | None = None
    memory_used_bytes: int | None = None
    power_watts: float | None = None
    #: a counter that only grows while the driver is loaded
    energy_joules: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The share of one attempt of a GPU, and the sum of all shares, in thousandths."""

    gpu_milli: int
    held_milli: int

    @property
    def of_gpu(self) -> float:
        return self.gpu_milli / WHOLE

    @property
    def of_held(self) -> float:
        return self.gpu_milli / self.held_milli


def countable_seconds(before: Sample | None, sample: Sample, longest_gap: float, held_since: float) -> float:
    """The time that a sample counts for, under a holder that has held the GPU since `held_since`.

    Zero after a gap: unknown time is neither idle nor busy.
    """
    if before is None or not 0 < sample.at - before.at <= longest_gap:
        return 0.0
    return max(0.0, sample.at - max(before.at, held_since))


def add(
    measured: Measured,
    sample: Sample,
    before: Sample,
    share: Share,
    seconds: float,
    idle_below: float = IDLE_UTILIZATION,
) -> Measured:
    """The usage of an attempt after the sample, if it held the GPU in the last `seconds` before it."""
    if seconds <= 0:
        return measured
    measured = replace(
        measured,
        energy_joules=measured.energy_joules + _energy(sample, before, seconds) * share.of_held,
        memory_peak_bytes=max(measured.memory_peak_bytes, int((sample.memory_used_bytes or 0) * share.of_held)),
    )
    if sample.utilization is None:
        return measured
    gpu_seconds = share.of_gpu * seconds
    # The only holder of a quarter of a GPU may use all of it; that counts as the whole quarter, not more.
    busy = min(gpu_seconds, sample.utilization * share.of_held * seconds)
    idle = sample.utilization < idle_below
    return replace(
        measured,
        gpu_seconds=measured.gpu_seconds + gpu_seconds,
        busy_gpu_seconds=measured.busy_gpu_seconds + busy,
        idle_gpu_seconds=measured.idle_gpu_seconds + (gpu_seconds if idle else 0.0),
        used_gpu_ids=measured.used_gpu_ids if idle else _with(measured.used_gpu_ids, sample.gpu_id),
    )


def _energy(sample: Sample, before: Sample, seconds: float) -> float:
    """The energy used: from the energy counter if there is one, which restarts when the driver is loaded again."""
    if sample.energy_joules is not None and before.energy_joules is not None:
        used = sample.energy_joules - before.energy_joules
        if used >= 0:
            return used * seconds / (sample.at - before.at)
    return (sample.power_watts or 0.0) * seconds


def _with(gpu_ids: tuple[str, ...], gpu_id: str) -> tuple[str, ...]:
    return gpu_ids if gpu_id in gpu_ids else tuple(sorted((*gpu_ids, gpu_id)))
