"""Readings of this machine: CPU, memory, the disk that holds corral's state, network."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from corral.control.ports import Collected, HostReading

logger = logging.getLogger(__name__)

#: Traffic of a machine with itself is not counted.
_LOOPBACK = ("lo", "lo0")


class _Traffic(NamedTuple):
    at: float
    received: int
    sent: int


class HostCollector:
    """`node` is this machine's name in the fleet, `directory` is on the disk to watch. Use from one thread."""

    name = "host"

    def __init__(self, node: str, directory: Path) -> None:
        self._node = node
        self._directory = directory
        self._traffic: _Traffic | None = None
        # The first value of psutil has no start; later values count from the call before.
        self._cpu_begun = False

    def collect(self, at: float) -> Collected:
        cpu = self._cpu()
        memory = _quiet(psutil.virtual_memory)
        disk = _quiet(psutil.disk_usage, str(self._directory))
        received, sent = self._rates(at)
        reading = HostReading(
            node=self._node,
            at=at,
            cpu=cpu,
            memory_used_bytes=None if memory is None else int(memory.total - memory.available),
            memory_total_bytes=None if memory is None else int(memory.total),
            disk_used_bytes=None if disk is None else int(disk.used),
            disk_total_bytes=None if disk is None else int(disk.total),
            network_receive_bytes=received,
            network_send_bytes=sent,
        )
        return Collected(hosts=(reading,))

    def close(self) -> None:
        self._traffic = None

    def _cpu(self) -> float | None:
        percent = _quiet(psutil.cpu_percent, None)
        begun, self._cpu_begun = self._cpu_begun, True
        return None if percent is None or not begun else min(1.0, percent / 100)

    def _rates(self, at: float) -> tuple[float | None, float | None]:
        counters = _quiet(psutil.net_io_counters, True)
        if counters is None:
            return None, None
        cards = [found for card, found in counters.items() if card not in _LOOPBACK]
        now = _Traffic(at, sum(card.bytes_recv for card in cards), sum(card.bytes_sent for card in cards))
        before, self._traffic = self._traffic, now
        if before is None or now.at <= before.at:
            return None, None
        seconds = now.at - before.at
        # The counters of a removed network card disappear: that is no negative traffic.
        return max(0, now.received - before.received) / seconds, max(0, now.sent - before.sent) / seconds


def _quiet(question: Callable[..., Any], *arguments: Any) -> Any:
    """The value, or None if the system has none."""
    try:
        return question(*arguments)
    except (OSError, RuntimeError, psutil.Error) as error:
        logger.debug("%s: %s", getattr(question, "__name__", question), error)
        return None
