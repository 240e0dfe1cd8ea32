"""The embedded metric history: measured values in one file of the server, without another service."""

from corral.telemetry.history.embedded import EmbeddedHistory
from corral.telemetry.history.file import HistoryDamaged, HistoryTooNew, set_aside

__all__ = ["EmbeddedHistory", "HistoryDamaged", "HistoryTooNew", "set_aside"]
