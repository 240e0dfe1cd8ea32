"""What-if questions and where a shadow policy would differ."""

from __future__ import annotations

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    pass
