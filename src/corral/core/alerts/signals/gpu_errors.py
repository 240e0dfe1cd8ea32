"""`gpu-errors`: errors that a GPU reported in the last minutes (XID, uncorrectable memory errors, row remapping)."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value, gpu_words

#: Of many errors the first few are named.
NAMED = 5


def measure(facts: Facts) -> dict[str, Value]:
    found = {}
    for gpu in facts.gpus:
        if gpu.errors is not None:
            named = ", ".join(dict.fromkeys(gpu.errors[-NAMED:]))
            text = f"{gpu_words(gpu)} reported {named}" if named else f"{gpu_words(gpu)} reported nothing lately"
            found[gpu.id] = Value(value=float(len(gpu.errors)), text=text, jobs=gpu.jobs, node=gpu.node)
    return found
