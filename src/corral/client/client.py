"""The client of one server, with the routes by topic."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from corral.client.alerts.alerts import Alerts, Channels
from corral.client.datasets.datasets import Datasets, DatasetTargets
from corral.client.fleet.catalog import Catalog
from corral.client.fleet.nodes import Fleet
from corral.client.fleet.pools import Pools
from corral.client.http.credentials import default_server, default_token
from corral.client.http.transport import Transport, server_address
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
from corral.client.whatif.simulations import Shadow, Simulations
from corral.client.workbenches.apps import Apps
from corral.client.workbenches.workbenches import Workbenches

if TYPE_CHECKING:
    from corral.client.functions.calls import Functions
    from corral.client.functions.executor import JobExecutor
    from corral.client.views import JobCreate
    from corral.client.workbenches.tunnel import Tunnel


class Client:
    """
    with Client.from_environment() as corral:
        job = corral.jobs.submit({"command": ["python", "train.py"], "gpus": 2})

    Every method raises a `ClientError`: `ServerUnreachable`, `NotSignedIn`, `Forbidden`, `NotFound` or another
    `ApiProblem` with the server's problem details.
    """

    def __init__(self, server: str, token: str | None = None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Without a token the server answers only requests that need no sign-in."""
        transport = Transport(server, token, sleep=sleep)
        self._transport = transport
        self._token = token
        self.jobs = Jobs(transport)
        self.files = Files(transport)
        self.volume_files = VolumeFiles(transport)
        self.presets = Presets(transport)
        self.tasks = Tasks(transport)
        self.workbenches = Workbenches(transport)
        self.apps = Apps(transport)
        self.queues = Queues(transport)
        self.fleet = Fleet(transport)
        self.pools = Pools(transport)
        self.reservations = Reservations(transport)
        self.groups = Groups(transport)
        self.catalog = Catalog(transport)
        self.images = Images(transport)
        self.secrets = Secrets(transport)
        self.volumes = Volumes(transport)
        self.object_stores = ObjectStores(transport)
        self.datasets = Datasets(transport)
        self.dataset_targets = DatasetTargets(transport)
        self.quotas = Quotas(transport)
        self.budgets = Budgets(transport)
        self.scores = Scores(transport)
        self.people = People(transport)
        self.providers = Providers(transport)
        self.events = Events(transport)
        self.inbox = Inbox(transport)
        self.alerts = Alerts(transport)
        self.channels = Channels(transport)
        self.analysis = Analysis(transport)
        self.reports = Reports(transport)
        self.simulations = Simulations(transport)
        self.shadow = Shadow(transport)
        self.receipts = Receipts(transport)
        self.estimates = Estimates(transport)
        self.system = Installation(transport)

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
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
