"""One node's GPUs and host for Prometheus, under DCGM's metric names: programs that read DCGM's exporter can read this
one.

It reads at an interval and serves the last readings. Readings that are too old are not served: a gap in the data is
better than a wrong value.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from corral.control.live.worker import Worker
from corral.control.ports import Collected, Collector
from corral.telemetry.dcgm import OWN
from corral.telemetry.page import GpuPlace, Placed, SeenXids, gpu_families, host_families
from corral.telemetry.promtext import Family, render

logger = logging.getLogger(__name__)

DEFAULT_PORT = 9400
#: A reading that is older than this many intervals is not served.
STALE_INTERVALS = 3
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LAST_READ = f"{OWN}last_read_timestamp_seconds"
_REQUEST_SECONDS = 10.0
_STOP_SECONDS = 2.0

Places = Callable[[], Mapping[str, GpuPlace]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Last:
    at: float
    collected: Collected


class Exporter:
    """Takes readings, and makes the page. `places` maps GPUs to their node and index; a GPU without a place is not
    shown."""

    def __init__(
        self,
        collectors: Sequence[Collector],
        places: Places,
        *,
        interval_seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._collectors = tuple(collectors)
        self._places = places
        self._interval = interval_seconds
        self._now = now
        self._lock = threading.Lock()
        self._last: dict[str, _Last] = {}
        self._xids: dict[str, SeenXids] = {}
        self._workers = [
            Worker(
                f"read-{collector.name}",
                partial(self._read, collector),
                every_seconds=interval_seconds,
                at_end=collector.close,
            )
            for collector in self._collectors
        ]

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        for worker in self._workers:
            worker.ask_to_stop()
        for worker in self._workers:
            worker.stop(_STOP_SECONDS)

    def read(self) -> None:
        """Take all readings once, in the caller's thread: instead of `start`."""
        for collector in self._collectors:
            self._read(collector)

    def is_fresh(self) -> bool:
        """Whether any reading is new enough."""
        return bool(self._fresh())

    def page(self) -> str:
        fresh = self._fresh()
        places = self._places()
        with self._lock:
            times = [({"collector": name}, last.at) for name, last in self._last.items()]
            gpus: list[Placed] = [
                (reading, places[reading.gpu_id], self._xids.get(reading.gpu_id, SeenXids()))
                for last in fresh
                for reading in last.collected.gpus
                if reading.gpu_id in places
            ]
        hosts = [host for last in fresh for host in last.collected.hosts]
        last_read = Family(LAST_READ, "gauge", "When each collector last gave a reading.", times)
        return render([*gpu_families(gpus), *host_families(hosts), last_read])

    def _fresh(self) -> list[_Last]:
        oldest = self._now() - STALE_INTERVALS * self._interval
        with self._lock:
            return [last for last in self._last.values() if last.at >= oldest]

    def _read(self, collector: Collector) -> None:
        at = self._now()
        try:
            collected = collector.collect(at)
        except Exception:
            # A collector must not raise; if one does, its readings become too old to be served.
            logger.exception("the collector %s failed", collector.name)
            return
        if not collected.gpus and not collected.hosts:
            return
        with self._lock:
            self._last[collector.name] = _Last(at=at, collected=collected)
            for reading in collected.gpus:
                if reading.xids:
                    self._xids[reading.gpu_id] = _with(self._xids.get(reading.gpu_id, SeenXids()), reading.xids)


def _with(seen: SeenXids, codes: Sequence[int]) -> SeenXids:
    counts = dict(seen.counts)
    for code in codes:
        counts[code] = counts.get(code, 0) + 1
    return SeenXids(last=codes[-1], counts=counts)


class ExporterServer(ThreadingHTTPServer):
    """`/metrics` and `/healthz`. Raises OSError if the address cannot be used."""

    daemon_threads = True

    def __init__(self, exporter: Exporter, host: str, port: int) -> None:
        self.exporter = exporter
        super().__init__((host, port), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: ExporterServer
    server_version = "corral-exporter"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    #: for a client that sends nothing
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            status, text, kind = HTTPStatus.OK, self.server.exporter.page(), CONTENT_TYPE
        elif path == "/healthz":
            fresh = self.server.exporter.is_fresh()
            status = HTTPStatus.OK if fresh else HTTPStatus.SERVICE_UNAVAILABLE
            text, kind = "ok\n" if fresh else "no reading is new enough\n", "text/plain; charset=utf-8"
        else:
            status, text, kind = HTTPStatus.NOT_FOUND, "there is /metrics and /healthz\n", "text/plain; charset=utf-8"
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug("%s: %s", self.address_string(), format % args)
