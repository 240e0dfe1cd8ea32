"""What the answers of the console's requests cost to compute, without HTTP: processor time of this process.

Unlike `reads`, which measures a whole server, other work on the machine hardly moves it. The same fleet and jobs, and
the same `CORRAL_BENCH_READS` for the size.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.reads import METRICS_TARGET_MS, SIZE, TARGET_MS, fill, size_of
from benchmarks.tables import Row, median, print_table, spread
from corral.control.alerts import facts
from corral.control.fleet import panel, pools
from corral.control.fleet.catalog import Catalog, load_catalog
from corral.control.fleet.gpu_holders import holders
from corral.control.fleet.offers import offers
from corral.control.live.state import State, load_state
from corral.control.live.unit_of_work import Caller
from corral.control.ports import GpuReading, HostReading
from corral.control.scheduling import views
from corral.control.system.policies import Policies
from corral.core.alerts.recent import Recent
from corral.core.model import JobKind
from corral.server.fleet import gpu_map, summary
from corral.server.monitoring.exposition import render
from corral.server.monitoring.fleet_metrics import Seen, families_of, read_fleet
from corral.server.routes.fleet.nodes import nodes_after
from corral.server.schemas.fleet.nodes import gpu_view, node_view
from corral.stores import open_store
from corral.telemetry.readings import LatestReadings

RUNS = 5
#: What is computed every few seconds may take a hundredth of a core.
INTERVAL_TARGET_MS = 50.0


def read_everything(state: State, now: float) -> LatestReadings:
    """A reading of every GPU and node."""
    readings = LatestReadings(stale_after_seconds=1e6)
    nodes = list(state.snapshot.nodes.values())
    gpus = [
        GpuReading(
            gpu_id=gpu.id,
            at=now,
            utilization=0.5,
            sm_activity=0.5,
            memory_used_bytes=1 << 30,
            memory_total_bytes=80 << 30,
            temperature_celsius=50.5,
            power_watts=300.5,
            power_limit_watts=400.0,
            energy_joules=1e6,
            sm_clock_mhz=1400.0,
            memory_clock_mhz=1600.0,
            ecc_corrected=0,
            ecc_uncorrected=0,
            remapped_rows=0,
        )
        for node in nodes
        for gpu in node.gpus
    ]
    hosts = [
        HostReading(node=node.id, at=now, cpu=0.4, memory_used_bytes=1 << 38, memory_total_bytes=1 << 40)
        for node in nodes
    ]
    readings.update(gpus, hosts)
    return readings


def requests(state: State, catalog: Catalog, owned: Any, now: float) -> dict[str, Callable[[], Any]]:
    readings = read_everything(state, now)
    operator = Caller(name="operator", is_operator=True)
    middle = sorted(state.snapshot.nodes)[len(state.snapshot.nodes) // 2]

    def overview() -> Any:
        seen = summary.installation_now(state, now)
        read = readings.sums(seen.held, now, idle_below=0.05)
        return summary.overview_of(seen, seen.jobs or {}, (), read, readings.host_sums(now))

    def node_page(limit: int) -> Any:
        measured, hosts = readings.all(now), readings.hosts(now)
        found = nodes_after(state, middle, limit, now).nodes
        return [node_view(view, measured, operator, hosts) for view in found]

    def gpu_page() -> Any:
        gpus = (gpu for view in state.fleet(now).after(middle) for gpu in view.gpus)
        return [gpu_view(gpu, readings.all(now), operator) for gpu, _ in zip(gpus, range(100), strict=False)]

    def one_node() -> Any:
        view = state.fleet(now).view(middle)
        assert view is not None
        return node_view(view, readings.all(now), operator, readings.hosts(now))

    def metrics(*, per_gpu: bool) -> str:
        fleet = read_fleet(state, now)
        seen = Seen(
            now=now,
            fleet=fleet,
            job_counts={},
            measured=readings.all(now),
            hosts=readings.hosts(now),
            read=readings.sums(fleet.held, now, idle_below=0.0),
            per_gpu=per_gpu,
        )
        return render(families_of(seen))

    kept: dict[str, facts.NodeFacts] = {}
    columns = gpu_map.MapColumns()
    return {
        "/overview": overview,
        "/panel": lambda: panel.panel(state, now),
        "/panel?user=": lambda: panel.panel(state, now, user="user1"),
        "/nodes?limit=50": lambda: node_page(50),
        "/nodes?limit=500": lambda: node_page(500),
        "/nodes/{node}": one_node,
        "/gpus?limit=100": gpu_page,
        "/gpus/map, a page": lambda: gpu_map.map_of(
            gpu_map.map_page(state, now), columns, readings.all(now), operator, now
        ),
        "/pools": lambda: pools.pool_views(state, owned, now),
        "/queues": lambda: views.queue_views(state),
        "/queues/{name}/order": lambda: views.queue_order(state, now, "default", whose="operator"),
        "/packages?kind=training": lambda: offers(state, catalog, "user1", JobKind.TRAINING, now),
        "/metrics without single GPUs": lambda: metrics(per_gpu=False),
        "/metrics with every GPU": lambda: metrics(per_gpu=True),
        "every 5 s: facts of alerts": lambda: facts.facts_of(
            facts.look(state, now), {}, Recent(since=now), (), (), now, kept
        ),
        "every 5 s: holders of GPUs": lambda: holders(state),
        "every 5 s: totals for the history": lambda: read_fleet(state, now),
    }


def main() -> None:
    size = size_of(SIZE)
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        home = Path(scratch)
        fill(home, size)
        store = open_store(f"sqlite:///{home / 'corral.db'}")
        store.take_over()
        with store.read() as tx:
            begun = time.process_time()
            # As many jobs may wait as there are: otherwise the list of packages refuses to plan.
            state = load_state(tx, Policies(max_queue_length=2 * size.queued))
            loaded = time.process_time() - begun
            catalog, owned = load_catalog(tx), pools.pool_owners(tx)
        now = time.time()
        begun = time.process_time()
        state.fleet(now)
        state.job_sums()
        rows = [
            Row(what="state loaded from the store", value=f"{loaded:.1f} s"),
            Row(what="first read, which makes all views", value=f"{(time.process_time() - begun) * 1000:.0f} ms"),
        ]
        for name, answer in requests(state, catalog, owned, now).items():
            rows.append(_row(name, _milliseconds(answer)))
            print(rows[-1].what, rows[-1].value, flush=True)
        store.close()
    title = f"Reads: {size.nodes} nodes × {size.gpus} GPUs, {size.queued:,} queued, {size.finished:,} finished jobs"
    print_table(title, rows)


def _milliseconds(answer: Callable[[], Any]) -> list[float]:
    answer()
    taken = []
    for _ in range(RUNS):
        begun = time.process_time()
        answer()
        taken.append((time.process_time() - begun) * 1000)
    return taken


def _row(name: str, taken: list[float]) -> Row:
    target = METRICS_TARGET_MS if name.startswith("/metrics") else TARGET_MS
    target = INTERVAL_TARGET_MS if name.startswith("every") else target
    return Row(
        what=name,
        value=f"{median(taken):.2f} ms",
        spread=spread(taken, "ms"),
        target=f"≤ {target:.0f} ms",
        ratio=f"{median(taken) / target:.2f} ×",
    )
