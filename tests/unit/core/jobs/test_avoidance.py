"""The nodes and GPUs that the next attempt avoids after a failure."""

from __future__ import annotations

import pytest

from corral.core.jobs.avoidance import avoiding_failed, avoiding_named
from corral.core.model import EndReason, Job
from tests.unit.core.builders import running, waiting


def avoided(job: Job) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return job.avoid_nodes, job.avoid_gpus


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (EndReason.GPU_FAILED, ((), ("n1/0", "n9/9"))),
        (EndReason.NODE_LOST, (("n1/0",), ("n9/9",))),
        (EndReason.LOST, ((), ("n9/9",))),
    ],
)
def test_named_failures_are_added(reason: EndReason, expected: tuple[tuple[str, ...], ...]) -> None:
    job = waiting(1, gpus=1, avoid_gpus=("n9/9",))
    assert avoided(avoiding_named(job, reason, ["n1/0"])) == expected


def test_without_a_name_all_that_the_job_held_is_avoided() -> None:
    job = running(1, {"n1": (0,), "n2": (0,)})
    assert avoided(avoiding_failed(job, EndReason.GPU_FAILED)) == ((), ("n1/0", "n2/0"))
    assert avoided(avoiding_failed(job, EndReason.NODE_LOST)) == (("n1", "n2"), ())
    assert avoiding_failed(job, EndReason.LOST) is job


def test_with_a_name_only_the_named_is_avoided() -> None:
    job = running(1, {"n1": (0,), "n2": (0,)})
    named = avoiding_named(job, EndReason.GPU_FAILED, ["n2/0"])
    assert avoided(avoiding_failed(named, EndReason.GPU_FAILED)) == ((), ("n2/0",))


def test_a_job_that_holds_nothing_avoids_nothing_more() -> None:
    job = waiting(1, gpus=1)
    assert avoiding_failed(job, EndReason.NODE_LOST) is job
