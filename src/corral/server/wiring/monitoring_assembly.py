"""Assembles monitoring from settings: collectors, the history of their readings, and the workers that act on readings.

Every part that needs readings is a sink of the same sampling. The order of the sinks matters: the latest readings come
first, since alerts are computed from them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.control.fleet import node_actions as fleet_use_cases
from corral.control.fleet.gpu_holders import holders
from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.live.worker import log_failure
from corral.control.ports import Clock, Collector, HasExporters, History, ReadingSink, SelfTest, Store
from corral.core.model import WHOLE
from corral.engines.local.fleet import HostFleet, VirtualFleet
from corral.server.alerts.alert_worker import AlertWorker
from corral.server.auth.secret_box import SecretBox
from corral.server.http.context import NO_HISTORY
from corral.server.jobs.elastic_measurement import UseWatch
from corral.server.monitoring.fleet_metrics import read_fleet
from corral.server.monitoring.health_watch import HealthWatch, IdleWatch
from corral.server.monitoring.recorder import Recorder
from corral.server.monitoring.sampling import STALE_INTERVALS, NodeLoads, NodeUse, Sampling
from corral.server.monitoring.usage_meter import UsageMeter
from corral.server.settings.settings import Settings
from corral.server.system.servers import Servers
from corral.telemetry.amd.collector import AmdCollector
from corral.telemetry.found_exporters import FoundExporters
from corral.telemetry.history import EmbeddedHistory, HistoryDamaged, set_aside
from corral.telemetry.host import HostCollector
from corral.telemetry.notices import AppriseNotifier
from corral.telemetry.nvml import NvmlCollector
from corral.telemetry.prometheus import PrometheusHistory
from corral.telemetry.readings import LatestReadings
from corral.telemetry.scraper import ScrapingCollector
from corral.telemetry.selftest import DriverSelfTest, VirtualSelfTest
from corral.telemetry.virtual import VirtualCollector

log = logging.getLogger("corral.server.wiring.monitoring_assembly")

HISTORY_FILE = "history.db"
#: timeout of background threads' requests to the controller
ANSWER_SECONDS = 30.0
_DAY = 86_400.0

Fleet = HostFleet | VirtualFleet


@dataclass(frozen=True, kw_only=True, slots=True)
class Monitoring:
    """Parts of monitoring that the rest of the server uses."""

    readings: LatestReadings
    history: History
    #: writes the readings to the history
    recorder: Recorder
    self_test: SelfTest
    alerting: AlertWorker
    #: exporters on other nodes, from the settings
    exporters: tuple[ScrapingCollector | FoundExporters, ...]


@contextmanager
def monitored(
    settings: Settings,
    *,
    controller: Controller,
    store: Store,
    fleet: Fleet,
    box: SecretBox,
    clock: Clock,
    followers: ReadingSink,
    servers: Servers,
) -> Iterator[Monitoring]:
    """Monitor until the block ends. The controller must run for longer. `followers` are notified of every round."""
    interval = settings.monitoring.interval_seconds
    with ExitStack() as parts:
        history = open_history(settings, clock)
        parts.callback(history.close)
        readings = LatestReadings(stale_after_seconds=STALE_INTERVALS * interval)
        recorder = _recorder(settings, history, controller, clock)
        meter = UsageMeter(
            controller=controller,
            store=store,
            now=clock.now(),
            interval_seconds=interval,
            idle_below=settings.idle_rules.utilization,
        )
        alerting = _alerting(settings, readings, controller, store, box, clock, servers)
        exporters = _exporters(settings, controller)
        sampling = Sampling(
            [*_own_collectors(settings, controller, fleet), *exporters],
            [readings, followers, recorder, *_watches(settings, controller), meter, alerting, _loads(controller)],
            holders=lambda: controller.inspect(holders).result(ANSWER_SECONDS),
            clock=clock,
            interval_seconds=interval,
        )
        # Stopped in the opposite order: first the sampling, then the sinks that write the last readings.
        for part in (recorder, alerting):
            part.start()
            parts.callback(part.stop)
        parts.callback(meter.stop)
        sampling.start()
        parts.callback(sampling.stop)
        yield Monitoring(
            readings=readings,
            history=history,
            recorder=recorder,
            self_test=_self_test(fleet),
            alerting=alerting,
            exporters=exporters,
        )


def unmonitored(
    settings: Settings, *, controller: Controller, store: Store, box: SecretBox, clock: Clock, servers: Servers
) -> Monitoring:
    """The monitoring of a standby: only the leader measures. The history can be read if it is a Prometheus."""
    readings = LatestReadings(stale_after_seconds=STALE_INTERVALS * settings.monitoring.interval_seconds)
    history = NO_HISTORY if settings.storage.metrics == "embedded" else open_history(settings, clock)
    return Monitoring(
        readings=readings,
        history=history,
        recorder=_recorder(settings, history, controller, clock),
        self_test=DriverSelfTest(),
        alerting=_alerting(settings, readings, controller, store, box, clock, servers),
        exporters=(),
    )


def _recorder(settings: Settings, history: History, controller: Controller, clock: Clock) -> Recorder:
    return Recorder(
        history,
        clock=clock,
        interval_seconds=settings.monitoring.interval_seconds,
        inspect_fleet=lambda: controller.inspect(read_fleet, clock.now()),
    )


def _alerting(
    settings: Settings,
    readings: LatestReadings,
    controller: Controller,
    store: Store,
    box: SecretBox,
    clock: Clock,
    servers: Servers,
) -> AlertWorker:
    return AlertWorker(
        controller=controller,
        store=store,
        readings=readings,
        notifier=AppriseNotifier(),
        box=box,
        clock=clock,
        interval_seconds=settings.monitoring.interval_seconds,
        config_channels=settings.notification.channels,
        servers=servers.facts,
    )


def _watches(settings: Settings, controller: Controller) -> list[ReadingSink]:
    """The sinks that act on readings."""
    return [
        HealthWatch(controller, settings.health_rules),
        IdleWatch(controller, settings.idle_rules),
        UseWatch(
            controller,
            settings.scaling_rules,
            window_seconds=settings.scaling.window_minutes * 60,
            interval_seconds=settings.monitoring.interval_seconds,
        ),
    ]


def _loads(controller: Controller) -> NodeLoads:
    return NodeLoads(lambda: _ask(controller, _gpu_homes), lambda loads: _store_loads(controller, loads))


def open_history(settings: Settings, clock: Clock) -> History:
    """The server's own history, or that of a Prometheus that scrapes this server."""
    if settings.storage.metrics != "embedded":
        return PrometheusHistory(settings.storage.metrics)
    path = settings.home / HISTORY_FILE
    try:
        return _embedded(path, settings, clock)
    except HistoryDamaged as damage:
        # No job depends on it, and all of them wait for the server.
        log.error("%s: it is kept as %s, and a new one begins", damage, set_aside(path))
        return _embedded(path, settings, clock)


def _embedded(path: Path, settings: Settings, clock: Clock) -> EmbeddedHistory:
    monitoring = settings.monitoring
    return EmbeddedHistory(
        path,
        raw_seconds=monitoring.raw_retention_hours * 3600,
        minute_seconds=monitoring.metrics_retention_days * _DAY,
        hour_seconds=monitoring.hourly_retention_days * _DAY,
        clock=clock,
    )


def _own_collectors(settings: Settings, controller: Controller, fleet: Fleet) -> list[Collector]:
    if isinstance(fleet, VirtualFleet):
        return [VirtualCollector(fleet, lambda: _ask(controller, _held_parts))]
    return [NvmlCollector(), AmdCollector(), HostCollector(fleet.nodes()[0].id, settings.home)]


def _exporters(settings: Settings, controller: Controller) -> tuple[ScrapingCollector | FoundExporters, ...]:
    """The exporters of the settings, and those that engines find by themselves."""
    named = tuple(
        ScrapingCollector(
            target,
            lambda: _ask(controller, _gpu_places),
            timeout_seconds=settings.monitoring.interval_seconds,
        )
        for target in settings.monitoring.scrape
    )
    looked_for = {cluster.name for cluster in settings.cluster if cluster.kubernetes.exporter_namespace}
    found = tuple(
        FoundExporters(
            name,
            engine,
            lambda: _ask(controller, _node_gpus),
            timeout_seconds=settings.monitoring.interval_seconds,
        )
        for name, engine in controller.engines.items()
        if name in looked_for and isinstance(engine, HasExporters)
    )
    return (*named, *found)


def _self_test(fleet: Fleet) -> SelfTest:
    return VirtualSelfTest(fleet.faults) if isinstance(fleet, VirtualFleet) else DriverSelfTest()


def _ask(controller: Controller, question: Any) -> Any:
    """The controller's answer; empty while it stops."""
    try:
        return controller.inspect(question).result(ANSWER_SECONDS)
    except ControllerStopped:
        return {}


def _gpu_places(state: State) -> dict[tuple[str, int], str]:
    """GPU ids by node and index, for exporters that do not report ids."""
    return {(node.id, gpu.index): gpu.id for node in state.snapshot.nodes.values() for gpu in node.gpus}


def _node_gpus(state: State) -> dict[str, tuple[str, ...]]:
    return {node.id: tuple(gpu.id for gpu in node.gpus) for node in state.snapshot.nodes.values()}


def _gpu_homes(state: State) -> dict[str, str]:
    return dict(state.snapshot.fleet.gpu_home)


def _held_parts(state: State) -> dict[str, float]:
    """The held share of every held GPU."""
    held: dict[str, float] = {}
    for job in state.snapshot.jobs.values():
        for grant in job.allocation.grants if job.allocation is not None else ():
            for gpu in grant.gpus:
                held[gpu] = held.get(gpu, 0.0) + grant.gpu_milli / WHOLE
    return held


def _store_loads(controller: Controller, loads: NodeUse) -> None:
    controller.execute(fleet_use_cases.set_loads, loads).add_done_callback(
        log_failure(log, "the loads of nodes could not be stored")
    )
