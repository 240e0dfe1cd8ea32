"""The devices of jobs that are not corral's. Only the expensive query reports them, and jobs keep their devices to
their end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from corral.engines.slurm.slurm_api.slurm_records import SlurmJob


class Devices:
    def __init__(self) -> None:
        self._known: Mapping[int, SlurmJob] = {}

    def complete(
        self, live: Iterable[SlurmJob], own: Collection[int], ask_all: Callable[[], Iterable[SlurmJob]]
    ) -> list[SlurmJob]:
        """The live jobs, completed with the devices of jobs that are not corral's own. `ask_all` is called if one of
        these is new."""
        jobs = list(live)
        theirs = {job.id for job in jobs if job.id not in own and job.gpus and job.holds_nodes}
        if not theirs <= self._known.keys():
            self._known = {job.id: job for job in ask_all() if job.id in theirs}
        return [self._with_devices(job) for job in jobs]

    def _with_devices(self, job: SlurmJob) -> SlurmJob:
        known = self._known.get(job.id)
        return job if known is None else replace(job, gpu_counts=known.gpu_counts, gpu_indexes=known.gpu_indexes)
