"""Row remapping: bad rows of memory are replaced by spare ones. A replacement is a warning; a failed one means that
bad memory stays in use."""

from __future__ import annotations

from corral.core.monitoring.health.model import UNKNOWN, Finding, Sight, Weight

_FAILED = Finding(
    weight=Weight.FATAL,
    text="a bad row of memory could not be replaced by a spare one",
    advice="Replace the GPU: it has no spare memory left where it is needed.",
)
ADVICE = "Reset the GPU or restart the node when it is free: the spare rows are in use only after that."


def look(sight: Sight) -> Finding:
    if sight.reading.remap_failed:
        return _FAILED
    count, before = sight.reading.remapped_rows, sight.memory.remapped_rows
    if count is None or before is None or count <= before:
        return UNKNOWN
    text = f"{count - before} more rows of bad memory replaced by spare ones; {count} in all"
    return Finding(weight=Weight.BAD, text=text, advice=ADVICE, value=count)
