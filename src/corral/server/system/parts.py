"""The parts of the platform and their health: the one source for the status page, `about`, `/readyz` and `doctor`.

`found` lists all parts as they are now. `PartWatch` notes them every few seconds, so that each has the time since when
it is as it is, the number of its restarts and its last error. All this is kept in memory: it covers the time since the
server was started.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from corral.control.live.controller import Controller
from corral.control.live.outbox import Backlog
from corral.control.live.worker import Worker, WorkerHealth, workers_alive
from corral.control.ports import Clock, Engine, EnginePart, EnginePartKind, HasParts, History, StoreUnavailable
from corral.core.counts import counted
from corral.core.visible_text import visible_line
from corral.server.settings.sections.cluster_sections import ClusterSettings
from corral.server.settings.settings import Settings
from corral.server.system.disk_guard import DiskGuard
from corral.server.system.recent_log import LogFilter, RecentLog
from corral.server.system.servers import Servers
from corral.telemetry.found_exporters import FoundExporters
from corral.telemetry.scraper import ScrapingCollector

EVERY_SECONDS = 5.0
#: The number of bytes that are read of a part's own log file.
_LOG_BYTES = 64 * 1024

#: Threads with another part's name.
_CONTROLLER = "controller"
_HISTORY_THREADS = ("history", "recording")


class PartKind(StrEnum):
    SERVER = "server"
    CONTROLLER = "controller"
    STORE = "store"
    HISTORY = "history"
    DISK = "disk"
    #: a cluster, as its engine observes it
    ENGINE = "engine"
    SPAWNER = "spawner"
    #: a process of the cluster's own system, such as slurmctld, or slurmd on a node
    DAEMON = "daemon"
    OUTBOX = "outbox"
    EXPORTER = "exporter"
    WORKER = "worker"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    #: unique
    name: str
    kind: PartKind
    healthy: bool
    #: what is wrong; or, of a healthy part, what there is to know
    detail: str = ""
    cluster: str = ""
    node: str = ""
    #: since when it is healthy, or not
    since: float = 0.0
    #: how often it was started again, or worked again after a failure
    restarts: int = 0
    #: `restarts` is the part's own count; of other parts, each return after a failure counts
    counts_restarts: bool = False
    last_error: str = ""
    last_error_at: float | None = None
    #: without it the server is not ready
    is_needed: bool = False
    #: exact times that the part itself reports; None otherwise
    started_at: float | None = None
    log: LogFilter | None = None
    #: whether its engine keeps a log file of its own
    has_own_log: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSources:
    """The sources of the health of parts."""

    settings: Settings
    controller: Controller
    engines: Mapping[str, Engine]
    exporters: Sequence[ScrapingCollector | FoundExporters]
    history: History
    #: why readings are not recorded; "" while they are
    recording_problem: Callable[[], str]
    disk_guard: DiskGuard
    servers: Servers
    version: str
    started_at: float
    clock: Clock


class PartWatch:
    """Safe for use by several threads."""

    def __init__(self, sources: PartSources) -> None:
        self._sources = sources
        self._log = RecentLog()
        self._lock = threading.Lock()
        self._known: dict[str, Part] = {}
        self._worker = Worker("parts", self._round, every_seconds=EVERY_SECONDS)

    def start(self) -> None:
        self._log.attach()
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()
        self._log.detach()

    def parts(self, store_fault: str) -> list[Part]:
        """All parts as they are now. `store_fault` is the result of a test of the store; "" if it passed."""
        return self.note(found(self._sources, store_fault))

    def note(self, parts: Iterable[Part]) -> list[Part]:
        """Add to each part what was known before. Parts that are gone are forgotten."""
        now = self._sources.clock.now()
        with self._lock:
            self._known = {part.name: with_past(self._known.get(part.name), part, now) for part in parts}
            return list(self._known.values())

    def log_of(self, part: Part) -> list[str]:
        """The last lines of its log; empty if there are none."""
        lines = self._log.lines(part.log) if part.log is not None else []
        engine = self._sources.engines.get(part.cluster)
        if part.has_own_log and isinstance(engine, HasParts):
            lines += engine.part_log(own_name(part), _LOG_BYTES).splitlines()
        return [visible_line(line) for line in lines]

    def _round(self) -> None:
        # Without a test of the store, which would write to it: the controller reports its outages.
        self.note(found(self._sources, self._sources.controller.outage))


def own_name(part: Part) -> str:
    """The name that the part has at its engine."""
    return part.name.removesuffix(f" ({part.cluster})")


def with_past(before: Part | None, part: Part, now: float) -> Part:
    is_same = before is not None and before.healthy == part.healthy
    since = part.started_at if part.healthy and part.started_at is not None else None
    if since is None:
        since = before.since if before is not None and is_same else now
    restarts = part.restarts
    last_error, last_error_at = part.last_error or ("" if part.healthy else part.detail), None
    if before is not None:
        if not part.counts_restarts:
            restarts = before.restarts + (part.healthy and not before.healthy)
        last_error = last_error or before.last_error
        last_error_at = before.last_error_at
    if last_error and (before is None or last_error != before.last_error or not part.healthy):
        last_error_at = now
    return replace(part, since=since, restarts=restarts, last_error=last_error, last_error_at=last_error_at)


def found(sources: PartSources, store_fault: str) -> Iterator[Part]:
    """All parts, without their past."""
    yield _server(sources)
    yield Part(
        name="store",
        kind=PartKind.STORE,
        healthy=not store_fault,
        detail=store_fault,
        is_needed=True,
        log=LogFilter(loggers=("corral.stores",)),
    )
    yield _controller(sources.controller)
    if sources.servers.are_several:
        yield _standby(sources.servers)
    yield _history(sources)
    yield _disk(sources.disk_guard)
    for cluster in sources.settings.cluster:
        # A server that stands by has no engines.
        if cluster.name in sources.engines:
            yield from _cluster(sources, cluster)
    for exporter in sources.exporters:
        yield Part(
            name=f"exporter {exporter.label}",
            kind=PartKind.EXPORTER,
            healthy=not exporter.problem,
            detail=exporter.problem,
            log=LogFilter(loggers=("corral.telemetry.scraper",), text=exporter.label),
        )
    for worker in workers_alive():
        yield _worker(worker.health)


def _server(sources: PartSources) -> Part:
    return Part(
        name="server",
        kind=PartKind.SERVER,
        healthy=True,
        detail=f"version {sources.version}, process {os.getpid()} on {platform.node()}",
        started_at=sources.started_at,
        # Each server that takes the store over begins a new term.
        restarts=max(0, sources.controller.term - 1),
        counts_restarts=True,
        log=LogFilter(loggers=("corral.server",)),
    )


def _standby(servers: Servers) -> Part:
    """The other servers over the store. This one is ready without them."""
    try:
        seen = servers.seen()
    except StoreUnavailable:
        detail, is_there = "the servers over this store are unknown while it is unavailable", False
    else:
        leader = next((server.record.name for server in seen.servers if server.leads_since is not None), "no server")
        is_there = bool(seen.standbys)
        ready = ", ".join(seen.standbys) or "no other server"
        changes = counted(seen.leader_changes, "time")
        detail = f"{leader} leads, {ready} could take over; the leader has changed {changes}"
    return Part(
        name="standby",
        kind=PartKind.SERVER,
        healthy=is_there,
        detail=detail,
        log=LogFilter(loggers=("corral.server.membership", "corral.server.standby")),
    )


def _controller(controller: Controller) -> Part:
    detail = "the store cannot be used, and the controller waits for it" if controller.outage else ""
    return Part(
        name=_CONTROLLER,
        kind=PartKind.CONTROLLER,
        healthy=controller.is_alive and not controller.outage,
        detail=detail if controller.is_alive else "the controller has stopped",
        is_needed=True,
        log=LogFilter(threads=(_CONTROLLER,)),
    )


def _history(sources: PartSources) -> Part:
    problem = sources.recording_problem()
    kind = str(sources.history.describe().get("kind", ""))
    return Part(
        name="history",
        kind=PartKind.HISTORY,
        healthy=not problem,
        detail=f"readings are not recorded: {problem}" if problem else kind,
        log=LogFilter(threads=_HISTORY_THREADS),
    )


def _disk(guard: DiskGuard) -> Part:
    """A server whose disk is almost full launches no jobs, but is still ready."""
    problem = guard.problem()
    return Part(
        name="disk",
        kind=PartKind.DISK,
        healthy=not problem,
        detail=f"nothing is launched: {problem}" if problem else "",
        log=LogFilter(loggers=("corral.server.disk",)),
    )


def _cluster(sources: PartSources, cluster: ClusterSettings) -> Iterator[Part]:
    seen, engine = sources.controller.health.get(cluster.name), sources.engines[cluster.name]
    healthy = seen is not None and seen.healthy
    detail = cluster.engine if healthy else f"cluster {cluster.name} was not observed"
    if seen is not None and seen.detail:
        detail += f": {seen.detail}"
    yield Part(
        name=f"cluster {cluster.name}",
        kind=PartKind.ENGINE,
        cluster=cluster.name,
        healthy=healthy,
        detail=detail,
        # One that does not answer concerns its own jobs only: the server serves all others.
        is_needed=seen is None,
        log=LogFilter(threads=(f"watch-{cluster.name}",), loggers=(f"corral.engines.{cluster.engine}",)),
    )
    yield _outbox(cluster.name, sources.controller.backlogs()[cluster.name])
    if isinstance(engine, HasParts):
        for part in engine.parts():
            yield _of_engine(cluster.name, part)


def _outbox(cluster: str, backlog: Backlog) -> Part:
    waiting = counted(backlog.waiting, "effect")
    return Part(
        name=f"outbox {cluster}",
        kind=PartKind.OUTBOX,
        cluster=cluster,
        healthy=not backlog.waiting,
        detail=f"{waiting} not carried out yet: {backlog.trouble}" if backlog.waiting else "",
        log=LogFilter(threads=(f"outbox-{cluster}",)),
    )


def _of_engine(cluster: str, part: EnginePart) -> Part:
    return Part(
        name=f"{part.name} ({cluster})",
        kind=PartKind(part.kind.value),
        cluster=cluster,
        node=part.node,
        healthy=part.healthy,
        detail=part.detail,
        restarts=part.restarts or 0,
        counts_restarts=part.restarts is not None,
        started_at=part.started_at,
        last_error=part.last_error,
        has_own_log=part.kind is EnginePartKind.SPAWNER,
    )


def _worker(health: WorkerHealth) -> Part:
    """The server is ready even if a worker fails."""
    return Part(
        name=f"worker {health.name}",
        kind=PartKind.WORKER,
        healthy=not health.failures,
        detail=f"{health.error} ({health.failures} times in a row)" if health.failures else "",
        restarts=health.failures_in_all,
        counts_restarts=True,
        last_error=health.last_error,
        log=LogFilter(threads=(health.name,)),
    )
