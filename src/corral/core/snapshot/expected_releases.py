"""Resources that jobs which are being preempted or moved will release, less those that are promised already.

Only the rest is kept, so that a cycle in which many jobs leave counts each of them once.
"""

from __future__ import annotations

from collections.abc import Iterable

from corral.core.model import Allocation, Grant, Job


class ExpectedReleases:
    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        #: by GPU: its node, and the thousandths of it
        self._gpus: dict[str, tuple[str, int]] = {}
        #: CPUs and memory by node
        self._hosts: dict[str, tuple[int, int]] = {}
        for job in jobs:
            self.add(job)

    @property
    def has_gpus(self) -> bool:
        return bool(self._gpus)

    def add(self, job: Job) -> None:
        """Count a job that leaves. A job that is moved keeps its next allocation."""
        for grant in job.allocation.grants if job.allocation is not None else ():
            self._count(grant, 1)
        for grant in job.next_allocation.grants if job.next_allocation is not None else ():
            self._count(grant, -1)

    def use(self, allocation: Allocation, held: Allocation) -> None:
        """Note that the allocation is promised to a job. `held` of it is free already; the rest is yet to be
        released."""
        for grant in allocation.grants:
            self._count(grant, -1)
        for grant in held.grants:
            self._count(grant, 1)

    def left(self) -> Allocation:
        """The resources that are promised to no job."""
        gpus = [Grant(node=node, gpus=(gpu,), gpu_milli=milli) for gpu, (node, milli) in self._gpus.items()]
        hosts = [
            Grant(node=node, cpu_milli=cpu_milli, memory_bytes=memory_bytes)
            for node, (cpu_milli, memory_bytes) in self._hosts.items()
        ]
        return Allocation(grants=(*gpus, *hosts))

    def _count(self, grant: Grant, sign: int) -> None:
        for gpu in grant.gpus:
            milli = self._gpus.pop(gpu, (grant.node, 0))[1] + sign * grant.gpu_milli
            if milli:
                self._gpus[gpu] = (grant.node, milli)
        cpu_milli, memory_bytes = self._hosts.pop(grant.node, (0, 0))
        cpu_milli, memory_bytes = cpu_milli + sign * grant.cpu_milli, memory_bytes + sign * grant.memory_bytes
        if cpu_milli or memory_bytes:
            self._hosts[grant.node] = (cpu_milli, memory_bytes)
