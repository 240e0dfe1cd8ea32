"""Errors that the driver reported. Codes that the program brought about never speak against the GPU."""

from __future__ import annotations

from corral.core.monitoring.health.model import UNKNOWN, Finding, Sight, Weight
from corral.core.monitoring.health.xid import Severity, about

_WEIGHTS = {Severity.NOTE: Weight.UNKNOWN, Severity.SUSPECT: Weight.BAD, Severity.FAILED: Weight.FATAL}


def look(sight: Sight) -> Finding:
    if not sight.reading.xids:
        return UNKNOWN
    known = [about(code) for code in sight.reading.xids]
    worst = max(known, key=lambda xid: _WEIGHTS[xid.severity])
    weight = _WEIGHTS[worst.severity]
    if weight is Weight.UNKNOWN:
        return UNKNOWN
    return Finding(weight=weight, text=f"XID {worst.code}: {worst.meaning}", advice=worst.advice, value=worst.code)
