"""The mix of requests of pools: counted when jobs are submitted, and restored after a restart."""

from __future__ import annotations

from corral.control.fleet import pools
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase
from corral.core.model import DEFAULT_POOL, EndReason, Request
from tests.unit.control.tenants import assert_state_is_stored
from tests.unit.control.world import ROOT, Desk, draft


def test_submissions_are_counted_and_survive_a_restart(desk: Desk) -> None:
    desk.submit(draft("first"), draft("second"), draft("large", gpus=2))
    mix = desk.state.snapshot.mixes[DEFAULT_POOL]
    assert {portion.request.gpus: portion.count for portion in mix.portions} == {1: 2, 2: 1}
    assert desk.loaded().snapshot.mixes == {DEFAULT_POOL: mix}
    assert_state_is_stored(desk)


def test_counting_goes_on_from_where_it_was(desk: Desk) -> None:
    desk.submit(draft("first"))
    desk.state = desk.loaded()
    desk.submit(draft("second"))
    assert desk.state.snapshot.mixes[DEFAULT_POOL].total == 2


def test_retried_request_counts_once(desk: Desk) -> None:
    (job,) = desk.started(draft("once"))
    desk.hear(job, AttemptPhase.ENDED, EndReason.LAUNCH_ERROR)
    assert desk.state.snapshot.mixes[DEFAULT_POOL].total == 1


def test_jobs_that_gave_their_resources_back_are_counted(desk: Desk) -> None:
    (job,) = desk.started(draft("ends"))
    desk.submit(draft("waits"))
    assert desk.state.snapshot.mixes[DEFAULT_POOL].ended == 0
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.submit(draft("next"))
    mix = desk.state.snapshot.mixes[DEFAULT_POOL]
    assert (mix.ended, mix.total) == (1, 3)
    assert desk.loaded().snapshot.mixes == {DEFAULT_POOL: mix}


def test_a_pool_takes_its_mix_with_it(desk: Desk) -> None:
    def ask(work: Work) -> None:
        for gpu in ("n1/0", "n1/1"):
            assert gpu in work.state.snapshot.fleet.gpu_home

    desk.do(ask)
    desk.do(pools.create, ROOT, "night", gpus=["n1/0", "n1/1"])
    desk.submit(draft("in-the-night", queue="night", request=Request(gpus=1)), caller=ROOT)
    assert desk.state.snapshot.mixes["night"].total == 1
    (job,) = (job for job in desk.state.snapshot.jobs.values())
    assert job.queue == "night"
    desk.do(pools.delete, ROOT, "night")
    assert "night" not in desk.state.snapshot.mixes
    assert_state_is_stored(desk)
