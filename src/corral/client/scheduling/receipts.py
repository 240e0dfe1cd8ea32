"""The routes of receipts: one for each preemption, with the victim, the job that preempted it, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import JobReceiptView, ReceiptView


class Receipts:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        since: str | None = None,
        rule: str | None = None,
        user: str | None = None,
        limit: int | None = None,
    ) -> Iterator[ReceiptView]:
        """Newest first. Operators see all receipts, other users those that concern their own jobs."""
        return self._transport.pages("/receipts", {"since": since, "rule": rule, "user": user}, limit=limit)

    def of_job(self, job: str) -> Sequence[JobReceiptView]:
        """Preemptions of this job, and preemptions of other jobs for this job."""
        return cast("Sequence[JobReceiptView]", self._transport.get(f"/jobs/{segment(job)}/receipts")["items"])
