"""What-if simulations: past jobs on the present cluster and on the cluster of a scenario.

An order names both; the result has the figures of the two runs side by side as plain data. The base run is also
compared with the actual history, so that users see how accurate the replay is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.core.counts import counted
from corral.core.model import Allocation, Job, Node, Request
from corral.core.quantities import format_duration
from corral.core.scheduling.forecast.run_time_model import Features, RunTimes
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.snapshot.changes import Change
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.storage.volumes import VolumeMount
from corral.core.whatif.past_jobs import PastJob
from corral.core.whatif.scenario import Scenario, cluster_of, policies_of
from corral.simulator.measured import Share, WindowOutcome
from corral.simulator.outcome import HOUR, Distribution
from corral.simulator.policy_choice import Tried, choose, policy_rows
from corral.simulator.simulation import Arrival, Simulation
from corral.simulator.summary import Spread, spread

#: Points of a curve in the result.
SERIES_POINTS = 400
CDF_POINTS = 200
#: How many users the result lists.
LISTED_USERS = 200
#: Steps between two reports of the progress.
STEPS = 50
#: How long a preempted job holds its next GPUs before its work continues.
RESTART_SECONDS = 60.0
#: Figures with a smaller relative difference count as equal.
SAME = 0.002


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    since: float
    until: float
    cluster: tuple[Change, ...]
    base: Scenario
    candidate: Scenario
    jobs: tuple[PastJob, ...]
    left_out: Mapping[str, int]
    #: runs that had completed before the window: the run time model learns from them
    learned: tuple[tuple[Features, float], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    phase: str
    ended_jobs: int
    jobs: int
    #: the runs that are complete, and all runs
    complete: int = 0
    runs: int = 2

    @property
    def fraction(self) -> float:
        """The progress of all runs together."""
        done = self.ended_jobs / self.jobs if self.jobs else 1.0
        return min(1.0, (self.complete + done) / self.runs)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    outcome: WindowOutcome
    nodes: int
    gpus: int
    #: jobs that could never run on this cluster
    left_out: int
    unfinished: int
    resizes: int
    #: the waits in this run of jobs with a known actual wait
    replayed_waits: Distribution


def compare(order: Order, on_progress: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:
    """Both runs and their differences. If the candidate is each policy in turn, the candidate of the result is the
    policy that `policy_choice` chooses, and the result has a list of all policies. Raises BadScenario."""
    if order.candidate.all_policies:
        return _compare_policies(order, on_progress)
    base = _run(order, order.base, Progress(phase="base", ended_jobs=0, jobs=0), on_progress)
    progress = Progress(phase="candidate", ended_jobs=0, jobs=0, complete=1)
    return _compared(order, base, _run(order, order.candidate, progress, on_progress))


def _compare_policies(order: Order, on_progress: Callable[[Progress], None]) -> dict[str, Any]:
    variants = policies_of(order.candidate)
    runs = len(variants) + 1
    base = _run(order, order.base, Progress(phase="base", ended_jobs=0, jobs=0, runs=runs), on_progress)
    present = cluster_of(order.base, order.cluster)
    replays, tried = [], []
    for number, variant in enumerate(variants, start=1):
        is_present = cluster_of(variant.scenario, order.cluster) == present
        progress = Progress(phase="candidate", ended_jobs=0, jobs=0, complete=number, runs=runs)
        run = base if is_present else _run(order, variant.scenario, progress, on_progress)
        replays.append(run)
        tried.append(
            Tried(policy=variant.policy, preempts=variant.preempts, is_present=is_present, outcome=run.outcome)
        )
    choice = choose(base.outcome, tried)
    return {
        **_compared(order, base, replays[choice.shown]),
        "policies": policy_rows(base.outcome, tried),
        "recommendation": {
            "recommended": choice.recommended,
            "fastest": choice.fastest,
            "shown": choice.shown,
            "text": choice.text,
        },
    }


def _compared(order: Order, base: _Run, candidate: _Run) -> dict[str, Any]:
    figures = {"base": _figures(base), "candidate": _figures(candidate)}
    step = max(run.outcome.makespan_seconds for run in (base, candidate)) / SERIES_POINTS
    for name, run in (("base", base), ("candidate", candidate)):
        figures[name]["course"] = _time_series(run.outcome, step)
    return {
        "jobs": sum(past.is_measured for past in order.jobs),
        "carried_jobs": sum(not past.is_measured for past in order.jobs),
        "estimated_jobs": sum(past.is_estimated for past in order.jobs),
        "left_out": [{"reason": reason, "jobs": jobs} for reason, jobs in order.left_out.items() if jobs],
        "fidelity": _fidelity(order, base) if order.base.is_empty else None,
        **figures,
        "differences": _differences(figures["base"], figures["candidate"]),
        "groups": _shares(base.outcome.groups, candidate.outcome.groups),
        "users": _shares(base.outcome.users, candidate.outcome.users)[:LISTED_USERS],
        "queues": _shares(base.outcome.queues, candidate.outcome.queues),
        "sizes": _shares(base.outcome.sizes, candidate.outcome.sizes),
    }


def _run(order: Order, scenario: Scenario, progress: Progress, on_progress: Callable[[Progress], None]) -> _Run:
    snapshot = ClusterSnapshot(cluster_of(scenario, order.cluster))
    jobs = {past.job.id: past for past in order.jobs}
    outcome = WindowOutcome(jobs, order.since, order.until)
    chosen, left_out = _chosen(order.jobs, scenario, snapshot)
    waits = Distribution()
    watcher = _Real(outcome, jobs, waits)
    run_times = RunTimes()
    for features, seconds in order.learned:
        run_times.observe(features, seconds)
    simulation = Simulation(
        snapshot=snapshot,
        arrivals=chosen,
        in_order=True,
        watcher=watcher,
        run_times=run_times,
        preemption_cost=RESTART_SECONDS,
    )
    progress = replace(progress, jobs=len(chosen))
    on_progress(progress)
    for number, _ in enumerate(simulation):
        if number % STEPS == 0:
            on_progress(replace(progress, ended_jobs=outcome.ended_jobs))
    on_progress(replace(progress, ended_jobs=len(chosen)))
    nodes = list(snapshot.nodes.values())
    return _Run(
        outcome=outcome,
        nodes=len(nodes),
        gpus=_gpus(nodes),
        left_out=left_out,
        unfinished=sum(jobs[job_id].is_measured for job_id in snapshot.jobs),
        resizes=len(simulation.resizes),
        replayed_waits=waits,
    )


class _Real:
    """Passes all events on, and also keeps the waits of jobs with a known actual wait."""

    def __init__(self, outcome: WindowOutcome, jobs: Mapping[str, PastJob], waits: Distribution) -> None:
        self._outcome = outcome
        self._jobs = jobs
        self._waits = waits
        self._started: set[str] = set()

    def held(self, job: Job, since: float, until: float, allocation: Allocation) -> None:
        past = self._jobs[job.id]
        if past.is_measured and past.waited_seconds is not None and job.id not in self._started:
            self._started.add(job.id)
            self._waits.add(max(0.0, since - past.job.created_at))
        self._outcome.held(job, since, until, allocation)

    def ended(self, job: Job, arrival: Arrival) -> None:
        self._outcome.ended(job, arrival)

    def preempted(self, job: Job, lost_gpu_seconds: float) -> None:
        self._outcome.preempted(job, lost_gpu_seconds)

    def moved(self, job: Job, lost_gpu_seconds: float) -> None:
        self._outcome.moved(job, lost_gpu_seconds)

    def restarted(self, job: Job, lost_gpu_seconds: float) -> None:
        self._outcome.restarted(job, lost_gpu_seconds)


def _gpus(nodes: Sequence[Node]) -> int:
    return sum(len(node.gpus) for node in nodes)


def _is_there(snapshot: ClusterSnapshot, mount: VolumeMount) -> bool:
    """Whether the volume is ready. A simulation creates no volumes: a job that waits for one would wait for ever."""
    volume = snapshot.volumes.get(mount.volume)
    return volume is not None and not volume.not_ready


def _chosen(jobs: Sequence[PastJob], scenario: Scenario, snapshot: ClusterSnapshot) -> tuple[list[Arrival], int]:
    """The arrivals in order, without jobs that could never run on this fleet: they would wait for ever."""
    fits: dict[tuple[Request, str], bool] = {}
    arrivals, left_out = [], 0
    for past in jobs:
        job = past.job
        if scenario.any_model and job.request.models:
            job = replace(job, request=replace(job.request, models=()))
        if job.mounts:
            job = replace(job, mounts=tuple(mount for mount in job.mounts if _is_there(snapshot, mount)))
        queue = snapshot.queues[job.queue]
        known = fits.get((job.request, queue.pool))
        if known is None:
            known = fits[job.request, queue.pool] = could_ever_fit(snapshot.fleet, job, queue.pool)
        if known:
            arrivals.append(Arrival(job=job, run_seconds=past.run_seconds))
        else:
            left_out += past.is_measured
    return arrivals, left_out


# ------------------------------------------------------------------------------------------------ figures


def _figures(run: _Run) -> dict[str, Any]:
    outcome, total = run.outcome, run.outcome.total
    return {
        "nodes": run.nodes,
        "gpus": run.gpus,
        "jobs": outcome.measured_jobs,
        "unfinished_jobs": run.unfinished,
        "cut_jobs": outcome.cut_jobs,
        "left_out_jobs": run.left_out,
        "wait_seconds": spread(total.waits),
        "completion_seconds": spread(total.completions),
        "slowdown": spread(total.slowdowns),
        "makespan_seconds": outcome.makespan_seconds,
        "utilization": outcome.utilization(run.gpus),
        "busy": outcome.busy(run.gpus),
        "gpu_hours": total.gpu_hours,
        "lost_gpu_hours": total.lost_gpu_seconds / HOUR,
        "preemptions": total.preemptions,
        "resizes": run.resizes,
        "jain": outcome.jain,
        "jain_slowdown": outcome.jain_slowdown,
        "waiting_cdf": _thinned(total.waits.cumulative()),
    }


def _thinned(points: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Returns at most `CDF_POINTS` points, evenly chosen, with the first and the last."""
    if len(points) <= CDF_POINTS:
        return [list(point) for point in points]
    places = {round(number * (len(points) - 1) / (CDF_POINTS - 1)) for number in range(CDF_POINTS)}
    return [list(points[place]) for place in sorted(places)]


def _time_series(outcome: WindowOutcome, step: float) -> dict[str, list[float]]:
    """Both runs have the same steps, so that their curves can be compared."""
    used, waiting = outcome.used_gpus(), outcome.waiting_jobs()
    count = math.ceil(outcome.makespan_seconds / step) if step else 0
    times = [outcome.since + number * step for number in range(count)]
    return {
        "times": times,
        "used_gpus": list(_means(used, times, step)),
        "waiting_jobs": list(_means(waiting, times, step)),
    }


def _means(points: Sequence[tuple[float, float]], times: Sequence[float], step: float) -> Iterator[float]:
    """The mean within each step, of finer steps that begin at `points`."""
    place = 0
    for begin in times:
        end, weighted, seconds = begin + step, 0.0, 0.0
        while place < len(points):
            since = points[place][0]
            until = points[place + 1][0] if place + 1 < len(points) else end
            common = min(until, end) - max(since, begin)
            if common > 0:
                weighted, seconds = weighted + points[place][1] * common, seconds + common
            if until > end:
                break
            place += 1
        yield round(weighted / step, 4) if seconds else 0.0


def _fidelity(order: Order, base: _Run) -> dict[str, Any] | None:
    real = Distribution()
    for past in order.jobs:
        if past.is_measured and past.waited_seconds is not None:
            real.add(past.waited_seconds)
    if not real.count:
        return None
    replayed = base.replayed_waits
    return {
        "jobs": real.count,
        "real_wait_seconds": spread(real),
        "replayed_wait_seconds": spread(replayed),
        "words": (
            f"In the replay with everything as it is, {counted(replayed.count, 'job')} "
            f"waited for {_duration_text(replayed.mean)} "
            f"on average; really they waited for {_duration_text(real.mean)}."
        ),
    }


def _duration_text(seconds: float) -> str:
    return format_duration(seconds) if seconds >= 1 else f"{seconds:.2g}s"


#: The compared figures: path, label, unit, and whether less (-1) or more (1) is better.
_COMPARED = (
    *(("wait_seconds", key, f"waiting {key}", "seconds", -1) for key in ("mean", "p50", "p90", "p99")),
    *(("completion_seconds", key, f"completion {key}", "seconds", -1) for key in ("mean", "p50", "p90", "p99")),
    ("slowdown", "mean", "slowdown mean", "times", -1),
    ("makespan_seconds", "", "last end", "seconds", -1),
    ("utilization", "", "utilisation", "fraction", 1),
    ("busy", "", "computing", "fraction", 1),
    ("gpu_hours", "", "GPU-hours in the window", "gpu_hours", 1),
    ("jain", "", "Jain's index of GPU-hours", "index", 1),
    ("jain_slowdown", "", "Jain's index of slowdown", "index", 1),
    ("preemptions", "", "preemptions", "jobs", -1),
    ("lost_gpu_hours", "", "GPU-hours lost", "gpu_hours", -1),
    ("resizes", "", "resizes", "jobs", 0),
    ("cut_jobs", "", "cut at the time limit", "jobs", -1),
    ("unfinished_jobs", "", "never started", "jobs", -1),
    ("left_out_jobs", "", "could never run there", "jobs", -1),
)


def _differences(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    # The same jobs use a larger fleet less: that is neither better nor worse.
    incomparable = ("utilization", "busy") if base["gpus"] != candidate["gpus"] else ()
    for name, part, label, unit, good in _COMPARED:
        before, after = (run[name][part] if part else run[name] for run in (base, candidate))
        change = None if before is None or after is None else after - before
        is_same = change is None or abs(change) <= SAME * max(abs(before), abs(after))
        found.append(
            {
                "field": f"{name}.{part}" if part else name,
                "label": label,
                "unit": unit,
                "base": before,
                "candidate": after,
                "change": change,
                "percent": change / before * 100 if change is not None and before else None,
                "better": None if is_same or not good or name in incomparable else (change or 0.0) * good > 0,
            }
        )
    return found


def _shares(base: Mapping[str, Share], candidate: Mapping[str, Share]) -> list[dict[str, Any]]:
    """The largest GPU time first."""
    names = sorted(base.keys() | candidate.keys(), key=lambda name: (-base.get(name, Share()).gpu_seconds, name))
    return [
        {
            "name": name,
            "jobs": max(run.get(name, Share()).waits.count for run in (base, candidate)),
            "base": _share(base.get(name, Share())),
            "candidate": _share(candidate.get(name, Share())),
        }
        for name in names
    ]


def _share(share: Share) -> dict[str, Any]:
    waits: Spread = spread(share.waits)
    return {
        "jobs": share.waits.count,
        "wait_mean_seconds": waits["mean"],
        "wait_p50_seconds": waits["p50"],
        "wait_p90_seconds": waits["p90"],
        "wait_p99_seconds": waits["p99"],
        "completion_mean_seconds": share.completions.mean,
        "gpu_hours": share.gpu_hours,
        "preemptions": share.preemptions,
        "lost_gpu_hours": share.lost_gpu_seconds / HOUR,
    }
