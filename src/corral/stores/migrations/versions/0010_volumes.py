"""Volumes, what they hold, with whom they are shared, and the buckets behind some of them."""

from __future__ import annotations

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    pass
