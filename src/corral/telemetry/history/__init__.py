"""The embedded metric history: measured values in one file of the server, without another service."""

from corral.telemetry.history.embedded import EmbeddedHistory
from corral.telemetry.history.file import HistoryTooNew

__all__ = ["EmbeddedHistory", "HistoryTooNew"]
