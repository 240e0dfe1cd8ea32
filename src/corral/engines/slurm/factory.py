"""Opens the Slurm engine from the section `slurm` of a cluster in the configuration."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from corral.control.ports import LaunchOrder
from corral.engines.attempts.accounts import AccountRules, own_account
from corral.engines.engine_setup import EngineSetup
from corral.engines.slurm.attempts.job_orders import SlurmRules
from corral.engines.slurm.attempts.logs import SlurmLogs
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.cluster.nodes import FleetRules
from corral.engines.slurm.engine import SlurmEngine
from corral.engines.slurm.root_users import REMEDY, root_on_nodes
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmCommands
from corral.engines.slurm.slurm_api.rest import SlurmRest
from corral.engines.slurm.slurm_api.rest_tokens import Tokens
from corral.engines.slurm.slurm_images import ImageRules

log = logging.getLogger("corral.engines.slurm")


class RestSection(Protocol):
    """How slurmrestd is reached."""

    @property
    def url(self) -> str: ...
    @property
    def token_file(self) -> str | None: ...
    @property
    def token_command(self) -> tuple[str, ...]: ...
    @property
    def user(self) -> str | None: ...
    @property
    def api_version(self) -> str | None: ...


class SlurmSection(Protocol):
    @property
    def rest(self) -> RestSection | None: ...
    @property
    def conf(self) -> str | None: ...
    @property
    def programs(self) -> str | None: ...
    @property
    def partitions(self) -> tuple[str, ...]: ...
    @property
    def max_time(self) -> float | None: ...
    @property
    def account(self) -> str: ...
    @property
    def qos(self) -> str: ...
    @property
    def accounts(self) -> Mapping[str, str]: ...
    @property
    def cpus_per_gpu(self) -> int: ...
    @property
    def models(self) -> Mapping[str, str]: ...
    @property
    def options(self) -> tuple[str, ...]: ...
    @property
    def path(self) -> str: ...
    @property
    def apptainer(self) -> str: ...
    @property
    def pending_seconds(self) -> float: ...


def open_engine(setup: EngineSetup) -> SlurmEngine:
    section: SlurmSection = setup.section
    accounts = setup.isolation.accounts
    if root_users := root_on_nodes(accounts):
        log.warning("cluster %s: %s: %s", setup.cluster, root_users, REMEDY)
    return SlurmEngine(
        root=setup.root,
        slurm=slurm_access(section),
        rules=_rules(section, setup.log_limit_bytes),
        account_of=_submitter_of(section.accounts, accounts),
        storage=setup.storage,
        top=str(setup.home),
        fold_after_seconds=setup.fold_after_seconds,
        fold_homes=setup.fold_homes,
    )


def open_logs(root: Path, is_over: Callable[[str], bool]) -> SlurmLogs:
    return SlurmLogs(Layout(str(root)), is_over)


def slurm_access(section: SlurmSection) -> Slurm:
    """Through slurmrestd if it is configured, else through Slurm's command-line programs."""
    # The order of Slurm's own programs: the configuration, then the environment, then Slurm's installation.
    conf = section.conf or os.environ.get("SLURM_CONF") or None
    commands = SlurmCommands(conf=conf, programs=section.programs)
    if (rest := section.rest) is None:
        return commands
    return SlurmRest(
        url=rest.url,
        tokens=Tokens(file=rest.token_file, command=rest.token_command, conf=conf),
        commands=commands,
        user=rest.user or "",
        version=rest.api_version or "",
    )


def _rules(section: SlurmSection, log_limit_bytes: int) -> SlurmRules:
    return SlurmRules(
        fleet=FleetRules(partitions=frozenset(section.partitions), models=section.models),
        partitions=section.partitions,
        max_minutes=None if section.max_time is None else max(1, int(section.max_time // 60)),
        account=section.account,
        qos=section.qos,
        cpus_per_gpu=section.cpus_per_gpu,
        extra=section.options,
        path=section.path,
        log_limit_bytes=log_limit_bytes,
        pending_seconds=section.pending_seconds,
        images=ImageRules(program=section.apptainer),
    )


def _submitter_of(
    slurm_accounts: Mapping[str, str], rules: AccountRules | None
) -> Callable[[LaunchOrder], Submitter | None]:
    """Finds the submitter of an attempt's Slurm job: the operating system account and the Slurm account. A server that
    is not root submits as itself."""

    def submitter_of(order: LaunchOrder) -> Submitter | None:
        slurm_account = slurm_accounts.get(order.user, "")
        if rules is None:
            return Submitter(account=own_account(), slurm_account=slurm_account) if slurm_account else None
        return Submitter(account=rules.account_of(order.os_user or order.user), slurm_account=slurm_account)

    return submitter_of
