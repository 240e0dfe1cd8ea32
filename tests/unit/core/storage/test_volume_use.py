"""One writer or any number of readers: whatever arrives and is preempted, in every snapshot made from another."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import CLUSTER_LABEL, Job, Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.forecast.estimates import forecast
from corral.core.scheduling.limits.claims import Claim
from corral.core.scheduling.limits.hold_rules import MOUNT
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.changes import DropVolume, PutNode, PutQueue, PutRules, PutVolume
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from corral.core.snapshot.journal import (
    Digest,
    changes_of_plain,
    decode_changes,
    decode_plan,
    encode_changes,
    encode_plan,
    plain_changes,
)
from corral.core.snapshot.replica import Replica, copy_of
from corral.core.storage.volumes import Volume, VolumeMount, VolumeType
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node, running, snapshot_of, started, waiting
from tests.unit.searching import DEAR, between, pick

BLOCKS = ("v-1", "v-2")
SHARED = "v-3"
VOLUMES = (
    *(Volume(id=name, name=f"data-{name}", owner="ann", type=VolumeType.BLOCK) for name in BLOCKS),
    Volume(id=SHARED, name="shared", owner="ann", type=VolumeType.FILESYSTEM),
)
PUT_VOLUMES = tuple(PutVolume(volume=volume) for volume in VOLUMES)


def reads(volume: str) -> VolumeMount:
    return VolumeMount(volume=volume)


def writes(volume: str) -> VolumeMount:
    return VolumeMount(volume=volume, writes=True)


@st.composite
def arriving(draw: st.DrawFn) -> list[Arrival]:
    arrivals = []
    for serial in range(1, draw(pick(14, 14, 6)) + 1):
        mounts = {name: draw(pick(True, False)) for name in (*BLOCKS, SHARED) if draw(between(0, 2)) == 0}
        job = waiting(
            serial,
            user=draw(pick("ann", "bob")),
            at=float(draw(between(0, 12))),
            gpus=draw(pick(1, 1, 2)),
            queue=draw(pick("default", "default", "owner")),
            priority=draw(pick(5, 1)),
            time_limit_seconds=draw(pick(None, 8.0, 20.0)),
            grace_seconds=draw(pick(0.0, 2.0)),
            mounts=tuple(VolumeMount(volume=name, writes=is_written) for name, is_written in mounts.items()),
        )
        arrivals.append(Arrival(job=job, run_seconds=float(draw(between(2, 15)))))
    return sorted(arrivals, key=lambda arrival: arrival.job.queued_at or 0.0)


def cluster() -> ClusterSnapshot:
    return snapshot_of(
        PutRules(
            limits=Limits(), score_time_constant=60.0, preemption=PreemptionRules(enabled=True, min_run_seconds=1.0)
        ),
        node("n1", 3),
        PutQueue(queue=Queue(name="default", policy="priority", preempts=True)),
        PutQueue(queue=Queue(name="owner", policy="fcfs", guaranteed_gpus=1)),
        *PUT_VOLUMES,
    )


def check(snapshot: ClusterSnapshot, also: dict[str, Job]) -> None:
    """Counted from the jobs themselves, not by what the rule looks at."""
    holding = {job.id: job for job in snapshot.jobs.values() if job.allocation is not None} | also
    writers: dict[str, set[str]] = defaultdict(set)
    readers: dict[str, set[str]] = defaultdict(set)
    for job in holding.values():
        for mount in job.mounts:
            (writers if mount.writes else readers)[mount.volume].add(job.id)
    for name in BLOCKS:
        assert len(writers[name]) <= 1, (name, writers[name])
        assert not (writers[name] and readers[name]), (name, writers[name], readers[name])
    for name in (*BLOCKS, SHARED):
        now_holding = {job_id for job_id in holding if job_id not in also}
        assert set(snapshot.mounted.writers(name)) == writers[name] & now_holding
        assert set(snapshot.mounted.readers(name)) == readers[name] & now_holding


@DEAR
@given(arrivals=arriving())
def test_never_two_writers_nor_a_writer_with_readers_and_everybody_has_a_turn(arrivals: list[Arrival]) -> None:
    simulation = Simulation(snapshot=cluster(), arrivals=arrivals)
    begun: set[str] = set()
    for step in simulation:
        starts = {start.job_id: simulation.snapshot.jobs[start.job_id] for start in step.plan.starts}
        check(simulation.snapshot, starts)
        assert simulation.snapshot.volumes.keys() == {volume.id for volume in VOLUMES}
        begun |= starts.keys()
    assert begun == {arrival.job.id for arrival in arrivals}, "no job waits for ever"


def test_a_waiting_job_says_which_volume_it_waits_for_and_who_has_it() -> None:
    snapshot = snapshot_of(
        node("n1", 4),
        *PUT_VOLUMES,
        running(1, {"n1": (0,)}, mounts=(reads("v-1"),)),
        running(2, {"n1": (1,)}, mounts=(reads("v-1"),)),
        job := waiting(3, gpus=1, mounts=(writes("v-1"),)),
    )
    plan = schedule(snapshot, 10.0)
    assert started(plan) == {}
    [reason] = explain(snapshot, plan, job, 10.0).reasons
    assert reason.rule == MOUNT
    assert reason.detail == "volume data-v-1 is read by j-1 (job-1), j-2 (job-2), and this job would write to it"
    assert (reason.numbers, reason.jobs) == ({"volume": "v-1", "jobs": 2}, ("j-1", "j-2"))


def test_a_trial_that_ends_leaves_no_job_with_anything() -> None:
    job = waiting(1, gpus=1, mounts=(writes("v-1"),))
    snapshot = snapshot_of(node("n1", 4), *PUT_VOLUMES, job)
    allocation = schedule(snapshot, 1.0).starts[0].allocation
    with snapshot.trial() as trial:
        trial.start(job, allocation)
        assert snapshot.mounted.writers("v-1") == ["j-1"]
        with trial.without([], [job]):
            assert snapshot.mounted.users("v-1") == []
        assert snapshot.mounted.conflicting_jobs(reads("v-1")) == ["j-1"]
    assert list(snapshot.mounted.volumes()) == []


def test_a_job_goes_to_the_cluster_of_its_volume() -> None:
    here, there = node("n1", 1), node("n2", 1, cluster="east")
    job = waiting(1, gpus=1, labels=((CLUSTER_LABEL, "east"),), mounts=(reads("v-1"),))
    assert started(schedule(snapshot_of(here, there, *PUT_VOLUMES, job), 1.0)) == {"j-1": ["n2"]}
    moved = snapshot_of(here, there, *PUT_VOLUMES, job)
    moved.apply([PutNode(node=replace(there, cluster="west"))])
    assert started(schedule(moved, 1.0)) == {}


def test_copies_journals_and_digests_have_the_volumes() -> None:
    snapshot = snapshot_of(node("n1", 4), *PUT_VOLUMES, running(1, {"n1": (0,)}, mounts=(writes("v-1"),)))
    changes = list(snapshot.contents())
    again = ClusterSnapshot(decode_changes(encode_changes(changes)))
    assert again.volumes == snapshot.volumes
    assert again.mounted.writers("v-1") == ["j-1"]
    assert changes_of_plain(json.loads(json.dumps(plain_changes(changes)))) == changes
    mirror = Replica()
    mirror.follow(copy_of(snapshot))
    assert mirror.snapshot.volumes == snapshot.volumes
    digest, other = Digest(), Digest()
    digest.add(changes)
    other.add([*changes, PutVolume(volume=replace(VOLUMES[0], id="v-9")), DropVolume(id="v-9")])
    assert digest.hex() == other.hex()
    other.add([PutVolume(volume=replace(VOLUMES[0], is_full=True))])
    assert digest.hex() != other.hex()


def test_a_claim_on_a_volume_is_kept_with_its_plan() -> None:
    claims = (
        Claim(job_id="j-1", rule=MOUNT, queue="", at=5.0, volume="v-1", writes=True),
        Claim(job_id="j-2", rule="queue-gpus", queue="small", at=7.0),
    )
    plan = Plan(at=1.0, claims=claims)
    assert decode_plan(encode_plan(plan)) == plan


def test_a_forecast_lets_writers_follow_each_other() -> None:
    snapshot = snapshot_of(
        node("n1", 4),
        *PUT_VOLUMES,
        running(1, {"n1": (0,)}, mounts=(writes("v-1"),), time_limit_seconds=100.0),
        waiting(2, gpus=1, at=1.0, mounts=(writes("v-1"),), time_limit_seconds=50.0),
        waiting(3, gpus=1, at=2.0, mounts=(writes("v-1"),), time_limit_seconds=50.0),
    )
    estimates = forecast(snapshot, 10.0).estimates
    assert 10.0 < estimates["j-2"].p50 < estimates["j-3"].p50
