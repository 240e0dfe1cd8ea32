"""Starts the workers, each on a thread of its own. They stop before the controller does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from secrets import token_hex
from typing import Protocol

from corral.control.datasets import datasets
from corral.server.datasets.operation_runner import OperationRunner
from corral.server.fleet.drain_worker import DrainWorker
from corral.server.jobs.checkpoint_watch import CheckpointWatch
from corral.server.jobs.pace_watch import PaceWatch
from corral.server.monitoring.check_worker import CheckWorker
from corral.server.people.budget_worker import BudgetWorker
from corral.server.people.channel_worker import ChannelWorker
from corral.server.reports.report_worker import ReportWorker
from corral.server.scheduling.defragmentation_worker import DefragmentationWorker
from corral.server.scheduling.estimate_worker import EstimateWorker
from corral.server.schemas.base import rfc3339
from corral.server.system.backup.backup_worker import BackupWorker
from corral.server.system.disk_watch import DiskWatch
from corral.server.system.retention_worker import Retention
from corral.server.system.servers import Servers
from corral.server.whatif.shadow_runner import ShadowRunner
from corral.server.whatif.simulation_runner import SimulationRunner
from corral.server.wiring.foundation import Foundation
from corral.server.wiring.monitoring_assembly import Monitoring, monitored
from corral.stores.reports.report_files import DirectoryReportFiles

_START_SECONDS = 30.0


class Worker(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """Workers that routes use."""

    monitoring: Monitoring
    report_worker: ReportWorker
    estimate_worker: EstimateWorker
    simulation_runner: SimulationRunner
    shadow_runner: ShadowRunner
    operation_runner: OperationRunner
    disk_watch: DiskWatch


def start_workers(base: Foundation, parts: ExitStack, servers: Servers) -> Workers:
    """Start the workers. Closing `parts` stops them, the last one first."""
    settings, controller, store, clock = base.settings, base.controller, base.store, base.clock
    _run(parts, base.workbenches)
    if settings.fault_tolerance.enable_checkpointing:
        _run(parts, CheckpointWatch(controller=controller, checkpoints=base.checkpoints, clock=clock))
        if settings.pace_rules.enabled:
            rules = settings.pace_rules
            _run(parts, PaceWatch(controller=controller, checkpoints=base.checkpoints, rules=rules, clock=clock))
    monitoring = parts.enter_context(
        monitored(
            settings,
            controller=controller,
            store=store,
            fleet=base.clusters.fleet,
            box=base.box,
            clock=clock,
            followers=base.feed,
            servers=servers,
        )
    )
    # Storages of datasets belong to one store: the store gets its id before the first commit.
    controller.execute(datasets.name_store, token_hex(16)).result(_START_SECONDS)
    workers = at_rest(base, monitoring)
    for worker in _all_workers(base, workers):
        _run(parts, worker)
    return workers


def _all_workers(base: Foundation, workers: Workers) -> Sequence[Worker]:
    """The workers that always run, in the order in which they are started."""
    settings, controller, store, clock = base.settings, base.controller, base.store, base.clock
    return (
        workers.report_worker,
        workers.estimate_worker,
        workers.simulation_runner,
        workers.shadow_runner,
        base.volume_upkeep,
        workers.disk_watch,
        Retention(
            controller=controller,
            store=store,
            engines=base.clusters.engines,
            workspace=base.workspace,
            rules=settings.retention_rules,
            clock=clock,
        ),
        workers.operation_runner,
        BackupWorker(settings, clock),
        BudgetWorker(controller=controller, clock=clock),
        ChannelWorker(controller=controller, store=store, sender=base.personal_sender, clock=clock),
        base.secret_orders,
        CheckWorker(
            controller=controller,
            store=store,
            rules=settings.check_rules,
            self_test=workers.monitoring.self_test,
            clock=clock,
        ),
        DrainWorker(controller=controller, clock=clock),
        DefragmentationWorker(
            controller=controller,
            store=store,
            clock=clock,
            rules=settings.analysis_rules,
            at=settings.policies.defragment_at,
        ),
    )


def at_rest(base: Foundation, monitoring: Monitoring) -> Workers:
    """The workers that routes use, not started."""
    settings, controller, store, clock, feed = base.settings, base.controller, base.store, base.clock, base.feed
    return Workers(
        monitoring=monitoring,
        report_worker=ReportWorker(
            controller=controller,
            store=store,
            history=monitoring.history,
            files=DirectoryReportFiles(settings.home / "reports"),
            clock=clock,
            cluster=settings.cluster[0].name,
        ),
        estimate_worker=EstimateWorker(
            controller=controller,
            store=store,
            clock=clock,
            announce=lambda at: feed.notify("estimates", "estimates", {"at": rfc3339(at)}, for_everyone=True),
        ),
        simulation_runner=SimulationRunner(
            controller=controller, store=store, clock=clock, folder=settings.home / "simulations", notify=feed.notify
        ),
        shadow_runner=ShadowRunner(controller=controller, store=store, notify=feed.notify),
        operation_runner=OperationRunner(
            controller=controller,
            store=store,
            settings=settings,
            box=base.box,
            volume_path=base.volume_upkeep.driver.path_of,
            workspace=base.workspace,
            notify=feed.notify,
        ),
        disk_watch=DiskWatch(
            controller=controller,
            engines=base.clusters.engines,
            home_of=lambda job_id: str(base.workspace.home(job_id)),
            limits=base.disk_limits,
        ),
    )


def _run(parts: ExitStack, worker: Worker) -> None:
    worker.start()
    parts.callback(worker.stop)
