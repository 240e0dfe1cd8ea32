"""Pools: a GPU is in one, a pool has one model, and no GPU that a job holds is moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Refusal, Taken
from corral.control.fleet import pools
from corral.control.jobs import jobs
from corral.control.people import groups
from corral.control.ports import AttemptPhase, Store
from corral.control.scheduling import queues
from corral.core.model import EndReason, JobState, Queue, Request
from corral.core.snapshot.journal import digest_of
from tests.unit.control.tenants import (
    A10S,
    A100S,
    EVE,
    MIXED_NODES,
    assert_state_is_stored,
    gpus_of,
    pool_of_gpus,
    reasons,
    tenants,
)
from tests.unit.control.world import ANN, ROOT, Desk, draft
from tests.unit.core.builders import node


@pytest.fixture
def desk(store: Store) -> Desk:
    return tenants(store)


def refused(desk: Desk, kind: type[Refusal], use_case: Callable[..., Any], *args: Any, **values: Any) -> Refusal:
    """The refusal; nothing is different after it."""
    before, gpus = digest_of(desk.state.snapshot.contents()), pool_of_gpus(desk)
    with pytest.raises(kind) as found:
        desk.do(use_case, *args, **values)
    assert digest_of(desk.state.snapshot.contents()) == before
    assert pool_of_gpus(desk) == gpus
    return found.value


# -------------------------------------------------------------------------------------------- what can be done


def test_a_fresh_install_needs_no_administration(desk: Desk) -> None:
    with desk.store.read() as tx:
        assert [pool.name for pool in tx.fleet.pools()] == ["default"]
        assert pools.group_of(tx, "default") == "default"
        root = tx.people.user("root")
    assert root is not None
    assert (root.role, root.group) == ("operator", "default")
    (job,) = desk.submit(draft("anything", request=Request(gpus=4, models=("A100",))), caller=ROOT)
    assert job.queue == "default"
    assert desk.cycle() == [job.id]


def test_a_pool_takes_its_gpus_out_of_default_and_has_a_queue(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", description="the large ones", gpus=A100S[:4])
    assert gpus_of(desk, "big") == set(A100S[:4])
    assert gpus_of(desk, "default") == {*A10S, *A100S[4:]}
    assert desk.state.snapshot.queues["big"].pool == "big"
    assert desk.actions("big") == ["pool.created", "queue.created"]
    assert_state_is_stored(desk)


def test_gpus_move_between_pools_in_one_go(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "one", gpus=A100S[:2])
    desk.do(pools.create, ROOT, "two", gpus=A100S[2:4])
    desk.do(pools.move_gpus, ROOT, "one", [A100S[1], A100S[2], A100S[4]])
    assert gpus_of(desk, "one") == {*A100S[:3], A100S[4]}
    assert gpus_of(desk, "two") == {A100S[3]}
    desk.do(pools.edit, ROOT, "one", gpus=[A100S[3], A100S[0]])
    assert gpus_of(desk, "one") == {A100S[3], A100S[0]}
    assert gpus_of(desk, "two") == set()
    assert {A100S[1], A100S[2], A100S[4]} <= gpus_of(desk, "default")
    assert_state_is_stored(desk)


def test_an_emptied_pool_can_have_another_model(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "any", gpus=A100S[:1])
    desk.do(pools.edit, ROOT, "any", gpus=A10S[:2])
    assert gpus_of(desk, "any") == set(A10S[:2])
    desk.do(pools.edit, ROOT, "any", gpus=[])
    assert gpus_of(desk, "any") == set()
    with desk.store.read() as tx:
        owned = pools.pool_owners(tx)
    views = {view.record.name: view for view in pools.pool_views(desk.state, owned, desk.now)}
    assert (views["any"].model, views["default"].model) == (None, None)


def test_a_pool_shows_what_is_in_it(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(queues.create, ROOT, Queue(name="big-short", pool="big", groups=("default",)))
    desk.submit(
        draft("runs", gpus=4, queue="big-short"),
        draft("shares", request=Request(gpu_milli=500), queue="big-short"),
        draft("waits", gpus=4, queue="big-short"),
        caller=EVE,
    )
    desk.cycle()
    with desk.store.read() as tx:
        shown = pools.pool_views(desk.state, pools.pool_owners(tx), desk.now)
    view = next(item for item in shown if item.record.name == "big")
    assert (view.model, view.group, view.queues) == ("A100", None, ("big", "big-short"))
    assert (view.gpus, view.free_gpus, view.held_milli) == (8, 3, 4500)
    assert (view.running, view.queued) == (2, 1)


def test_deleting_a_pool_gives_its_gpus_back_and_keeps_what_waits(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(groups.create, ROOT, "team", users=["ann"], pool="big")
    fills, waits = desk.submit(draft("fills", gpus=4, nodes=2), draft("waits"))
    assert {fills.queue, waits.queue} == {"big"}
    desk.do(jobs.stop, ANN, fills.id)
    desk.do(groups.edit, ROOT, "team", groups.GroupChange(sets_pool=True, pool=None))
    desk.do(pools.delete, ROOT, "big")
    assert gpus_of(desk, "default") == {*A10S, *A100S}
    assert set(desk.state.snapshot.queues) == {"default"}
    assert desk.cycle() == []
    assert reasons(desk, waits.id) == ["queue-missing"]
    assert_state_is_stored(desk)

    desk.do(pools.create, ROOT, "big", gpus=A100S)
    assert desk.cycle() == []
    assert reasons(desk, waits.id)[0] == "membership"
    desk.do(groups.edit, ROOT, "team", groups.GroupChange(sets_pool=True, pool="big"))
    assert desk.cycle() == [waits.id]


def test_gpus_that_are_moved_away_leave_the_job_waiting_until_some_are_back(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(groups.create, ROOT, "team", users=["ann"], pool="big")
    (job,) = desk.submit(draft("waits", gpus=4))
    desk.do(pools.move_gpus, ROOT, "default", A100S)
    assert desk.cycle() == []
    assert reasons(desk, job.id) == ["impossible"]
    desk.do(pools.move_gpus, ROOT, "big", A100S[:4])
    assert desk.cycle() == [job.id]
    assert set(desk.job(job.id).allocation.gpus) == set(A100S[:4])  # type: ignore[union-attr]


def test_gpus_keep_their_pool_over_a_restart_and_new_ones_join_default(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.state = desk.loaded()
    larger = node("n4", gpus=5, model="A100")
    desk.observe(*MIXED_NODES[:3], larger, node("n5", gpus=2, model="A100"))
    assert gpus_of(desk, "big") == set(A100S)
    assert {"n4/4", "n5/0", "n5/1"} <= gpus_of(desk, "default")


def test_a_gpu_of_another_model_under_an_old_name_is_a_new_gpu(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    replaced = replace(MIXED_NODES[3].gpus[0], model="H100")
    desk.observe(*MIXED_NODES[:3], replace(MIXED_NODES[3], gpus=(replaced, *MIXED_NODES[3].gpus[1:])))
    assert gpus_of(desk, "big") == set(A100S) - {replaced.id}


# -------------------------------------------------------------------------------------------- what is refused


def test_only_operators_manage_pools(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big")
    for use_case, args in (
        (pools.create, ("other",)),
        (pools.edit, ("big",)),
        (pools.move_gpus, ("big", [A10S[0]])),
        (pools.delete, ("big",)),
    ):
        refused(desk, Forbidden, use_case, ANN, *args)


@pytest.mark.parametrize("name", ["", "two words", "x" * 64, "pool/1"])
def test_bad_names_are_refused(desk: Desk, name: str) -> None:
    assert refused(desk, Invalid, pools.create, ROOT, name).field == "name"


def test_a_name_is_taken_once_by_a_pool_or_by_another_pools_queue(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big")
    refused(desk, Taken, pools.create, ROOT, "big")
    refused(desk, Taken, pools.create, ROOT, "default")
    desk.do(queues.create, ROOT, Queue(name="nights"))
    assert "pool default" in refused(desk, Taken, pools.create, ROOT, "nights").detail


def test_a_pool_has_one_model(desk: Desk) -> None:
    mixed = [A10S[0], A100S[0]]
    refusal = refused(desk, Invalid, pools.create, ROOT, "big", gpus=mixed)
    assert refusal.numbers == {"models": ["A10", "A100"]}
    desk.do(pools.create, ROOT, "big", gpus=[A100S[0]])
    assert refused(desk, Invalid, pools.move_gpus, ROOT, "big", [A100S[1], A10S[0]]).field == "gpus"
    assert refused(desk, Invalid, pools.edit, ROOT, "big", gpus=mixed).field == "gpus"
    desk.do(pools.move_gpus, ROOT, "default", [A100S[0]])


def test_unknown_gpus_and_pools_are_refused_as_a_whole(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big")
    for use_case, args, values in (
        (pools.create, ("new",), {"gpus": [A100S[0], "n9/0"]}),
        (pools.edit, ("big",), {"gpus": [A100S[0], "n9/0"]}),
        (pools.move_gpus, ("big", [A100S[0], "n9/0"]), {}),
    ):
        assert "n9/0" in refused(desk, Invalid, use_case, ROOT, *args, **values).detail
    refused(desk, NotFound, pools.edit, ROOT, "nowhere")
    refused(desk, NotFound, pools.move_gpus, ROOT, "nowhere", [A100S[0]])
    refused(desk, NotFound, pools.delete, ROOT, "nowhere")


def test_a_gpu_with_a_running_job_cannot_be_moved_and_the_job_is_named(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(groups.create, ROOT, "team", users=["ann"], pool="big")
    (job,) = desk.started(draft("training", gpus=1))
    (held,) = desk.job(job.id).allocation.gpus  # type: ignore[union-attr]
    free = [gpu for gpu in A100S if gpu != held]
    for use_case, args, values in (
        (pools.move_gpus, ("default", [free[0], held]), {}),
        (pools.create, ("other",), {"gpus": [free[0], held]}),
        (pools.edit, ("big",), {"gpus": free}),
    ):
        refusal = refused(desk, InUse, use_case, ROOT, *args, **values)
        assert f"GPU {held} has job {job.id}" in refusal.detail
        assert refusal.numbers == {"gpus": [held], "jobs": [job.id]}
    desk.do(pools.move_gpus, ROOT, "default", free)
    desk.do(pools.move_gpus, ROOT, "big", [*free, held])  # it is there already
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(pools.move_gpus, ROOT, "default", [held])


def test_a_pool_with_a_running_job_cannot_be_deleted(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(groups.create, ROOT, "team", users=["ann"], pool="big")
    on_gpu, without = desk.started(draft("training"), draft("without", gpus=0))
    desk.do(groups.edit, ROOT, "team", groups.GroupChange(sets_pool=True, pool=None))
    refusal = refused(desk, InUse, pools.delete, ROOT, "big")
    assert refusal.numbers == {"jobs": [on_gpu.id, without.id]}
    for job in (on_gpu, without):
        assert desk.job(job.id).state is JobState.RUNNING
        refused(desk, InUse, pools.delete, ROOT, "big")
        desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(pools.delete, ROOT, "big")


def test_a_pool_of_a_group_must_be_detached_first_and_default_stays(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big")
    desk.do(groups.create, ROOT, "team", pool="big")
    assert refused(desk, InUse, pools.delete, ROOT, "big").numbers == {"group": "team"}
    assert "default" in refused(desk, InUse, pools.delete, ROOT, "default").detail


def test_gpus_leave_default_only_by_joining_another_pool(desk: Desk) -> None:
    assert refused(desk, Invalid, pools.edit, ROOT, "default", gpus=A10S).field == "gpus"
    desk.do(pools.edit, ROOT, "default", gpus=[*A10S, *A100S], description="everything")


def test_the_queue_of_a_pool_stays_with_it(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(queues.create, ROOT, Queue(name="big-night", pool="big"))
    refused(desk, InUse, queues.delete, ROOT, "big")
    desk.do(queues.delete, ROOT, "big-night")
