"""Uncorrectable memory errors: data were wrong. Only new errors count, so that errors that were repaired or that an
operator has reset do not fail the GPU again with every restart."""

from __future__ import annotations

from corral.core.monitoring.health.model import UNKNOWN, Finding, Sight, Weight

ADVICE = (
    "Reset the GPU or restart the node, so that bad memory is replaced by spare rows; then run the self-test. If "
    "errors come back, replace the GPU."
)


def look(sight: Sight) -> Finding:
    count, before = sight.reading.ecc_uncorrected, sight.memory.ecc_uncorrected
    if count is None or before is None or count <= before:
        return UNKNOWN
    text = f"{count - before} new memory errors that could not be corrected; {count} since the driver was loaded"
    return Finding(weight=Weight.FATAL, text=text, advice=ADVICE, value=count)
