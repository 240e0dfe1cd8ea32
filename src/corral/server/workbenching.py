"""Workbenches that run: what they find when they start, whose keys let in, how idle they are.

Reads what the programs in the workbenches write down, hands those that nobody uses to the controller, and keeps the SSH
keys that let in those of the owners. Everything is on disk or in the store: a new server goes on where this one was.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from corral.control import workbenches
from corral.control.controller import Controller, ControllerStopped
from corral.control.kinds import HOST_COMMAND
from corral.control.ports import Clock, LaunchOrder, Store, Tool, ToolProbe, Transaction, WorkbenchStatus
from corral.control.records import JobRecord, JobSpec
from corral.control.state import State
from corral.control.workbenches import Idle, idle_seconds
from corral.core.model import CLUSTER_LABEL, Job, JobKind, JobState, Request
from corral.server.reaching import Reaching, listen_address
from corral.stores.workbench_keys import WorkbenchKeys
from corral.stores.workbenches import DirectoryWorkbenches

log = logging.getLogger("corral.server.workbenches")

EVERY_SECONDS = 3.0
_ASK_SECONDS = 10.0


class Workbenching:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        files: DirectoryWorkbenches,
        keys: WorkbenchKeys,
        tools: ToolProbe,
        clock: Clock,
        ssh_listen: str,
        ssh_ports: tuple[int, int],
    ) -> None:
        self.files = files
        self.reaching = Reaching(controller=controller, files=files, keys=keys)
        self._keys = keys
        self._controller = controller
        self._store = store
        self._tools = tools
        self._clock = clock
        self._ssh_listen = ssh_listen
        self._ssh_ports = ssh_ports
        #: when a person last changed something through the proxy, by job; what happens inside is told by the status
        self._used_at: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workbenches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10.0)

    # ---------------------------------------------------------------- asked by others

    def missing(self, spec: JobSpec, request: Request) -> list[Tool]:
        """What is not there where a workbench would run. Other machines cannot be looked at from here: what one lacks
        that may run there shows when it does."""
        cluster = dict(request.labels).get(CLUSTER_LABEL)
        if self.reaching.is_elsewhere(cluster) if cluster else self.reaching.has_elsewhere():
            return []
        return self._tools.missing(workbenches.needed_tools(spec), venv=spec.venv, env=spec.env)

    def prepare(self, cluster: str, order: LaunchOrder) -> None:
        """Before an attempt is launched. Jobs that are no workbenches cost nothing here. Raises EngineUnavailable."""
        if order.command != HOST_COMMAND:
            return
        with self._store.read() as tables:
            record = tables.jobs.get(order.job_id)
            keys = workbenches.let_in(tables, record) if record is not None else []
        if record is None:
            return
        address = self.reaching.node_address(cluster, order.instances[0].node)
        settings = workbenches.host_settings(
            record,
            listen=self._ssh_listen if address is None else listen_address(address),
            ports=self._ssh_ports,
            is_elsewhere=address is not None,
        )
        self.files.prepare(
            record.job.id, settings, keys, relay_key=None if address is None else self._keys.of(record.job.id)
        )

    def status(self, job: Job) -> WorkbenchStatus | None:
        """What its present attempt says of itself."""
        status = self.files.status(job.id) if job.state is JobState.RUNNING else None
        return status if status is not None and status.attempt == job.attempt else None

    def idle_seconds(self, job: Job, status: WorkbenchStatus) -> float:
        now = self._clock.now()
        return max(0.0, min(idle_seconds(status, now), now - self._used_at.get(job.id, 0.0)))

    def note_use(self, job_id: str) -> None:
        self._used_at[job_id] = self._clock.now()

    def sync_keys(self, user: str | None = None) -> None:
        """Let in whom the store names, at all workbenches that run, or at one user's."""
        jobs = [job for job, spec in self._running() if spec is None or spec.ssh]
        with self._store.read() as tables:
            wanted = {
                record.job.id: workbenches.let_in(tables, record)
                for record in _records(tables, [job for job in jobs if user in (None, job.user)])
            }
        for job_id, keys in wanted.items():
            try:
                if self.files.put_keys(job_id, keys):
                    log.info("workbench %s lets in %d keys from now on", job_id, len(keys))
            except OSError as error:
                # What one owner did to a directory must not keep others' keys valid.
                log.error("the keys of workbench %s cannot be written: %s", job_id, error)

    # ---------------------------------------------------------------- watching

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
            except ControllerStopped:
                return
            except Exception:
                # The next look may go better; workbenches run on meanwhile.
                log.exception("workbenches could not be looked at")
            self._stopping.wait(EVERY_SECONDS)

    def _look(self) -> None:
        found = self._running()
        self._used_at = {job.id: at for job, _ in found if (at := self._used_at.get(job.id)) is not None}
        if not found:
            return
        self.sync_keys()
        idle = [seen for job, spec in found if (seen := self._seen_idle(job, spec)) is not None]
        if idle:
            self._controller.execute(workbenches.stop_idle, idle).add_done_callback(_log_failure)

    def _seen_idle(self, job: Job, spec: JobSpec | None) -> Idle | None:
        if spec is not None and spec.idle_stop_seconds is None:
            return None
        status = self.status(job)
        if status is None:
            return None
        seconds = self.idle_seconds(job, status)
        if spec is not None and spec.idle_stop_seconds is not None and seconds < spec.idle_stop_seconds:
            return None
        return Idle(job_id=job.id, attempt=job.attempt, idle_seconds=seconds)

    def _running(self) -> list[tuple[Job, JobSpec | None]]:
        return self._controller.inspect(_running).result(_ASK_SECONDS)


def _running(state: State) -> list[tuple[Job, JobSpec | None]]:
    """With what they run, where that is known by heart."""
    found = [
        (job, state.specs.get(job.id))
        for job in state.snapshot.jobs.values()
        if job.kind is JobKind.WORKBENCH and job.state in (JobState.STARTING, JobState.RUNNING)
    ]
    return [(job, spec) for job, spec in found if spec is None or workbenches.is_hosted(spec)]


def _records(tables: Transaction, jobs: Sequence[Job]) -> list[JobRecord]:
    records = [tables.jobs.get(job.id) for job in jobs]
    return [record for record in records if record is not None and workbenches.is_hosted(record.spec)]


def _log_failure(answer: Future[Any]) -> None:
    error = answer.exception()
    if error is not None and not isinstance(error, ControllerStopped):
        log.error("an unused workbench could not be stopped: %s", error)
