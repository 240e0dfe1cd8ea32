"""The check of a plan before it is applied: it must contradict neither itself nor the snapshot that it was made from.

The check repeats no decision. It counts: each job is named once, everything named exists, and no more resources are
allocated or held than are free. Its cost grows with the plan, not with the cluster. A plan with problems must not be
applied, not even in part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from corral.core.counts import counted
from corral.core.model import WHOLE, Allocation, Grant, Job, JobState, Node, NodeState
from corral.core.scheduling.plan.plan import Plan, PlannedStart, Preemption, Resize, Start
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: How many problems are listed at most: one is enough to reject a plan.
MOST_PROBLEMS = 20


class PlanRejected(Exception):
    """A plan contradicts itself or the cluster, and was rejected as a whole."""

    def __init__(self, problems: list[str], digest: str = "") -> None:
        """`digest` is that of the snapshot that the plan was made from."""
        super().__init__(f"the plan was dropped (snapshot {digest or 'unknown'}): {'; '.join(problems)}")
        self.problems = problems
        self.digest = digest


def check_plan(snapshot: ClusterSnapshot, plan: Plan) -> list[str]:
    """The problems of a plan that was made from this snapshot and is not applied yet; empty if there are none."""
    problems: list[str] = []
    for problem in _Check(snapshot, plan).problems():
        problems.append(problem)
        if len(problems) == MOST_PROBLEMS:
            break
    return problems


class _Check:
    def __init__(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        self._snapshot = snapshot
        self._plan = plan
        #: thousandths of GPUs and CPUs, and memory, that the plan allocates or holds and that were free before
        self._gpus: Counter[tuple[str, str]] = Counter()
        self._cpu_milli: Counter[str] = Counter()
        self._memory_bytes: Counter[str] = Counter()

    def problems(self) -> Iterator[str]:
        plan = self._plan
        yield from self._named_twice()
        for start in plan.starts:
            yield from self._of_start(start)
        for resize in plan.resizes:
            yield from self._of_resize(resize)
        for preemption in plan.preemptions:
            yield from self._of_preemption(preemption)
        for planned in plan.planned:
            yield from self._of_planned(planned)
        for claim in plan.claims:
            if claim.job_id not in self._snapshot.jobs:
                yield f"{claim.job_id} has a claim and does not exist"
        yield from self._given_twice()

    # ---------------------------------------------------------------- names

    def _named_twice(self) -> Iterator[str]:
        plan = self._plan
        named: dict[str, str] = {}
        changes = [
            *((start.job_id, "started") for start in plan.starts),
            *((resize.job_id, "resized") for resize in plan.resizes),
            *(
                (preemption.job_id, "preempted" if preemption.to is None else "moved")
                for preemption in plan.preemptions
            ),
        ]
        for job_id, what in (*changes, *((planned.job_id, "given a planned start") for planned in plan.planned)):
            if job_id in named:
                yield f"{job_id} is {named[job_id]} and {what}"
            named[job_id] = what

    # ---------------------------------------------------------------- one decision each

    def _of_start(self, start: Start) -> Iterator[str]:
        job = self._snapshot.jobs.get(start.job_id)
        if job is None:
            yield f"{start.job_id} is started and does not exist"
            return
        if job.state is not JobState.QUEUED:
            yield f"{job.id} is started and is {job.state}"
        yield from self._of_new_place(job, start.allocation)

    def _of_resize(self, resize: Resize) -> Iterator[str]:
        job = self._snapshot.jobs.get(resize.job_id)
        if job is None:
            yield f"{resize.job_id} is resized and does not exist"
            return
        if job.elastic is None or job.allocation is None:
            yield f"{job.id} is resized and is not elastic, or holds nothing"
            return
        if job.state not in (JobState.STARTING, JobState.RUNNING) and not job.is_resizing:
            yield f"{job.id} is resized and is {job.state}"
        if [grant.node for grant in resize.allocation.grants] != [grant.node for grant in job.allocation.grants]:
            yield f"{job.id} is resized and leaves its node"
            return
        sizes = {len(grant.gpus) for grant in resize.allocation.grants}
        if len(sizes) > 1:
            yield f"{job.id} is resized to different numbers of GPUs on its nodes"
        if not 1 <= min(sizes) <= max(sizes) <= job.elastic.max_gpus:
            yield f"{job.id} is resized to {counted(max(sizes), 'GPU')} and asks for {_range_of(job)}"
        held = {*job.allocation.gpus}
        for grant in resize.allocation.grants:
            more = tuple(gpu for gpu in grant.gpus if gpu not in held)
            if more and job.is_resizing:
                yield f"{job.id} is being resized already and gets {', '.join(more)} besides"
            yield from self._take(job, Grant(node=grant.node, gpus=more))

    def _of_preemption(self, preemption: Preemption) -> Iterator[str]:
        jobs = self._snapshot.jobs
        job, other = jobs.get(preemption.job_id), jobs.get(preemption.for_job)
        if job is None:
            yield f"{preemption.job_id} is preempted and does not exist"
            return
        if job.state is not JobState.RUNNING or job.allocation is None:
            yield f"{job.id} is preempted and is {job.state}"
        if not job.preemptible:
            yield f"{job.id} is preempted and must not be"
        if other is None or other.state is not JobState.QUEUED:
            yield f"{job.id} is preempted for {preemption.for_job}, which does not wait"
        if preemption.to is not None:
            if job.allocation is not None and job.allocation.grants[0].node == preemption.to.grants[0].node:
                yield f"{job.id} is moved to the node that it is on"
            yield from self._of_new_place(job, preemption.to)

    def _of_planned(self, planned: PlannedStart) -> Iterator[str]:
        job = self._snapshot.jobs.get(planned.job_id)
        if job is None or job.state is not JobState.QUEUED:
            yield f"{planned.job_id} is given a planned start and does not wait"
            return
        for grant in planned.held.grants:
            yield from self._take(job, Grant(node=grant.node, gpus=grant.gpus, gpu_milli=grant.gpu_milli))

    # ---------------------------------------------------------------- places

    def _of_new_place(self, job: Job, allocation: Allocation) -> Iterator[str]:
        request, places = job.request, [grant.node for grant in allocation.grants]
        if len(places) != request.nodes or len({*places}) != len(places):
            yield f"{job.id} asks for {counted(request.nodes, 'node')} and gets {', '.join(places) or 'none'}"
        for grant in allocation.grants:
            yield from self._of_grant(job, grant)
            yield from self._take(job, grant)

    def _of_grant(self, job: Job, grant: Grant) -> Iterator[str]:
        request, node = job.request, self._snapshot.nodes.get(grant.node)
        if node is None:
            return  # `_take` reports it
        if node.state is not NodeState.READY or grant.node in job.avoid_nodes:
            yield f"{job.id} gets {grant.node}, which is {node.state} or which it avoids"
        wanted = 1 if request.gpu_milli else request.gpus
        most = wanted if job.elastic is None else job.elastic.max_gpus
        if not wanted <= len(grant.gpus) <= most or len({*grant.gpus}) != len(grant.gpus):
            yield f"{job.id} asks for {_range_of(job)} of each node and gets {', '.join(grant.gpus) or 'none'}"
        if grant.gpus and grant.gpu_milli != (request.gpu_milli or WHOLE):
            yield f"{job.id} gets {grant.gpu_milli} thousandths of a GPU and asks for {request.gpu_milli or WHOLE}"
        if (grant.cpu_milli, grant.memory_bytes) != (request.cpu_milli, request.memory_bytes):
            yield f"{job.id} gets other CPUs or memory of {grant.node} than it asks for"
        yield from self._of_gpus(job, node, grant)

    def _of_gpus(self, job: Job, node: Node, grant: Grant) -> Iterator[str]:
        queue = self._snapshot.queues.get(job.queue)
        if job.only_gpus and {*grant.gpus} != {*job.only_gpus}:
            yield f"{job.id} checks {', '.join(job.only_gpus)} and gets {', '.join(grant.gpus)}"
        for gpu in node.gpus if grant.gpus else ():
            if gpu.id in grant.gpus:
                is_closed = not gpu.takes_jobs and gpu.id not in job.only_gpus
                if is_closed or gpu.id in job.avoid_gpus or gpu.id in node.taken.gpus:
                    yield (
                        f"{job.id} gets {gpu.id}, which is {gpu.health}, moves to another pool, is held outside "
                        "corral, or which it avoids"
                    )
                if queue is None or gpu.pool != queue.pool:
                    yield f"{job.id} of queue {job.queue} gets {gpu.id} of pool {gpu.pool}"
                if job.request.models and gpu.model not in job.request.models:
                    yield f"{job.id} gets {gpu.id}, a {gpu.model}, and asks for {', '.join(job.request.models)}"

    def _take(self, job: Job, grant: Grant) -> Iterator[str]:
        if grant.node not in self._snapshot.fleet.place_of:
            yield f"{job.id} gets node {grant.node}, which does not exist"
            return
        there = self._snapshot.fleet.slot(grant.node).free_milli
        for gpu in grant.gpus:
            if gpu not in there:
                yield f"{job.id} gets {gpu} on {grant.node}, which does not exist"
            self._gpus[grant.node, gpu] += grant.gpu_milli
        self._cpu_milli[grant.node] += grant.cpu_milli
        self._memory_bytes[grant.node] += grant.memory_bytes

    def _given_twice(self) -> Iterator[str]:
        """Resources that are allocated or held beyond what is free."""
        fleet = self._snapshot.fleet
        for (node, gpu), milli in self._gpus.items():
            left = fleet.slot(node).free_milli.get(gpu, 0)
            if milli > left:
                yield f"{milli} thousandths of {gpu} on {node} are given, and {left} are free"
        for node, cpu_milli in self._cpu_milli.items():
            # A node that lost CPUs while they were held has a negative number; jobs that ask for none fit all the same.
            if cpu_milli and cpu_milli > fleet.slot(node).free_cpu_milli:
                yield f"{cpu_milli} thousandths of CPUs on {node} are given, {fleet.slot(node).free_cpu_milli} are free"
        for node, size in self._memory_bytes.items():
            if size and size > fleet.slot(node).free_memory_bytes:
                yield f"{size} bytes of memory on {node} are given, and {fleet.slot(node).free_memory_bytes} are free"


def _range_of(job: Job) -> str:
    if job.elastic is not None:
        return f"{job.elastic.min_gpus} to {counted(job.elastic.max_gpus, 'GPU')}"
    return counted(1 if job.request.gpu_milli else job.request.gpus, "GPU")
