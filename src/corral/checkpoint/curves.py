"""Numbers that a program reports per step, such as its loss, as lines of JSON in its output directory.

A line is `{"step": 3, "at": 1700000000.0, "attempt": 1, "values": {"loss": 0.5}}`; a value that is not finite is null.
The platform shows them as curves. Reporting never ends a program: a full disk costs the numbers, not the training.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.checkpoint.environment import Surroundings

CURVES = "curves.jsonl"
_MOST_LETTERS = 100


class CurveWriter:
    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._has_failed = False

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ValueError(f"step must be a whole number from 0, not {step!r}")
        if not values:
            raise ValueError("log needs at least one value: log(step, loss=0.5)")
        written = {name: _number(name, value) for name, value in values.items()}
        here = self._surroundings
        if here.output is None or here.rank != 0 or self._has_failed:
            return
        line = {"step": step, "at": round(time.time(), 3), "attempt": here.attempt, "values": written}
        self._append(here.output / CURVES, json.dumps(line, separators=(",", ":")) + "\n")

    def _append(self, path: Path, line: str) -> None:
        try:
            # One write of one line: lines of several processes do not mix.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            self._has_failed = True
            message = f"corral: values are not reported any more: {path}: {error.strerror or error}\n"
            sys.stderr.write(message)
            sys.stderr.flush()


def _number(name: str, value: Any) -> float | None:
    if not 0 < len(name) <= _MOST_LETTERS:
        raise ValueError(f"the name of a value must have 1 to {_MOST_LETTERS} characters, not {len(name)}")
    try:
        number = float(value)  # tensors and arrays of one element too
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    return number if math.isfinite(number) else None
