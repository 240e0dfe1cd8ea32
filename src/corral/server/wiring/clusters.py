"""Opens the engine of every configured cluster, through the registry of engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from corral.control.ports import AttemptLogs, Engine, LogChunk, Store
from corral.engines.attempts.fold_worker import FoldHomes
from corral.engines.attempts.isolation import Isolation
from corral.engines.engine_setup import EngineSetup
from corral.engines.local.engine import LocalEngine
from corral.engines.local.fleet import HostFleet, VirtualFleet
from corral.engines.registry import open_engine, open_logs
from corral.engines.storage.storage_specs import StoragePlaces
from corral.server.settings.sections.cluster_sections import ClusterSettings, KubernetesSettings, SlurmSettings
from corral.server.settings.sections.server_sections import LocalSettings
from corral.server.settings.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Clusters:
    """Engines by the names of their clusters."""

    engines: Mapping[str, Engine]
    #: where the output of attempts is read: the engines, or the files of a cluster without its engine
    sources: Sequence[AttemptLogs]

    @property
    def fleet(self) -> HostFleet | VirtualFleet:
        """The nodes of the local cluster, whose GPUs the server reads itself; empty if no cluster is local."""
        fleets = [engine.fleet for engine in self.engines.values() if isinstance(engine, LocalEngine)]
        return fleets[-1] if fleets else VirtualFleet(())

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        """Reads from the cluster that has, or had, the attempt."""
        for source in self.sources:
            if source.has(attempt_id):
                return source.logs(attempt_id, rank, offset, limit)
        return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)


@contextmanager
def opened(
    settings: Settings,
    isolated: Isolation,
    places: StoragePlaces,
    roots: Mapping[str, Path],
    fold_homes: FoldHomes,
) -> Iterator[Clusters]:
    """`roots`: the directory in which the engine of each cluster keeps its attempts."""
    with ExitStack() as parts:
        engines: dict[str, Engine] = {}
        for cluster in settings.cluster:
            setup = EngineSetup(
                cluster=cluster.name,
                root=roots[cluster.name],
                home=settings.home,
                isolation=isolated,
                storage=places,
                log_limit_bytes=settings.local.log_limit_bytes,
                fold_after_seconds=settings.retention.fold_seconds,
                fold_homes=fold_homes,
                section=_section(settings, cluster),
            )
            engines[cluster.name] = open_engine(cluster.engine, setup)
            parts.callback(engines[cluster.name].close)
        yield Clusters(engines=engines, sources=tuple(engines.values()))


def unopened(settings: Settings, roots: Mapping[str, Path], store: Store) -> Clusters:
    """The clusters of a server that stands by: their engines belong to the leader."""

    def is_over(attempt_id: str) -> bool:
        with store.read() as tables:
            attempt = tables.attempts.get([attempt_id]).get(attempt_id)
        return attempt is None or attempt.ended_at is not None

    sources = [open_logs(cluster.engine, roots[cluster.name], is_over) for cluster in settings.cluster]
    return Clusters(engines={}, sources=sources)


def _section(settings: Settings, cluster: ClusterSettings) -> LocalSettings | SlurmSettings | KubernetesSettings:
    """The settings of the cluster's engine: a section of the cluster that has the engine's name. The local engine is
    the exception: this machine is one, so its section stands at the top of the configuration."""
    section: LocalSettings | SlurmSettings | KubernetesSettings = getattr(cluster, cluster.engine, settings.local)
    return section
