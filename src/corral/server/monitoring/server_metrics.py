"""The server's own metrics: requests, cycles, waits and ends of jobs, and its process.

Decides names, labels and buckets; they are listed in docs/reference/metrics.md. `fleet_metrics` reads the fleet's
numbers from the controller's state on request.
"""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from corral.control.records import EventRecord
from corral.core.jobs.fresh_start import BY_PERSONS
from corral.core.jobs.lifecycle import REQUEUED, RETRIED
from corral.core.model import EndReason, JobState
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.server.monitoring.exposition import Counter, Family, Histogram, counter, gauge, labels

SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: From a second to three days.
WAIT_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0, 259_200.0)

_ENDED_ACTIONS = {f"job.{state.value}": state for state in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)}


class ServerMetrics:
    """Every `observe_` may be called from any thread, and is quick."""

    def __init__(self, version: str) -> None:
        self.requests = Histogram(
            "corral_api_request_seconds",
            "Time to answer a request.",
            labels=("method", "route", "status"),
            buckets=SECONDS_BUCKETS,
        )
        self.cycles = Histogram("corral_cycle_seconds", "Time of one scheduling cycle.", buckets=SECONDS_BUCKETS)
        self.waits = Histogram(
            "corral_job_wait_seconds",
            "From when a job was queued until a plan started it.",
            labels=("queue",),
            buckets=WAIT_BUCKETS,
        )
        self.starts = Histogram(
            "corral_job_start_seconds",
            "From when a job was submitted until its program first ran: waiting and allocation.",
            labels=("queue",),
            buckets=WAIT_BUCKETS,
        )
        self.completions = Histogram(
            "corral_job_completion_seconds",
            "From when a job was submitted until it completed.",
            labels=("queue",),
            buckets=WAIT_BUCKETS,
        )
        self.xids = Counter(
            "corral_gpu_xid_errors_total",
            "Driver errors (XID) of GPUs; the same one of the same GPU counts once a minute.",
            labels=("gpu", "xid"),
        )
        self.ended = Counter(
            "corral_jobs_ended_total", "Jobs that ended.", labels=("state", "reason"), known=_known_ends()
        )
        self.requeued = Counter(
            "corral_jobs_requeued_total",
            "Attempts that ended while their job goes on.",
            labels=("reason",),
            known=[(reason.value,) for reason in sorted(RETRIED | REQUEUED)],
        )
        rules = [(rule.value,) for rule in PreemptionRule]
        self.preemptions = Counter(
            "corral_preemptions_total", "Jobs that were preempted.", labels=("rule",), known=rules
        )
        self.lost = Counter(
            "corral_preemption_lost_gpu_seconds_total",
            "Unsaved work of preempted jobs, in GPU-seconds.",
            labels=("rule",),
            known=rules,
        )
        self._build = gauge("corral_build_info", "The version that runs.", [(labels(version=version), 1)])
        self._process = psutil.Process()

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests.observe(seconds, method, route, f"{status // 100}xx")

    def observe_cycle(self, seconds: float) -> None:
        self.cycles.observe(seconds)

    def observe_events(self, events: Sequence[EventRecord]) -> None:
        """Events that were just committed: they show when jobs were planned and how they ended."""
        for event in events:
            detail = event.detail
            if event.action == "job.planned":
                self.waits.observe(detail["waited_seconds"], detail["queue"])
            elif event.action == "job.running" and "submitted_seconds" in detail:
                self.starts.observe(detail["submitted_seconds"], detail["queue"])
            elif event.action == "gpu.xid":
                self.xids.count(event.subject, str(detail["code"]))
            elif event.action == "job.requeued":
                self.requeued.count(str(detail.get("reason", "")))
            elif event.action == "job.preempting":
                self.preemptions.count(str(detail["rule"]))
            elif event.action == "job.gave-way":
                self.lost.count(str(detail["rule"]), by=detail["lost_gpu_seconds"])
            elif event.action in _ENDED_ACTIONS:
                self.ended.count(_ENDED_ACTIONS[event.action].value, str(detail.get("reason", "")))
                if "completion_seconds" in detail:
                    self.completions.observe(detail["completion_seconds"], detail["queue"])

    def families(self, *, event_streams: int = 0, encoded_events: int = 0) -> list[Family]:
        return [
            self._build,
            self.ended.family(),
            self.requeued.family(),
            self.preemptions.family(),
            self.lost.family(),
            self.xids.family(),
            self.waits.family(),
            self.starts.family(),
            self.completions.family(),
            self.cycles.family(),
            self.requests.family(),
            gauge("corral_event_streams", "Clients that follow the events.", [("", event_streams)]),
            counter("corral_events_encoded_total", "Events that were encoded for streams.", [("", encoded_events)]),
            *self._process_families(),
        ]

    def _process_families(self) -> list[Family]:
        """Metrics of the process with the standard names of Prometheus clients, so that common dashboards work."""
        with self._process.oneshot():
            times = self._process.cpu_times()
            return [
                counter(
                    "process_cpu_seconds_total",
                    "CPU time of the server's process.",
                    [("", times.user + times.system)],
                ),
                gauge(
                    "process_resident_memory_bytes",
                    "Memory of the server's process.",
                    [("", self._process.memory_info().rss)],
                ),
                gauge(
                    "process_start_time_seconds",
                    "When the server's process began, since the epoch.",
                    [("", self._process.create_time())],
                ),
                gauge("process_open_fds", "Open files of the server's process.", [("", self._process.num_fds())]),
            ]


def _known_ends() -> list[tuple[str, str]]:
    """The usual ends of jobs."""
    ends = [(JobState.COMPLETED, EndReason.EXIT_CODE)]
    ends += [(JobState.STOPPED, reason) for reason in sorted(BY_PERSONS)]
    ends += [(JobState.FAILED, reason) for reason in EndReason if reason not in BY_PERSONS | REQUEUED]
    return [(state.value, reason.value) for state, reason in ends]
