"""Short ways to say what was read, and a watcher that goes from reading to reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corral.control.ports import GpuReading, Holder
from corral.core.model import WHOLE, GpuHealth, JobKind
from corral.core.monitoring.health.judgement import judge
from corral.core.monitoring.health.model import Condition, HealthRules, Memory

RULES = HealthRules(
    hot_celsius=85.0,
    confirm_readings=3,
    idle_grace_seconds=600.0,
    idle_fail_seconds=1200.0,
    recover_seconds=300.0,
    gap_seconds=60.0,
)


def reading(at: float, **values: Any) -> GpuReading:
    return GpuReading(gpu_id="g", at=at, **values)


def holder(job: str = "j-1", number: int = 1, **values: Any) -> Holder:
    given: dict[str, Any] = {
        "user": "ann",
        "kind": JobKind.TRAINING,
        "gpu_milli": WHOLE,
        "running_since": 0.0,
        **values,
    }
    return Holder(job_id=job, attempt_id=f"{job}.{number}", **given)


class Watcher:
    """One GPU, reading after reading, every 10 seconds unless given."""

    def __init__(self, rules: HealthRules = RULES, condition: Condition | None = None) -> None:
        self.rules = rules
        self.condition = condition or Condition(gpu_id="g")
        self.memory = Memory()
        self.now = 1000.0

    @property
    def health(self) -> GpuHealth:
        return self.condition.health

    def see(
        self, *, step: float = 10.0, by: Sequence[Holder] = (), working: Sequence[str] = (), **values: Any
    ) -> GpuHealth:
        self.now += step
        judged = judge(self.condition, reading(self.now, **values), by, self.rules, self.memory, working)
        self.condition, self.memory = judged.condition, judged.memory
        return self.condition.health

    def see_for(self, seconds: float, **values: Any) -> GpuHealth:
        end = self.now + seconds
        while self.now < end:
            self.see(**values)
        return self.health

    def restart(self) -> None:
        self.memory = Memory()
