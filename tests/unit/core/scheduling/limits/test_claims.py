"""Claims: which jobs they concern, which jobs pass them, and when their turn comes."""

from __future__ import annotations

import math
from dataclasses import replace

from corral.core.model import Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.limits.claims import Claim, claim_of, may_have_claims
from corral.core.scheduling.limits.hold_rules import MOUNT, QUEUE_LIMIT, TOTAL_LIMIT, Reason
from corral.core.storage.volumes import VolumeMount
from tests.unit.core.builders import node, running, snapshot_of, started, waiting

TOTAL = Claim(job_id="j-9", rule=TOTAL_LIMIT, queue="", at=100.0)


def over(rule: str, *, held: int, asked: int, limit: int) -> Reason:
    return Reason(rule=rule, detail="", numbers={"held": held, "asked": asked, "limit": limit})


def test_a_claim_concerns_jobs_that_count_for_the_same_limit() -> None:
    of_queue = replace(TOTAL, rule=QUEUE_LIMIT, queue="night")
    assert TOTAL.concerns(waiting(1, gpus=1))
    assert not TOTAL.concerns(waiting(9, gpus=1)), "its own job"
    assert not TOTAL.concerns(waiting(1)), "a job without GPUs counts for no GPU limit"
    assert not of_queue.concerns(waiting(1, gpus=1))
    assert of_queue.concerns(waiting(1, gpus=1, queue="night"))


def test_readers_do_not_wait_for_readers() -> None:
    reads = Claim(job_id="j-9", rule=MOUNT, queue="", at=100.0, volume="v-1")
    writes = replace(reads, writes=True)
    reader = waiting(1, mounts=(VolumeMount(volume="v-1"),))
    writer = waiting(2, mounts=(VolumeMount(volume="v-1", writes=True),))
    assert [claim.concerns(job) for claim in (reads, writes) for job in (reader, writer)] == [False, True, True, True]


def test_only_jobs_that_end_in_time_pass() -> None:
    assert TOTAL.can_be_passed(100.0)
    assert not TOTAL.can_be_passed(100.5)
    assert not replace(TOTAL, at=math.inf).can_be_passed(math.inf)


def test_a_volume_without_a_known_end_is_kept_for_no_job() -> None:
    assert TOTAL.blocks_others
    assert replace(TOTAL, at=math.inf).blocks_others
    assert not Claim(job_id="j-9", rule=MOUNT, queue="", at=math.inf, volume="v-1").blocks_others


def test_a_job_that_is_larger_than_the_limit_gets_no_claim() -> None:
    assert may_have_claims([over(TOTAL_LIMIT, held=8, asked=4, limit=4)])
    assert not may_have_claims([over(TOTAL_LIMIT, held=0, asked=5, limit=4)])


def test_the_turn_comes_with_the_end_that_frees_enough_of_the_limit() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=8),
        running(1, {"n1": (0,)}, time_limit_seconds=50.0),
        running(2, {"n1": (1, 2)}, time_limit_seconds=80.0),
    )
    reason = over(TOTAL_LIMIT, held=3, asked=3, limit=4)
    job = waiting(3, gpus=3)
    assert claim_of(snapshot, job, reason, 10.0, ()).at == 80.0
    sooner = [(60.0, waiting(4, gpus=1))]
    assert claim_of(snapshot, job, reason, 10.0, sooner).at == 60.0, "starts of this cycle count too"
    assert claim_of(snapshot, job, over(TOTAL_LIMIT, held=3, asked=8, limit=4), 10.0, ()).at == math.inf


def test_small_jobs_do_not_starve_a_large_one_under_a_shared_limit() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=8),
        Queue(name="default", policy="fcfs", max_gpus=4),
        running(1, {"n1": (0, 1)}, time_limit_seconds=100.0),
        waiting(2, gpus=4),
        waiting(3, user="bob", gpus=1, time_limit_seconds=500.0),
        waiting(4, user="bob", gpus=1, time_limit_seconds=50.0),
    )
    plan = schedule(snapshot, 10.0)
    assert [(claim.job_id, claim.rule, claim.at) for claim in plan.claims] == [("j-2", QUEUE_LIMIT, 100.0)]
    assert started(plan) == {"j-4": ["n1"]}, "only the job that ends before the turn passes"
