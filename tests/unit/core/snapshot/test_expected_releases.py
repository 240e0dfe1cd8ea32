"""Resources that leaving jobs release, less those that are promised."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import Allocation, Grant, Job, Prediction
from corral.core.snapshot.changes import DropJob, PutJob
from corral.core.snapshot.expected_releases import ExpectedReleases
from tests.unit.core.builders import node, running, snapshot_of

NOTHING = Allocation(grants=())


def milli(expected: ExpectedReleases) -> dict[str, int]:
    return {gpu: grant.gpu_milli for grant in expected.left().grants for gpu in grant.gpus}


def test_leaving_jobs_release_all_they_hold() -> None:
    expected = ExpectedReleases([running(1, {"n1": (0,), "n2": (0, 1)}, cpu_milli=2000)])
    assert milli(expected) == {"n1/0": 1000, "n2/0": 1000, "n2/1": 1000}
    hosts = {grant.node: grant.cpu_milli for grant in expected.left().grants if not grant.gpus}
    assert hosts == {"n1": 2000, "n2": 2000}


def test_shares_of_one_gpu_add_up() -> None:
    expected = ExpectedReleases([running(1, {"n1": (0,)}, gpu_milli=300), running(2, {"n1": (0,)}, gpu_milli=500)])
    assert milli(expected) == {"n1/0": 800}


def test_a_moved_job_keeps_its_next_place() -> None:
    job = running(1, {"n1": (0,), "n2": (0,)})
    target = Allocation(grants=(Grant(node="n2", gpus=("n2/0",)),), model="A10")
    assert milli(ExpectedReleases([replace(job, next_allocation=target)])) == {"n1/0": 1000}


def test_promised_resources_are_not_left_but_free_ones_do_not_count() -> None:
    expected = ExpectedReleases([running(1, {"n1": (0, 1)})])
    promised = Allocation(grants=(Grant(node="n1", gpus=("n1/0", "n1/2")),), model="A10")
    free = Allocation(grants=(Grant(node="n1", gpus=("n1/2",)),), model="A10")
    expected.use(promised, free)
    assert milli(expected) == {"n1/1": 1000}
    assert expected.has_gpus
    expected.use(Allocation(grants=(Grant(node="n1", gpus=("n1/1",)),), model="A10"), NOTHING)
    assert not expected.has_gpus
    assert not ExpectedReleases().has_gpus


def predicted_to_take(serial: int, seconds: float) -> Job:
    known = Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=3)
    return running(serial, {"n1": (serial,)}, predicted=known)


def test_the_next_predicted_end_follows_time_and_changes() -> None:
    soon, later, limited = predicted_to_take(1, 100.0), predicted_to_take(2, 500.0), running(3, {"n1": (3,)})
    limited = replace(limited, time_limit_seconds=50.0)
    snapshot = snapshot_of(node("n1", 8), soon, later, limited)
    assert snapshot.next_likely_end(10.0) == snapshot.next_likely_end(10.0) == soon.likely_end
    assert snapshot.next_likely_end(soon.likely_end) == later.likely_end
    assert snapshot.next_likely_end(10.0) == soon.likely_end
    snapshot.apply([DropJob(id=soon.id)])
    assert snapshot.next_likely_end(10.0) == later.likely_end
    snapshot.apply([PutJob(job=soon)])
    assert snapshot.next_likely_end(10.0) == soon.likely_end
    assert snapshot.next_likely_end(later.likely_end) is None
