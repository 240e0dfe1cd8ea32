"""The jobs of a cluster."""

from __future__ import annotations

import pytest

from corral.control.jobs.job_clusters import Homes
from corral.core.model import CLUSTER_LABEL, Job, Request

HOMES = Homes(models={"hpc": frozenset({"H100"}), "local": frozenset({"A10", "A100"})})


@pytest.mark.parametrize(
    ("request_", "suits", "only"),
    [
        (Request(gpus=1), {"hpc", "local"}, None),
        (Request(gpus=1, models=("A10",)), {"local"}, "local"),
        (Request(gpus=1, models=("A10", "H100")), {"hpc", "local"}, None),
        (Request(gpus=1, labels=((CLUSTER_LABEL, "hpc"),)), {"hpc"}, "hpc"),
        (Request(gpus=1, models=("A10",), labels=((CLUSTER_LABEL, "hpc"),)), set(), None),
        (Request(gpus=1, labels=((CLUSTER_LABEL, "gone"),)), set(), None),
    ],
)
def test_a_waiting_job_belongs_where_it_may_run(request_: Request, suits: set[str], only: str | None) -> None:
    job = Job(id="j-1", name="a", user="ann", request=request_)
    assert {cluster for cluster in HOMES.models if HOMES.suit(job, cluster)} == suits
    assert HOMES.only(job) == only
