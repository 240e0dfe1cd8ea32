"""The fleet's metrics: jobs, queues, GPUs, nodes and their latest readings.

`read_fleet` copies the needed values from the controller's state, quickly, because jobs wait for that thread; another
thread formats the lines. Names and labels are listed in docs/reference/metrics.md, and a history in Prometheus is read
by them: every `Metric` has one name here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.control.fleet.live_fleet import GpuCounts, HeldGpus
from corral.control.fleet.live_jobs import LiveJobs
from corral.control.fleet.node_views import NodeView
from corral.control.live.state import State
from corral.control.ports import GpuReading, HostReading
from corral.core.alerts.model import Severity
from corral.core.model import WHOLE, GpuHealth, JobState, NodeState
from corral.server.fleet.summary import stored_jobs
from corral.server.fleet.totals import totals_of
from corral.server.monitoring.exposition import Family, Row, counter, gauge, labels
from corral.server.schemas.fleet.nodes import Measured
from corral.telemetry.reading_sums import GpuSums
from corral.telemetry.readings import LatestHost

_HERTZ_PER_MHZ = 1e6


@dataclass(slots=True)
class QueueFacts:
    length: int = 0
    running: int = 0
    held_milli: int = 0
    oldest_queued_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetFacts:
    """Values of the state at one moment."""

    nodes: Sequence[NodeView]
    #: by pool and GPU model
    gpus: Mapping[tuple[str, str], GpuCounts]
    total: GpuCounts
    node_states: Mapping[NodeState, int]
    held: HeldGpus
    queues: Mapping[str, QueueFacts]
    asked_milli: int
    #: jobs by state; None if only the store knows
    jobs: Mapping[str, int] | None = None
    user_held_milli: Mapping[str, int] = field(default_factory=dict)
    user_jobs: Mapping[tuple[str, JobState], int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """All input of the exposition."""

    now: float
    fleet: FleetFacts
    job_counts: Mapping[str, int]
    measured: Measured
    hosts: Mapping[str, LatestHost]
    #: sums over the readings
    read: GpuSums
    #: severity of every firing alert
    alerts: Iterable[Severity] = ()
    per_user: bool = False
    per_gpu: bool = True


def read_fleet(state: State, now: float) -> FleetFacts:
    fleet, jobs = state.fleet(now), state.job_sums()
    node_states: Counter[NodeState] = Counter()
    for (_, node_state), count in fleet.nodes.items():
        node_states[node_state] += count
    # Jobs may wait in a queue that was deleted.
    deleted = [name for name, sums in jobs.queues.items() if sums.length or sums.running]
    queues = {name: _queue_facts(jobs, name) for name in dict.fromkeys([*sorted(state.snapshot.queues), *deleted])}
    return FleetFacts(
        nodes=fleet.views(),
        gpus=fleet.by_pool(),
        total=fleet.total(),
        node_states=node_states,
        held=fleet.held_gpus(),
        queues=queues,
        asked_milli=jobs.asked_milli,
        jobs=stored_jobs(state),
        user_held_milli={user: milli for user, milli in jobs.held_milli.items() if milli},
        user_jobs={key: count for key, count in jobs.states.items() if count},
    )


def _queue_facts(jobs: LiveJobs, name: str) -> QueueFacts:
    sums = jobs.queue(name)
    return QueueFacts(
        length=sums.length,
        running=sums.running,
        held_milli=sums.held_milli,
        oldest_queued_at=jobs.oldest_wait(name),
    )


def families_of(seen: Seen) -> list[Family]:
    """Takes a few microseconds per line: with a thousand GPUs, call it on a thread."""
    families = [
        *_job_families(seen),
        *_queue_families(seen),
        *_count_families(seen.fleet),
        *(_gpu_families(seen) if seen.per_gpu else ()),
        *_node_families(seen),
        *_cluster_families(seen),
    ]
    if seen.per_user:
        families += _user_families(seen.fleet)
    return families


def _job_families(seen: Seen) -> list[Family]:
    severities = Counter(seen.alerts)
    return [
        gauge(
            "corral_jobs",
            "Jobs by state.",
            [(labels(state=state.value), seen.job_counts.get(state.value, 0)) for state in JobState],
        ),
        gauge(
            "corral_alerts_firing",
            "Alerts that fire.",
            [(labels(severity=severity.value), severities[severity]) for severity in Severity],
        ),
    ]


def _queue_families(seen: Seen) -> list[Family]:
    rows = [(labels(queue=name), facts) for name, facts in seen.fleet.queues.items()]

    def waits(facts: QueueFacts) -> float:
        return max(0.0, seen.now - facts.oldest_queued_at) if facts.oldest_queued_at is not None else 0.0

    return [
        gauge("corral_queue_length", "Jobs that wait.", [(own, facts.length) for own, facts in rows]),
        gauge("corral_queue_running", "Jobs that hold resources.", [(own, facts.running) for own, facts in rows]),
        gauge(
            "corral_queue_gpus_held", "GPUs that jobs hold.", [(own, facts.held_milli / WHOLE) for own, facts in rows]
        ),
        gauge(
            "corral_queue_wait_seconds",
            "How long the job that has waited longest waits so far.",
            [(own, waits(facts)) for own, facts in rows],
        ),
    ]


def _count_families(fleet: FleetFacts) -> list[Family]:
    kinds = [(labels(pool=pool, model=model), counts) for (pool, model), counts in fleet.gpus.items()]
    return [
        gauge("corral_gpus", "GPUs.", [(own, counts.gpus) for own, counts in kinds]),
        gauge("corral_gpus_held", "GPUs that jobs hold.", [(own, counts.held_milli / WHOLE) for own, counts in kinds]),
        gauge("corral_gpus_free", "GPUs that a job could start on now.", [(own, counts.free) for own, counts in kinds]),
        gauge(
            "corral_gpus_reserved",
            "Idle GPUs that are reserved for some users.",
            [(own, counts.reserved) for own, counts in kinds],
        ),
        gauge(
            "corral_gpus_taken",
            "GPUs that others hold, outside of corral.",
            [(own, counts.taken) for own, counts in kinds],
        ),
        gauge(
            "corral_gpus_by_health",
            "GPUs by health.",
            [
                (labels(pool=pool, model=model, health=item.value), counts.health[item])
                for (pool, model), counts in fleet.gpus.items()
                for item in GpuHealth
            ],
        ),
        gauge(
            "corral_nodes",
            "Nodes by state.",
            [(labels(state=item.value), fleet.node_states.get(item, 0)) for item in NodeState],
        ),
    ]


#: Name, text and value of every reading of a GPU; None is left out.
_GPU_READINGS: tuple[tuple[str, str, Callable[[GpuReading], float | None]], ...] = (
    ("corral_gpu_utilization_ratio", "Use of the GPU, 0 to 1.", lambda r: r.utilization),
    (
        "corral_gpu_sm_activity_ratio",
        "Part of the time in which an SM had work, averaged over all SMs, 0 to 1.",
        lambda r: r.sm_activity,
    ),
    ("corral_gpu_memory_used_bytes", "Memory in use.", lambda r: r.memory_used_bytes),
    ("corral_gpu_memory_total_bytes", "Memory of the GPU.", lambda r: r.memory_total_bytes),
    ("corral_gpu_temperature_celsius", "Temperature of the GPU.", lambda r: r.temperature_celsius),
    ("corral_gpu_power_watts", "Power that it draws.", lambda r: r.power_watts),
    ("corral_gpu_power_limit_watts", "Power that it may draw.", lambda r: r.power_limit_watts),
    ("corral_gpu_energy_joules_total", "Energy since the driver was loaded.", lambda r: r.energy_joules),
    ("corral_gpu_sm_clock_hertz", "Clock of the processors.", lambda r: _hertz(r.sm_clock_mhz)),
    ("corral_gpu_memory_clock_hertz", "Clock of the memory.", lambda r: _hertz(r.memory_clock_mhz)),
    ("corral_gpu_throttled", "1 while anything but idleness holds its clocks down.", lambda r: _throttled(r)),
    (
        "corral_gpu_ecc_uncorrected_errors_total",
        "Memory errors since the driver was loaded that could not be corrected.",
        lambda r: r.ecc_uncorrected,
    ),
    (
        "corral_gpu_ecc_corrected_errors_total",
        "Memory errors since the driver was loaded that were corrected.",
        lambda r: r.ecc_corrected,
    ),
    ("corral_gpu_remapped_rows", "Memory rows that were replaced.", lambda r: r.remapped_rows),
    ("corral_gpu_lost", "1 while the device does not answer any more.", lambda r: float(r.lost)),
)


def _gpu_families(seen: Seen) -> list[Family]:
    held: list[Row] = []
    health: list[Row] = []
    read: list[tuple[str, GpuReading]] = []
    for node in seen.fleet.nodes:
        for view in node.gpus:
            gpu = view.gpu
            own = labels(gpu=gpu.id, node=view.node, model=gpu.model, pool=gpu.pool)
            held.append((own, view.held_milli / WHOLE))
            health.append((f'{own[:-1]},health="{gpu.health.value}"}}', 1))
            latest = seen.measured.get(gpu.id)
            if latest is not None and not latest.stale:
                read.append((own, latest.reading))
    families = [
        gauge("corral_gpu_held_ratio", "The part of the GPU that jobs hold.", held),
        gauge("corral_gpu_health", "Always 1; the label says how it is.", health),
    ]
    for name, text, value_of in _GPU_READINGS:
        rows = [(own, value) for own, reading in read if (value := value_of(reading)) is not None]
        families.append((counter if name.endswith("_total") else gauge)(name, text, rows))
    return families


_HOST_READINGS: tuple[tuple[str, str, Callable[[HostReading], float | None]], ...] = (
    ("corral_node_cpu_ratio", "Use of all its CPUs, 0 to 1.", lambda r: r.cpu),
    ("corral_node_memory_used_bytes", "Memory in use.", lambda r: r.memory_used_bytes),
    ("corral_node_memory_total_bytes", "Memory of the node.", lambda r: r.memory_total_bytes),
    ("corral_node_disk_used_bytes", "Disk space in use.", lambda r: r.disk_used_bytes),
    ("corral_node_disk_total_bytes", "Disk space of the node.", lambda r: r.disk_total_bytes),
    ("corral_node_network_receive_bytes_per_second", "What comes in.", lambda r: r.network_receive_bytes),
    ("corral_node_network_send_bytes_per_second", "What goes out.", lambda r: r.network_send_bytes),
)


def _node_families(seen: Seen) -> list[Family]:
    states: list[Row] = []
    ages: list[Row] = []
    stale: list[Row] = []
    read: list[tuple[str, HostReading]] = []
    for view in seen.fleet.nodes:
        node = view.node
        own = labels(node=node.id)
        states.append((labels(node=node.id, state=view.state.value), 1))
        latest = [seen.measured.get(gpu.gpu.id) for gpu in view.gpus]
        taken_at = [item.reading.at for item in latest if item is not None]
        if taken_at:
            ages.append((own, round(max(0.0, seen.now - min(taken_at)), 3)))
        if view.gpus:
            stale.append((own, sum(item is None or item.stale for item in latest)))
        host = seen.hosts.get(node.id)
        if host is not None and not host.stale:
            read.append((own, host.reading))
    return [
        gauge("corral_node_state", "Always 1; the label says how it is.", states),
        gauge("corral_node_reading_age_seconds", "Age of the oldest of the latest readings of its GPUs.", ages),
        gauge("corral_node_gpus_stale", "Its GPUs whose reading is too old, or that were never read.", stale),
        *(
            gauge(name, text, [(own, value) for own, reading in read if (value := value_of(reading)) is not None])
            for name, text, value_of in _HOST_READINGS
        ),
    ]


def _cluster_families(seen: Seen) -> list[Family]:
    totals = totals_of(seen.fleet.total, seen.fleet.asked_milli, seen.read)
    queues = seen.fleet.queues.values()
    known: list[tuple[str, str, float | None]] = [
        ("corral_cluster_gpus", "GPUs.", totals.gpus),
        ("corral_cluster_gpus_held", "GPUs that jobs hold.", totals.held),
        (
            "corral_cluster_allocation_ratio",
            "GPUs asked for by all unfinished jobs, of all GPUs.",
            totals.allocation or 0.0,
        ),
        (
            "corral_cluster_utilization_ratio",
            "Measured use of held GPUs, of all GPUs.",
            totals.utilization,
        ),
        (
            "corral_cluster_compute_efficiency_ratio",
            "Mean activity of the SMs of held GPUs that report it.",
            totals.sm_activity,
        ),
        ("corral_cluster_power_watts", "Power of all GPUs.", totals.power_watts),
        ("corral_cluster_temperature_celsius", "Temperature of the hottest GPU.", totals.temperature_celsius),
        ("corral_cluster_jobs_running", "Jobs that hold resources.", sum(facts.running for facts in queues)),
        ("corral_cluster_jobs_queued", "Jobs that wait.", sum(facts.length for facts in queues)),
    ]
    return [gauge(name, text, [("", value)]) for name, text, value in known if value is not None]


def _user_families(fleet: FleetFacts) -> list[Family]:
    jobs: defaultdict[str, list[Row]] = defaultdict(list)
    for (user, state), count in sorted(fleet.user_jobs.items()):
        jobs[user].append((labels(user=user, state=state.value), count))
    return [
        gauge(
            "corral_user_gpus_held",
            "GPUs that the user's jobs hold.",
            [(labels(user=user), milli / WHOLE) for user, milli in sorted(fleet.user_held_milli.items())],
        ),
        gauge("corral_user_jobs", "The user's live jobs by state.", [row for rows in jobs.values() for row in rows]),
    ]


def _hertz(mhz: float | None) -> float | None:
    return None if mhz is None else mhz * _HERTZ_PER_MHZ


def _throttled(reading: GpuReading) -> float | None:
    """A device that reports no clocks reports no throttle reasons either."""
    return None if reading.sm_clock_mhz is None else float(bool(reading.throttle_reasons))
