"""What a server stands on: its home, the store, the engines, and the controller with what it asks before a launch."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.control.controller import Controller
from corral.control.ports import Clock, Store
from corral.control.records import EventRecord
from corral.engines import workbench_host, workbench_relay, workbench_start
from corral.engines.local.instance_specs import Isolation
from corral.engines.local.storage.driver import DirectoryVolumes
from corral.engines.local.tools import LocalTools
from corral.server import clusters, isolation
from corral.server.app import VERSION
from corral.server.clusters import Clusters
from corral.server.dataset_mounting import DatasetMounting
from corral.server.imaging import Imaging
from corral.server.metrics import ServerMetrics
from corral.server.mounting import Mounting
from corral.server.presets import install_helpers
from corral.server.secrets import SecretBox
from corral.server.settings import Settings
from corral.server.storage_places import storage_places
from corral.server.storing import Storing
from corral.server.stream import EventFeed
from corral.server.workbenching import Workbenching
from corral.stores import open_store
from corral.stores.checkpoints import DirectoryCheckpoints
from corral.stores.workbench_keys import WorkbenchKeys
from corral.stores.workbenches import DirectoryWorkbenches
from corral.stores.workspace import DirectoryWorkspace

log = logging.getLogger("corral.server")

#: By the names that they have in a workbench's directory.
_WORKBENCH_PROGRAMS = {
    "host.py": Path(workbench_start.__file__),
    workbench_start.PROGRAM: Path(workbench_host.__file__),
    workbench_host.RELAY: Path(workbench_relay.__file__),
}


class SystemClock:
    def now(self) -> float:
        return time.time()


@dataclass(frozen=True, kw_only=True, slots=True)
class Foundation:
    settings: Settings
    clock: Clock
    store: Store
    clusters: Clusters
    controller: Controller
    workspace: DirectoryWorkspace
    checkpoints: DirectoryCheckpoints
    workbenches: Workbenching
    storing: Storing
    imaging: Imaging
    mounting: Mounting
    box: SecretBox
    feed: EventFeed
    metrics: ServerMetrics


def laid(settings: Settings, parts: ExitStack) -> Foundation:
    """With a controller that runs. Whoever leaves `parts` stops it; jobs keep running."""
    clock = SystemClock()
    isolated = _prepared_home(settings)
    store = open_store(settings.database_url)
    parts.callback(store.close)
    places = storage_places(settings)
    here = parts.enter_context(clusters.opened(settings, isolated, places))
    _let_jobs_in(settings, isolated)
    feed = EventFeed(lambda after, limit: _events_after(store, after, limit))
    workspace = DirectoryWorkspace(settings.home / "jobs")
    checkpoints = DirectoryCheckpoints(workspace)
    metrics = ServerMetrics(VERSION)
    controller = Controller(
        store=store,
        engines=here.engines,
        clock=clock,
        policies=settings.control_policies,
        workspace=workspace,
        checkpoints=checkpoints if settings.fault_tolerance.enable_checkpointing else None,
        announce=lambda events: _announce(events, feed, metrics),
    )
    box = SecretBox(settings.home)
    foundation = Foundation(
        settings=settings,
        clock=clock,
        store=store,
        clusters=here,
        controller=controller,
        workspace=workspace,
        checkpoints=checkpoints,
        workbenches=_workbenches(settings, isolated, controller, store, workspace, clock),
        storing=Storing(
            controller=controller,
            store=store,
            driver=DirectoryVolumes(places.volumes),
            # Nodes of a Slurm cluster share this file system, so one driver makes the volumes of all.
            clusters=[cluster.name for cluster in settings.cluster],
        ),
        imaging=Imaging(store=store, box=box),
        mounting=Mounting(store=store, box=box),
        box=box,
        feed=feed,
        metrics=metrics,
    )
    _start(foundation, parts)
    return foundation


def _start(foundation: Foundation, parts: ExitStack) -> None:
    """The controller, once it knows whom to ask before a launch."""
    controller, imaging, mounting = foundation.controller, foundation.imaging, foundation.mounting
    versions = DatasetMounting(store=foundation.store, settings=foundation.settings, box=foundation.box)
    controller.cycle_seconds = foundation.metrics.observe_cycle
    controller.prepare = foundation.workbenches.prepare
    controller.complete = lambda order: foundation.storing.noticed(
        versions.completed(mounting.completed(imaging.completed(order)))
    )
    controller.start()
    parts.callback(controller.stop)


def _prepared_home(settings: Settings) -> Isolation:
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    isolated = isolation.isolation_of(settings)
    if isolated.accounts is not None:
        isolation.keep_private()
    return isolated


def _let_jobs_in(settings: Settings, isolated: Isolation) -> None:
    install_helpers(settings)
    if isolated.accounts is not None:
        isolation.let_jobs_in(settings)
    log.info("%s", isolation.describe(isolated))


def _announce(events: Sequence[EventRecord], feed: EventFeed, metrics: ServerMetrics) -> None:
    feed.publish(events)
    metrics.observe_events(events)


def _events_after(store: Store, after: int, limit: int) -> Sequence[Any]:
    with store.read() as tables:
        return tables.events.after(after, limit)


def _workbenches(
    settings: Settings,
    isolated: Isolation,
    controller: Controller,
    store: Store,
    workspace: DirectoryWorkspace,
    clock: Clock,
) -> Workbenching:
    return Workbenching(
        controller=controller,
        store=store,
        files=DirectoryWorkbenches(workspace.home, _WORKBENCH_PROGRAMS),
        keys=WorkbenchKeys(workspace.key_file),
        tools=LocalTools(),
        accounts=isolated.accounts,
        clock=clock,
        ssh_listen=settings.server.host,
        ssh_ports=settings.workbench.port_range,
    )
