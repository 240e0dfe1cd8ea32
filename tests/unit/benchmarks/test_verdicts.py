"""Texts of a benchmark's row, compared with its target."""

from __future__ import annotations

import pytest
from benchmarks.compare import comparison
from benchmarks.page import PARTS, Outcome, Part, measure, remarks
from benchmarks.tables import Row
from benchmarks.verdicts import Verdict, verdict_of

HALF_AN_HOUR = 1800


@pytest.mark.parametrize(
    ("target", "value", "verdict"),
    [
        ("≤ 2.5 ms", "2.41 ms", Verdict.REACHED),
        ("≤ 2.5 ms", "6.97 ms", Verdict.MISSED),
        ("< 500 ms", "0.3 s", Verdict.REACHED),
        ("≥ 10,000 jobs/s", "9,999 jobs/s", Verdict.MISSED),
        ("≥ 10,000/s", "13,000 placements/s", Verdict.REACHED),
        ("p50 ≤ 12 ms, p99 ≤ 40 ms", "p50 11.0 ms, p99 41.0 ms", Verdict.MISSED),
        ("p50 ≤ 12 ms, p99 ≤ 40 ms", "p50 11.0 ms, p99 39.0 ms", Verdict.REACHED),
        ("≥ 90%", "93% of 400", Verdict.REACHED),
        ("≤ 2.5 ms", "3 files", Verdict.NONE),
        ("", "3 files", Verdict.NONE),
        ("as before", "3 files", Verdict.NONE),
    ],
)
def test_a_value_is_compared_with_its_target(target: str, value: str, verdict: Verdict) -> None:
    assert verdict_of(Row(what="", value=value, target=target)) is verdict


def test_a_target_in_times_is_compared_with_the_ratio() -> None:
    row = Row(what="", value="120 MB/s", target="≥ 0.8 × cp -r", ratio="0.75 × cp -r")
    assert verdict_of(row) is Verdict.MISSED


def test_the_page_is_whole_within_half_an_hour() -> None:
    assert sum(part.limit_seconds for part in PARTS) <= HALF_AN_HOUR


def test_a_benchmark_that_does_not_finish_in_time_is_interrupted_and_named() -> None:
    outcome = measure(Part(name="jobs", limit_seconds=0.05))
    assert outcome.problem == "not finished within 0 s"
    assert remarks([outcome]) == ["0 targets: 0 reached, 0 missed, 0 not comparable", "jobs: not finished within 0 s"]


def test_a_benchmark_that_fails_is_named_with_its_exit_code() -> None:
    outcome = measure(Part(name="nothing_of_this_name", limit_seconds=60))
    assert outcome.problem == "failed with exit code 1"


def test_targets_of_all_outcomes_are_counted() -> None:
    rows = (Row(what="a", value="1 ms", target="≤ 2 ms"), Row(what="b", value="3 ms", target="≤ 2 ms"))
    outcome = Outcome(part=PARTS[0], rows=rows, seconds=1.0)
    assert remarks([outcome]) == ["2 targets: 1 reached, 1 missed, 0 not comparable"]


def test_two_commits_are_compared_by_medians_and_by_the_direction_of_the_target() -> None:
    def run(cost: str, rate: str) -> list[Row]:
        return [Row(what="cost", value=cost, target="≤ 2 ms"), Row(what="rate", value=rate, target="≥ 300 jobs/s")]

    old = [run("8.0 ms", "80 jobs/s"), run("6.0 ms", "100 jobs/s"), run("7.0 ms", "90 jobs/s")]
    new = [run("3.5 ms", "45 jobs/s"), run("9.0 ms", "44 jobs/s"), run("2.0 ms", "46 jobs/s")]
    assert list(comparison(old, new)) == [
        ("cost", "7 ms", "3.5 ms", "0.50", "better"),
        ("rate", "90 jobs/s", "45 jobs/s", "0.50", "worse"),
    ]
