"""The services that routes use: one value, created at the start and reached through the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from fastapi import Request

from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.user_accounts import for_present_user
from corral.control.ports import (
    Checkpoints,
    Clock,
    History,
    HistoryUnavailable,
    LogSource,
    Metric,
    Outputs,
    Point,
    SelfTest,
    Store,
    Transaction,
    Workspace,
)
from corral.control.system.request_keys import once
from corral.server.auth.identity import Identities
from corral.server.auth.passwords import Passwords
from corral.server.auth.providers import SignIn
from corral.server.auth.secret_box import SecretBox
from corral.server.auth.throttle import LoginThrottle
from corral.server.datasets.dataset_library import DatasetLibrary
from corral.server.datasets.operation_runner import OperationRunner
from corral.server.events.audit_notes import AuditNotes
from corral.server.events.event_texts import EventTexts
from corral.server.events.stream import EventFeed
from corral.server.fleet.gpu_map import MapColumns
from corral.server.http.problems import stopping
from corral.server.jobs.curve_files import CurveFiles
from corral.server.jobs.git_sources import GitSources
from corral.server.monitoring.server_metrics import ServerMetrics
from corral.server.people.personal_sender import PersonalSender
from corral.server.reports.report_worker import ReportWorker
from corral.server.scheduling.estimate_worker import EstimateWorker
from corral.server.settings.disk_limits import DiskLimits
from corral.server.settings.settings import Settings
from corral.server.storage.readers import Readers
from corral.server.storage.store_reads import StoreReads
from corral.server.storage.volume_storage import VolumeStorage
from corral.server.system.disk_guard import DiskGuard
from corral.server.system.disk_watch import DiskWatch
from corral.server.system.idempotency import AnswerKept, take_keyed
from corral.server.system.isolation import GpuShares, Separated
from corral.server.system.parts import PartWatch
from corral.server.system.servers import Servers
from corral.server.system.write_proof import Proof
from corral.server.whatif.shadow_runner import ShadowRunner
from corral.server.whatif.simulation_runner import SimulationRunner
from corral.server.whatif.time_travel import TimeTravel
from corral.server.workbenches.held_connections import HeldConnections
from corral.server.workbenches.proxy import JupyterProxy
from corral.server.workbenches.workbench_origins import WorkbenchOrigins
from corral.server.workbenches.workbench_passes import WorkbenchPasses
from corral.server.workbenches.workbench_watch import WorkbenchWatch
from corral.telemetry.found_exporters import FoundExporters
from corral.telemetry.readings import LatestReadings
from corral.telemetry.scraper import ScrapingCollector

Params = ParamSpec("Params")
Result = TypeVar("Result")


class NoHistory:
    """Implements `corral.control.ports.History` for a server without a history."""

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        pass

    def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
        raise HistoryUnavailable("no history is kept")

    def series(
        self, metric: Metric, subjects: Collection[str] | None, since: float, until: float, step_seconds: float
    ) -> dict[str, list[Point]]:
        raise HistoryUnavailable("no history is kept")

    def describe(self) -> Mapping[str, str | int | float]:
        return {"kind": "none"}

    def close(self) -> None:
        pass


NO_HISTORY = NoHistory()


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerContext:
    settings: Settings
    #: how jobs are isolated
    separated: Separated
    #: whether shares of GPUs are enforced; the first call may take some seconds
    gpu_shares: Callable[[], GpuShares]
    store: Store
    controller: Controller
    logs: LogSource
    workspace: Workspace
    #: output files of jobs
    outputs: Outputs
    #: numbers that programs report, out of their output files
    curves: CurveFiles
    #: checkpoints of jobs
    checkpoints: Checkpoints
    #: state and use of workbenches
    workbenches: WorkbenchWatch
    jupyter: JupyterProxy
    #: origins of workbenches' pages, and tickets for browsers
    origins: WorkbenchOrigins
    passes: WorkbenchPasses
    #: the command that holds a task's GPUs until its program is started
    task_holder: tuple[str, ...]
    readings: LatestReadings
    #: exporters of other nodes, from which readings are fetched
    exporters: tuple[ScrapingCollector | FoundExporters, ...]
    clock: Clock
    identities: Identities
    passwords: Passwords
    throttle: LoginThrottle
    #: lines of the audit log about reads and refused sign-ins
    audit: AuditNotes
    #: encrypts secrets for the store
    box: SecretBox
    #: sends to channels of users
    personal_sender: PersonalSender
    #: looks up commits of Git repositories
    git_sources: GitSources
    #: calls of hosts that users have chosen, which may take long
    outside: Readers
    #: signing in with providers
    sign_in: SignIn
    feed: EventFeed
    event_texts: EventTexts
    #: estimated starts of waiting jobs
    estimate_worker: EstimateWorker
    disk_watch: DiskWatch
    #: creates reports and stores their files
    report_worker: ReportWorker
    #: past snapshots
    time_travel: TimeTravel
    #: runs simulations
    simulation_runner: SimulationRunner
    #: runs long operations on datasets
    operation_runner: OperationRunner
    #: content of dataset versions
    library: DatasetLibrary
    #: runs the shadow policy
    shadow_runner: ShadowRunner
    #: files of volumes from outside of jobs
    volume_storage: VolumeStorage
    #: reads of the store for requests
    reads: StoreReads
    #: heavy reading for requests
    readers: Readers
    #: short steps of requests on files and programs of users
    steps: Readers
    #: WebSockets and followed logs of each user
    held: HeldConnections
    #: limits on the jobs' use of the disk, and its free space
    disk_limits: DiskLimits
    disk_guard: DiskGuard
    #: whether the server can write, or follow the leader
    write_proof: Proof
    #: the parts of the platform and their health
    parts: PartWatch
    metrics: ServerMetrics
    #: what the map of all GPUs keeps between requests
    map_columns: MapColumns = field(default_factory=MapColumns)
    version: str
    started_at: float
    #: the servers over this store
    servers: Servers
    #: readings over time
    history: History = NO_HISTORY
    #: tests GPUs; None if that is not possible from this machine
    self_test: SelfTest | None = None

    async def execute(
        self, use_case: Callable[Concatenate[Work, Params], Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Run a use case in the next write transaction. Raises its refusal, and SignedOut if its caller has lost the
        account or the role of an operator since the request was accepted. The first use case of a request under an
        idempotency key runs only if it did not run before; raises AnswerKept if its answer is stored."""
        caller = next((each for each in args if isinstance(each, Caller)), None)
        if caller is None:
            return await self._answer(self.controller.execute(use_case, *args, **kwargs))
        keyed = take_keyed(caller.name)
        if keyed is None:
            return await self._answer(self.controller.execute(for_present_user, caller, use_case, *args, **kwargs))

        def run_once(work: Work) -> Result:
            result: Result = once(work, keyed, use_case, *args, **kwargs)
            return result

        result = await self._answer(self.controller.execute(for_present_user, caller, run_once))
        if keyed.answer is not None:
            raise AnswerKept
        return result

    async def inspect(
        self, read: Callable[Concatenate[State, Params], Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Read from the controller's state in memory."""
        return await self._answer(self.controller.inspect(read, *args, **kwargs))

    async def read(
        self, query: Callable[Concatenate[Transaction, Params], Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Run `query(tables, …)` in a read transaction, on one of the user's threads."""

        def run() -> Result:
            with self.store.read() as tables:
                return query(tables, *args, **kwargs)

        return await self.reads.run(run)

    async def _answer(self, future: Future[Result]) -> Result:
        try:
            return await _uncancelled(future)
        except RuntimeError:
            if self.controller.is_alive:
                raise
            raise stopping() from None


async def _uncancelled(future: Future[Result]) -> Result:
    """Wait for the controller's answer. A client that disconnects must not cancel a request that may be committed."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(lambda _: loop.call_soon_threadsafe(wake))
    await waiter
    return future.result()


async def context_of(request: Request) -> ServerContext:
    # Async although it awaits nothing: FastAPI would run a plain function on a thread for every request.
    context = request.app.state.context
    assert isinstance(context, ServerContext)
    return context
