"""Failures of a program that lead to another attempt, and the detection of programs that crash again and again. Pure.

Failures of the platform (a lost node, a failed GPU) always lead to another attempt and are no retries; `node` and `gpu`
are accepted so that a list can be complete.
"""

from __future__ import annotations

from collections.abc import Sequence

from corral.core.jobs.progress import saved, with_run_counted
from corral.core.model import EndReason, Job

EXIT, OOM, NODE, GPU, ANY = "exit", "oom", "node", "gpu", "any"
WORDS = (EXIT, OOM, NODE, GPU, ANY)
#: So many failures, each within CRASH_SECONDS of its start on average, are a crash loop: more attempts would only hold
#: GPUs.
CRASHES = 3
CRASH_SECONDS = 10.0
MAX_EXIT_CODE = 255

#: Failures that a later attempt may not have. A launch error is not among them: a mistyped command fails every time.
_BY_CHANCE = frozenset({EndReason.EXIT_CODE, EndReason.OOM_KILLED, EndReason.IMAGE_PULL_ERROR, EndReason.EVICTED})


def read_retry_on(values: Sequence[str]) -> tuple[str, ...]:
    """The words and exit codes, each once, in a fixed order. Raises ValueError with the reason."""
    found = {value.strip().lower() for value in values if value.strip()}
    for value in sorted(found):
        is_code = value.isdecimal() and 1 <= int(value) <= MAX_EXIT_CODE
        if value not in WORDS and not is_code:
            raise ValueError(f"{value!r} is not one of {', '.join(WORDS)}, and no exit code from 1 to {MAX_EXIT_CODE}")
    codes = sorted(int(value) for value in found if value.isdecimal())
    return (*(word for word in WORDS if word in found), *(str(code) for code in codes))


def is_retried(job: Job, reason: EndReason, exit_code: int | None) -> bool:
    """Whether the job's owner, or the installation, wants another attempt after this failure."""
    if ANY in job.retry_on:
        return reason in _BY_CHANCE
    if reason is EndReason.OOM_KILLED:
        return OOM in job.retry_on
    return reason is EndReason.EXIT_CODE and (EXIT in job.retry_on or str(exit_code) in job.retry_on)


def is_crash_loop(job: Job, at: float) -> bool:
    """Whether the program has failed several times soon after its start, and has saved nothing."""
    failures = job.retries + 1
    if failures < CRASHES or saved(job) > 0:
        return False
    return with_run_counted(job, at).attained_seconds < CRASH_SECONDS * failures
