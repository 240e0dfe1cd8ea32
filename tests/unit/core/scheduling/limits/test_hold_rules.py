"""The rules that hold a job although there may be room: each with its numbers, and the first one that applies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.core.model import Job, JobKind, Queue
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.scheduling.limits.hold_rules import (
    MOUNT,
    NEVER,
    Reason,
    all_reasons,
    first_reason,
    limit_below,
    spare_gpus,
)
from corral.core.snapshot.changes import Change, PutMembership, PutQuota, PutRules, PutVolume
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.core.storage.volumes import Volume, VolumeMount, VolumeType
from tests.unit.core.builders import node, running, snapshot_of, waiting

NOW = 100.0
DEFAULT = Queue(name="default", policy="fcfs", max_gpus=6)


def limits(**values: int) -> PutRules:
    return PutRules(limits=Limits(**values), score_time_constant=3600.0)


def cluster(*changes: Change) -> ClusterSnapshot:
    return snapshot_of(node("n1", gpus=8), DEFAULT, running(1, {"n1": (0, 1, 2, 3)}, user="ann"), *changes)


def held_by(snapshot: ClusterSnapshot, job: Job) -> Reason:
    reason = first_reason(snapshot, job, NOW)
    assert reason is not None
    return reason


@pytest.mark.parametrize(
    ("changes", "rule", "numbers"),
    [
        ((limits(max_gpus_per_job=2),), "gpus-per-job", {"asked": 3.0, "held": 0.0, "limit": 2}),
        ((limits(max_gpus_per_user=6),), "gpus-per-user", {"asked": 3.0, "held": 4.0, "limit": 6}),
        ((limits(max_total_gpus=6),), "total-gpus", {"asked": 3.0, "held": 4.0, "limit": 6}),
        ((), "queue-gpus", {"asked": 3.0, "held": 4.0, "limit": 6}),
    ],
)
def test_each_limit_is_named_with_its_numbers(
    changes: tuple[Change, ...], rule: str, numbers: dict[str, float]
) -> None:
    reason = held_by(cluster(*changes), waiting(2, gpus=3))
    assert (reason.rule, reason.numbers) == (rule, numbers)


def test_a_job_under_all_limits_is_not_held() -> None:
    everything = limits(max_gpus_per_job=2, max_gpus_per_user=6, max_total_gpus=6)
    assert first_reason(cluster(everything), waiting(2, gpus=2), NOW) is None
    assert first_reason(cluster(everything), waiting(2), NOW) is None, "a job without GPUs counts for no GPU limit"


def test_the_first_reason_is_the_first_of_all() -> None:
    snapshot = cluster(limits(max_gpus_per_job=2, max_total_gpus=6))
    job = waiting(2, gpus=3, not_before=NOW + 30.0, faults=2, message="node lost")
    reasons = all_reasons(snapshot, job, NOW)
    assert [reason.rule for reason in reasons] == ["back-off", "gpus-per-job", "total-gpus", "queue-gpus"]
    assert first_reason(snapshot, job, NOW) == reasons[0]
    assert reasons[0].detail == "after platform failure 2 in a row it is tried again in 30s: node lost"
    assert first_reason(snapshot, replace(job, request=waiting(9, gpus=1).request), NOW + 30.0) is None


def test_a_quota_counts_jobs_of_one_kind() -> None:
    snapshot = cluster(PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=4500)))
    reason = held_by(snapshot, waiting(2, gpus=1))
    assert (reason.rule, reason.numbers) == ("quota", {"resource": "gpus", "asked": 1.0, "held": 4.0, "limit": 4.5})
    assert first_reason(snapshot, waiting(2, gpu_milli=500), NOW) is None
    assert first_reason(snapshot, waiting(2, gpus=1, kind=JobKind.WORKBENCH), NOW) is None
    assert held_by(snapshot, waiting(2, gpus=1, kind=JobKind.PRESET)).rule == "quota", "it is a training too"
    gang = waiting(2, gpus=1, nodes=2, kind=JobKind.PRESET)
    assert first_reason(snapshot, gang, NOW) is None, "it is a distributed one"


def test_a_deleted_queue_and_a_foreign_pool_hold_a_job() -> None:
    snapshot = cluster(PutMembership(user="bob", membership=Membership(group="vision", pool="night")))
    assert held_by(snapshot, waiting(2, gpus=1, queue="gone")).rule == "queue-missing"
    reason = held_by(snapshot, waiting(2, "bob", gpus=1))
    assert reason.rule == "membership"
    assert reason.detail == "queue default is in pool default, but bob's group vision has pool night"


def test_volumes_hold_jobs_that_mount_them() -> None:
    volume = Volume(id="v-1", name="data", owner="ann", type=VolumeType.BLOCK)
    reads, writes = VolumeMount(volume="v-1"), VolumeMount(volume="v-1", writes=True)
    reader = running(3, {"n1": (4,)}, mounts=(reads,))
    snapshot = snapshot_of(node("n1", gpus=8), DEFAULT, PutVolume(volume=volume), reader)
    assert first_reason(snapshot, waiting(2, mounts=(reads,)), NOW) is None
    reason = held_by(snapshot, waiting(2, mounts=(writes,)))
    assert (reason.rule, reason.jobs) == (MOUNT, ("j-3",))
    assert held_by(snapshot, waiting(2, mounts=(VolumeMount(volume="v-9"),))).rule == "volume-missing"
    snapshot.apply([PutVolume(volume=replace(volume, is_full=True))])
    assert held_by(snapshot, waiting(2, mounts=(writes,))).rule == "volume-full"
    assert first_reason(snapshot, waiting(2, mounts=(reads,)), NOW) is None


def test_spare_gpus_is_the_tightest_limit() -> None:
    job = waiting(2, gpus=1)
    assert spare_gpus(cluster(), job) == 2, "the queue may hold 6 and holds 4"
    assert spare_gpus(cluster(limits(max_gpus_per_user=5)), job) == 1
    assert spare_gpus(cluster(limits(max_total_gpus=4)), job) == 0
    assert spare_gpus(snapshot_of(node("n1", gpus=1)), job) > 1000


@pytest.mark.parametrize(
    ("changes", "job", "detail"),
    [
        ((limits(max_gpus_per_job=1),), waiting(2, gpus=2), "one job may hold 1 GPU: asks 2, holds 0"),
        ((limits(max_gpus_per_user=3),), waiting(2, gpus=4), "user ann may hold 3 GPUs: asks 4, holds 4"),
        ((limits(max_total_gpus=3),), waiting(2, gpus=4), "all jobs together may hold 3 GPUs: asks 4, holds 4"),
        ((), waiting(2, gpus=7), "queue default may hold 6 GPUs: asks 7, holds 4"),
    ],
)
def test_a_limit_below_the_job_lasts_whatever_ends(changes: tuple[Change, ...], job: Job, detail: str) -> None:
    job = replace(job, user="ann")
    reason = limit_below(cluster(*changes), job, NOW)
    assert reason is not None
    assert reason.detail == f"{detail}; {NEVER}"
    assert reason in all_reasons(cluster(*changes), job, NOW)


def test_a_limit_that_is_only_used_up_does_not_last() -> None:
    job = waiting(2, gpus=3, user="ann")
    snapshot = cluster(limits(max_gpus_per_user=3, max_total_gpus=3))
    assert not [reason for reason in all_reasons(snapshot, replace(job, user="eve"), NOW) if reason.is_permanent]
    assert limit_below(snapshot, job, NOW) is None


def test_a_quota_below_the_job_lasts() -> None:
    snapshot = cluster(PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=2000)))
    assert all_reasons(snapshot, waiting(2, gpus=3), NOW)[-1].detail.endswith(f"asks 3, holds 4, limit 2; {NEVER}")
    assert not all_reasons(snapshot, waiting(2, gpus=1), NOW)[-1].is_permanent
