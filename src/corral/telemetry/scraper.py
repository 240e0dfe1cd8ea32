"""Readings of other nodes, fetched from exporters there: NVIDIA's DCGM exporter or corral's own.

There is one collector per exporter, so that an exporter that hangs, sends garbage or sends without end affects only
itself. GPUs that are not in this fleet are ignored.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

import httpx

from corral.control.ports import Collected
from corral.telemetry.dcgm import NAMES, GpuLabels, XidMemory, gpu_readings, host_readings
from corral.telemetry.promtext import parse

logger = logging.getLogger(__name__)

DEFAULT_PORT = 9400
#: A node with 16 GPUs and all metrics enabled prints less than a tenth of this.
MAX_BYTES = 16 << 20
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: The GPUs of the fleet, by node and index.
Known = Callable[[], Mapping[tuple[str, int], str]]


class ScrapeFailed(Exception):
    """The exporter could not be read this time; the message says why."""


class ScrapingCollector:
    """`target` is an address such as gpu-7:9400 or a URL, after `NODE=` if the exporter does not report its node, or
    reports another name. Without `known` every GPU is accepted, under the name that `identify` gives it: its own UUID
    unless said otherwise. Use from one thread; `problem` may be read by any thread."""

    def __init__(
        self,
        target: str,
        known: Known | None = None,
        *,
        identify: Callable[[GpuLabels], str | None] = lambda labels: labels.uuid or None,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._node, address = split_target(target)
        self.url = metrics_url(address)
        place = urlsplit(self.url)
        #: without a password that the URL may contain
        self.address = f"{place.hostname}:{place.port}" if place.port else place.hostname or ""
        self.label = f"{self._node}={self.address}" if self._node else self.address
        self.name = f"scrape {self.label}"
        #: a message about its problem; "" while it answers well
        self.problem = "not read yet"
        self._host = place.hostname or ""
        self._known = known
        self._identify = identify
        self._timeout = timeout_seconds
        self._client: httpx.Client | None = None
        self._xids = XidMemory()

    def collect(self, at: float) -> Collected:
        try:
            samples, bad = parse(self._fetch(), NAMES)
            if not samples:
                raise ScrapeFailed("it answers, but with no metric of a GPU or a host")
            known = None if self._known is None else self._known()
            found = _Fleet(known, self._host, self._node, self._identify)
            collected = Collected(
                gpus=gpu_readings(samples, at, found.gpu, self._xids), hosts=host_readings(samples, at, found.node)
            )
            if known and not collected.gpus and not collected.hosts:
                raise ScrapeFailed(self._unknown_nodes_text(found.asked))
        except ScrapeFailed as error:
            self._complain(str(error))
            return Collected()
        except Exception as error:  # noqa: BLE001 - no answer of an exporter may end the reading
            self._complain(f"{type(error).__name__}: {error}")
            return Collected()
        self._complain(f"{bad} lines cannot be parsed" if bad else "")
        return collected

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _fetch(self) -> str:
        deadline = time.monotonic() + self._timeout
        if self._client is None:
            # No proxy of the environment: exporters are on the same network.
            self._client = httpx.Client(timeout=self._timeout, trust_env=False, headers={"Accept": "text/plain"})
        body = bytearray()
        try:
            with self._client.stream("GET", self.url) as answer:
                if answer.status_code != 200:
                    raise ScrapeFailed(f"HTTP status {answer.status_code}")
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise ScrapeFailed(f"more than {MAX_BYTES >> 20} MiB")
                    # Each read has its own time-out, which a slow stream never reaches.
                    if time.monotonic() > deadline:
                        raise ScrapeFailed(f"not complete after {self._timeout:g} s")
        except httpx.HTTPError as error:
            raise ScrapeFailed(str(error) or type(error).__name__) from error
        return body.decode(errors="replace")

    def _unknown_nodes_text(self, asked: Collection[str]) -> str:
        if self._node:
            return f"it answers, but node {self._node} is not known here, or has no such GPUs"
        reported = ", ".join(sorted(asked)[:3]) or self._host
        return (
            f"it answers, but for no node that is known here (it says {reported}): name its node as NODE={self.address}"
        )

    def _complain(self, problem: str) -> None:
        """Log each problem once, and once when it is over."""
        if problem == self.problem:
            return
        if problem:
            logger.warning("exporter %s: %s", self.label, problem)
        else:
            logger.info("exporter %s answers", self.label)
        self.problem = problem


class _Fleet:
    """Finds the GPU of the fleet that a sample belongs to."""

    def __init__(
        self,
        known: Mapping[tuple[str, int], str] | None,
        target_host: str,
        node: str,
        identify: Callable[[GpuLabels], str | None],
    ) -> None:
        self._known = known
        self._identify = identify
        self._ids = frozenset(known.values()) if known is not None else frozenset()
        self._nodes = frozenset(node for node, _ in known) if known is not None else frozenset()
        self._target_host = target_host
        #: the node that the operator named for this exporter
        self._node = node
        #: the hosts that were searched for
        self.asked: set[str] = set()

    def gpu(self, labels: GpuLabels) -> str | None:
        if self._known is None:
            return self._identify(labels)
        if labels.uuid in self._ids:
            return labels.uuid
        if labels.index is None:
            return None
        node = self.node(labels.host)
        return None if node is None else self._known.get((node, labels.index))

    def node(self, host: str) -> str | None:
        """The id of the node with this host name, full or short."""
        name = self._node or host or self._target_host
        self.asked.add(name)
        if self._known is None:
            return name
        return next((node for node in (name, name.partition(".")[0]) if node in self._nodes), None)


def split_target(text: str) -> tuple[str, str]:
    """`NODE=TARGET` as its two parts; the node is "" if none is named. A URL may contain a = of its own."""
    node, is_named, target = text.partition("=")
    return (node, target) if is_named and _NODE.fullmatch(node) else ("", text)


def readable_target(text: str) -> None:
    """Raises ValueError for a text that is neither an address nor `NODE=` and an address."""
    metrics_url(split_target(text)[1])


def metrics_url(target: str) -> str:
    """The whole URL: the port is 9400 and the path /metrics unless they are given. Raises ValueError."""
    is_url = "://" in target
    given = urlsplit(target if is_url else f"//{target}")
    try:
        port = given.port
    except ValueError:
        port = 0
    if not given.hostname or port == 0 or given.scheme not in ("", "http", "https") or any(map(str.isspace, target)):
        raise ValueError(f"{target!r} is neither HOST:PORT nor a URL such as http://gpu-7:9400/metrics")
    place = given.netloc if is_url or port is not None else f"{given.netloc}:{DEFAULT_PORT}"
    query = f"?{given.query}" if given.query else ""
    return f"{given.scheme or 'http'}://{place}{given.path.rstrip('/') or '/metrics'}{query}"
