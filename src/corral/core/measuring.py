"""What an attempt really used: readings of its GPUs, added up."""

from __future__ import annotations

from dataclasses import dataclass

#: A GPU that is used less than this does nothing.
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
    #: the most that one of its GPUs had in use
    memory_peak_bytes: int = 0
    #: those of its GPUs that were in use at any time, sorted
    used_gpu_ids: tuple[str, ...] = ()

    @property
    def utilization(self) -> float | None:
        return self.busy_gpu_seconds / self.gpu_seconds if self.gpu_seconds else None


NOTHING_MEASURED = Measured()
