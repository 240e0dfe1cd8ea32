"""A running job is migrated or resized by request: a preview that changes nothing, and the move that it describes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import Invalid, NotFound, WrongState
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import AttemptPhase, Store
from corral.control.records import ReceiptFilter
from corral.control.scheduling import elastic_jobs
from corral.control.scheduling.moves import migration
from corral.control.scheduling.moves.preview import ChangePreview, preview
from corral.core.model import EndReason, Job, JobState, Queue
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import PutQueue, PutReservation
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft
from tests.unit.core.builders import node


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, nodes=[node("n1", gpus=4), node("n2", gpus=4)])


def node_of(job: Job) -> str:
    assert job.allocation is not None
    return job.allocation.grants[0].node


def previewed(desk: Desk, caller: Caller, job: str, to: str | None = None) -> ChangePreview:
    return desk.do(lambda work: preview(work.state, work.now, migration.migrated(work, caller, job, to)))


def scattered(desk: Desk) -> tuple[Job, Job]:
    """One job on each node, so that no job of four GPUs fits."""
    desk.state.apply([PutQueue(queue=Queue(name="default", placement="spread"))])
    first, second = desk.started(draft("first", gpus=1), draft("second", gpus=1))
    assert {node_of(first), node_of(second)} == {"n1", "n2"}
    return first, second


def test_the_preview_names_gpus_the_work_at_risk_and_the_job_that_could_start(desk: Desk) -> None:
    first, second = scattered(desk)
    (large,) = desk.submit(draft("large", gpus=4), caller=BOB)
    assert desk.cycle() == []
    desk.now += 600.0
    found = previewed(desk, ANN, first.id)
    assert found.before == first.allocation
    assert [grant.node for grant in found.after.grants] == [node_of(second)]
    assert found.lost_gpu_seconds == pytest.approx(600.0)
    assert [(effect.job.id, effect.start_after) for effect in found.waiting] == [(large.id, desk.now)]
    assert desk.job(first.id).state is JobState.RUNNING, "a preview changes nothing"
    assert desk.cycle() == []


def test_a_migrated_job_goes_on_on_the_other_node_with_a_receipt(desk: Desk) -> None:
    first, second = scattered(desk)
    target = node_of(second)
    moving = desk.do(migration.migrate, ANN, first.id, target)
    assert (moving.state, moving.stopping_for) == (JobState.STOPPING, EndReason.MOVED)
    desk.hear(moving, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143)
    desk.hear(desk.job(first.id), AttemptPhase.RUNNING)
    job = desk.job(first.id)
    assert (job.state, job.attempt, node_of(job)) == (JobState.RUNNING, 2, target)
    with desk.store.read() as tx:
        (receipt,) = tx.receipts.page(ReceiptFilter(), cursor=None, limit=10).items
    assert (receipt.rule, receipt.job_id) == (PreemptionRule.MIGRATION, first.id)
    assert receipt.detail == f"migration by ann: from {node_of(first)} to {target}"


def test_reserved_gpus_are_no_target_for_other_users(desk: Desk) -> None:
    (job,) = desk.started(draft("small", gpus=1))
    other = next(name for name in ("n1", "n2") if name != node_of(job))
    gpus = tuple(gpu.id for gpu in desk.state.snapshot.nodes[other].gpus)
    reservation = Reservation(name="for-bob", pool="default", gpus=gpus, users=("bob",), lends=False)
    desk.state.apply([PutReservation(reservation=reservation)])
    with pytest.raises(WrongState, match="no other node has free"):
        previewed(desk, ANN, job.id)


def test_job_that_cannot_be_migrated_is_refused(desk: Desk) -> None:
    (job,) = desk.started(draft("small", gpus=1))
    here = node_of(job)
    with pytest.raises(Invalid, match="there is no node 'n9'"):
        desk.do(migration.migrate, ANN, job.id, "n9")
    with pytest.raises(Invalid, match=f"runs on {here} already"):
        desk.do(migration.migrate, ANN, job.id, here)
    with pytest.raises(NotFound):
        desk.do(migration.migrate, BOB, job.id)
    (waiting,) = desk.submit(draft("waiting", gpus=4, nodes=2))
    with pytest.raises(WrongState, match="only a running one"):
        desk.do(migration.migrate, ROOT, waiting.id)
    desk.started(draft("large", gpus=4))
    with pytest.raises(WrongState, match="does not have free"):
        desk.do(migration.migrate, ANN, job.id, next(name for name in ("n1", "n2") if name != here))


def test_a_gang_is_not_migrated(desk: Desk) -> None:
    (gang,) = desk.started(draft("gang", gpus=2, nodes=2))
    with pytest.raises(WrongState, match="runs on 2 nodes"):
        desk.do(migration.migrate, ANN, gang.id)


def test_the_preview_of_a_resize_shows_the_job_that_could_start(desk: Desk) -> None:
    (busy,) = desk.started(draft("busy", gpus=4), caller=BOB)
    (job,) = desk.started(draft("stretchy", min_gpus=2, max_gpus=4, restart_unsaved=True))
    assert job.request.gpus == 4

    def saved(work: Work) -> None:
        work.jobs.edit(job, replace(job, checkpointed_at=work.now))

    desk.do(saved)
    found = desk.do(lambda work: preview(work.state, work.now, elastic_jobs.resized(work, ANN, job.id, 2)))
    assert (len(found.before.gpus), len(found.after.gpus)) == (4, 2)
    assert {*found.after.gpus} < {*found.before.gpus}
    assert found.lost_gpu_seconds == 0.0
    same = desk.do(lambda work: preview(work.state, work.now, elastic_jobs.resized(work, ANN, job.id, 4)))
    assert same.before == same.after
    assert desk.job(busy.id).state is JobState.RUNNING
