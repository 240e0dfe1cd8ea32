"""Converts the jobs of a trace into arrivals at a fleet: sets the number of nodes and the time limits, and leaves out
some jobs.

A job that is larger than a node gets whole nodes. Resources that the fleet does not count, such as CPUs if none were
given, are removed from the requests. A job that could never run on the fleet is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from math import ceil

from corral.core.model import DEFAULT_POOL, Job, JobKind, Node, Prediction, Request
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.snapshot.node_index import Fleet
from corral.simulator.simulation import Arrival
from corral.simulator.traces.job import LeftOut, TraceJob


class TimeLimits(StrEnum):
    #: as in the trace
    GIVEN = "given"
    #: the actual run time of each job
    KNOWN = "known"
    NONE = "none"


def in_order(jobs: Iterable[TraceJob], most: int | None = None) -> list[TraceJob]:
    """The first `most` jobs of the trace, in the order of their submission."""
    return sorted(islice(jobs, most), key=lambda job: job.submitted_at)


class Workload:
    """The arrivals at a fleet; `arrivals` can be called for every run."""

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[TraceJob],
        left_out: LeftOut,
        *,
        time_limits: TimeLimits = TimeLimits.GIVEN,
        any_model: bool = False,
    ) -> None:
        self.nodes = nodes
        self._time_limits = time_limits
        self._any_model = any_model
        self._fleet = Fleet(nodes)
        self._counts_cpu = any(node.cpu_milli for node in nodes)
        self._counts_memory = any(node.memory_bytes for node in nodes)
        self._can_run: dict[Request, bool] = {}
        self._largest: dict[tuple[str, ...], int] = {}
        self.jobs: list[tuple[TraceJob, Request]] = []
        for job in jobs:
            request = self._request(job)
            if not (request.wants_gpu or request.cpu_milli or request.memory_bytes):
                left_out["it asks for nothing that the fleet counts"] += 1
            elif not self._could_run(request):
                left_out["it could never run on this fleet"] += 1
            else:
                self.jobs.append((job, request))

    @property
    def gpus(self) -> int:
        return sum(len(node.gpus) for node in self.nodes)

    @property
    def since(self) -> float:
        """When the first job arrives."""
        return self.jobs[0][0].submitted_at if self.jobs else 0.0

    @property
    def groups(self) -> dict[str, str]:
        """The group of each user's last job."""
        return {job.user: job.group for job, _ in self.jobs if job.group}

    def arrivals(self) -> Iterator[Arrival]:
        for number, (job, request) in enumerate(self.jobs, start=1):
            yield Arrival(job=self._job(number, job, request), run_seconds=job.run_seconds)

    def _job(self, number: int, job: TraceJob, request: Request) -> Job:
        limit = {
            TimeLimits.GIVEN: job.time_limit_seconds,
            TimeLimits.KNOWN: job.run_seconds,
            TimeLimits.NONE: None,
        }[self._time_limits]
        return Job(
            id=f"j-{number}",
            name=job.name,
            user=job.user,
            kind=JobKind.DISTRIBUTED if request.is_gang else JobKind.TRAINING,
            request=request,
            priority=job.priority,
            created_at=job.submitted_at,
            time_limit_seconds=limit,
            predicted=self._known(job) if self._time_limits is TimeLimits.KNOWN else None,
            # A simulated job releases its resources at its end.
            grace_seconds=0.0,
        )

    def _known(self, job: TraceJob) -> Prediction:
        """The exact prediction."""
        return Prediction(p50_seconds=job.run_seconds, p90_seconds=job.run_seconds, samples=1, like="the trace")

    def _request(self, job: TraceJob) -> Request:
        models = () if self._any_model else job.models
        largest = self._largest_node(models)
        if job.nodes is not None:
            # With more nodes than GPUs, some nodes had no GPU in the trace either.
            nodes = min(job.nodes, job.gpus) if job.gpus else job.nodes
            gpus = ceil(job.gpus / nodes)
        elif job.gpus <= largest or not largest:
            nodes, gpus = 1, job.gpus
        else:
            nodes, gpus = ceil(job.gpus / largest), largest
        return Request(
            nodes=nodes,
            gpus=gpus,
            gpu_milli=job.gpu_milli,
            cpu_milli=ceil(job.cpu_milli / nodes) if self._counts_cpu else 0,
            memory_bytes=ceil(job.memory_bytes / nodes) if self._counts_memory else 0,
            models=models if job.gpus or job.gpu_milli else (),
        )

    def _largest_node(self, models: tuple[str, ...]) -> int:
        """The most GPUs of these models on one node."""
        known = self._largest.get(models)
        if known is None:
            counts = (sum(not models or gpu.model in models for gpu in node.gpus) for node in self.nodes)
            known = self._largest[models] = max(counts, default=0)
        return known

    def _could_run(self, request: Request) -> bool:
        known = self._can_run.get(request)
        if known is None:
            asked = Job(id="j-0", name="", user="", request=request)
            known = self._can_run[request] = could_ever_fit(self._fleet, asked, DEFAULT_POOL)
        return known
