"""Waiting on a condition instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        if condition():
            return
        # The longer it takes, the less it matters; who asks all the time keeps from work those who are waited for.
        time.sleep(min(0.02 + passed / 20, 0.2))
    raise AssertionError(f"did not happen within {seconds:.0f} s: {what}")
