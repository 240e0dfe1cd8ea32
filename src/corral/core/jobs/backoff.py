"""The back-off of a job after a failed attempt. Pure."""

from __future__ import annotations

BACKOFF_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 300.0
#: A cluster that returns a job may do so repeatedly, and each time the job holds its allocation without running.
MAX_GIVEN_BACK_SECONDS = 120.0
#: Platform failures in a row, without a checkpoint in between, after which a job fails: about half an hour of
#: back-off, in which a node may recover or an operator is notified.
MOST_FAULTS = 10


def backoff_seconds(times: int) -> float:
    """The back-off after so many platform failures in a row: it doubles, so that a broken node is not overloaded."""
    return min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** max(0, times - 1))


def given_back_seconds(times: int) -> float:
    """The back-off of a job that its cluster returned so often in a row: none the first time, when another job was only
    faster, and then longer each time, so that jobs that the cluster runs get the GPUs."""
    return min(MAX_GIVEN_BACK_SECONDS, backoff_seconds(times - 1)) if times > 1 else 0.0
