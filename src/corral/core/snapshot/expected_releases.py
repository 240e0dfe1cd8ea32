"""What comes back soon: from jobs that give way to others, less what of it is promised already.

Only what is left over is told, so that a cycle in which many give way pays for each of them once.
"""

from __future__ import annotations

from collections.abc import Iterable

from corral.core.model import Allocation, Grant, Job


class Vacating:
    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        #: thousandths of each GPU, and where it is
        self._gpus: dict[str, tuple[str, int]] = {}
        #: CPUs and memory by node
        self._hosts: dict[str, tuple[int, int]] = {}
        for job in jobs:
            self.add(job)

    @property
    def has_gpus(self) -> bool:
        return bool(self._gpus)

    def add(self, job: Job) -> None:
        """One more gives way. One that is moved keeps what it goes on with."""
        for grant in job.allocation.grants if job.allocation is not None else ():
            self._count(grant, 1)
        for grant in job.next_allocation.grants if job.next_allocation is not None else ():
            self._count(grant, -1)

    def use(self, allocation: Allocation, held: Allocation) -> None:
        """This is promised to somebody, and `held` of it is free already: the rest is what comes."""
        for grant in allocation.grants:
            self._count(grant, -1)
        for grant in held.grants:
            self._count(grant, 1)

    def left(self) -> Allocation:
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
