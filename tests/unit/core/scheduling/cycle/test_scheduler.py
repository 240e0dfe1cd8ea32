"""Single cycles, each told as a small story: who starts, who waits, and what is promised."""

from __future__ import annotations

import math
from dataclasses import replace

from corral.core.model import WHOLE, JobKind, Queue
from corral.core.people.quota import Quota
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.snapshot.changes import PutQuota
from corral.core.snapshot.node_index import natural_key
from tests.unit.core.builders import node, picture, promises, running, started, waiting

INF = math.inf


def test_a_quota_of_one_kind_does_not_hold_another_kind() -> None:
    """Same user, same request: the workbench is over its quota, the training behind it is not."""
    snapshot = picture(
        node("n1", gpus=2),
        PutQuota(user="ann", kind=JobKind.WORKBENCH, quota=Quota(gpu_milli=0)),
        waiting(1, gpus=1, kind=JobKind.WORKBENCH),
        waiting(2, gpus=1),
    )
    assert started(schedule(snapshot, 5.0)) == {"j-2": ["n1"]}


def test_a_shorter_grace_may_fit_where_a_longer_does_not() -> None:
    """Two jobs alike but for their grace: only the second is gone before the promised start."""
    snapshot = picture(
        node("n1", gpus=2),
        running(1, {"n1": (0,)}, time_limit_seconds=100.0),
        waiting(2, gpus=2),
        waiting(3, gpus=1, time_limit_seconds=80.0, grace_seconds=30.0),
        waiting(4, gpus=1, time_limit_seconds=80.0, grace_seconds=0.0),
    )
    plan = schedule(snapshot, 10.0)
    assert promises(plan) == {"j-2": 100.0}
    assert started(plan) == {"j-4": ["n1"]}


def test_nodes_whose_names_count_alike_have_one_order() -> None:
    nodes = [node("n1", gpus=1), node("n01", gpus=1)]
    plans = [schedule(picture(*order, waiting(1, gpus=1)), 1.0) for order in (nodes, nodes[::-1])]
    assert plans[0] == plans[1]


def test_names_with_odd_digits_are_names_too() -> None:
    assert natural_key("n1²") != natural_key("n12")
    assert started(schedule(picture(node("n1²", gpus=1), waiting(1, gpus=1)), 1.0)) == {"j-1": ["n1²"]}


def test_a_promise_looks_only_at_gpus_of_its_own_pool() -> None:
    """The GPU that the night queue's job will give back is no use to the default queue's job on the same node."""
    day, night = node("n1", gpus=2).gpus
    snapshot = picture(
        node("n1", gpus=(day, replace(night, pool="night"))),
        Queue(name="default", policy="fcfs"),
        Queue(name="night", policy="fcfs", pool="night"),
        running(1, {"n1": (0,)}, time_limit_seconds=500.0),
        running(2, {"n1": (1,)}, time_limit_seconds=100.0, queue="night"),
        waiting(3, gpus=1, queue="night", time_limit_seconds=10.0),
        waiting(4, gpus=1),
    )
    assert promises(schedule(snapshot, 10.0)) == {"j-3": 100.0, "j-4": 500.0}


def test_three_lines_are_not_promised_one_gpu_at_the_same_time() -> None:
    """Each of three lines waits for the only GPU: one after the other, not two at once."""
    snapshot = picture(
        node("n1", gpus=1),
        running(1, {"n1": (0,)}, time_limit_seconds=100.0),
        waiting(2, gpus=1, time_limit_seconds=10.0),
        waiting(3, gpus=1, models=("A10",), time_limit_seconds=20.0),
        waiting(4, gpus=1, models=("A10", "H100"), time_limit_seconds=30.0),
    )
    assert promises(schedule(snapshot, 10.0)) == {"j-2": 100.0, "j-3": 110.0, "j-4": 130.0}


def test_a_share_that_waits_for_something_without_end_keeps_what_is_free() -> None:
    """Otherwise a stream of small shares would starve the larger one for ever."""
    snapshot = picture(
        node("n1", gpus=1),
        running(1, {"n1": (0,)}, gpu_milli=500),
        running(2, {"n1": (0,)}, gpu_milli=300),
        waiting(3, gpu_milli=600),
        waiting(4, gpu_milli=200),
    )
    plan = schedule(snapshot, 10.0)
    assert promises(plan) == {"j-3": INF}
    assert started(plan) == {}


def test_cpus_held_by_another_model_come_back_in_time() -> None:
    """A job waits for the CPUs of its node, which a job on the other model's GPU holds until a known end."""
    a10, other = node("n1", gpus=2).gpus
    snapshot = picture(
        node("n1", gpus=(a10, replace(other, model="H100")), cpu_milli=4 * WHOLE),
        running(1, {"n1": (0,)}, cpu_milli=4 * WHOLE, time_limit_seconds=40.0),
        waiting(2, gpus=1, models=("H100",), cpu_milli=WHOLE),
    )
    assert promises(schedule(snapshot, 10.0)) == {"j-2": 40.0}


def test_a_promise_never_counts_on_what_its_job_avoids() -> None:
    """The first line's job is promised GPU 0; the second line's avoids it and must not count on its return."""
    snapshot = picture(
        node("n1", gpus=2),
        running(1, {"n1": (0,)}, time_limit_seconds=100.0),
        running(2, {"n1": (1,)}, time_limit_seconds=500.0),
        waiting(3, gpus=1, time_limit_seconds=10.0),
        waiting(4, gpus=1, models=("A10",), avoid_gpus=("n1/0",)),
    )
    assert promises(schedule(snapshot, 10.0)) == {"j-3": 100.0, "j-4": 500.0}
