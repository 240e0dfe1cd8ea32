"""What an engine is told about its nodes. Told twice it is one word, so reconciling may repeat it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class WithholdEffect:
    node: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseEffect:
    node: str
    #: also if somebody else has withheld it
    whoever_withheld: bool


NodeEffect = WithholdEffect | ReleaseEffect
