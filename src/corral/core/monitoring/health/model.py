"""GPU health as immutable values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol

from corral.core.model import GpuHealth, JobKind

DAY = 86400.0
#: How many pieces of evidence are kept per GPU.
KEPT_EVIDENCE = 10


class Sign(StrEnum):
    """A sign of a fault."""

    HOT = "hot"
    IDLE = "idle"
    ECC = "ecc"
    ROW_REMAP = "row_remap"
    XID = "xid"
    LOST = "lost"
    SELF_TEST = "self_test"
    OPERATOR = "operator"
    ALERT = "alert"
    #: an active check
    CHECK = "check"


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    sign: Sign
    at: float
    #: with the numbers
    text: str
    #: what to do about it
    advice: str = ""
    value: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A GPU's health with the evidence for it. Stored, so that it survives a restart."""

    gpu_id: str
    health: GpuHealth = GpuHealth.HEALTHY
    since: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    #: when the GPU became suspect recently, for longer recovery times after relapses
    episodes: tuple[float, ...] = ()

    @property
    def fresh_evidence(self) -> tuple[Evidence, ...]:
        """The evidence of the present episode; older evidence belongs to an episode that is over."""
        if self.health is GpuHealth.HEALTHY:
            return ()
        begin = self.episodes[-1] if self.episodes else self.since
        return tuple(item for item in self.evidence if item.at >= begin)


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthRules:
    """When a GPU becomes suspect or failed, and when it recovers."""

    hot_celsius: float = 85.0
    #: bad readings in a row that make a suspect GPU failed
    confirm_readings: int = 3
    #: None: idleness does not count
    idle_grace_seconds: float | None = 300.0
    #: the idle time after which a GPU has failed
    idle_fail_seconds: float = 1800.0
    recover_seconds: float = 300.0
    #: the time between two readings that are further apart is unknown
    gap_seconds: float = 60.0


class GpuFacts(Protocol):
    """The part of a reading that signs use; None for values that the device does not report."""

    @property
    def at(self) -> float: ...
    @property
    def utilization(self) -> float | None: ...
    @property
    def temperature_celsius(self) -> float | None: ...
    @property
    def ecc_uncorrected(self) -> int | None: ...
    @property
    def remapped_rows(self) -> int | None: ...
    @property
    def remap_failed(self) -> bool | None: ...
    @property
    def xids(self) -> tuple[int, ...]: ...
    @property
    def lost(self) -> bool: ...


class HolderFacts(Protocol):
    """The part of a holder that signs use."""

    @property
    def attempt_id(self) -> str: ...
    @property
    def kind(self) -> JobKind: ...
    @property
    def gpu_milli(self) -> int: ...
    @property
    def running_since(self) -> float | None: ...
    @property
    def after_gpu_failure(self) -> bool: ...
    @property
    def idles(self) -> bool: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Data from a GPU's earlier readings. Not stored: after a restart it is built up again."""

    #: the time of the latest reading
    at: float = 0.0
    #: the health after that reading
    health: GpuHealth = GpuHealth.HEALTHY
    ecc_uncorrected: int | None = None
    remapped_rows: int | None = None
    #: the attempt that has used the GPU
    worked: str = ""
    #: the attempt under which the GPU is idle, since when, and the time of the last idle reading
    idle_attempt: str = ""
    idle_since: float = 0.0
    idle_until: float = 0.0
    #: bad readings in a row by sign; signs without any are left out
    counts: tuple[tuple[Sign, int], ...] = ()
    #: persistent signs whose latest finding was bad
    unresolved: frozenset[Sign] = frozenset()
    last_bad_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """The input of a sign."""

    reading: GpuFacts
    holders: Sequence[HolderFacts]
    #: attempts that have used any of their GPUs
    working: Collection[str]
    memory: Memory
    rules: HealthRules


class Weight(IntEnum):
    #: not known: changes nothing
    UNKNOWN = 0
    FINE = 1
    BAD = 2
    #: enough for a failure by itself
    FATAL = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one sign for one reading."""

    weight: Weight
    text: str = ""
    advice: str = ""
    value: float | None = None


UNKNOWN = Finding(weight=Weight.UNKNOWN)
FINE = Finding(weight=Weight.FINE)
