"""The policy that would have served best: cases with known answers, and costs that rule a policy out."""

from __future__ import annotations

import pytest

from corral.core.model import Job, JobKind, Request
from corral.core.scheduling.forecast.run_time_model import Features
from corral.core.whatif.past_jobs import PastJob
from corral.simulator.measured import WindowOutcome, size_of
from corral.simulator.policy_choice import Tried, choose, policy_rows
from tests.unit.simulator.test_whatif import answer, past

HOUR = 3600.0


def outcome(preemptions: int = 0, **completions: list[float]) -> WindowOutcome:
    """Completion times by size: `small` jobs of one GPU and `gangs`."""
    found = WindowOutcome({}, 0.0, 1000.0)
    for name, size in (("small", "1 GPU"), ("gangs", "several nodes")):
        for seconds in completions.get(name, []):
            found.measured_jobs += 1
            for share in (found.total, found.sizes[size], found.groups["a"]):
                share.waits.add(seconds)
                share.completions.add(seconds)
    found.total.preemptions = preemptions
    return found


def tried(name: str, of: WindowOutcome, *, preempts: bool = False, is_present: bool = False) -> Tried:
    return Tried(policy=name, preempts=preempts, is_present=is_present, outcome=of)


def test_the_fastest_policy_is_recommended_if_it_costs_no_jobs_much() -> None:
    base = outcome(small=[2 * HOUR] * 9, gangs=[10 * HOUR])
    choice = choose(
        base,
        [
            tried("fcfs", base, is_present=True),
            tried("shortest", outcome(small=[HOUR] * 9, gangs=[10.5 * HOUR])),
            tried("weighted", outcome(small=[1.5 * HOUR] * 9, gangs=[10 * HOUR])),
        ],
    )
    assert (choice.recommended, choice.fastest, choice.shown) == (1, 1, 1)
    assert choice.text == (
        "Recommended: shortest. Mean completion 1h57m instead of 2h48m (-30%). "
        "Price: jobs of size several nodes 10h30m instead of 10h (+5%)."
    )


def test_a_faster_policy_that_lets_gangs_wait_is_shown_with_its_price_and_another_is_recommended() -> None:
    base = outcome(small=[2 * HOUR] * 90, gangs=[10 * HOUR])
    choice = choose(
        base,
        [
            tried("shortest", outcome(preemptions=7, small=[HOUR] * 90, gangs=[15 * HOUR]), preempts=True),
            tried("weighted", outcome(small=[1.5 * HOUR] * 90, gangs=[10 * HOUR])),
        ],
    )
    assert (choice.recommended, choice.fastest, choice.shown) == (1, 0, 1)
    assert choice.text.startswith(
        "Recommended: weighted. Mean completion 1h35m36s instead of 2h5m16s (-24%). Price: none. The fastest is"
    )
    assert choice.text.endswith(
        "Price: jobs of size several nodes 15h instead of 10h (+50%); 7 preemptions instead of 0, 0 GPU-hours lost."
    )


def test_the_present_rules_are_kept_if_every_faster_policy_is_too_dear_or_none_is_faster() -> None:
    base = outcome(small=[2 * HOUR] * 90, gangs=[10 * HOUR])
    dear = tried("shortest", outcome(small=[HOUR] * 90, gangs=[30 * HOUR]))
    choice = choose(base, [tried("fcfs", base, is_present=True), dear])
    assert (choice.recommended, choice.fastest, choice.shown) == (None, 1, 1)
    assert choice.text.startswith("Keep the present rules: every faster policy makes some jobs slower by over 10%.")
    assert "several nodes 1d6h instead of 10h (+200%)" in choice.text
    slower = tried("weighted", outcome(small=[2 * HOUR] * 90, gangs=[11 * HOUR]))
    kept = choose(base, [tried("fcfs", base, is_present=True), slower])
    assert kept.recommended is None
    assert "no policy would have been faster" in kept.text


def test_a_policy_under_which_jobs_never_end_is_not_recommended() -> None:
    base = outcome(small=[2 * HOUR] * 10)
    choice = choose(base, [tried("shortest", outcome(small=[HOUR] * 9))])
    assert choice.recommended is None
    assert "1 job would not have ended" in choice.text


def test_rows_have_the_change_of_each_size() -> None:
    base = outcome(small=[100.0], gangs=[1000.0])
    (row,) = policy_rows(base, [tried("fcfs", outcome(small=[50.0], gangs=[2000.0]))])
    assert row["percent"] == pytest.approx(100 * (2050 / 1100 - 1))
    assert {part["name"]: part["percent"] for part in row["sizes"]} == {"1 GPU": -50.0, "several nodes": 100.0}


@pytest.mark.parametrize(
    ("request_", "size"),
    [
        (Request(gpus=0), "no GPU"),
        (Request(gpus=1), "1 GPU"),
        (Request(gpus=0, gpu_milli=500), "1 GPU"),
        (Request(gpus=8), "one node"),
        (Request(nodes=2, gpus=8), "several nodes"),
    ],
)
def test_sizes(request_: Request, size: str) -> None:
    assert size_of(request_) == size


def backlog() -> tuple[list[PastJob], tuple[tuple[Features, float], ...]]:
    """A long job is in front of short ones, and the run times of both are known."""
    learned = tuple(
        (Features(user="ann", name=name, kind=JobKind.TRAINING, gpu_milli=2000), seconds)
        for name, seconds in (("long", 500.0), ("short", 10.0))
        for _ in range(3)
    )
    jobs = [past(1, 0.0, 100.0, 2, name="first"), past(2, 1.0, 500.0, 2, name="long")]
    return [*jobs, *(past(number, 2.0, 10.0, 2, name="short") for number in range(3, 8))], learned


def test_all_policies_are_replayed_and_the_one_that_serves_best_is_compared() -> None:
    jobs, learned = backlog()
    result = answer(jobs, {"all_policies": True}, learned=learned)
    policies = result["policies"]
    assert {(row["policy"], row["preempts"]) for row in policies} == {
        ("fair-share", False), ("fcfs", False), ("priority", False), ("priority", True), ("shortest", False),
        ("shortest", True), ("weighted", False), ("weighted", True),
    }  # fmt: skip
    assert [row["policy"] for row in policies if row["is_present"]] == ["fcfs"]
    means = {(row["policy"], row["preempts"]): row["completion_mean_seconds"] for row in policies}
    # 100 + 500 + five of 10 one after the other, against the short ones before the long one
    assert means["fcfs", False] == pytest.approx((100 + 599 + 608 + 618 + 628 + 638 + 648) / 7, rel=0.01)
    assert means["shortest", False] == pytest.approx((100 + 108 + 118 + 128 + 138 + 148 + 649) / 7, rel=0.01)
    recommendation = result["recommendation"]
    shown = policies[recommendation["shown"]]
    assert recommendation["recommended"] == recommendation["shown"]
    assert result["candidate"]["completion_seconds"]["mean"] == shown["completion_mean_seconds"]
    assert result["base"]["completion_seconds"]["mean"] == pytest.approx(means["fcfs", False])
    assert recommendation["text"].startswith("Recommended: ")
    assert [share["name"] for share in result["sizes"]] == ["one node"]


def test_other_changes_apply_to_every_policy() -> None:
    jobs, learned = backlog()
    result = answer(jobs, {"all_policies": True, "fleet": {"scale": 7}}, learned=learned)
    assert all(row["wait_mean_seconds"] == 0.0 for row in result["policies"])
    assert not any(row["is_present"] for row in result["policies"])


def test_a_job_is_in_one_size_only() -> None:
    jobs = [past(1, 0.0, 5.0), PastJob(job=Job(id="j-2", name="x", user="a", request=Request(gpus=2)), run_seconds=1.0)]
    result = answer(sorted(jobs, key=lambda one: one.job.created_at), {})
    assert {share["name"]: share["jobs"] for share in result["sizes"]} == {"1 GPU": 1, "one node": 1}
