"""The client of one server, with the routes by topic."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from corral.client.http.credentials import default_server, default_token
from corral.client.http.transport import Transport, server_address

if TYPE_CHECKING:
    from corral.client.alerts.alerts import Alerts, Channels
    from corral.client.datasets.datasets import Datasets, DatasetTargets
    from corral.client.fleet.catalog import Catalog
    from corral.client.fleet.maintenance import Maintenance
    from corral.client.fleet.nodes import Fleet
    from corral.client.fleet.pools import Pools
    from corral.client.functions.calls import Functions
    from corral.client.functions.executor import JobExecutor
    from corral.client.jobs.files import Files
    from corral.client.jobs.images import Images
    from corral.client.jobs.jobs import Jobs, Tasks
    from corral.client.jobs.presets import Presets
    from corral.client.people.budgets import Budgets
    from corral.client.people.groups import Groups
    from corral.client.people.inbox import Inbox
    from corral.client.people.quotas import Quotas, Scores
    from corral.client.people.secrets import Secrets
    from corral.client.people.sign_in_providers import Providers
    from corral.client.people.users import Events, People
    from corral.client.reports.analysis import Analysis
    from corral.client.reports.reports import Reports
    from corral.client.scheduling.estimates import Estimates
    from corral.client.scheduling.queues import Queues
    from corral.client.scheduling.receipts import Receipts
    from corral.client.scheduling.reservations import Reservations
    from corral.client.storage.volume_files import VolumeFiles
    from corral.client.storage.volumes import ObjectStores, Volumes
    from corral.client.system.installation import Installation
    from corral.client.views import JobCreate
    from corral.client.whatif.simulations import Shadow, Simulations
    from corral.client.workbenches.apps import Apps
    from corral.client.workbenches.tunnel import Tunnel
    from corral.client.workbenches.workbenches import Workbenches


#: The areas, by module and class: each is loaded at its first use, because a command needs one or two of them.
_AREAS = {
    "jobs": "jobs.jobs:Jobs",
    "files": "jobs.files:Files",
    "volume_files": "storage.volume_files:VolumeFiles",
    "presets": "jobs.presets:Presets",
    "tasks": "jobs.jobs:Tasks",
    "workbenches": "workbenches.workbenches:Workbenches",
    "apps": "workbenches.apps:Apps",
    "queues": "scheduling.queues:Queues",
    "fleet": "fleet.nodes:Fleet",
    "pools": "fleet.pools:Pools",
    "maintenance": "fleet.maintenance:Maintenance",
    "reservations": "scheduling.reservations:Reservations",
    "groups": "people.groups:Groups",
    "catalog": "fleet.catalog:Catalog",
    "images": "jobs.images:Images",
    "secrets": "people.secrets:Secrets",
    "volumes": "storage.volumes:Volumes",
    "object_stores": "storage.volumes:ObjectStores",
    "datasets": "datasets.datasets:Datasets",
    "dataset_targets": "datasets.datasets:DatasetTargets",
    "quotas": "people.quotas:Quotas",
    "budgets": "people.budgets:Budgets",
    "scores": "people.quotas:Scores",
    "people": "people.users:People",
    "providers": "people.sign_in_providers:Providers",
    "events": "people.users:Events",
    "inbox": "people.inbox:Inbox",
    "alerts": "alerts.alerts:Alerts",
    "channels": "alerts.alerts:Channels",
    "analysis": "reports.analysis:Analysis",
    "reports": "reports.reports:Reports",
    "simulations": "whatif.simulations:Simulations",
    "shadow": "whatif.simulations:Shadow",
    "receipts": "scheduling.receipts:Receipts",
    "estimates": "scheduling.estimates:Estimates",
    "system": "system.installation:Installation",
}


class Client:
    """
    with Client.from_environment() as corral:
        job = corral.jobs.submit({"command": ["python", "train.py"], "gpus": 2})

    Every method raises a `ClientError`: `ServerUnreachable`, `NotSignedIn`, `Forbidden`, `NotFound` or another
    `ApiProblem` with the server's problem details.
    """

    if TYPE_CHECKING:
        jobs: Jobs
        files: Files
        volume_files: VolumeFiles
        presets: Presets
        tasks: Tasks
        workbenches: Workbenches
        apps: Apps
        queues: Queues
        fleet: Fleet
        pools: Pools
        maintenance: Maintenance
        reservations: Reservations
        groups: Groups
        catalog: Catalog
        images: Images
        secrets: Secrets
        volumes: Volumes
        object_stores: ObjectStores
        datasets: Datasets
        dataset_targets: DatasetTargets
        quotas: Quotas
        budgets: Budgets
        scores: Scores
        people: People
        providers: Providers
        events: Events
        inbox: Inbox
        alerts: Alerts
        channels: Channels
        analysis: Analysis
        reports: Reports
        simulations: Simulations
        shadow: Shadow
        receipts: Receipts
        estimates: Estimates
        system: Installation

    def __init__(self, server: str, token: str | None = None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Creates a client. Without a token the server answers only requests that need no sign-in."""
        self._transport = Transport(server, token, sleep=sleep)
        self._token = token

    def __getattr__(self, name: str) -> Any:
        """An area at its first use; afterwards it is an attribute like any other."""
        if name not in _AREAS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        module, _, kind = _AREAS[name].partition(":")
        area = getattr(import_module(f"corral.client.{module}"), kind)(self._transport)
        setattr(self, name, area)
        return area

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_AREAS]

    @classmethod
    def from_environment(
        cls, server: str | None = None, token: str | None = None, *, environment: Mapping[str, str] = os.environ
    ) -> Self:
        """A client of `server`, else of CORRAL_SERVER, else of this machine's server; with `token`, else CORRAL_TOKEN,
        else the token that `corral login` stored for that server."""
        address = server or default_server(environment)
        return cls(address, token or default_token(environment, server_address(address)))

    @property
    def server(self) -> str:
        return self._transport.server

    @contextmanager
    def if_unchanged(self) -> Iterator[Self]:
        """In this block an edit is refused if another user has edited the object since it was read in the block:
        `ApiProblem` with the status 412 and the slug `changed-meanwhile`. Not for several threads at once."""
        with self._transport.conditional_edits():
            yield self

    def tunnel(self, job: str, port: int | None, note: Callable[[str], None]) -> Tunnel:
        """Carries TCP connections of this machine to a port of a job, or without a port to its app."""
        from corral.client.workbenches.tunnel import Tunnel

        return Tunnel(self.server, self._token, job, port, note)

    def functions(self, *, python: str | None = None, **settings: Unpack[JobCreate]) -> Functions:
        """Calls Python functions in jobs of these settings, the fields of a submission. `python` is the interpreter on
        the nodes: this one's path by default, `python3` in an image or a virtual environment."""
        # Few commands of the command line need it.
        from corral.client.functions.calls import Functions

        return Functions(self, settings, python)

    def executor(self, *, python: str | None = None, **settings: Unpack[JobCreate]) -> JobExecutor:
        """The same as a `concurrent.futures.Executor`."""
        from corral.client.functions.executor import JobExecutor

        return JobExecutor(self, settings, python)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
