"""The server's own log on standard error and in a file: plain lines or JSON, each with its request's id.

Decides the form of a line. Nothing here sees headers or bodies, so no secret can be logged.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from corral.core.visible_text import visible, visible_json, visible_line

#: The request being answered, or "-" outside of any.
request_id: ContextVar[str] = ContextVar("request_id", default="-")


class PlainFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s [%(request_id)s] %(message)s", "%Y-%m-%dT%H:%M:%S"
        )

    def formatMessage(self, record: logging.LogRecord) -> str:
        # Text from users must not forge lines, nor send control characters to the operator's terminal.
        return visible_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return visible(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return visible_json(json.dumps(line, ensure_ascii=False))


# Logs of several machines are read together: always UTC.
logging.Formatter.converter = time.gmtime


class _LogFile(RotatingFileHandler):
    """A file that only the server's account may read. If it cannot be written, that is reported once, the log continues
    on standard error, and the next line opens the file again.
    """

    _has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        # The stream may be closed, or hold what could not be written.
        stream, self.stream = self.stream, None
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
        self._report(sys.exc_info()[1])

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            self._report(error)

    def _report(self, error: BaseException | None) -> None:
        if not self._has_failed:
            self._has_failed = True
            # A full disk often is that of both: no line of the log may end the work that writes it.
            with contextlib.suppress(OSError):
                sys.stderr.write(f"corral: cannot write the log file {self.baseFilename}: {error}\n")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def add_log_file(path: Path, *, max_bytes: int, count: int) -> Callable[[], None]:
    """Write the log into this file as well; a full file is kept as `.1`, and so on up to `count` older ones. Returns
    the function that closes the file. Raises OSError."""
    root = logging.getLogger()
    handler = _LogFile(path, maxBytes=max_bytes, backupCount=count, encoding="utf-8")
    handler.setFormatter(root.handlers[0].formatter if root.handlers else PlainFormatter())
    handler.addFilter(_add_request_id)
    root.addHandler(handler)

    def close() -> None:
        root.removeHandler(handler)
        handler.close()

    return close


def configure_logging(*, log_format: str, level: str) -> None:
    """Send everything to standard error in the chosen form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else PlainFormatter())
    handler.addFilter(_add_request_id)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Their routine messages are useless to an operator.
    for noisy in ("uvicorn", "uvicorn.error", "alembic", "httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def flush_output() -> None:
    """Write what standard output and standard error still hold. What cannot be written, because their disk is full, is
    dropped: it must not change how the process ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # The interpreter writes the rest when it ends, and would exit with a code of its own.
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), stream.fileno())
            stream.flush()


def _add_request_id(record: logging.LogRecord) -> bool:
    record.request_id = request_id.get()
    return True
