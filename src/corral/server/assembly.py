"""A whole server put together from settings, and taken apart again in the right order.

Everything but the network: tests run the same assembly inside their own process.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from fastapi import FastAPI

from corral.control import dataset_targets, datasets, images, object_stores, people, providers
from corral.control.controller import Controller
from corral.control.ports import Clock, Store
from corral.control.records import EventRecord, UserRecord
from corral.control.state import State
from corral.control.work import SYSTEM, Work
from corral.engines import holder, workbench_host
from corral.engines.local.instance_specs import Isolation
from corral.engines.local.storage.driver import DirectoryVolumes
from corral.engines.local.tools import LocalTools
from corral.server import clusters, isolation, secrets
from corral.server.app import VERSION, build_app
from corral.server.auth.identity import Identities
from corral.server.auth.passwords import Passwords, one_time_password
from corral.server.auth.providers import SignIn
from corral.server.auth.throttle import LoginThrottle
from corral.server.checkpointing import CheckpointWatch
from corral.server.committing import Committing
from corral.server.context import ServerContext
from corral.server.dataset_access import renewed_tokens
from corral.server.dataset_library import DatasetLibrary
from corral.server.dataset_mounting import DatasetMounting
from corral.server.estimating import Estimating
from corral.server.imaging import Imaging
from corral.server.metrics import ServerMetrics
from corral.server.monitoring import monitored
from corral.server.mounting import Mounting
from corral.server.presets import install_helpers
from corral.server.proxy import JupyterProxy
from corral.server.reporting import Reporting
from corral.server.schemas.base import rfc3339
from corral.server.secrets import SecretBox
from corral.server.settings import FIRST_USER, Settings
from corral.server.shadowing import Shadowing
from corral.server.simulating import Simulating
from corral.server.storage_places import storage_places
from corral.server.storing import Storing
from corral.server.stream import EventFeed
from corral.server.timetravel import TimeTravel
from corral.server.volume_files import VolumeStorage
from corral.server.workbenching import Workbenching
from corral.stores import open_store
from corral.stores.checkpoints import DirectoryCheckpoints
from corral.stores.outputs import DirectoryOutputs
from corral.stores.report_files import DirectoryReportFiles
from corral.stores.workbenches import DirectoryWorkbenches
from corral.stores.workspace import DirectoryWorkspace

log = logging.getLogger("corral.server")

#: What a machine without GPUs gets, so that everything can be tried on it.
_START_SECONDS = 30.0


class SystemClock:
    def now(self) -> float:
        return time.time()


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembly:
    app: FastAPI
    context: ServerContext
    #: set on the first start only, and kept nowhere else
    one_time_password: str | None


@contextmanager
def assembled(settings: Settings, *, passwords: Passwords | None = None) -> Iterator[Assembly]:
    """A running server without its network. Leaving stops it; jobs keep running."""
    clock = SystemClock()
    with ExitStack() as parts:
        # 1. What everything stands on: the home, the store, the engine.
        isolated = _prepared_home(settings)
        store = open_store(settings.database_url)
        parts.callback(store.close)
        places = storage_places(settings)
        here = parts.enter_context(clusters.opened(settings, isolated, places))
        _let_jobs_in(settings, isolated)
        # 2. The controller, with what it asks before a launch.
        feed = EventFeed(lambda after, limit: _events_after(store, after, limit))
        workspace = DirectoryWorkspace(settings.home / "jobs")
        checkpoints = DirectoryCheckpoints(workspace)
        saves = settings.fault_tolerance.enable_checkpointing
        metrics = ServerMetrics(VERSION)
        controller = Controller(
            store=store,
            engines=here.engines,
            clock=clock,
            policies=settings.control_policies,
            workspace=workspace,
            checkpoints=checkpoints if saves else None,
            announce=lambda events: _announce(events, feed, metrics),
        )
        box = SecretBox(settings.home)
        imaging = Imaging(store=store, box=box)
        workbenches = _workbenches(settings, controller, store, workspace, clock)
        controller.cycle_seconds = metrics.observe_cycle
        controller.prepare = workbenches.prepare
        mounting = Mounting(store=store, box=box)
        storing = Storing(
            controller=controller,
            store=store,
            driver=DirectoryVolumes(places.volumes),
            # Nodes of a Slurm cluster share this file system, so one driver makes the volumes of all.
            clusters=[cluster.name for cluster in settings.cluster],
        )
        versions = DatasetMounting(store=store, settings=settings, box=box)
        controller.complete = lambda order: storing.noticed(
            versions.completed(mounting.completed(imaging.completed(order)))
        )
        controller.start()
        parts.callback(controller.stop)
        # 3. Those who watch and act by themselves; they stop before the controller does.
        _run(parts, workbenches)
        if saves:
            _run(parts, CheckpointWatch(controller=controller, checkpoints=checkpoints, clock=clock))
        monitoring = parts.enter_context(
            monitored(
                settings, controller=controller, store=store, fleet=here.fleet, box=box, clock=clock, followers=feed
            )
        )
        reporting = Reporting(
            controller=controller,
            store=store,
            history=monitoring.history,
            files=DirectoryReportFiles(settings.home / "reports"),
            clock=clock,
            cluster=settings.cluster[0].name,
        )
        _run(parts, reporting)
        estimating = Estimating(
            controller=controller,
            store=store,
            clock=clock,
            announce=lambda at: feed.tell("estimates", "estimates", {"at": rfc3339(at)}, for_everyone=True),
        )
        _run(parts, estimating)
        simulating = Simulating(
            controller=controller,
            store=store,
            clock=clock,
            folder=settings.home / "simulations",
            tell=feed.tell,
        )
        _run(parts, simulating)
        shadowing = Shadowing(controller=controller, store=store, tell=feed.tell)
        _run(parts, shadowing)
        _run(parts, storing)
        committing = Committing(
            controller=controller,
            store=store,
            settings=settings,
            box=box,
            volume_path=storing.driver.path_of,
            workspace=workspace,
            tell=feed.tell,
        )
        controller.execute(datasets.name_store, token_hex(16)).result(_START_SECONDS)
        _run(parts, committing)
        # 4. What routes work with.
        context = ServerContext(
            settings=settings,
            store=store,
            controller=controller,
            logs=here,
            workspace=workspace,
            outputs=DirectoryOutputs(workspace),
            checkpoints=checkpoints,
            workbenches=workbenches,
            jupyter=JupyterProxy(workbenches.files.connect),
            task_holder=(sys.executable, "-u", holder.__file__),
            readings=monitoring.readings,
            clock=clock,
            identities=Identities(store, touch=lambda *used: _touch(controller, *used), now=clock.now),
            passwords=passwords or Passwords(),
            throttle=_throttle(settings),
            box=box,
            sign_in=SignIn(box=box, clock=clock),
            feed=feed,
            estimating=estimating,
            reporting=reporting,
            simulating=simulating,
            shadowing=shadowing,
            storing=storing,
            committing=committing,
            library=DatasetLibrary(store=store, settings=settings, box=box),
            time_travel=TimeTravel(store, controller),
            volume_storage=VolumeStorage(
                driver=storing.driver,
                changed=storing.changed,
                box=box,
                staging=settings.home / "uploads",
                now=clock.now,
            ),
            metrics=metrics,
            version=VERSION,
            started_at=clock.now(),
            history=monitoring.history,
            self_test=monitoring.self_test,
        )
        parts.callback(context.passwords.close)
        _compare_gpus(settings, controller)
        _renew_secrets(context, imaging, mounting)
        yield Assembly(app=build_app(context), context=context, one_time_password=_bootstrap(context))


class _Worker(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


def _run(parts: ExitStack, worker: _Worker) -> None:
    worker.start()
    parts.callback(worker.stop)


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


def _workbenches(
    settings: Settings, controller: Controller, store: Store, workspace: DirectoryWorkspace, clock: Clock
) -> Workbenching:
    return Workbenching(
        controller=controller,
        store=store,
        files=DirectoryWorkbenches(workspace.home, Path(workbench_host.__file__)),
        tools=LocalTools(),
        clock=clock,
        ssh_listen=settings.server.host,
        ssh_ports=settings.workbench.port_range,
    )


def _throttle(settings: Settings) -> LoginThrottle:
    return LoginThrottle(
        attempts=settings.server.login_attempts,
        window_seconds=settings.server.login_window_seconds,
        monotonic=time.monotonic,
    )


def _events_after(store: Store, after: int, limit: int) -> Sequence[Any]:
    with store.read() as tables:
        return tables.events.after(after, limit)


def _touch(controller: Controller, credential_id: str, at: float) -> None:
    controller.execute(_touched, credential_id, at).add_done_callback(_log_failure)


def _touched(work: Work, credential_id: str, at: float) -> None:
    work.tx.credentials.touch(credential_id, at)


def _compare_gpus(settings: Settings, controller: Controller) -> None:
    for cluster in settings.cluster:
        found = controller.inspect(_count_gpus, cluster.name).result(_START_SECONDS)
        if cluster.total_gpus is not None and cluster.total_gpus != found:
            log.warning("cluster %s should have %d GPUs, but has %d", cluster.name, cluster.total_gpus, found)


def _count_gpus(state: State, cluster: str) -> int:
    return sum(len(node.gpus) for node in state.snapshot.nodes.values() if node.cluster == cluster)


def _renew_secrets(context: ServerContext, imaging: Imaging, mounting: Mounting) -> None:
    """What was encrypted with an older key is encrypted with the present one."""
    with context.store.read() as tables:
        renewed = secrets.renewed(tables.providers.all(), context.box)
    if renewed:
        context.controller.execute(providers.renew_secrets, renewed).result(_START_SECONDS)
    if logins := imaging.renewed():
        context.controller.execute(images.renew_secrets, logins).result(_START_SECONDS)
    if tokens := renewed_tokens(context.store, context.box):
        context.controller.execute(dataset_targets.renew_tokens, tokens).result(_START_SECONDS)
    if stores := mounting.renewed():
        context.controller.execute(object_stores.renew_secrets, stores).result(_START_SECONDS)


def _bootstrap(context: ServerContext) -> str | None:
    """On the first start make the first operator; the password to show, unless the environment gave one."""
    with context.store.read() as tables:
        if tables.people.users():
            return None
    given = context.settings.bootstrap_password
    password = given.get_secret_value() if given is not None else one_time_password()
    hashed = context.passwords.hash_now(password)
    context.controller.execute(_first_operator, hashed, given is None).result(_START_SECONDS)
    return password if given is None else None


def _first_operator(work: Work, password_hash: str, is_one_time: bool) -> UserRecord:
    user = people.create_user(work, SYSTEM, FIRST_USER, password_hash=password_hash)
    user = replace(user, must_change_password=is_one_time)
    work.tx.people.save_user(user)
    return user


def _log_failure(answer: Future[Any]) -> None:
    error = answer.exception()
    if error is not None and not isinstance(error, RuntimeError):
        log.error("a note could not be written: %s", error)
