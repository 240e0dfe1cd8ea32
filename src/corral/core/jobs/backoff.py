"""How long a job stays away from the queue's head after an attempt that came to nothing. Pure."""

from __future__ import annotations

BACKOFF_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 300.0
#: A cluster that gives a job back may do so again and again, and the job holds what it was given in vain each time.
MAX_GIVEN_BACK_SECONDS = 120.0
#: Faults of the platform in a row, without anything saved in between, after which a job is given up: half an hour of
#: pauses, in which a node comes back or an operator is told.
MOST_FAULTS = 10


def backoff_seconds(times: int) -> float:
    """How long a job waits after so many faults in a row: doubling, so that a broken node is not hammered."""
    return min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** max(0, times - 1))


def given_back_seconds(times: int) -> float:
    """How long a job waits that its cluster gave back so often in a row: not at first, when others were only quicker,
    and then longer and longer, so that those have the GPUs whom the cluster lets run."""
    return min(MAX_GIVEN_BACK_SECONDS, backoff_seconds(times - 1)) if times > 1 else 0.0
