"""Datasets: where they are kept, their versions, and which jobs used and made them."""

from __future__ import annotations

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    pass
