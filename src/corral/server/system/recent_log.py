"""The last lines of the server's own log, in memory: the status page shows them for each part.

Lines of a worker are found by its thread, because each worker has a thread of its own name.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from corral.core.visible_text import visible, visible_line

#: Lines that are kept, and characters of each.
KEPT_LINES = 2000
_LINE_CHARACTERS = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class LogFilter:
    """The lines of a part: those of its threads or loggers, and of these only lines with the text."""

    threads: tuple[str, ...] = ()
    #: names of loggers; loggers below them belong, too
    loggers: tuple[str, ...] = ()
    text: str = ""

    def matches(self, line: LogLine) -> bool:
        is_of_part = line.thread in self.threads or any(
            line.logger == name or line.logger.startswith(f"{name}.") for name in self.loggers
        )
        return is_of_part and self.text in line.text


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    thread: str
    logger: str
    text: str


class _Formatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return visible(super().formatException(ei))


class RecentLog(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(_Formatter())
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._reading = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)[:_LINE_CHARACTERS]
        except Exception:  # noqa: BLE001 - as every handler: a line that cannot be formatted ends no program
            self.handleError(record)
            return
        line = LogLine(thread=record.threadName or "", logger=record.name, text=text)
        with self._reading:
            self._lines.append(line)

    def lines(self, wanted: LogFilter) -> list[str]:
        """The oldest first."""
        with self._reading:
            kept = list(self._lines)
        return [line.text for line in kept if wanted.matches(line)]

    def attach(self) -> None:
        logging.getLogger().addHandler(self)

    def detach(self) -> None:
        logging.getLogger().removeHandler(self)
