"""Which devices jobs have that are not corral's. Only the dear query tells, and they keep them as long as they run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from corral.engines.slurm.seen import SlurmJob


class Devices:
    def __init__(self) -> None:
        self._known: Mapping[int, Mapping[str, frozenset[int]]] = {}

    def told(
        self, live: Iterable[SlurmJob], own: Collection[int], ask_all: Callable[[], Iterable[SlurmJob]]
    ) -> list[SlurmJob]:
        """The jobs with the devices of those that are not corral's own. `ask_all` is called when one of them is new."""
        jobs = list(live)
        theirs = {job.id for job in jobs if job.id not in own and job.gpus and job.holds_nodes}
        if not theirs <= self._known.keys():
            self._known = {job.id: job.gpu_indexes for job in ask_all() if job.id in theirs}
        return [replace(job, gpu_indexes=self._known[job.id]) if job.id in self._known else job for job in jobs]
