"""Moves of busy GPUs: the GPU takes no new job, and changes its pool when its jobs have ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import InUse, Invalid
from corral.control.fleet import pool_moves, pools
from corral.control.people import groups
from corral.control.ports import AttemptPhase, Store
from corral.control.scheduling import queues, reservations, views
from corral.control.scheduling.reserved_gpus import ReservationDraft
from corral.core.model import EndReason, Job, Queue, Request
from tests.unit.control.tenants import A10S, A100S, MIXED_NODES, assert_state_is_stored, gpus_of, tenants
from tests.unit.control.world import ROOT, Desk, draft


@pytest.fixture
def desk(store: Store) -> Desk:
    """The A100s are in the pool big, which Ann's group has; the pool other is empty."""
    desk = tenants(store)
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(groups.create, ROOT, "team", users=["ann"], pool="big")
    desk.do(pools.create, ROOT, "other")
    return desk


def on_a100(desk: Desk, name: str, gpus: int = 1) -> tuple[Job, tuple[str, ...]]:
    (job,) = desk.started(draft(name, gpus=gpus, queue="big"))
    allocation = desk.job(job.id).allocation
    assert allocation is not None
    return desk.job(job.id), allocation.gpus


def end(desk: Desk, job: Job) -> None:
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)


def next_pools(desk: Desk) -> dict[str, str]:
    every = (gpu for node in desk.state.snapshot.nodes.values() for gpu in node.gpus)
    return {gpu.id: gpu.next_pool for gpu in every if gpu.next_pool}


@pytest.fixture
def job_and_gpu(desk: Desk) -> tuple[Job, str]:
    job, (gpu,) = on_a100(desk, "training")
    return job, gpu


def test_free_gpus_move_at_once_and_a_busy_one_follows_its_job(desk: Desk, job_and_gpu: tuple[Job, str]) -> None:
    job, busy = job_and_gpu
    free = [gpu for gpu in A100S if gpu != busy][:2]
    desk.do(pools.move_gpus, ROOT, "other", [*free, busy], when_free=True)
    assert gpus_of(desk, "other") == set(free)
    assert next_pools(desk) == {busy: "other"}
    assert desk.actions("other")[-2:] == ["pool.move-planned", "pool.gpus-moved"]
    assert not pool_moves.is_due(desk.state)
    # Another server goes on with it.
    desk.state = desk.loaded()
    end(desk, job)
    assert pool_moves.is_due(desk.state)
    desk.do(pool_moves.go_on)
    assert gpus_of(desk, "other") == {*free, busy}
    assert next_pools(desk) == {}
    assert desk.actions("other")[-1] == "pool.gpus-moved"
    assert not pool_moves.is_due(desk.state)
    assert_state_is_stored(desk)


def test_a_leaving_gpu_takes_no_new_job_beside_its_job_nor_after_it(desk: Desk) -> None:
    (job,) = desk.started(draft("half", request=Request(gpu_milli=500), queue="big"))
    (busy,) = desk.job(job.id).allocation.gpus  # type: ignore[union-attr]
    (beside,) = desk.submit(draft("beside", request=Request(gpu_milli=250), queue="big"))
    desk.do(pools.move_gpus, ROOT, "other", [gpu for gpu in A100S if gpu != busy])
    desk.do(pools.move_gpus, ROOT, "other", [busy], when_free=True)
    assert desk.cycle() == []
    (reason,) = views.why(desk.state, desk.now, desk.job(beside.id)).reasons
    assert reason.rule == "impossible"
    assert "1 GPU is about to move to another pool" in reason.detail
    with pytest.raises(Invalid, match="there are: none"):
        desk.submit(draft("never", request=Request(gpus=1, models=("A100",)), queue="big"))
    end(desk, job)
    assert desk.cycle() == [], "the freed GPU is not given to its old pool before it moves"
    assert (_view(desk, "big").gpus, _view(desk, "big").free_gpus) == (1, 0)
    desk.do(pools.move_gpus, ROOT, "big", [busy])
    assert desk.cycle() == [beside.id]


def test_jobs_can_wait_for_a_gpu_that_is_about_to_come(desk: Desk) -> None:
    job, every = on_a100(desk, "training", gpus=4)
    desk.do(pools.move_gpus, ROOT, "default", [gpu for gpu in A100S if gpu not in every])
    desk.do(pools.move_gpus, ROOT, "other", every, when_free=True)
    desk.do(groups.edit, ROOT, "team", groups.GroupChange(sets_pool=True, pool="other"))
    (waits,) = desk.submit(draft("waits", gpus=4))
    assert (waits.queue, desk.cycle()) == ("other", [])
    end(desk, job)
    desk.do(pool_moves.go_on)
    assert desk.cycle() == [waits.id]


def _view(desk: Desk, name: str) -> pools.PoolView:
    with desk.store.read() as tx:
        owned = pools.pool_owners(tx)
    return next(view for view in pools.pool_views(desk.state, owned, desk.now) if view.record.name == name)


def test_a_move_to_the_pool_that_it_is_in_takes_the_move_back(desk: Desk, job_and_gpu: tuple[Job, str]) -> None:
    job, busy = job_and_gpu
    desk.do(pools.move_gpus, ROOT, "other", [busy], when_free=True)
    desk.do(pools.move_gpus, ROOT, "big", [busy])
    assert next_pools(desk) == {}
    assert desk.actions("big")[-1] == "pool.move-cancelled"
    end(desk, job)
    assert not pool_moves.is_due(desk.state)
    assert busy in gpus_of(desk, "big")
    assert_state_is_stored(desk)


def test_planned_twice_it_goes_to_the_last_pool(desk: Desk, job_and_gpu: tuple[Job, str]) -> None:
    job, busy = job_and_gpu
    desk.do(pools.move_gpus, ROOT, "other", [busy], when_free=True)
    desk.do(pools.move_gpus, ROOT, "other", [busy], when_free=True)
    assert desk.actions("other").count("pool.move-planned") == 1
    desk.do(pools.move_gpus, ROOT, "default", [busy], when_free=True)
    end(desk, job)
    desk.do(pool_moves.go_on)
    assert busy in gpus_of(desk, "default")


def test_an_observation_keeps_it_and_a_deleted_pool_ends_it(desk: Desk, job_and_gpu: tuple[Job, str]) -> None:
    _, busy = job_and_gpu
    desk.do(pools.move_gpus, ROOT, "other", [busy], when_free=True)
    desk.observe(*(replace(node, memory_bytes=node.memory_bytes + 1) for node in MIXED_NODES))
    assert next_pools(desk) == {busy: "other"}
    desk.do(pools.delete, ROOT, "other")
    assert next_pools(desk) == {}
    assert_state_is_stored(desk)


def test_reservations_guarantees_and_models_count_a_leaving_gpu_as_gone(
    desk: Desk, job_and_gpu: tuple[Job, str]
) -> None:
    _, busy = job_and_gpu
    desk.do(pools.move_gpus, ROOT, "other", [busy], when_free=True)
    # The pool that it moves to has its model already.
    with pytest.raises(Invalid, match="a pool has one"):
        desk.do(pools.move_gpus, ROOT, "other", A10S[:1])
    # Its old pool cannot promise it any more, nor give away what is promised.
    with pytest.raises(Invalid, match=f"pool big has {len(A100S) - 1}"):
        desk.do(queues.create, ROOT, Queue(name="sure", pool="big", guaranteed_gpus=len(A100S)))
    desk.do(queues.create, ROOT, Queue(name="sure", pool="big", guaranteed_gpus=len(A100S) - 1))
    with pytest.raises(InUse, match="guaranteed to queue sure"):
        desk.do(pools.move_gpus, ROOT, "other", [gpu for gpu in A100S if gpu != busy][:1])
    named = ReservationDraft(gpu_ids=(busy,), users=("ann",), sets_until=True, until=None)
    with pytest.raises(InUse, match="leaves pool big when its job has ended"):
        desk.do(reservations.create, ROOT, "for-ann", "big", named)
    chosen = ReservationDraft(count=len(A100S), users=("ann",), sets_until=True, until=None)
    with pytest.raises(InUse):
        desk.do(reservations.create, ROOT, "for-ann", "big", chosen)
