"""Table of the shares of apps."""

from __future__ import annotations

from typing import Protocol

from corral.control.records import AppShare


class AppShareTable(Protocol):
    """Shares of a job that is deleted are deleted with it."""

    def of_job(self, job_id: str) -> list[AppShare]:
        """Sorted by kind and name; expired ones too."""

    def of_group(self, group: str) -> list[AppShare]:
        """Sorted by job."""

    def save(self, share: AppShare) -> None:
        """Insert or replace by job, kind and name."""

    def delete(self, share: AppShare) -> None: ...
