"""A picture kept current change by change equals one that is built anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.lifecycle import Planned, advance
from corral.core.model import Job, JobKind, JobState, Node, Queue
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.snapshot.changes import (
    Change,
    DropJob,
    DropNode,
    DropQueue,
    PutJob,
    PutLastNode,
    PutNode,
    PutQueue,
    PutQuota,
    PutScore,
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.node_index import Oversubscribed
from tests.unit.core.builders import node, picture, running, waiting
from tests.unit.core.recount import dump_snapshot, free_on
from tests.unit.core.strategies import GPU_HEALTHS, MODELS, NODE_STATES, POLICIES, USERS, History, histories
from tests.unit.searching import DEAR, between, pick


@DEAR
@given(histories(), st.data())
def test_any_way_to_a_content_leads_to_the_same_picture(history: History, data: st.DataObject) -> None:
    """Nodes come, change and go, queues too, jobs start and end: in the middle of it all, nothing is stale."""
    snapshot = ClusterSnapshot(history.cluster)
    arriving = [
        replace(arrival.job, state=JobState.QUEUED, queued_at=arrival.job.created_at) for arrival in history.arrivals
    ]
    for moment in range(8):
        step = data.draw(pick("arrive", "cycle", "cycle", "end", "node", "drop", "queue", "small"))
        snapshot.apply(_changes(step, snapshot, arriving, float(moment), data))
        assert dump_snapshot(ClusterSnapshot(snapshot.contents())) == dump_snapshot(snapshot)
        expected = free_on(snapshot)
        for slot in snapshot.fleet.slots:
            assert (slot.free_cpu_milli, slot.free_memory_bytes, slot.free_milli) == expected[slot.node.id]


def _changes(
    step: str, snapshot: ClusterSnapshot, arriving: list[Job], now: float, data: st.DataObject
) -> list[Change]:
    holding = sorted(job.id for job in snapshot.jobs.values() if job.state.holds_resources)
    match step:
        case "arrive":
            arrived, arriving[:] = arriving[:4], arriving[4:]
            return [PutJob(job=job) for job in arrived]
        case "cycle":
            plan = schedule(snapshot, now)
            return [
                PutJob(job=advance(snapshot.jobs[s.job_id], Planned(at=now, allocation=s.allocation)).job)
                for s in plan.starts
            ]
        case "end" if holding:
            return [DropJob(id=data.draw(st.sampled_from(holding)))]
        case "node" if snapshot.nodes:
            return [PutNode(node=_altered(snapshot.nodes[data.draw(st.sampled_from(sorted(snapshot.nodes)))], data))]
        case "drop" if snapshot.nodes:
            return [DropNode(id=data.draw(st.sampled_from(sorted(snapshot.nodes))))]
        case "queue":
            name = data.draw(pick("default", "strict"))
            policies = [PutQueue(queue=Queue(name=name, policy=policy)) for policy in POLICIES]
            return [data.draw(pick(DropQueue(name=name), *policies))]
        case "small":
            user = data.draw(pick(*USERS))
            return [
                PutScore(user=user, model=data.draw(pick(*MODELS)), score=Score(value=now, usage=1.0, at=now)),
                PutQuota(user=user, kind=JobKind.TRAINING, quota=Quota(gpu_milli=data.draw(pick(None, 9)))),
                PutLastNode(id="n1"),
            ]
        case _:
            return []


def _altered(known: Node, data: st.DataObject) -> Node:
    """Another state, other labels, size or health; sometimes a device less."""
    gpus = tuple(replace(gpu, health=data.draw(pick(*GPU_HEALTHS))) for gpu in known.gpus)
    return replace(
        known,
        state=data.draw(pick(*NODE_STATES)),
        gpus=gpus[:-1] if data.draw(between(0, 3)) == 0 else gpus,
        labels=data.draw(pick((), (("zone", "a"),))),
        cpu_milli=data.draw(pick(2000, 8000)),
    )


def test_a_trial_undoes_itself_also_after_an_error() -> None:
    snapshot = picture(node("n1", gpus=2), waiting(1, gpus=1), waiting(2, gpus=2))
    before = dump_snapshot(snapshot)
    (start,) = schedule(snapshot, 5.0).starts

    def fail() -> None:
        with snapshot.trial() as trial:
            trial.start(snapshot.jobs["j-1"], start.allocation)
            assert snapshot.held.total_gpu_milli == 1000
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert dump_snapshot(snapshot) == before


def test_taking_what_is_held_is_an_error() -> None:
    snapshot = picture(node("n1", gpus=1), running(1, {"n1": (0,)}))
    assert snapshot.fleet.slots[0].free_milli == {"n1/0": 0}
    with pytest.raises(Oversubscribed, match="n1/0"):
        snapshot.apply([PutJob(job=running(2, {"n1": (0,)}))])


def test_only_live_jobs_are_part_of_the_picture() -> None:
    with pytest.raises(ValueError, match="j-1 is created"):
        picture(Job(id="j-1", name="name", user="ann"))
    with pytest.raises(ValueError, match="without an allocation"):
        picture(replace(waiting(1), state=JobState.RUNNING))


def test_a_node_that_comes_back_still_holds_what_runs_on_it() -> None:
    snapshot = picture(node("n1", gpus=2), running(1, {"n1": (0,)}))
    snapshot.apply([DropNode(id="n1")])
    assert snapshot.fleet.slots == []
    snapshot.apply([PutNode(node=node("n1", gpus=2))])
    assert snapshot.fleet.slots[0].free_milli == {"n1/0": 0, "n1/1": 1000}
