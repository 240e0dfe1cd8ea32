"""Jobs as rows: what is left out means the same for ever."""

from __future__ import annotations

import pytest

from corral.core.model import Job, JobKind
from corral.stores.jobs.jobs import decode_job, encode_job


@pytest.mark.parametrize("kind", JobKind)
@pytest.mark.parametrize("preemptible", [True, False])
def test_whether_a_job_gives_way_comes_back(kind: JobKind, preemptible: bool) -> None:
    job = Job(id="j-1", name="mine", user="ann", kind=kind, preemptible=preemptible)
    assert decode_job(encode_job(job)) == job


def test_jobs_of_earlier_versions_give_way_but_workbenches_do_not() -> None:
    """Nothing was said about it then: somebody may sit at a workbench."""
    for kind in JobKind:
        (*row, body) = encode_job(Job(id="j-1", name="mine", user="ann", kind=kind, preemptible=kind.is_preemptible))
        assert "preemptible" not in body
        assert decode_job((*row, body)).preemptible is (kind is not JobKind.WORKBENCH)
