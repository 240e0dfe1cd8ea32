"""What is known about a GPU's health, as immutable values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol

from corral.core.model import GpuHealth, JobKind

DAY = 86400.0
#: Pieces of evidence that are kept with a GPU.
KEPT_EVIDENCE = 10


class Sign(StrEnum):
    """What speaks against a GPU."""

    HOT = "hot"
    IDLE = "idle"
    ECC = "ecc"
    ROW_REMAP = "row_remap"
    XID = "xid"
    LOST = "lost"
    SELF_TEST = "self_test"
    OPERATOR = "operator"
    ALERT = "alert"


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    sign: Sign
    at: float
    #: in plain words, with the numbers
    text: str
    #: what to do about it
    advice: str = ""
    value: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A GPU's health with the evidence for it. Kept, so that a restart forgets nothing."""

    gpu_id: str
    health: GpuHealth = GpuHealth.HEALTHY
    since: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    #: when it was suspected lately, for damping one that comes and goes
    episodes: tuple[float, ...] = ()

    @property
    def fresh_evidence(self) -> tuple[Evidence, ...]:
        """What speaks against it now; what is older belongs to an episode that is over."""
        if self.health is GpuHealth.HEALTHY:
            return ()
        begin = self.episodes[-1] if self.episodes else self.since
        return tuple(item for item in self.evidence if item.at >= begin)


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthRules:
    """When a GPU is not trusted any more, and when it is again."""

    hot_celsius: float = 85.0
    #: bad readings in a row that turn a suspicion into a failure
    confirm_readings: int = 3
    #: None: idleness says nothing about health
    idle_grace_seconds: float | None = 1800.0
    recover_seconds: float = 300.0
    #: what lies between two readings that are further apart is unknown
    gap_seconds: float = 60.0


class GpuFacts(Protocol):
    """The part of a reading that signs look at; None where the device does not tell."""

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
    """The part of a holder that signs look at."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """What is remembered of a GPU's earlier readings. Lost with the server, and then built up anew."""

    #: of the latest reading
    at: float = 0.0
    #: as it was judged then
    health: GpuHealth = GpuHealth.HEALTHY
    ecc_uncorrected: int | None = None
    remapped_rows: int | None = None
    #: the attempt that has been seen working on it
    worked: str = ""
    #: the attempt under which it does nothing, since when, and until when that was seen
    idle_attempt: str = ""
    idle_since: float = 0.0
    idle_until: float = 0.0
    #: bad readings in a row, by sign; signs without any are left out
    counts: tuple[tuple[Sign, int], ...] = ()
    #: signs whose latest word was a bad one, and that have a way to take it back
    unresolved: frozenset[Sign] = frozenset()
    last_bad_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """Everything that a sign may look at."""

    reading: GpuFacts
    holders: Sequence[HolderFacts]
    #: attempts that have been seen working on some GPU
    working: Collection[str]
    memory: Memory
    rules: HealthRules


class Weight(IntEnum):
    #: nothing is known: it changes nothing
    UNKNOWN = 0
    FINE = 1
    BAD = 2
    #: enough by itself
    FATAL = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one sign says about one reading."""

    weight: Weight
    text: str = ""
    advice: str = ""
    value: float | None = None


UNKNOWN = Finding(weight=Weight.UNKNOWN)
FINE = Finding(weight=Weight.FINE)
