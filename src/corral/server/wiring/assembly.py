"""Assembles a whole server from settings, and stops its parts in the right order.

Everything except the network: tests run the same assembly in their own process.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from fastapi import FastAPI

from corral.control.datasets import targets
from corral.control.jobs import images
from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.live.worker import log_failure
from corral.control.people import inbox_channels, secrets, sign_in_providers, user_accounts
from corral.control.ports import ServerRecord
from corral.control.records import UserRecord
from corral.control.storage import object_stores
from corral.engines.attempts import holder
from corral.server.auth import secret_box
from corral.server.auth.identity import Identities
from corral.server.auth.passwords import Passwords, one_time_password
from corral.server.auth.providers import SignIn
from corral.server.auth.throttle import LoginThrottle
from corral.server.datasets.dataset_access import renewed_tokens
from corral.server.datasets.dataset_library import DatasetLibrary
from corral.server.events.audit_notes import AuditNotes, written_by
from corral.server.events.event_texts import EventTexts
from corral.server.http.app import VERSION, build_app
from corral.server.http.context import ServerContext
from corral.server.jobs.curve_files import CurveFiles
from corral.server.people import personal_sender
from corral.server.people.directory_worker import DirectoryWorker
from corral.server.settings.settings import FIRST_USER, Settings
from corral.server.storage.readers import Readers
from corral.server.storage.store_reads import StoreReads
from corral.server.storage.volume_storage import VolumeStorage
from corral.server.system.parts import PartSources, PartWatch
from corral.server.system.servers import Servers
from corral.server.system.write_proof import Proof, WriteProof
from corral.server.whatif.time_travel import TimeTravel
from corral.server.wiring.foundation import Foundation, Handover, start_foundation
from corral.server.wiring.worker_assembly import Workers, start_workers
from corral.server.workbenches import workbench_ports
from corral.server.workbenches.held_connections import HeldConnections
from corral.server.workbenches.proxy import JupyterProxy
from corral.server.workbenches.workbench_origins import WorkbenchOrigins
from corral.server.workbenches.workbench_passes import WorkbenchPasses
from corral.server.workbenches.workbench_ports import WorkbenchPorts
from corral.stores.jobs.outputs import DirectoryOutputs

log = logging.getLogger("corral.server")

#: timeout of requests to the controller before the server listens
_START_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembly:
    app: FastAPI
    context: ServerContext
    #: set on the first start only, and stored nowhere else
    one_time_password: str | None


@contextmanager
def assembled(
    settings: Settings,
    *,
    passwords: Passwords | None = None,
    take_over: bool = False,
    handover: Handover | None = None,
    servers: Servers | None = None,
) -> Iterator[Assembly]:
    """A running server without its network. Leaving stops it; jobs keep running.

    `take_over` and `handover` are those of `start_foundation`. `servers` are all servers over the store, if there are
    several.
    """
    with ExitStack() as parts:
        base = start_foundation(settings, parts, take_over=take_over, handover=handover)
        servers = servers or _alone(base)
        workers = start_workers(base, parts, servers)
        context = context_of(
            base,
            workers,
            passwords=(handover.passwords if handover is not None else passwords) or Passwords(),
            servers=servers,
            proof=WriteProof(base.store, settings.home),
        )
        if handover is None:
            parts.callback(context.passwords.close)
        else:
            handover.identities.record_use(lambda *used: _touch(base.controller, *used))
            context = replace(context, identities=handover.identities)
        parts.callback(context.readers.close)
        parts.callback(context.steps.close)
        parts.callback(context.outside.close)
        parts.callback(context.sign_in.close)
        parts.callback(context.reads.close)
        context.parts.start()
        parts.callback(context.parts.stop)
        directory_worker = _directory_worker(base, context)
        directory_worker.start()
        parts.callback(directory_worker.stop)
        _compare_gpus(settings, base.controller)
        _renew_secrets(context, base)
        yield Assembly(app=build_app(context), context=context, one_time_password=_bootstrap(context))


def _directory_worker(base: Foundation, context: ServerContext) -> DirectoryWorker:
    return DirectoryWorker(
        controller=base.controller,
        store=base.store,
        box=base.box,
        clock=base.clock,
        forget=lambda name: base.feed.call_soon(lambda: context.identities.forget(name)),
    )


def _alone(base: Foundation) -> Servers:
    """The only server over its store."""
    address = base.settings.server
    own = ServerRecord(
        name=base.settings.high_availability.name_at(address.port),
        url=base.settings.high_availability.url_at(address.host, address.port, has_tls=address.has_tls),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=VERSION,
        session="",
        key="",
        may_lead=True,
        started_at=base.clock.now(),
    )
    return Servers(own, last_event=lambda: 0)


def context_of(
    base: Foundation, workers: Workers, *, passwords: Passwords, servers: Servers, proof: Proof
) -> ServerContext:
    """The services that routes use."""
    settings, controller, store, clock, box = base.settings, base.controller, base.store, base.clock, base.box
    started_at = clock.now()
    outputs = DirectoryOutputs(base.workspace)
    steps = Readers(name="step", threads=16, per_user=4)
    return ServerContext(
        settings=settings,
        separated=base.separated,
        gpu_shares=base.gpu_shares,
        store=store,
        controller=controller,
        logs=base.clusters,
        workspace=base.workspace,
        outputs=outputs,
        curves=CurveFiles(outputs),
        checkpoints=base.checkpoints,
        workbenches=base.workbenches,
        jupyter=JupyterProxy(base.workbenches.routes.way, steps.do),
        origins=_origins(base),
        passes=WorkbenchPasses(box),
        task_holder=(sys.executable, "-u", holder.__file__),
        readings=workers.monitoring.readings,
        exporters=workers.monitoring.exporters,
        clock=clock,
        identities=Identities(store, touch=lambda *used: _touch(controller, *used), now=clock.now),
        passwords=passwords,
        throttle=_throttle(settings),
        audit=AuditNotes(written_by(controller)),
        box=box,
        personal_sender=base.personal_sender,
        git_sources=base.git_sources,
        outside=base.outside,
        sign_in=SignIn(box=box, clock=clock),
        feed=base.feed,
        event_texts=EventTexts(),
        estimate_worker=workers.estimate_worker,
        disk_watch=workers.disk_watch,
        report_worker=workers.report_worker,
        simulation_runner=workers.simulation_runner,
        shadow_runner=workers.shadow_runner,
        operation_runner=workers.operation_runner,
        library=DatasetLibrary(store=store, settings=settings, box=box),
        time_travel=TimeTravel(store, controller),
        volume_storage=_volume_storage(base),
        reads=StoreReads(),
        steps=steps,
        held=HeldConnections(settings.server.max_connections_per_user),
        readers=_readers(settings),
        disk_limits=base.disk_limits,
        disk_guard=base.disk_guard,
        write_proof=proof,
        parts=PartWatch(_part_sources(base, workers, servers, started_at)),
        metrics=base.metrics,
        version=VERSION,
        started_at=started_at,
        servers=servers,
        history=workers.monitoring.history,
        self_test=workers.monitoring.self_test,
    )


def _volume_storage(base: Foundation) -> VolumeStorage:
    return VolumeStorage(
        driver=base.volume_upkeep.driver,
        changed=base.volume_upkeep.changed,
        box=base.box,
        staging=base.settings.home / "uploads",
        now=base.clock.now,
        guard=base.disk_guard,
    )


def _readers(settings: Settings) -> Readers:
    return Readers(
        threads=settings.reading.threads,
        per_user=settings.reading.per_user,
        deadline_seconds=settings.reading.deadline_seconds,
    )


def _part_sources(base: Foundation, workers: Workers, servers: Servers, started_at: float) -> PartSources:
    monitoring = workers.monitoring
    return PartSources(
        settings=base.settings,
        controller=base.controller,
        engines=base.clusters.engines,
        exporters=monitoring.exporters,
        history=monitoring.history,
        recording_problem=lambda: monitoring.recorder.problem,
        disk_guard=base.disk_guard,
        servers=servers,
        version=VERSION,
        started_at=started_at,
        clock=base.clock,
    )


def _origins(base: Foundation) -> WorkbenchOrigins:
    settings = base.settings
    ports = WorkbenchPorts(
        path=settings.home / workbench_ports.FILE,
        host=settings.server.host,
        ports=settings.workbench.page_ports,
        live=base.workbenches.live,
    )
    return WorkbenchOrigins(settings, ports)


def _throttle(settings: Settings) -> LoginThrottle:
    return LoginThrottle(
        attempts=settings.server.login_attempts,
        longest_seconds=settings.server.login_window_seconds,
        monotonic=time.monotonic,
    )


def _touch(controller: Controller, credential_id: str, at: float) -> None:
    controller.execute(_touched, credential_id, at).add_done_callback(
        log_failure(log, "the last use of a credential could not be recorded", ignored=(RuntimeError,))
    )


def _touched(work: Work, credential_id: str, at: float) -> None:
    work.tx.credentials.touch(credential_id, at)


def _compare_gpus(settings: Settings, controller: Controller) -> None:
    for cluster in settings.cluster:
        found = controller.inspect(_count_gpus, cluster.name).result(_START_SECONDS)
        if cluster.total_gpus is not None and cluster.total_gpus != found:
            log.warning("cluster %s should have %d GPUs, but has %d", cluster.name, cluster.total_gpus, found)


def _count_gpus(state: State, cluster: str) -> int:
    return sum(len(node.gpus) for node in state.snapshot.nodes.values() if node.cluster == cluster)


def _renew_secrets(context: ServerContext, base: Foundation) -> None:
    """Encrypt secrets with the present key that were encrypted with an older one."""
    with context.store.read() as tables:
        renewed = secret_box.renewed(tables.providers.all(), context.box)
    if renewed:
        context.controller.execute(sign_in_providers.renew_secrets, renewed).result(_START_SECONDS)
    if own := base.secret_orders.renewed():
        context.controller.execute(secrets.renew, own).result(_START_SECONDS)
    with context.store.read() as tables:
        addresses = personal_sender.renewed(context.box, tables.personal_channels.all())
    if addresses:
        context.controller.execute(inbox_channels.renew_secrets, addresses).result(_START_SECONDS)
    if logins := base.image_orders.renewed():
        context.controller.execute(images.renew_secrets, logins).result(_START_SECONDS)
    if tokens := renewed_tokens(context.store, context.box):
        context.controller.execute(targets.renew_tokens, tokens).result(_START_SECONDS)
    if stores := base.mount_orders.renewed():
        context.controller.execute(object_stores.renew_secrets, stores).result(_START_SECONDS)


def _bootstrap(context: ServerContext) -> str | None:
    """Creates the first operator at the first start; returns the password to show, unless the environment sets one."""
    with context.store.read() as tables:
        if tables.people.users():
            return None
    given = context.settings.bootstrap_password
    password = given.get_secret_value() if given is not None else one_time_password()
    hashed = context.passwords.hash_now(password)
    context.controller.execute(_first_operator, hashed, given is None).result(_START_SECONDS)
    return password if given is None else None


def _first_operator(work: Work, password_hash: str, is_one_time: bool) -> UserRecord:
    user = user_accounts.create_user(work, SYSTEM, FIRST_USER, password_hash=password_hash)
    user = replace(user, must_change_password=is_one_time)
    work.tx.people.save_user(user)
    return user
