"""A compressed week through a real server: an hour of the trace takes ten seconds.

A part of a Philly week is submitted over HTTP by its users, at its times, to a server of its own with virtual GPUs, and
runs as real processes that sleep, save what they have done when they are warned, and resume. All times that the
scheduler is configured by are compressed alike: the memory of the score, the assumed run time, the least run time, both
patiences, the holding of GPUs, the cost of a preemption. The same part is replayed by the simulator with the same
compressed settings, and once more as the server got it: with the moments at which the jobs arrived, and with the time
that an attempt took on this machine beside its sleep. Launching costs real milliseconds, and one of them stands for a
third of a second. Times are printed as they would be in the week.

    CORRAL_TRACES=DIR python -m benchmarks live_week [--week NAME] [--from HOUR] [--until HOUR] [--hour SECONDS]
        [--policy NAME]
"""

from __future__ import annotations

import argparse
import math
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.compressed_week import SETTINGS, Completed, Compressed, Setting, compressed, rules_of, simulated
from benchmarks.estimates import MOST_AT_ONCE, error_part
from benchmarks.live import PASSWORD, LiveServer, live_server
from benchmarks.real_weeks import COST_SECONDS
from benchmarks.tables import percentile
from corral.client import Client
from corral.client.views import JobCreate
from corral.control.scheduling.estimates import LOOKED_BACK
from corral.core.model import Request
from corral.core.scheduling.forecast.accuracy import PastEstimate, accuracy_of
from corral.simulator.outcome import HOUR
from corral.simulator.replay import Rules
from corral.simulator.traces.job import TraceJob
from corral.stores import open_store

WEEK = "oct-24-2d"
#: from the warning to the kill: enough to save on a loaded machine. Programs end at once.
GRACE = "10s"
#: How long the server may take for the rest, as a multiple of what the simulator says.
PATIENCE = 3.0

#: The program of a job: sleeps for its first argument, in hundredths of a second, and after each preemption for the
#: second one besides. A shell starts faster than Python; the clock is read without another process.
PROGRAM = """
left=$1 cost=0 state=$CORRAL_CHECKPOINT_DIR/left
clock() { read -r up rest < /proc/uptime; now=${up%.*}${up#*.}; }
if [ -f "$state" ]; then read -r left < "$state"; cost=$2; fi
keep() { [ "${RANK:-0}" = 0 ] && echo "$1" > "$state.new" && mv "$state.new" "$state"; }
clock; begun=$now
warned() {
    kill $! 2> /dev/null
    clock; worked=$((now - begun - cost))
    [ $worked -gt 0 ] || worked=0
    [ $worked -lt $left ] || worked=$left
    keep $((left - worked)); exit 143
}
trap warned TERM
keep $left
all=$((left + cost))
sleep "$((all / 100)).$(printf %02d $((all % 100)))" &
wait $!
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """What the server did."""

    completed: Completed
    #: the jobs with the moments at which they arrived
    arrived: Sequence[TraceJob]
    #: real seconds for which an attempt held its GPUs beside its work, on average
    beside_seconds: float
    #: the most that a submission was late, in real seconds
    late_seconds: float
    cpu_seconds: float
    #: the estimated starts that the server has stored, in seconds of the week
    estimates: Sequence[PastEstimate]


def live(week: Compressed, setting: Setting, most_seconds: float) -> Live:
    rules = rules_of(setting, week.factor, COST_SECONDS)
    virtual = f"{week.nodes}x{week.node_gpus}x{week.work.nodes[0].gpus[0].model}"
    with (
        live_server(
            virtual_nodes=virtual,
            scheduling=_scheduling(setting, rules),
            settings=_policies(rules),
            program="benchmarks.compressed_server",
            CORRAL_BENCH_FACTOR=str(week.factor),
            CORRAL_ALLOW_ROOT="true",
        ) as server,
        Client(server.url, server.token) as client,
    ):
        if setting.preempts:
            client.queues.edit("default", {"preempts": True})
        tokens = {user: _token(client, server, user) for user in sorted({job.user for job in week.jobs})}
        before = server.cpu_seconds()
        submitted, late = _submit(week, server, tokens)
        _wait_until_ended(client, len(week.jobs), most_seconds)
        used = server.cpu_seconds() - before
        return _measured(week, client, submitted, late, used, _estimates(week, server))


def _scheduling(setting: Setting, rules: Rules) -> dict[str, object]:
    return {
        "algorithm": setting.policy,
        "score_settling_hours": rules.score_time_constant / HOUR,
        "unknown_run_hours": rules.ordering.unknown_seconds / HOUR,
        "hold_after_hours": rules.backfill.hold_after_seconds / HOUR,
    }


def _policies(rules: Rules) -> str:
    preemption = rules.preemption
    assert preemption.gang_patience_seconds is not None
    values = {
        "preemption_min_run_minutes": preemption.min_run_seconds / 60,
        "preemption_patience_minutes": preemption.patience_seconds / 60,
        "gang_patience_hours": preemption.gang_patience_seconds / HOUR,
    }
    return "policies:\n" + "".join(f"  {key}: {value:.9f}\n" for key, value in values.items())


def _token(client: Client, server: LiveServer, user: str) -> str:
    client.people.create_user(user, password=PASSWORD)
    with Client(server.url) as signing_in:
        return str(
            signing_in.people.login(user, PASSWORD, new_password=f"{PASSWORD}-of-{user}", token_name="bench")["token"]
        )


def _submit(week: Compressed, server: LiveServer, tokens: Mapping[str, str]) -> tuple[dict[str, TraceJob], float]:
    """Every job at its time, by its user; what is due together in one request for each user. Returns the jobs by their
    ids, and how late the latest submission was."""
    clients = {user: Client(server.url, token) for user, token in tokens.items()}
    found: dict[str, TraceJob] = {}
    late, begun, left = 0.0, time.monotonic(), deque(week.work.jobs)
    try:
        while left:
            due = begun + left[0][0].submitted_at
            threading.Event().wait(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            late = max(late, now - due)
            user, together = left[0][0].user, list[tuple[TraceJob, Request]]()
            while left and left[0][0].user == user and begun + left[0][0].submitted_at <= now:
                together.append(left.popleft())
            views = clients[user].jobs.submit_batch([_body(week, job, request) for job, request in together])
            found.update((view["id"], job) for view, (job, _) in zip(views, together, strict=True))
    finally:
        for client in clients.values():
            client.close()
    return found, late


def _body(week: Compressed, job: TraceJob, request: Request) -> JobCreate:
    arguments = (f"{job.run_seconds * 100:.0f}", f"{COST_SECONDS / week.factor * 100:.0f}")
    return {
        "name": job.name,
        "command": ["/bin/sh", "-c", PROGRAM, "job", *arguments],
        "gpus": request.gpus,
        "nodes": request.nodes,
        "grace": GRACE,
    }


def _wait_until_ended(client: Client, count: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        states = client.fleet.overview()["jobs"]
        if states.get("completed", 0) >= count:
            return
        for job in client.jobs.list(states=("failed", "stopped")):
            raise RuntimeError(f"{job['id']} is {job['state']}: {job['end_reason']}, {job['message']}")
        threading.Event().wait(0.5)
    raise RuntimeError(f"{count} jobs did not complete within {seconds:.0f} s: {states}")


def _estimates(week: Compressed, server: LiveServer) -> list[PastEstimate]:
    """The stored estimates in seconds of the week."""
    with closing(open_store(f"sqlite:///{server.home}/corral.db")) as store, store.read() as tables:
        return [_stretched(one, week.factor) for one in tables.estimates.latest(LOOKED_BACK)]


def _stretched(one: PastEstimate, factor: float) -> PastEstimate:
    return replace(
        one,
        made_at=one.made_at * factor,
        p50=one.p50 * factor,
        p90=one.p90 * factor,
        raw_p50=one.raw_p50 * factor,
        raw_p90=one.raw_p90 * factor,
        started_at=None if one.started_at is None else one.started_at * factor,
    )


def _measured(
    week: Compressed,
    client: Client,
    submitted: Mapping[str, TraceJob],
    late: float,
    cpu_seconds: float,
    estimates: Sequence[PastEstimate],
) -> Live:
    times, arrived, preemptions, attempts, held = [], [], 0, 0, 0.0
    for view in client.jobs.list():
        job = submitted[view["id"]]
        arrived.append(replace(job, submitted_at=_seconds(view["created_at"])))
        preemptions += view["preemptions"]
        assert view["ended_at"] is not None
        times.append((_seconds(view["ended_at"]) - _seconds(view["created_at"])) * week.factor)
        for attempt in client.jobs.attempts(view["id"]):
            assert attempt["ended_at"] is not None
            attempts += 1
            held += _seconds(attempt["ended_at"]) - _seconds(attempt["planned_at"])
        held -= job.run_seconds
    held -= preemptions * COST_SECONDS / week.factor
    return Live(
        completed=Completed(times=times, preemptions=preemptions),
        arrived=sorted(arrived, key=lambda job: (job.submitted_at, job.name)),
        beside_seconds=held / attempts,
        late_seconds=late,
        cpu_seconds=cpu_seconds,
        estimates=estimates,
    )


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


# ---------------------------------------------------------------- what is shown


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    setting: Setting
    simulated: Completed
    as_arrived: Completed
    live: Live


def compared(week: Compressed, setting: Setting) -> Compared:
    alone = simulated(week, setting, week.jobs)
    last = max(job.submitted_at + job.run_seconds for job in week.jobs)
    most = PATIENCE * max(last, sum(job.gpus * job.run_seconds for job in week.jobs) / week.work.gpus)
    ran = live(week, setting, most)
    return Compared(
        setting=setting, simulated=alone, as_arrived=simulated(week, setting, ran.arrived, ran.beside_seconds), live=ran
    )


def print_compared(title: str, rows: Sequence[Compared]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in (
        "policy", "simulated: mean / p99", "as it arrived", "live", "live ÷ simulated", "÷ as it arrived",
        "preemptions", "beside the work", "latest submission", "estimates: before p50 / p90, median error",
        "a few of each moment", "processor time",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "policy" else "right", overflow="fold")
    for row in rows:
        ran = row.live
        table.add_row(
            row.setting.name,
            _times(row.simulated),
            _times(row.as_arrived),
            _times(ran.completed),
            f"{ran.completed.mean / row.simulated.mean:.3f}",
            f"{ran.completed.mean / row.as_arrived.mean:.3f}",
            f"{row.simulated.preemptions}, {row.as_arrived.preemptions}, {ran.completed.preemptions}",
            f"{ran.beside_seconds * 1000:.0f} ms",
            f"{ran.late_seconds:.2f} s",
            _accuracy(ran.estimates),
            _accuracy(_few_of_each_moment(ran.estimates)),
            f"{ran.cpu_seconds:.0f} s",
        )
    out = Console(width=210)
    out.print(table)
    simulated_order, live_order = (_order(rows, of_live=of_live) for of_live in (False, True))
    same = "the same order" if simulated_order == live_order else "ANOTHER ORDER"
    out.print(f"by mean completion, simulated: {simulated_order}; live: {live_order}: {same}", markup=False)


def _order(rows: Sequence[Compared], *, of_live: bool) -> str:
    def mean(row: Compared) -> float:
        return row.live.completed.mean if of_live else row.simulated.mean

    return " < ".join(row.setting.name for row in sorted(rows, key=mean))


def _times(completed: Completed) -> str:
    return f"{completed.mean:,.0f} / {percentile(completed.times, 99):,.0f}"


def _few_of_each_moment(estimates: Sequence[PastEstimate]) -> list[PastEstimate]:
    """What was estimated together, such as a burst of a user's jobs, is wrong together."""
    together: dict[float, list[PastEstimate]] = defaultdict(list)
    for one in estimates:
        together[one.made_at].append(one)
    return [one for many in together.values() for one in many[:: max(1, len(many) // MOST_AT_ONCE)]]


def _accuracy(estimates: Sequence[PastEstimate]) -> str:
    found = accuracy_of(estimates, math.inf)
    started = [one for one in estimates if one.started_at is not None]
    if found.before_p50 is None or found.before_p90 is None or not started:
        return "none"
    part = error_part(started)
    return f"{found.before_p50:.0%} / {found.before_p90:.0%} of {found.started}, {part:.0%} of the wait"


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.live_week", description=__doc__)
    parser.add_argument("--week", default=WEEK, help=f"the name of a week ({WEEK})")
    parser.add_argument("--from", dest="since", type=float, default=0.0, help="the first hour of the trace (0)")
    parser.add_argument("--until", type=float, default=48.0, help="the hour before which jobs are submitted (48)")
    parser.add_argument("--hour", type=float, default=10.0, help="real seconds of an hour (10)")
    parser.add_argument("--policy", action="append", help="only settings whose name contains this")
    options = parser.parse_args(arguments)
    folder = os.environ.get("CORRAL_TRACES")
    if not folder:
        print("live_week: set CORRAL_TRACES to the directory that has the traces in philly-weeks/; skipped")
        return
    path = Path(folder) / "philly-weeks" / f"{options.week}.swf"
    week = compressed(path, options.since, options.until, options.hour)
    rows = []
    for setting in SETTINGS:
        if not options.policy or any(part in setting.name for part in options.policy):
            rows.append(compared(week, setting))
            title = f"{options.week}, hours {options.since:g} to {options.until:g}: {len(week.jobs):,} jobs"
            print_compared(f"{title}, {options.hour:g} s for an hour; seconds of the week", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
