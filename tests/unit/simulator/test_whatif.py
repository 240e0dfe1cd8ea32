"""What-if questions: stories with known answers, and properties of any two runs side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Job, JobKind, Queue, Request
from corral.core.scheduling.forecast.run_time_model import Features
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutRules
from corral.core.snapshot.installation import Limits, PreemptionRules
from corral.core.whatif.past_jobs import PastJob
from corral.core.whatif.scenario import BadScenario, scenario_of
from corral.server.whatif.simulation_orders import read_order, write_order
from corral.simulator.whatif import Order, Progress, compare
from tests.unit.core.builders import node
from tests.unit.searching import DEAR

CLUSTER: tuple[Change, ...] = (
    PutRules(limits=Limits(), score_time_constant=3600.0, preemption=PreemptionRules(enabled=True, min_run_seconds=0)),
    PutQueue(queue=Queue(name="default", policy="fcfs")),
    PutQueue(queue=Queue(name="urgent", policy="fcfs")),
    PutNode(node=node("n1", gpus=2)),
)


def past(number: int, at: float, run: float, gpus: int = 1, **given: Any) -> PastJob:
    job = Job(
        id=f"j-{number}",
        name=given.pop("name", f"job-{number}"),
        user=given.pop("user", "ann"),
        queue=given.pop("queue", "default"),
        request=Request(gpus=gpus, models=given.pop("models", ())),
        created_at=at,
    )
    return PastJob(job=job, run_seconds=run, **given)


def answer(
    jobs: Sequence[PastJob], candidate: dict[str, Any], base: dict[str, Any] | None = None, **order: Any
) -> dict[str, Any]:
    return compare(
        Order(
            since=order.pop("since", 0.0),
            until=1000.0,
            cluster=CLUSTER,
            base=scenario_of(base or {}),
            candidate=scenario_of(candidate),
            jobs=tuple(jobs),
            left_out={},
            **order,
        )
    )


def difference(result: dict[str, Any], field: str) -> dict[str, Any]:
    return next(item for item in result["differences"] if item["field"] == field)


def test_a_second_node_ends_the_waiting() -> None:
    result = answer([past(1, 0.0, 100.0, 2), past(2, 10.0, 100.0, 2)], {"fleet": {"scale": 2}})
    assert result["base"]["wait_seconds"]["mean"] == 45.0
    assert result["candidate"]["wait_seconds"]["mean"] == 0.0
    assert difference(result, "wait_seconds.mean")["better"] is True
    assert difference(result, "wait_seconds.mean")["percent"] == -100.0
    assert (result["base"]["gpus"], result["candidate"]["gpus"]) == (2, 4)
    # 400 GPU-seconds of 2000 and of 4000 that were offered in the window
    assert (result["base"]["utilization"], result["candidate"]["utilization"]) == (0.2, 0.1)
    assert difference(result, "utilization")["better"] is None
    assert result["base"]["makespan_seconds"] == 1000.0


def test_the_shorter_first_is_better_for_most() -> None:
    learned = tuple((Features(user="ann", name=name, kind=JobKind.TRAINING, gpu_milli=2000), seconds)
                    for name, seconds in (("long", 500.0), ("short", 10.0)) for _ in range(3))  # fmt: skip
    jobs = [
        past(1, 0.0, 100.0, 2, name="first"),
        past(2, 1.0, 500.0, 2, name="long", user="ann"),
        past(3, 2.0, 10.0, 2, name="short", user="ann"),
    ]
    result = answer(jobs, {"queues": {"default": {"policy": "shortest"}}}, learned=learned)
    # what was known of run times when the window began decides from its first moment on
    assert result["base"]["wait_seconds"]["max"] == pytest.approx(598.0, rel=0.01)
    assert result["candidate"]["wait_seconds"]["max"] == pytest.approx(109.0, rel=0.01)
    assert result["base"]["jobs"] == result["candidate"]["jobs"] == 3


def test_jobs_from_before_the_window_fill_the_cluster_unmeasured() -> None:
    jobs = [past(1, 50.0, 100.0, 2, is_measured=False), past(2, 110.0, 20.0, 2, waited_seconds=45.0)]
    result = answer(jobs, {"fleet": {"scale": 2}}, since=100.0)
    assert (result["jobs"], result["carried_jobs"]) == (1, 1)
    assert result["base"]["wait_seconds"]["mean"] == 40.0
    assert result["candidate"]["wait_seconds"]["mean"] == 0.0
    # of the one before, only what it held within the window counts
    assert result["base"]["gpu_hours"] == pytest.approx((2 * 50 + 2 * 20) / 3600)
    fidelity = result["fidelity"]
    assert fidelity["real_wait_seconds"]["mean"] == 45.0
    assert fidelity["replayed_wait_seconds"]["mean"] == 40.0
    assert "waited for 40s on average; really they waited for 45s" in fidelity["words"]


def test_a_changed_base_is_not_compared_with_reality() -> None:
    result = answer([past(1, 0.0, 5.0, waited_seconds=1.0)], {}, base={"fleet": {"scale": 2}})
    assert result["fidelity"] is None


def test_groups_users_and_queues_have_their_shares() -> None:
    jobs = [
        past(1, 0.0, 100.0, 2, user="ann", group="a"),
        past(2, 1.0, 10.0, 1, user="bob", group="b"),
        past(3, 1.0, 10.0, 1, user="bob", group="b", queue="urgent"),
    ]
    result = answer(jobs, {"fleet": {"scale": 3}})
    assert [(share["name"], share["jobs"]) for share in result["groups"]] == [("a", 1), ("b", 2)]
    bob = next(share for share in result["users"] if share["name"] == "bob")
    assert bob["base"]["wait_mean_seconds"] == pytest.approx(99.0, rel=0.01)
    assert bob["candidate"]["wait_mean_seconds"] == 0.0
    assert {share["name"] for share in result["queues"]} == {"default", "urgent"}


def test_a_guarantee_costs_others_their_gpus() -> None:
    jobs = [past(1, 0.0, 400.0, 2), past(2, 100.0, 50.0, 2, queue="urgent", user="zoe")]
    result = answer(jobs, {"queues": {"urgent": {"guaranteed_gpus": 2}}})
    assert result["base"]["preemptions"] == 0
    assert result["candidate"]["preemptions"] == 1
    assert result["candidate"]["lost_gpu_hours"] > 0
    queues = {share["name"]: share for share in result["queues"]}
    assert queues["default"]["candidate"]["preemptions"] == 1
    assert queues["urgent"]["candidate"]["wait_mean_seconds"] < queues["urgent"]["base"]["wait_mean_seconds"]


def test_jobs_that_can_never_run_there_are_counted_and_not_awaited() -> None:
    jobs = [past(1, 0.0, 10.0, 2), past(2, 1.0, 10.0, 1, models=("H100",)), past(3, 2.0, 10.0, 4)]
    result = answer(jobs, {"any_model": True})
    assert result["base"]["left_out_jobs"] == 2
    assert result["candidate"]["left_out_jobs"] == 1
    assert difference(result, "left_out_jobs")["better"] is True


def test_progress_goes_from_nothing_to_all() -> None:
    seen: list[Progress] = []
    order = Order(
        since=0.0, until=1000.0, cluster=CLUSTER, base=scenario_of({}), candidate=scenario_of({}),
        jobs=tuple(past(number, float(number), 5.0) for number in range(1, 200)), left_out={},
    )  # fmt: skip
    compare(order, seen.append)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert (seen[0].phase, seen[-1].phase) == ("base", "candidate")


def test_a_scenario_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadScenario, match="no queue 'x'"):
        answer([past(1, 0.0, 1.0)], {"queues": {"x": {"policy": "fcfs"}}})


def workloads() -> st.SearchStrategy[list[PastJob]]:
    one = st.tuples(st.floats(0, 900), st.floats(0, 300), st.integers(1, 2), st.sampled_from("abc"))
    return st.lists(one, min_size=1, max_size=25).map(
        lambda rows: [
            past(number, at, run, gpus, user=user, group=user.upper())
            for number, (at, run, gpus, user) in enumerate(sorted(rows), start=1)
        ]
    )


@DEAR
@given(workloads(), st.sampled_from(["fcfs", "fair-share", "shortest", "priority"]), st.sampled_from([0.5, 1.0, 3.0]))
def test_invariants_of_an_answer(jobs: list[PastJob], policy: str, scale: float) -> None:
    cluster_scale = max(scale, 1.0)
    result = answer(jobs, {"queues": {"*": {"policy": policy}}, "fleet": {"scale": cluster_scale}})
    json.dumps(result, allow_nan=False)
    for name in ("base", "candidate"):
        run = result[name]
        assert run["jobs"] + run["unfinished_jobs"] + run["left_out_jobs"] == len(jobs)
        assert 0 <= run["utilization"] <= 1 + 1e-9
        assert 0 < run["jain"] <= 1 + 1e-9
        series = run["course"]
        assert len(series["times"]) == len(series["used_gpus"]) == len(series["waiting_jobs"]) <= 401
        assert all(-1e-3 <= used <= run["gpus"] + 1e-3 for used in series["used_gpus"])
        fractions = [fraction for _, fraction in run["waiting_cdf"]]
        assert fractions == sorted(fractions)
        held = sum(past_job.run_seconds * past_job.job.request.gpus for past_job in jobs)
        assert run["gpu_hours"] * 3600 <= held + 1e-6
        assert sum(share[name]["jobs"] for share in result["users"]) == run["jobs"]
        assert sum(share[name]["gpu_hours"] for share in result["groups"]) == pytest.approx(run["gpu_hours"])


@DEAR
@given(workloads())
def test_the_same_twice_is_the_same(jobs: list[PastJob]) -> None:
    result = answer(jobs, {})
    assert result["base"] == result["candidate"]
    assert all(item["better"] is None and not item["change"] for item in result["differences"])


def test_an_order_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    jobs = [past(1, 0.5, 10.0, 2, group="g", waited_seconds=3.5, busy=0.5), past(2, 1.0, 1.0, is_measured=False)]
    learned = [(Features(user="ann", name="x", kind=JobKind.TRAINING, gpu_milli=1000), 5.5)]
    candidate = {"queues": {"*": {"policy": "shortest"}}, "fleet": {"scale": 1.5}}
    written = write_order(
        tmp_path, since=0.0, until=9.5, cluster=CLUSTER, base={}, candidate=candidate, left_out={"gone": 2},
        jobs=jobs, learned=learned,
    )  # fmt: skip
    order = read_order(tmp_path)
    assert written == 2
    assert order == Order(
        since=0.0, until=9.5, cluster=CLUSTER, base=scenario_of({}), candidate=scenario_of(candidate),
        jobs=tuple(jobs), left_out={"gone": 2}, learned=tuple(learned),
    )  # fmt: skip
