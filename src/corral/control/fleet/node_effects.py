"""Effects on the nodes of an engine. They are idempotent, so reconciling may repeat them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class WithholdEffect:
    node: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseEffect:
    node: str
    #: also if another administrator has withheld it
    force: bool


NodeEffect = WithholdEffect | ReleaseEffect
