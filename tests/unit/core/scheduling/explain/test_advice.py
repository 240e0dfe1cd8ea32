"""Proposals to the owner of a waiting job: only useful changes that there is room for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corral.core.model import Elastic, Job, JobKind, JobState, Queue, Request
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.advice import Choices, Operation, proposals
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.core.builders import node, running, snapshot_of, waiting

NOW = 100.0
BOUNDS = Elastic(min_gpus=1, max_gpus=8)


def changes(snapshot: ClusterSnapshot, job: Job, now: float = NOW, **choices: Any) -> list[dict[str, Any]]:
    found = proposals(snapshot, schedule(snapshot, now), job, now, Choices(**choices))
    return [dict(proposal.change) for proposal in found]


def test_a_job_that_is_too_large_for_what_is_free_may_ask_for_half() -> None:
    job = waiting(2, gpus=8)
    snapshot = snapshot_of(node("n1", 8), running(1, {"n1": (0, 1, 2)}), job)
    assert changes(snapshot, job) == [{"gpus": 4}, {"gpus": 2}]
    assert changes(snapshot, job, elastic=BOUNDS)[0] == {"min_gpus": 4, "max_gpus": 8}


def test_where_there_is_no_room_at_all_only_what_comes_back_sooner_is_proposed() -> None:
    job = waiting(2, gpus=2)
    snapshot = snapshot_of(node("n1", 2), running(1, {"n1": (0, 1)}), job)
    assert changes(snapshot, job, elastic=BOUNDS) == [{"gpus": 1}]
    only = waiting(3, gpus=1)
    assert changes(snapshot_of(node("n1", 1), running(1, {"n1": (0,)}), only), only, elastic=BOUNDS) == []


def test_a_gang_may_take_fewer_nodes_or_fewer_gpus_on_each() -> None:
    job = waiting(2, gpus=4, nodes=4)
    fleet = [node(f"n{number}", 4) for number in range(4)]
    snapshot = snapshot_of(*fleet, running(1, {"n0": (0, 1)}), running(3, {"n1": (0, 1, 2, 3)}), job)
    assert changes(snapshot, job) == [{"gpus": 2}, {"nodes": 2}]
    roomier = snapshot_of(*fleet, running(1, {"n0": (0, 1)}), job)
    assert changes(roomier, job) == [{"gpus": 2}, {"gpus": 1}, {"nodes": 2}]


def test_other_models_are_named_when_they_have_room() -> None:
    job = waiting(2, gpus=2, models=("A100",))
    snapshot = snapshot_of(node("n1", 2, model="A100"), node("n2", 2, model="A10"), running(1, {"n1": (0, 1)}), job)
    assert {"model": ["A10", "A100"]} in changes(snapshot, job)
    small = snapshot_of(node("n1", 2, model="A100"), node("n2", 1, model="A10"), running(1, {"n1": (0, 1)}), job)
    assert {"model": ["A10", "A100"]} not in changes(small, job)
    full = snapshot_of(
        node("n1", 2, model="A100"),
        node("n2", 2, model="A10"),
        node("n3", 2, model="H100"),
        running(1, {"n1": (0, 1)}, model="A100"),
        running(3, {"n2": (0, 1)}),
        running(4, {"n3": (0, 1)}, model="H100"),
        job,
    )
    assert {"model": ["A10", "A100", "H100"]} in changes(full, job)


def test_packages_of_the_same_size_and_other_hardware() -> None:
    job = waiting(2, gpus=2, models=("A100",))
    snapshot = snapshot_of(node("n1", 2, model="A100"), node("n2", 2, model="A10"), running(1, {"n1": (0, 1)}), job)
    packages = {
        "same": Request(gpus=2, models=("A100",)),
        "other": Request(gpus=2, models=("A10",)),
        "smaller": Request(gpus=1, models=("A10",)),
        "elsewhere": Request(gpus=2, models=("H200",)),
    }
    assert [change for change in changes(snapshot, job, packages=packages) if "package" in change] == [
        {"package": "other"}
    ]


def test_queues_with_room_go_first_and_those_that_take_no_such_jobs_are_left_out() -> None:
    job = waiting(2, gpus=2)
    queues = [
        Queue(name="default"),
        Queue(name="full"),
        Queue(name="roomy", pool="more"),
        Queue(name="benches", pool="more", kinds=(JobKind.WORKBENCH,)),
    ]
    snapshot = snapshot_of(*queues, node("n1", 2), node("n2", 2, pool="more"), running(1, {"n1": (0, 1)}), job)
    found = [change["queue"] for change in changes(snapshot, job, queues=queues) if "queue" in change]
    assert found == ["roomy", "full"]


def test_a_shorter_time_ends_before_the_promised_start_and_is_still_of_use() -> None:
    first = waiting(2, gpus=4, time_limit_seconds=7200.0)
    job = waiting(3, gpus=2, time_limit_seconds=7200.0, grace_seconds=30.0)
    held = running(1, {"n1": (0, 1)}, time_limit_seconds=3600.0)
    snapshot = snapshot_of(node("n1", 4), held, first, job)
    [change] = [change for change in changes(snapshot, job) if "time" in change]
    # The first one may start at 3600; it is 100 now, 30 s are grace, and a minute is spare.
    assert change == {"time": 3360.0}
    assert change["time"] + 30.0 + NOW < 3600.0
    much_longer = replace(job, time_limit_seconds=86_400.0)
    assert not [change for change in changes(snapshot, much_longer) if "time" in change]


def test_jobs_that_wait_for_a_dependency_or_a_retry_get_no_advice() -> None:
    snapshot = snapshot_of(node("n1", 8), running(1, {"n1": (0, 1, 2)}))
    assert changes(snapshot, waiting(2, gpus=8, after=("j-1",))) == []
    assert changes(snapshot, waiting(2, gpus=8, not_before=NOW + 10)) == []


def test_a_job_that_ran_before_keeps_its_size() -> None:
    job = waiting(2, gpus=8, attempt=1)
    snapshot = snapshot_of(node("n1", 8), running(1, {"n1": (0, 1, 2)}), job)
    assert changes(snapshot, job) == []


def test_a_held_job_can_be_started() -> None:
    job = replace(waiting(2, gpus=1), state=JobState.CREATED)
    snapshot = snapshot_of(node("n1", 8))
    [only] = proposals(snapshot, schedule(snapshot, NOW), job, NOW, Choices())
    assert (only.operation, dict(only.change)) == (Operation.START, {})
