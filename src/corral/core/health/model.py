"""What is known about a GPU's health, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import GpuHealth


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
