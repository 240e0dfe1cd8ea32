"""A Slurm that expects no call: fakes override what their test asks for."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from corral.engines.slurm.cluster.partitions import Partition
from corral.engines.slurm.slurm_api.commands import Slurm, Submission
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob, SlurmNode


class UnusedSlurm(Slurm):
    def nodes(self) -> list[SlurmNode]:
        _unexpected()

    def partitions(self) -> list[Partition]:
        _unexpected()

    def live(self) -> list[SlurmJob]:
        _unexpected()

    def jobs(self) -> list[SlurmJob]:
        _unexpected()

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        _unexpected()

    def named(self, name: str, since: float) -> list[SlurmJob]:
        _unexpected()

    def reserved(self, name: str) -> list[str]:
        _unexpected()

    def submitter(self) -> JobOwner:
        _unexpected()

    def submit(self, job: Submission) -> int:
        _unexpected()

    def beside(
        self, job_id: int, node: str, *, has_terminal: bool, has_input: bool
    ) -> tuple[list[str], dict[str, str]]:
        _unexpected()

    def signal(self, job_id: int, name: str, *, to_steps: bool) -> None:
        _unexpected()

    def cancel(self, *job_ids: int, only_pending: bool = False) -> None:
        _unexpected()

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None:
        _unexpected()


def _unexpected() -> NoReturn:
    raise AssertionError("the test expects no such call")
