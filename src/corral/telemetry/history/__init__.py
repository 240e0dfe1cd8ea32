"""The embedded metric history: what was measured, in one file beside the server, with nothing to install."""

from corral.telemetry.history.embedded import EmbeddedHistory
from corral.telemetry.history.file import HistoryTooNew

__all__ = ["EmbeddedHistory", "HistoryTooNew"]
