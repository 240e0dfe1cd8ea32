"""Clones: the same settings, but for what is said to be different."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.errors import Forbidden, Invalid, NotFound, WrongState
from corral.control.fleet import catalog
from corral.control.jobs import jobs
from corral.control.jobs.job_clone import clone
from corral.control.jobs.jobs import JobChange
from corral.control.jobs.tasks import allocate
from corral.control.records import FlavorRecord, JobRecord, JobSpec, PackageRecord
from corral.control.scheduling import queues
from corral.core.model import JobKind, JobState, Queue, Request
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

SPEC = JobSpec(command=("python", "train.py"), env={"LR": "0.1", "KEY": "secret"}, workdir="/data", venv="/venv")


def cloned(desk: Desk, ref: str, given: str = "", **values: Any) -> JobRecord:
    words = frozenset(given.split())
    values.setdefault("spec", JobSpec(command=()))
    return desk.do(clone, ANN, ref, JobChange(given=words, draft=jobs.JobDraft(**values)))


def test_everything_is_kept_but_the_name(desk: Desk) -> None:
    request = Request(gpus=2, cpu_milli=1000, memory_bytes=1 << 30)
    (first,) = desk.submit(
        draft(
            "first",
            spec=SPEC,
            request=request,
            priority=2,
            time_limit_seconds=60.0,
            grace_seconds=5.0,
            max_retries=1,
            preemptible=False,
        )
    )
    record = cloned(desk, "first")
    assert record.spec == SPEC
    assert record.job.name == "first-2"
    kept = ["request", "priority", "time_limit_seconds", "grace_seconds", "max_retries", "queue", "kind", "user"]
    kept += ["preemptible"]
    assert [getattr(record.job, name) for name in kept] == [getattr(first, name) for name in kept]
    assert record.job.state is JobState.QUEUED
    assert not first.preemptible
    assert cloned(desk, "first", "name preemptible", name="other", preemptible=True).job.preemptible
    assert desk.actions(record.job.id) == ["job.submitted", "job.cloned"]
    assert cloned(desk, "first").job.name == "first-3"


def test_a_clone_of_a_job_without_a_name_of_its_own_has_none_either(desk: Desk) -> None:
    desk.submit(draft())
    assert cloned(desk, "job-001").job.name == "job-002"


def test_changes_of_a_clone_are_applied(desk: Desk) -> None:
    desk.submit(draft("first", spec=SPEC, gpus=2, time_limit_seconds=60.0))
    record = cloned(
        desk,
        "first",
        "name gpus env command time hold",
        name="second",
        request=Request(gpu_milli=500),
        spec=JobSpec(command=("python", "other.py"), env={"LR": "0.2"}),
        time_limit_seconds=None,
        hold=True,
    )
    assert (record.job.name, record.job.state) == ("second", JobState.CREATED)
    assert record.job.request == Request(gpu_milli=500)
    assert record.job.time_limit_seconds is None
    assert record.spec.command == ("python", "other.py")
    assert record.spec.env == {"LR": "0.2", "KEY": "secret"}
    assert (record.spec.workdir, record.spec.venv) == ("/data", "/venv")


def test_more_nodes_make_it_a_gang(desk: Desk) -> None:
    desk.submit(draft("first", spec=SPEC, gpus=2))
    gang = cloned(desk, "first", "nodes", request=Request(nodes=2))
    assert (gang.job.kind, gang.job.request) == (JobKind.DISTRIBUTED, Request(nodes=2, gpus=2))
    alone = cloned(desk, gang.job.name, "nodes", request=Request(nodes=1))
    assert alone.job.kind is JobKind.TRAINING


def test_another_size_finds_its_queue(desk: Desk) -> None:
    desk.do(queues.create, ROOT, Queue(name="small", max_job_gpus=1))
    desk.submit(draft("first", queue="small"))
    assert cloned(desk, "first").job.queue == "small"
    assert cloned(desk, "first", "gpus", request=Request(gpus=2)).job.queue == "default"


def test_names_out_of_the_catalog_stay_true(desk: Desk) -> None:
    desk.do(catalog.create_flavor, ROOT, FlavorRecord(name="tens", models=("A10",)))
    desk.do(catalog.create_package, ROOT, PackageRecord(name="tens-x2", gpus=2, flavor="tens"))
    desk.submit(draft("first", gpus=0, package="tens-x2"))
    same = cloned(desk, "first")
    assert (same.spec.labels, same.job.request.models) == ({"corral/package": "tens-x2"}, ("A10",))
    larger = cloned(desk, "first", "gpus", request=Request(gpus=4))
    assert (larger.spec.labels, larger.job.request.gpus) == ({}, 4)
    again = cloned(desk, larger.job.name, "package", package="tens-x2")
    assert (again.spec.labels, again.job.request) == (same.spec.labels, same.job.request)


def test_only_its_owner_clones_a_job(desk: Desk) -> None:
    desk.submit(draft("first", spec=SPEC))
    change = JobChange(given=frozenset(), draft=jobs.JobDraft(spec=JobSpec(command=())))
    with pytest.raises(Forbidden, match="would bring its environment: only ann clones it"):
        desk.do(clone, ROOT, "j-1", change)
    with pytest.raises(NotFound):
        desk.do(clone, BOB, "j-1", change)


def test_a_task_is_not_cloned(desk: Desk) -> None:
    desk.do(allocate, ANN, "night", 1, ("holder",))
    with pytest.raises(Invalid, match="corral allocate"):
        cloned(desk, "j-1")


def test_a_clone_waits_for_the_same_jobs(desk: Desk) -> None:
    desk.submit(draft("first"))
    desk.submit(draft("second", after=("first",)))
    assert cloned(desk, "second").job.after == ("j-1",)
    desk.do(jobs.stop, ANN, "first")
    with pytest.raises(WrongState, match="would never start"):
        cloned(desk, "second")
    assert cloned(desk, "second", "after").job.after == ()
