"""Changing how large a job is that never ran: as if it had been submitted like that, but with its age."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.errors import InsufficientQuota, Invalid, NotFound, OverLimit, Refusal, WrongState
from corral.control.fleet import catalog
from corral.control.jobs import job_edit, jobs
from corral.control.people.user_accounts import create_user
from corral.control.ports import AttemptPhase, Store
from corral.control.records import FlavorRecord, PackageRecord
from corral.core.model import EndReason, JobKind, Request
from corral.core.people.quota import Quota
from corral.core.snapshot.changes import PutQuota
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, SPEC, Desk, changed, draft


def sized(*given: str, **values: Any) -> jobs.JobChange:
    """A change of the words given; `models` and the like are values of the request."""
    picks = {name: values.pop(name) for name in ("flavor", "package", "min_gpus", "max_gpus") if name in values}
    size = jobs.JobDraft(spec=SPEC, request=Request(**values), **picks)
    return jobs.JobChange(given=frozenset(given), draft=size)


@pytest.fixture
@once
def full(store: Store) -> Desk:
    """Two nodes with four GPUs each, all of them taken."""
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    desk.started(draft("one-node", gpus=4), draft("another", gpus=4), caller=BOB)
    return desk


def test_a_job_gets_another_size_and_keeps_its_age(full: Desk) -> None:
    [job] = full.submit(draft("mine", gpus=4))
    full.now += 50
    smaller = full.do(job_edit.edit, ANN, "mine", sized("gpus", gpus=1))
    assert (smaller.request.gpus, smaller.queued_at, smaller.version) == (1, job.queued_at, job.version + 1)
    assert full.job(job.id) == smaller == full.state.snapshot.jobs[job.id]
    [event] = [event for event in full.events() if event.action == "job.edited"]
    assert event.detail == {"gpus": {"was": 4, "is": 1}}


def test_more_nodes_make_a_gang_of_it_and_one_node_a_training_again(full: Desk) -> None:
    [job] = full.submit(draft("mine", gpus=2))
    gang = full.do(job_edit.edit, ANN, job.id, sized("nodes", nodes=2))
    assert (gang.kind, gang.request.nodes, gang.request.gpus) == (JobKind.DISTRIBUTED, 2, 2)
    assert full.do(job_edit.edit, ANN, job.id, sized("nodes", nodes=1)).kind is JobKind.TRAINING


def test_packages_bring_their_whole_size_and_their_name(full: Desk) -> None:
    full.do(catalog.create_flavor, ROOT, FlavorRecord(name="fast", models=("A10",)))
    full.do(catalog.create_package, ROOT, PackageRecord(name="two", gpus=2, cpu_milli=4000, flavor="fast"))
    [job] = full.submit(draft("mine", gpus=1))
    picked = full.do(job_edit.edit, ANN, job.id, sized("package", package="two"))
    assert (picked.request.gpus, picked.request.cpu_milli, picked.request.models) == (2, 4000, ("A10",))
    assert full.record(job.id).spec.labels["corral/package"] == "two"
    assert full.state.specs[job.id].labels["corral/package"] == "two"
    own = full.do(job_edit.edit, ANN, job.id, sized("gpus", gpus=1))
    assert own.request.gpus == 1
    assert "corral/package" not in full.record(job.id).spec.labels


def test_quota_is_checked_as_for_a_new_job_without_counting_this_one_twice(full: Desk) -> None:
    full.state.apply([PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=4000))])
    [job] = full.submit(draft("mine", gpus=3))
    assert full.do(job_edit.edit, ANN, job.id, sized("gpus", gpus=4)).request.gpus == 4
    full.submit(draft("free", gpus=0))
    with pytest.raises(Refusal):
        full.submit(draft("too-much", gpus=1))


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (sized("gpus", gpus=5), Invalid),
        (sized("nodes", nodes=3), Invalid),
        (sized("model", models=("H200",)), Invalid),
        (sized("package", package="nothing"), Refusal),
        (sized("min_gpus", min_gpus=9), Refusal),
    ],
)
def test_an_edit_that_a_submission_would_refuse_changes_nothing(
    full: Desk, change: jobs.JobChange, refusal: type[Refusal]
) -> None:
    [job] = full.submit(draft("mine", gpus=2))
    with pytest.raises(refusal):
        full.do(job_edit.edit, ANN, job.id, change)
    assert full.job(job.id) == job


def test_only_jobs_that_never_ran_change_their_size(full: Desk) -> None:
    with pytest.raises(WrongState):
        full.do(job_edit.edit, BOB, "one-node", sized("gpus", gpus=1))
    full.do(jobs.requeue, BOB, "one-node")
    with pytest.raises(NotFound):
        full.do(job_edit.edit, ANN, "j-1", sized("gpus", gpus=1))


def test_a_held_job_may_be_made_larger_than_its_quota_and_is_refused_when_it_starts(full: Desk) -> None:
    full.state.apply([PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=2000))])
    [job] = full.submit(draft("mine", gpus=1, hold=True))
    full.do(job_edit.edit, ANN, job.id, sized("gpus", gpus=4))
    with pytest.raises((InsufficientQuota, OverLimit)):
        full.do(jobs.start, ANN, job.id)


def test_preemptible_can_be_set_until_the_first_start(full: Desk) -> None:
    def preemptible_change(preemptible: bool | None) -> jobs.JobChange:
        return changed(preemptible=preemptible)

    [job] = full.submit(draft("mine", gpus=4))
    assert job.preemptible
    assert not full.do(job_edit.edit, ANN, "mine", preemptible_change(False)).preemptible
    [event] = [event for event in full.events() if event.action == "job.edited"]
    assert event.detail == {"preemptible": {"was": True, "is": False}}
    assert full.do(job_edit.edit, ANN, "mine", preemptible_change(None)).preemptible
    full.do(jobs.requeue, BOB, "one-node")
    full.hear(full.job("j-1"), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    with pytest.raises(WrongState, match="whether it may be preempted stays"):
        full.do(job_edit.edit, BOB, "one-node", preemptible_change(False))
    assert full.do(job_edit.edit, BOB, "one-node", preemptible_change(True)).preemptible, "as it was"


@pytest.mark.parametrize(
    ("kind", "asked", "expected"),
    [
        (JobKind.TRAINING, None, True),
        (JobKind.TRAINING, False, False),
        (JobKind.WORKBENCH, None, False),
        (JobKind.WORKBENCH, True, True),
    ],
)
def test_preemptible_follows_the_request_and_the_queue(
    desk: Desk, kind: JobKind, asked: bool | None, expected: bool
) -> None:
    [job] = desk.submit(draft("mine", kind=kind, preemptible=asked))
    assert job.preemptible is expected
    assert desk.job(job.id).preemptible is expected
