"""Prepares workbenches and watches those that run.

Before a launch it writes the files that the workbench's programs read. Then it reads their status files, reports idle
workbenches to the controller, and keeps the authorized SSH keys equal to those of the owner. All state is on disk or in
the store, so that a new server continues where the former one stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from corral.control.errors import Missing
from corral.control.jobs.job_kinds import APP_COMMAND, HOST_COMMAND
from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.live.worker import Worker, log_failure
from corral.control.ports import Clock, LaunchOrder, LaunchRefused, Store, Tool, ToolProbe, Transaction, WorkbenchStatus
from corral.control.records import JobRecord, JobSpec, Role
from corral.control.workbenches import apps, workbenches
from corral.control.workbenches.workbenches import Idle, idle_seconds
from corral.core.model import CLUSTER_LABEL, Job, JobKind, JobState, Request
from corral.engines.attempts.accounts import Account, AccountRules
from corral.server.workbenches.workbench_routes import WorkbenchRoutes
from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches
from corral.stores.workbenches.workbench_keys import WorkbenchKeys

log = logging.getLogger("corral.server.workbenches")

EVERY_SECONDS = 3.0
_ASK_SECONDS = 10.0


class WorkbenchWatch:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        files: DirectoryWorkbenches,
        keys: WorkbenchKeys,
        tools: ToolProbe,
        accounts: AccountRules | None,
        clock: Clock,
        ssh_listen: str,
        ssh_ports: tuple[int, int],
    ) -> None:
        self.files = files
        self.routes = WorkbenchRoutes(controller=controller, files=files, keys=keys)
        self._keys = keys
        self._controller = controller
        self._store = store
        self._tools = tools
        self._accounts = accounts
        self._clock = clock
        self._ssh_listen = ssh_listen
        self._ssh_ports = ssh_ports
        #: by job, when a user last changed something through the proxy; the status file reports activity inside
        self._used_at: dict[str, float] = {}
        #: by job, whether it serves an app; filled by `app_access`
        self.app_sites: dict[str, bool] = {}
        self._worker = Worker("workbenches", self._look, every_seconds=EVERY_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    # ---------------------------------------------------------------- asked by others

    def missing(self, owner: str, spec: JobSpec, request: Request) -> list[Tool]:
        """The needed tools that are not installed on this machine. For other machines, missing tools show when the
        workbench runs. Raises Missing if its owner has no account to run it.
        """
        with self._store.read() as tables:
            shared = self._shared_account(tables, owner)
        if shared is not None:
            raise Missing(shared, field="name")
        cluster = dict(request.labels).get(CLUSTER_LABEL)
        clusters = [cluster] if cluster else self.routes.clusters()
        if clusters and not any(map(self.routes.has_ssh, clusters)):
            return [Tool.SSHD] if spec.ssh else []
        if self.routes.is_elsewhere(cluster) if cluster else self.routes.has_elsewhere():
            return []
        return self._tools.missing(workbenches.needed_tools(spec), venv=spec.venv, env=spec.env)

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: write the settings and keys of a workbench. Jobs of other kinds cost nothing here. Raises
        EngineUnavailable, and LaunchRefused if the job's owner has no account to run it as."""
        if order.command != HOST_COMMAND and not order.has_app:
            return order
        with self._store.read() as tables:
            record = tables.jobs.get(order.job_id)
            keys = workbenches.allowed_keys(tables, record) if record is not None else []
            shared = self._shared_account(tables, record.job.user) if record is not None else None
        if record is None:
            return order
        if shared is not None:
            raise LaunchRefused(shared)
        if record.spec.ssh and not order.has_app and not self.routes.has_ssh(cluster):
            raise LaunchRefused(workbenches.NO_SSH_THERE)
        listen = self.routes.listens_at(cluster, order.instances[0].node)
        if order.has_app:
            relay = None if listen is None else {"listen": listen, "ports": list(self._ssh_ports)}
            settings = apps.host_settings(record, order.command, relay)
            order = replace(order, command=APP_COMMAND)
        else:
            settings = workbenches.host_settings(
                record, listen=listen or self._ssh_listen, ports=self._ssh_ports, is_elsewhere=listen is not None
            )
        self.files.prepare(
            record.job.id, settings, keys, relay_key=None if listen is None else self._keys.of(record.job.id)
        )
        return order

    def status(self, job: Job) -> WorkbenchStatus | None:
        """The status that the present attempt reports."""
        status = self.files.status(job.id) if job.state is JobState.RUNNING else None
        return status if status is not None and status.attempt == job.attempt else None

    async def live(self, job_ids: Collection[str]) -> set[str]:
        """The jobs among these that have not ended."""
        return await asyncio.wrap_future(self._controller.inspect(_live, frozenset(job_ids)))

    def idle_seconds(self, job: Job, status: WorkbenchStatus) -> float:
        now = self._clock.now()
        return max(0.0, min(idle_seconds(status, now), now - self._used_at.get(job.id, 0.0)))

    def note_use(self, job_id: str) -> None:
        self._used_at[job_id] = self._clock.now()

    def sync_keys(self, user: str | None = None) -> None:
        """Writes the SSH keys from the store into all running workbenches, or those of one user."""
        jobs = [job for job, spec in self._running() if spec is None or spec.ssh]
        with self._store.read() as tables:
            wanted = {
                record.job.id: workbenches.allowed_keys(tables, record)
                for record in _records(tables, [job for job in jobs if user in (None, job.user)])
            }
        for job_id, keys in wanted.items():
            try:
                if self.files.put_keys(job_id, keys):
                    log.info("workbench %s lets in %d keys from now on", job_id, len(keys))
            except OSError as error:
                # What one owner did to a directory must not keep others' keys valid.
                log.error("the keys of workbench %s cannot be written: %s", job_id, error)

    def _shared_account(self, tables: Transaction, owner: str) -> str | None:
        """Why an operator's workbench must not run: others with its account could put another program in its place,
        and what the operator types and sees there would be theirs."""
        user = tables.people.user(owner)
        if self._accounts is None or user is None or user.role is not Role.OPERATOR:
            return None
        account = self._account(owner)
        if account is None:
            return None
        others = [(user.name, self._account(user.name)) for user in tables.people.users() if user.name != owner]
        sharing = [name for name, other in others if other is not None and other.uid == account.uid]
        if not sharing and not self._accounts.is_shared(owner):
            return None
        # Users who come later may get the same one.
        whose = ", ".join(sharing[:3]) or "users without one of their own"
        return (
            f"the workbench of an operator would run as {account.name}, the account of {whose}"
            f"{' and others' if len(sharing) > 3 else ''}, too: give {owner} an account of its own "
            "(local.run_as.users in the configuration)"
        )

    def _account(self, user: str) -> Account | None:
        """The user's account; None if the user's jobs are refused anyway."""
        assert self._accounts is not None
        try:
            return self._accounts.account_of(user)
        except LaunchRefused:
            return None

    # ---------------------------------------------------------------- watching

    def _look(self) -> None:
        found = self._running()
        self._used_at = {job.id: at for job, _ in found if (at := self._used_at.get(job.id)) is not None}
        if not found:
            return
        self.sync_keys()
        idle = [seen for job, spec in found if (seen := self._seen_idle(job, spec)) is not None]
        if idle:
            self._controller.execute(workbenches.stop_idle, idle).add_done_callback(
                log_failure(log, "an unused workbench could not be stopped")
            )

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


def _live(state: State, job_ids: frozenset[str]) -> set[str]:
    return {job_id for job_id in job_ids if job_id in state.snapshot.jobs}


def _running(state: State) -> list[tuple[Job, JobSpec | None]]:
    """The running workbenches, each with its spec if the state has it."""
    found = [
        (job, state.specs.get(job.id))
        for job in state.snapshot.jobs.values()
        if job.kind is JobKind.WORKBENCH and job.state in (JobState.STARTING, JobState.RUNNING)
    ]
    return [(job, spec) for job, spec in found if spec is None or workbenches.is_hosted(spec)]


def _records(tables: Transaction, jobs: Sequence[Job]) -> list[JobRecord]:
    records = [tables.jobs.get(job.id) for job in jobs]
    return [record for record in records if record is not None and workbenches.is_hosted(record.spec)]
