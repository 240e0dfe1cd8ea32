"""Reservations, receipts of preemptions, and queues whose order preempts."""

from __future__ import annotations

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    pass
