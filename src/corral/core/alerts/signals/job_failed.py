"""`job-failed`: 1 for a job that failed in the last minutes. Its owner may see the alert."""

from __future__ import annotations

from corral.core.alerts.facts import FailureFact
from corral.core.alerts.signal import Finding


def read(failure: FailureFact) -> float | None:
    return 1.0


def describe(failure: FailureFact, value: float) -> Finding:
    named = f" ({failure.name})" if failure.name else ""
    reason = failure.reason.replace("_", " ")
    # The program's own end says its reason itself: "exit code 1".
    why = failure.message if failure.message.startswith(reason) else ": ".join(filter(None, (reason, failure.message)))
    text = f"job {failure.id}{named} of {failure.user} failed{': ' if why else ''}{why}"
    return Finding(text=text, owner=failure.user, jobs=(failure.id,))
