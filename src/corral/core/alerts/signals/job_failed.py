"""`job-failed`: 1 for a job that failed in the last minutes. Its owner may see the alert."""

from __future__ import annotations

from corral.core.alerts.facts import Facts
from corral.core.alerts.signal import Value


def measure(facts: Facts) -> dict[str, Value]:
    found = {}
    for failure in facts.failures:
        named = f" ({failure.name})" if failure.name else ""
        why = ": ".join(part for part in (failure.reason.replace("_", " "), failure.message) if part)
        text = f"job {failure.job_id}{named} of {failure.user} failed{': ' if why else ''}{why}"
        found[failure.job_id] = Value(value=1.0, text=text, owner=failure.user, jobs=(failure.job_id,))
    return found
