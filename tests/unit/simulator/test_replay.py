"""Whole runs: nothing starts early, nothing is given out twice, GPU time adds up, and the figures are what a plain
count says."""

from __future__ import annotations

import math
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import DEFAULT_POOL, WHOLE, Blocking
from corral.core.scheduling.ordering import POLICIES
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.simulator.fleets import parse_fleet
from corral.simulator.outcome import SERIES_STEPS, Distribution, Held, Outcome, Ran, TimeSeries, jain_index
from corral.simulator.replay import Rules, cluster_of, replay
from corral.simulator.simulation import Simulation
from corral.simulator.summary import flat, summary
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload, in_order
from tests.unit.core.recount import check_never_oversubscribed
from tests.unit.searching import between, every, seconds

FLEET = "2x4xA,1x2xB:8:16GiB"


def test_ended_jobs_are_part_of_the_mix_as_on_a_server() -> None:
    jobs = [TraceJob(name=f"job-{at}", submitted_at=at, run_seconds=5.0, gpus=1) for at in (0.0, 10.0, 20.0, 30.0)]
    work = Workload(parse_fleet(FLEET), jobs, Counter())
    simulation = Simulation(snapshot=ClusterSnapshot(cluster_of(work.nodes, Rules())), arrivals=work.arrivals())
    ended = [simulation.snapshot.mixes[DEFAULT_POOL].ended for step in simulation if step.arrived]
    assert ended == [0, 1, 2, 2], "the fourth job is too few for a new mix"


TRACED = every(
    user=("ann", "bob", "eve"),
    group=("", "vision"),
    submitted_at=seconds(0, 50),
    run_seconds=(0.0, 1.0, 7.0, 30.0, 100.0),
    gpus=(0, 1, 2, 3, 4, 5, 8, 12),
    gpu_milli=(0, 0, 0, 250, 500),
    nodes=(None, None, None, 1, 2),
    cpu_milli=(0, 0, 4000),
    models=((), (), ("A",), ("B",)),
    time_limit_seconds=(None, 5.0, 30.0, 200.0),
    priority=range(10),
)


@st.composite
def trace_jobs(draw: st.DrawFn) -> list[TraceJob]:
    jobs = []
    for number in range(draw(between(1, 12))):
        drawn = draw(TRACED)
        if drawn["gpu_milli"]:
            drawn["gpus"] = 0
        jobs.append(TraceJob(name=f"job-{number}", **drawn))
    return in_order(jobs)


rules = st.builds(
    Rules,
    policy=st.sampled_from(sorted(POLICIES)),
    blocking=st.sampled_from(Blocking),
    placement=st.sampled_from(["fragmentation", "pack", "spread"]),
)


@given(trace_jobs(), rules, st.sampled_from(TimeLimits))
def test_a_run_keeps_its_promises(jobs: list[TraceJob], chosen: Rules, limits: TimeLimits) -> None:
    left_out: Counter[str] = Counter()
    workload = Workload(parse_fleet(FLEET), jobs, left_out, time_limits=limits)
    assert len(workload.jobs) + left_out.total() == len(jobs)
    ran, held = list[Ran](), list[Held]()
    outcome = replay(
        workload, chosen, on_detail=lambda event: ran.append(event) if isinstance(event, Ran) else held.append(event)
    )
    assert outcome.ended_jobs == len(ran) == len(workload.jobs)
    assert outcome.unfinished_jobs == 0
    by_id = {f"j-{number}": (job, request) for number, (job, request) in enumerate(workload.jobs, start=1)}
    for one in ran:
        job, request = by_id[one.job.id]
        assert one.started_at >= one.queued_at == job.submitted_at
        limit = {"given": job.time_limit_seconds, "known": job.run_seconds, "none": None}[limits]
        seconds = job.run_seconds if limit is None else min(job.run_seconds, limit)
        assert one.ended_at - one.started_at == pytest.approx(seconds)
        assert one.is_cut == (seconds < job.run_seconds)
        assert request.total_gpu_milli >= max(job.gpus * WHOLE, job.gpu_milli)
    intervals = [(one.job.id, one.since, one.until, one.allocation) for one in held]
    check_never_oversubscribed(workload.nodes, intervals)
    _check_figures(outcome, ran, held)
    figures = summary(chosen, outcome)
    assert figures["jobs"] == len(ran)
    assert all(isinstance(value, int | float | str) for value in flat(figures).values())


def _check_figures(outcome: Outcome, ran: list[Ran], held: list[Held]) -> None:
    worked = math.fsum(one.job.request.total_gpu_milli / WHOLE * (one.ended_at - one.started_at) for one in ran)
    occupied = math.fsum(one.allocation.total_gpu_milli / WHOLE * (one.until - one.since) for one in held)
    assert outcome.gpu_seconds == pytest.approx(worked) == pytest.approx(occupied)
    assert sum(outcome.gpu_seconds_by_group().values()) == pytest.approx(worked)
    assert 0 <= outcome.utilization <= 1 + 1e-9
    series, step = outcome.used_gpus(), outcome._used.step
    widths = [min(step, outcome.makespan_seconds - at) for at, _ in series]
    assert math.fsum(mean * width for (_, mean), width in zip(series, widths, strict=True)) == pytest.approx(worked)
    assert all(-1e-6 <= mean <= outcome.gpus + 1e-6 for _, mean in series)
    if ran:
        assert outcome.waits.mean == pytest.approx(statistics.fmean(one.wait_seconds for one in ran))
        assert outcome.completions.most == pytest.approx(max(one.completion_seconds for one in ran))
        assert outcome.makespan_seconds == pytest.approx(
            max(one.ended_at for one in ran) - min(one.queued_at for one in ran)
        )
    cut = [one for one in ran if one.is_cut]
    assert outcome.cut_jobs == len(cut)


@given(trace_jobs(), rules, st.integers(0, 80))
def test_a_run_that_is_cut_counts_up_to_then(jobs: list[TraceJob], chosen: Rules, until: int) -> None:
    workload = Workload(parse_fleet(FLEET), jobs, Counter())
    if not workload.jobs:
        return
    held = list[Held]()
    outcome = replay(
        workload,
        chosen,
        until=workload.since + until,
        on_detail=lambda event: held.append(event) if isinstance(event, Held) else None,
    )
    assert all(one.until <= workload.since + until for one in held)
    assert outcome.makespan_seconds <= until
    assert outcome.utilization <= 1 + 1e-9


def test_a_run_can_be_repeated() -> None:
    jobs = [TraceJob(name=f"{n}", submitted_at=float(n % 7), run_seconds=50.0, gpus=1 + n % 5) for n in range(40)]
    workload = Workload(parse_fleet("2x4"), in_order(jobs), Counter())
    one, two = (summary(Rules(), replay(workload, Rules())) for _ in range(2))
    assert one == two


def test_larger_jobs_get_whole_nodes_and_impossible_ones_are_left_out() -> None:
    jobs = [
        TraceJob(name="fits", submitted_at=0, run_seconds=1, gpus=4),
        TraceJob(name="split", submitted_at=0, run_seconds=1, gpus=6),
        TraceJob(name="too large", submitted_at=0, run_seconds=1, gpus=9),
        TraceJob(name="wrong model", submitted_at=0, run_seconds=1, gpus=1, models=("H100",)),
        TraceJob(name="nothing", submitted_at=0, run_seconds=1, cpu_milli=4000),
    ]
    left_out: Counter[str] = Counter()
    workload = Workload(parse_fleet("2x4xV100"), jobs, left_out)
    assert [(request.nodes, request.gpus) for _, request in workload.jobs] == [(1, 4), (2, 4)]
    assert left_out == {"it could never run on this fleet": 2, "it asks for nothing that the fleet counts": 1}
    assert len(Workload(parse_fleet("2x4xV100"), jobs, Counter(), any_model=True).jobs) == 3


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=200), st.sampled_from([1, 50, 90, 99, 100]))
def test_percentiles_are_right_to_half_a_percent(values: list[float], percent: int) -> None:
    spread = Distribution()
    for value in values:
        spread.add(value)
    exact = sorted(values)[math.ceil(len(values) * percent / 100) - 1]
    assert spread.percentile(percent) == pytest.approx(exact, rel=0.005, abs=0.001)
    assert spread.mean == pytest.approx(statistics.fmean(values))
    parts = [part for _, part in spread.cumulative()]
    assert parts == sorted(parts)
    assert parts[-1] == 1.0


amounts = st.lists(st.tuples(st.floats(0, 5e4), st.floats(0, 5e4), st.integers(1, 8)), min_size=1, max_size=30)


@given(amounts)
def test_a_time_series_keeps_its_sum_however_long_it_gets(parts: list[tuple[float, float, int]]) -> None:
    series = TimeSeries(100.0)
    for since, length, amount in parts:
        series.add(100.0 + since, 100.0 + since + length, float(amount))
    end = 100.0 + max(since + length for since, length, _ in parts)
    means = series.means(end)
    assert len(means) <= SERIES_STEPS
    total = math.fsum(mean * (min(end, at + series.step) - at) for at, mean in means)
    assert total == pytest.approx(sum(length * amount for _, length, amount in parts), rel=1e-6, abs=1e-3)


def test_jain() -> None:
    assert jain_index([3, 3, 3]) == pytest.approx(1)
    assert jain_index([9, 0, 0]) == pytest.approx(1 / 3)
    assert jain_index([]) == 1
