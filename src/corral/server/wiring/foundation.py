"""The foundation of a server: its home, the store, the engines, and the controller with the steps before a launch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from corral.control.launch.steps import LaunchStage, LaunchStep
from corral.control.live import restored_store
from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import SYSTEM
from corral.control.ports import Clock, Store, StoreHolder
from corral.control.records import EventRecord
from corral.control.standby.lease import HeldLease
from corral.core.model import ENDED
from corral.engines.attempts.isolation import Isolation
from corral.engines.storage.driver import DirectoryVolumes
from corral.engines.workbenches import app_host, program, workbench_relay, workbench_start
from corral.engines.workbenches.program.files import RELAY
from corral.engines.workbenches.tool_probe import LocalTools
from corral.server.auth.identity import Identities
from corral.server.auth.passwords import Passwords
from corral.server.auth.secret_box import SecretBox
from corral.server.datasets.dataset_orders import DatasetOrders
from corral.server.events.operation_log import OperationLog
from corral.server.events.stream import EventFeed
from corral.server.http.app import VERSION
from corral.server.jobs.git_sources import GitSources
from corral.server.jobs.image_orders import ImageOrders
from corral.server.jobs.preset_files import install_helpers
from corral.server.monitoring.server_metrics import ServerMetrics
from corral.server.people.outside_posts import OutsidePosts
from corral.server.people.personal_sender import PersonalSender
from corral.server.people.secret_orders import SecretOrders
from corral.server.settings.disk_limits import DiskLimits, disk_limits
from corral.server.settings.settings import Settings
from corral.server.settings.storage_places import storage_places
from corral.server.storage.mount_orders import MountOrders
from corral.server.storage.readers import Readers
from corral.server.storage.volume_upkeep import VolumeUpkeep
from corral.server.system import isolation
from corral.server.system.disk_guard import DiskGuard, free_reserve
from corral.server.system.isolation import GpuShares, Separated, Separation
from corral.server.wiring import clusters, home_ownership
from corral.server.wiring.clusters import Clusters
from corral.server.workbenches.workbench_watch import WorkbenchWatch
from corral.stores import open_store
from corral.stores.database.store import SqlStore
from corral.stores.jobs.checkpoints import DirectoryCheckpoints
from corral.stores.jobs.job_directories import DirectoryWorkspace
from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches
from corral.stores.workbenches.workbench_keys import WorkbenchKeys
from corral.telemetry.notices import AppriseNotifier

log = logging.getLogger("corral.server")

#: By the names that they have in a workbench's directory.
WORKBENCH_PROGRAMS = {
    "host.py": Path(workbench_start.__file__),
    **{f"{workbench_start.PACKAGE}/{path.name}": path for path in sorted(Path(program.__file__).parent.glob("*.py"))},
    "app.py": Path(app_host.__file__),
    RELAY: Path(workbench_relay.__file__),
}


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, kw_only=True, slots=True)
class Foundation:
    settings: Settings
    separated: Separated
    #: whether shares of GPUs are enforced; the first call may take some seconds
    gpu_shares: Callable[[], GpuShares]
    clock: Clock
    store: Store
    clusters: Clusters
    controller: Controller
    workspace: DirectoryWorkspace
    checkpoints: DirectoryCheckpoints
    workbenches: WorkbenchWatch
    volume_upkeep: VolumeUpkeep
    secret_orders: SecretOrders
    personal_sender: PersonalSender
    git_sources: GitSources
    outside: Readers
    image_orders: ImageOrders
    mount_orders: MountOrders
    box: SecretBox
    feed: EventFeed
    metrics: ServerMetrics
    disk_limits: DiskLimits
    disk_guard: DiskGuard


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    """The objects that a standby keeps when it becomes the leader."""

    store: SqlStore
    feed: EventFeed
    metrics: ServerMetrics
    passwords: Passwords
    #: streams that began before continue with these, and must end when their caller loses access
    identities: Identities
    #: checked before every launch
    lease: HeldLease


def start_foundation(
    settings: Settings, parts: ExitStack, *, take_over: bool = False, handover: Handover | None = None
) -> Foundation:
    """Start the controller; closing `parts` stops it. Jobs keep running.

    With `take_over`, the store of another home is taken over. `handover` is set when this server, one of several, has
    just become their leader. Raises StoreHeld, or RunningElsewhere.
    """
    clock = SystemClock()
    isolated = prepared_home(settings)
    limits = disk_limits(settings)
    free_reserve(settings.home, limits)
    claim = home_ownership.claim_of(settings.home, clock.now())
    if handover is None:
        store = open_store(settings.database_url, claim, take_over=take_over)
        parts.callback(store.close)
    else:
        store = handover.store
    former = store.holder()
    roots = home_ownership.engine_roots(settings, former)
    home_ownership.check_nothing_runs_elsewhere(store.installation(), roots.values())
    restored = home_ownership.restored(roots)
    claim = home_ownership.with_places(claim, roots)
    store.claim(claim)
    guard = DiskGuard(home=settings.home, limits=limits, keep_room=store.keep_room)
    guard.start()
    parts.callback(guard.stop)
    operations = OperationLog()
    operations.start()
    parts.callback(operations.stop)
    workspace = DirectoryWorkspace(settings.home / "jobs")
    fold_homes = partial(_fold_homes, store, workspace)
    here = parts.enter_context(clusters.opened(settings, isolated, storage_places(settings), roots, fold_homes))
    _prepare_isolation(settings, isolated)
    feed = handover.feed if handover is not None else event_feed(store)
    checkpoints = checkpoints_of(settings, workspace)
    metrics = handover.metrics if handover is not None else ServerMetrics(VERSION)
    controller = Controller(
        store=store,
        engines=here.engines,
        clock=clock,
        policies=settings.control_policies,
        workspace=workspace,
        checkpoints=checkpoints if settings.fault_tolerance.enable_checkpointing else None,
        announce=lambda events: _announce(events, feed, metrics, operations),
        observe_cycle=metrics.observe_cycle,
    )
    foundation = built(
        settings, isolated, store=store, here=here, controller=controller, feed=feed, metrics=metrics, guard=guard
    )
    _start(foundation, parts, None if handover is None else handover.lease)
    _skip_used_ids(foundation, former)
    _record_takeover(foundation, former, claim, restored)
    return foundation


def built(
    settings: Settings,
    isolated: Isolation,
    *,
    store: SqlStore,
    here: Clusters,
    controller: Controller,
    feed: EventFeed,
    metrics: ServerMetrics,
    guard: DiskGuard,
) -> Foundation:
    """The foundation around a controller, or around that of a server that stands by. Starts nothing."""
    clock = SystemClock()
    workspace = DirectoryWorkspace(settings.home / "jobs")
    box = SecretBox(settings.home)
    outside = Readers(name="outside", threads=8, per_user=2)
    return Foundation(
        settings=settings,
        separated=isolation.separated(isolated.accounts),
        gpu_shares=cache(partial(isolation.gpu_shares, settings, isolated)),
        clock=clock,
        store=store,
        clusters=here,
        controller=controller,
        workspace=workspace,
        checkpoints=checkpoints_of(settings, workspace),
        workbenches=_workbenches(settings, isolated, controller, store, workspace, clock),
        volume_upkeep=VolumeUpkeep(
            controller=controller,
            store=store,
            driver=DirectoryVolumes(storage_places(settings).volumes),
            # Nodes of a Slurm cluster share this file system, so one driver makes the volumes of all.
            clusters=[cluster.name for cluster in settings.cluster],
        ),
        secret_orders=SecretOrders(
            controller=controller, store=store, box=box, workspace=workspace, home=settings.home
        ),
        personal_sender=PersonalSender(
            box=box,
            notifier=AppriseNotifier(),
            posts=OutsidePosts(settings.notification.personal_hook_hosts),
            mail=settings.notification.personal_mail,
            takes_hooks=settings.notification.personal_hooks,
            public_url=settings.server.public_url,
        ),
        git_sources=GitSources(store=store, box=box, settings=settings.git, home=settings.home, outside=outside),
        outside=outside,
        image_orders=ImageOrders(store=store, box=box),
        mount_orders=MountOrders(store=store, box=box),
        box=box,
        feed=feed,
        metrics=metrics,
        disk_limits=disk_limits(settings),
        disk_guard=guard,
    )


def event_feed(store: Store) -> EventFeed:
    return EventFeed(lambda after, limit: _events_after(store, after, limit))


def checkpoints_of(settings: Settings, workspace: DirectoryWorkspace) -> DirectoryCheckpoints:
    return DirectoryCheckpoints(workspace, verify_seconds=settings.reading.checkpoint_seconds)


def _skip_used_ids(foundation: Foundation, former: StoreHolder | None) -> None:
    """A store that was restored may be older than the directories of jobs: their ids are not given again."""
    highest = foundation.workspace.highest_job()
    if former is not None:
        highest = max(highest, DirectoryWorkspace(Path(former.path) / "jobs").highest_job())
    foundation.controller.execute(restored_store.skip_used_ids, highest)


def _record_takeover(
    foundation: Foundation, former: StoreHolder | None, claim: StoreHolder, restored: Collection[str]
) -> None:
    """Records in the audit log that this home took over from another, with the jobs that it cannot see. `restored` are
    clusters whose jobs it finds again."""
    if former is None or former.is_same(claim):
        return
    unseen = home_ownership.unseen(former, claim, restored)
    for message in unseen:
        log.warning("%s", message)
    detail = {"home": claim.path, "host": claim.host, "from": former.path, "from_host": former.host, "unseen": unseen}
    foundation.controller.execute(lambda work: work.record(SYSTEM, "server.took-over", claim.home, detail=detail))


def _start(foundation: Foundation, parts: ExitStack, lease: HeldLease | None) -> None:
    """Start the controller with the steps that prepare a launch."""
    controller, steps = foundation.controller, _launch_steps(foundation)
    controller.start(steps if lease is None else {**steps, LaunchStage.LEASE: lease})
    parts.callback(controller.stop)


def _launch_steps(foundation: Foundation) -> dict[LaunchStage, LaunchStep]:
    """The steps that prepare a launch; `LaunchStage` defines their order."""
    return {
        LaunchStage.DISK_ROOM: foundation.disk_guard,
        LaunchStage.WORKBENCH: foundation.workbenches,
        LaunchStage.SECRETS: foundation.secret_orders,
        LaunchStage.GIT: foundation.git_sources,
        LaunchStage.IMAGE: foundation.image_orders,
        LaunchStage.VOLUMES: foundation.mount_orders,
        LaunchStage.DATASETS: DatasetOrders(store=foundation.store, settings=foundation.settings, box=foundation.box),
        LaunchStage.VOLUME_USE: foundation.volume_upkeep,
    }


def _fold_homes(store: Store, workspace: DirectoryWorkspace, job_ids: Sequence[str]) -> None:
    """Remove the empty directories of ended jobs."""
    launches = workspace.launches(job_ids)
    with store.read() as tables:
        live = {job_id for job_id, job in tables.jobs.some(job_ids).items() if job.state not in ENDED}
    workspace.fold({job_id: count for job_id, count in launches.items() if job_id not in live})


def prepared_home(settings: Settings) -> Isolation:
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    isolated = isolation.isolation_of(settings)
    if isolated.accounts is not None:
        isolation.keep_private()
    if isolated.accounts is None or isolated.accounts.barrier:
        isolation.close_home(settings)
    return isolated


def _prepare_isolation(settings: Settings, isolated: Isolation) -> None:
    install_helpers(settings)
    if isolated.accounts is not None and not isolated.accounts.barrier:
        isolation.open_home_to_jobs(settings)
    known = isolation.separated(isolated.accounts)
    level = logging.WARNING if known.separation is Separation.SINGLE_USER else logging.INFO
    log.log(level, "%s", known.detail)


def _announce(events: Sequence[EventRecord], feed: EventFeed, metrics: ServerMetrics, operations: OperationLog) -> None:
    feed.publish(events)
    metrics.observe_events(events)
    operations.note(events)


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
) -> WorkbenchWatch:
    return WorkbenchWatch(
        controller=controller,
        store=store,
        files=DirectoryWorkbenches(workspace.home, WORKBENCH_PROGRAMS),
        keys=WorkbenchKeys(workspace.key_file),
        tools=LocalTools(has_accounts=isolated.accounts is not None),
        accounts=isolated.accounts,
        clock=clock,
        ssh_listen=settings.server.host,
        ssh_ports=settings.workbench.port_range,
    )
