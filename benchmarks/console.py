"""What the console asks for again and again, on the server's side and in process: the map of all GPUs, and advice for a
job that waits, which is tried on the thread that also decides.

The peer of the map is the list of the same GPUs as one object each; that of the advice one scheduling cycle.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks.scheduling import NOW, fleet_and_jobs, started
from benchmarks.tables import Row, median, print_table, spread
from corral.control.fleet.catalog import Catalog
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import GpuReading
from corral.control.records import AttemptRecord, JobSpec
from corral.control.scheduling.suggestions import suggestions
from corral.control.system.policies import Policies
from corral.core.model import Job, JobState, Queue
from corral.core.people.membership import Membership
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.snapshot.changes import PutMembership, PutQueue
from corral.server.fleet.gpu_map import MapColumns, map_of, map_page
from corral.server.schemas.fleet.nodes import gpu_view
from corral.telemetry.readings import LatestReadings

MAP_NODES = 125
FLEET_NODES = 5000
JOBS = 62_000
ASKED = 20
RUNS = 30


def milliseconds(what: Callable[[], Any], runs: int = RUNS) -> list[float]:
    taken = []
    for _ in range(runs):
        begun = time.process_time()
        what()
        taken.append((time.process_time() - begun) * 1000)
    return taken


def busy_state(nodes: int, jobs: int) -> State:
    """A fleet on which all that fits has started; the rest waits in one of two queues that are open to all users."""
    state = State(Policies())
    state.apply(fleet_and_jobs(nodes, jobs, seed=3))
    state.apply([PutQueue(queue=Queue(name="second"))])
    members = [PutMembership(user=f"user{n}", membership=Membership(group="g", pool="default")) for n in range(100)]
    state.apply(members)
    state.apply(started(state.snapshot, schedule(state.snapshot, NOW)))
    for job in state.snapshot.jobs.values():
        if job.allocation is not None:
            state.attempts[job.id] = AttemptRecord(
                id=job.attempt_id, job_id=job.id, number=1, allocation=job.allocation, planned_at=NOW
            )
    return state


def map_rows() -> list[Row]:
    state = busy_state(MAP_NODES, MAP_NODES * 8)
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update(_reading(gpu.id) for node in state.snapshot.nodes.values() for gpu in node.gpus)
    caller = Caller(name="user1")

    def as_map() -> bytes:
        return map_of(map_page(state, NOW), MapColumns(), latest.all(NOW), caller, NOW)

    def as_list() -> None:
        measured = latest.all(NOW)
        for node in state.fleet(NOW).views():
            for gpu in node.gpus:
                gpu_view(gpu, measured, caller).model_dump_json()

    peer, own = milliseconds(as_list), milliseconds(as_map)
    ratio = f"{median(own) / median(peer):.2f} × the list"
    what = f"the map of {MAP_NODES * 8:,} GPUs, CPU ({len(as_map()) / 1000:.0f} kB)"
    return [
        Row(what=what, value=f"{median(own):.1f} ms", spread=spread(own, "ms"), target="< 10 ms", ratio=ratio),
        Row(what="the list of the same, CPU", value=f"{median(peer):.1f} ms", spread=spread(peer, "ms")),
    ]


def advice_rows() -> list[Row]:
    state = busy_state(FLEET_NODES, JOBS)
    waiting = [job for job in state.snapshot.jobs.values() if job.state is JobState.QUEUED]
    cycle = milliseconds(lambda: schedule(state.snapshot, NOW), 5)
    asked = [milliseconds(lambda: _advise(state, job), 1)[0] for job in random.Random(1).sample(waiting, ASKED)]  # noqa: B023
    ratio = f"{median(asked) / median(cycle):.1f} × a cycle"
    what = f"advice for one of {len(waiting):,} waiting jobs, {FLEET_NODES:,} nodes, CPU"
    return [
        Row(what=what, value=f"{median(asked):.1f} ms", spread=spread(asked, "ms"), target="< 150 ms", ratio=ratio),
        Row(what="one cycle of the same, CPU", value=f"{median(cycle):.1f} ms", spread=spread(cycle, "ms")),
    ]


def _advise(state: State, job: Job) -> None:
    spec = JobSpec(command=("true",))
    suggestions(state, NOW, job, spec, Catalog(flavors={}, packages={}), may_go_on=lambda: True)


def _reading(gpu: str) -> GpuReading:
    return GpuReading(
        gpu_id=gpu,
        at=NOW,
        utilization=0.5123,
        memory_used_bytes=1 << 30,
        memory_total_bytes=80 << 30,
        temperature_celsius=61.2,
        power_watts=350.7,
    )


def main() -> None:
    print_table("What the console asks for", [*map_rows(), *advice_rows()])


if __name__ == "__main__":
    main()
