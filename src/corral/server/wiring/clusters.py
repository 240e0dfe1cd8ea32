"""The clusters of a server, put together from settings: an engine for each."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from corral.control.ports import Engine, LaunchOrder, LogChunk
from corral.engines.attempts.accounts import AccountRules, own_account
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import HostFleet, VirtualFleet, fleet_for
from corral.engines.slurm.attempts.job_orders import SlurmRules
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.cluster.nodes import FleetRules
from corral.engines.slurm.engine import SlurmEngine
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmCommands
from corral.engines.slurm.slurm_api.rest import SlurmRest
from corral.engines.slurm.slurm_api.rest_tokens import Tokens
from corral.engines.storage.storage_specs import StoragePlaces
from corral.server.settings.sections import ClusterSettings, SlurmSettings
from corral.server.settings.settings import Settings
from corral.server.system.slurm_accounts import REMEDY, root_on_nodes

log = logging.getLogger("corral.server")

#: where there are no real ones
DEFAULT_VIRTUAL_GPUS = "8xA100-80G"


@dataclass(frozen=True, kw_only=True, slots=True)
class Clusters:
    """Engines by the names of their clusters."""

    engines: Mapping[str, Engine]
    #: of this machine, whose GPUs the server reads itself; without nodes where no cluster is local
    fleet: HostFleet | VirtualFleet

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        """Of whichever engine has, or had, the attempt."""
        for engine in self.engines.values():
            if engine.has(attempt_id):
                return engine.logs(attempt_id, rank, offset, limit)
        return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)


@contextmanager
def opened(
    settings: Settings, isolated: Isolation, places: StoragePlaces, roots: Mapping[str, Path]
) -> Iterator[Clusters]:
    """`roots`: where the engine of each cluster keeps its attempts."""
    with ExitStack() as parts:
        fleet: HostFleet | VirtualFleet = VirtualFleet(())
        engines: dict[str, Engine] = {}
        for cluster in settings.cluster:
            if cluster.engine == "slurm":
                engines[cluster.name] = slurm_engine(settings, cluster, isolated.accounts, places, roots[cluster.name])
            else:
                fleet = local_fleet(settings)
                engines[cluster.name] = LocalEngine(
                    root=roots[cluster.name],
                    fleet=fleet,
                    log_limit_bytes=settings.local.log_limit_bytes,
                    isolation=isolated,
                    storage=places,
                    fold_after_seconds=settings.retention.fold_seconds,
                )
            parts.callback(engines[cluster.name].close)
        yield Clusters(engines=engines, fleet=fleet)


def local_fleet(settings: Settings) -> HostFleet | VirtualFleet:
    """The GPUs that were asked for, or the real ones, or a few virtual ones."""
    drills = settings.home / "local"
    fleet = fleet_for(
        virtual_gpus=settings.local.virtual_gpus,
        virtual_nodes_text=settings.local.virtual_nodes,
        drill_directory=drills,
    )
    if isinstance(fleet, HostFleet) and not any(node.gpus for node in fleet.nodes()):
        return fleet_for(virtual_gpus=DEFAULT_VIRTUAL_GPUS, drill_directory=drills)
    return fleet


def slurm_engine(
    settings: Settings, cluster: ClusterSettings, accounts: AccountRules | None, places: StoragePlaces, root: Path
) -> SlurmEngine:
    slurm = cluster.slurm
    if who := root_on_nodes(accounts):
        log.warning("cluster %s: %s: %s", cluster.name, who, REMEDY)
    return SlurmEngine(
        root=root,
        slurm=_access(slurm),
        rules=SlurmRules(
            fleet=FleetRules(partitions=frozenset(slurm.partitions), models=slurm.models),
            partitions=slurm.partitions,
            max_minutes=None if slurm.max_time is None else max(1, int(slurm.max_time // 60)),
            account=slurm.account,
            qos=slurm.qos,
            cpus_per_gpu=slurm.cpus_per_gpu,
            extra=slurm.options,
            path=slurm.path,
            log_limit_bytes=settings.local.log_limit_bytes,
            pending_seconds=slurm.pending_seconds,
        ),
        account_of=_account_of(slurm.accounts, accounts),
        storage=places,
        top=str(settings.home),
        fold_after_seconds=settings.retention.fold_seconds,
    )


def _access(slurm: SlurmSettings) -> Slurm:
    """Through slurmrestd where there is one, and by Slurm's programs otherwise."""
    # As Slurm's own programs do: the settings of corral first, then the environment, then where Slurm was installed.
    conf = slurm.conf or os.environ.get("SLURM_CONF") or None
    commands = SlurmCommands(conf=conf, programs=slurm.programs)
    if (rest := slurm.rest) is None:
        return commands
    return SlurmRest(
        url=rest.url,
        tokens=Tokens(file=rest.token_file, command=rest.token_command, conf=conf),
        commands=commands,
        user=rest.user or "",
        version=rest.api_version or "",
    )


def _account_of(named: Mapping[str, str], rules: AccountRules | None) -> Callable[[LaunchOrder], Submitter | None]:
    """Whose job it is in Slurm: the account of the machine, and the one of Slurm's books. A server that is not root
    submits as itself."""

    def account_of(order: LaunchOrder) -> Submitter | None:
        books = named.get(order.user, "")
        if rules is None:
            return Submitter(account=own_account(), books=books) if books else None
        return Submitter(account=rules.account_of(order.os_user or order.user), books=books)

    return account_of
