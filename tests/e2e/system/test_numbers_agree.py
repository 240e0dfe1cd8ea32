"""One number, one source: whatever two pages, the command line, the API or a metric show of the same moment agrees.

NUMBERS has the places of each number as data; a new place is one line. The fleet has everything that makes a count of
GPUs hard: held ones, a cordoned node, a failed GPU, reserved ones, a share, and jobs that wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.integration.api import api_server
from tests.integration.cli_harness import Person, operator_of, stop_everything
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]

CONFIG = """
monitoring:
  interval_seconds: 0.5
  health: {idle_grace_minutes: null}
"""
NODES, GPUS_PER_NODE = 4, 4
SLEEP = ["sleep", "900"]


@dataclass(frozen=True, kw_only=True)
class Places:
    """Everything that shows numbers, of one moment."""

    api: httpx.Client
    shell: Person
    console: Console
    waiting: str

    def got(self, path: str, **query: object) -> Any:
        return self.api.get(path, params={key: str(value) for key, value in query.items()}).raise_for_status().json()

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.got(path, limit=200)["items"]
        return found

    def total(self, path: str, field: str) -> float:
        return sum(item[field] for item in self.items(path))

    def metric(self, name: str, **labels: str) -> float:
        """The sum over all rows with these labels."""
        rows = [line for line in self.api.get("/metrics").text.splitlines() if re.match(rf"{name}[ {{]", line)]
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(float(row.rpartition(" ")[2]) for row in rows if all(label in row for label in wanted))

    def panel(self, field: str) -> float:
        return float(sum(row[field] for row in self.got("/panel")["models"]))

    def quotas(self, field: str) -> float:
        """The job of a preset counts in two quotas; there is none here."""
        return float(sum(kind["gpus"][field] for user in self.items("/quotas") for kind in user["kinds"].values()))

    # ---------------------------------------------------------------- pages

    def tile(self, label: str) -> float:
        """A figure of the overview."""
        tile = self.console.open("/", "Overview").get_by_role("group", name=label, exact=True)
        return first_number(tile.inner_text().removeprefix(label))

    def column(self, path: str, table: str, title: str) -> float:
        """The sum over a column of a page's table."""
        page = self.console.open(path)
        found = page.get_by_role("table", name=table, exact=True)
        found.get_by_role("row").nth(1).wait_for()
        titles = [cell.inner_text().strip() for cell in found.get_by_role("columnheader").all()]
        at = titles.index(title)
        rows = [row.locator("td, th") for row in found.locator("tbody tr").all()]
        return sum(first_number(cells.nth(at).inner_text()) for cells in rows if cells.count() == len(titles))

    def pool_board(self) -> float:
        page = self.console.open("/pools?view=board")
        text = page.get_by_text(re.compile(r"\d+ GPUs?, \d+ free")).first.inner_text()
        return float(re.search(r"(\d+) free", text)[1])  # type: ignore[index]

    def head(self, path: str, pattern: str) -> float:
        """A figure beside the title of a page."""
        text = self.console.open(path).get_by_role("main").get_by_text(re.compile(pattern)).first.inner_text()
        return float(re.search(pattern, text)[1])  # type: ignore[index]

    def bell(self) -> float:
        label = self.console.open("/", "Overview").get_by_role("link", name=re.compile(r"\d+ alerts? fires?|No alert"))
        return first_number(label.first.get_attribute("aria-label") or "")


def first_number(text: str) -> float:
    found = re.search(r"\d+(?:\.\d+)?", text)
    return float(found[0]) if found else 0.0


#: Each number by name, with every place that shows it.
NUMBERS: Mapping[str, Mapping[str, Callable[[Places], float]]] = {
    "free GPUs": {
        "overview": lambda at: at.got("/overview")["gpus_free"],
        "nodes": lambda at: at.total("/nodes", "gpus_free"),
        "pools": lambda at: at.total("/pools", "gpus_free"),
        "clusters": lambda at: at.total("/clusters", "gpus_free"),
        "gpus": lambda at: at.total("/gpus", "free"),
        "map": lambda at: sum(at.got("/gpus/map")["gpus"]["free"]),
        "panel": lambda at: at.panel("free"),
        "metric": lambda at: at.metric("corral_gpus_free"),
        "corral status": lambda at: at.shell.read("status")["free_gpus"],
        "page of nodes": lambda at: at.column("/nodes", "Nodes", "Free"),
        "page of pools": lambda at: at.column("/pools", "Pools", "Free"),
        "head of the page of GPUs": lambda at: at.head("/gpus", r"(\d+) free"),
        "board of pools": lambda at: at.pool_board(),
    },
    "held GPUs": {
        "overview": lambda at: at.got("/overview")["gpus_allocated"],
        "pools": lambda at: at.total("/pools", "gpus_allocated"),
        "groups": lambda at: at.total("/groups", "gpus_held"),
        "quotas": lambda at: at.quotas("held"),
        "panel": lambda at: at.panel("occupied"),
        "metric": lambda at: at.metric("corral_gpus_held"),
        "metric of queues": lambda at: at.metric("corral_queue_gpus_held"),
        "corral group ls": lambda at: sum(group["gpus_held"] for group in at.shell.read("group", "ls")["items"]),
        "tile": lambda at: at.tile("GPUs in use"),
        "page of groups": lambda at: at.column("/groups", "Groups", "GPUs held"),
        "page of queues": lambda at: at.column("/queues", "Queue settings", "GPUs held"),
    },
    "GPUs that waiting jobs ask for": {
        "groups": lambda at: at.total("/groups", "gpus_asked"),
        "quotas": lambda at: at.quotas("asked"),
        "panel": lambda at: at.panel("gap"),
        "page of groups": lambda at: at.column("/groups", "Groups", "GPUs asked"),
    },
    "waiting jobs": {
        "overview": lambda at: at.got("/overview")["queued"],
        "jobs": lambda at: len(at.got("/jobs", state="queued", limit=200)["items"]),
        "panel": lambda at: at.panel("queued"),
        "metric": lambda at: at.metric("corral_jobs", state="queued"),
        "metric of queues": lambda at: at.metric("corral_queue_length"),
        "corral status": lambda at: at.shell.read("status")["queued_tasks"],
        "counts of jobs": lambda at: at.got("/jobs:counts")["by_state"]["queued"],
        "pools": lambda at: at.total("/pools", "queued"),
        "tile": lambda at: at.tile("Waiting"),
        "page of queues": lambda at: at.column("/queues", "Queue settings", "Waiting"),
        "head of the page of the queue": lambda at: at.head("/queue", r"(\d+) waiting"),
    },
    "running jobs": {
        "overview": lambda at: at.got("/overview")["running"],
        "jobs": lambda at: len(at.got("/jobs", state="running", limit=200)["items"]),
        "counts of jobs": lambda at: at.got("/jobs:counts")["by_state"]["running"],
        "panel": lambda at: at.panel("running"),
        "pools": lambda at: at.total("/pools", "running"),
        "metric": lambda at: at.metric("corral_jobs", state="running"),
        "page of queues": lambda at: at.column("/queues", "Queue settings", "Running"),
        "head of the page of the queue": lambda at: at.head("/queue", r"(\d+) running"),
    },
    "GPUs": {
        "overview": lambda at: at.got("/overview")["gpus"],
        "nodes": lambda at: at.total("/nodes", "gpus_total"),
        "pools": lambda at: at.total("/pools", "gpus_total"),
        "gpus": lambda at: len(at.items("/gpus")),
        "map": lambda at: len(at.got("/gpus/map")["gpus"]["id"]),
        "metric": lambda at: at.metric("corral_gpus"),
        "head of the overview": lambda at: at.head("/", r"(\d+) GPUs"),
        "head of the page of GPUs": lambda at: at.head("/gpus", r"(\d+) GPUs"),
    },
    "firing alerts": {
        "overview": lambda at: sum(at.got("/overview")["alerts"].values()),
        "alerts": lambda at: len(at.got("/alerts", state="firing", limit=200)["items"]),
        "metric": lambda at: at.metric("corral_alerts_firing"),
        "tile": lambda at: at.tile("Open alerts"),
        "bell": lambda at: at.bell(),
    },
    "estimated start of the waiting job": {
        "job": lambda at: moment(at.got(f"/jobs/{at.waiting}")["estimated_start"]),
        "why": lambda at: moment(at.got(f"/jobs/{at.waiting}/why")["estimate"]),
        "corral show": lambda at: moment(at.shell.read("show", at.waiting)["estimated_start"]),
    },
}


def moment(estimate: dict[str, str]) -> float:
    return datetime.fromisoformat(estimate["p50"]).timestamp()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    config = tmp_path_factory.mktemp("numbers") / "corral.yaml"
    config.write_text(CONFIG)
    fleet = f"{NODES}x{GPUS_PER_NODE}xA10"
    with api_server("--virtual-nodes", fleet, "--config", str(config), users=("ann", "bob")) as running:
        yield running
        stop_everything(operator_of(running))


@pytest.fixture(scope="module")
def waiting(server: CorralServer) -> str:
    """ann holds three and a half GPUs; one node is cordoned, one GPU failed, two are reserved; bob waits for a node."""
    shell = operator_of(server)
    with server.http() as http, server.http("ann") as ann, server.http("bob") as bob:
        body: dict[str, object]
        for size in (3, 0.5):
            body = {"command": SLEEP, "gpus": size, "time": 3600}
            running = f"/jobs/{ann.post('/jobs', json=body).raise_for_status().json()['id']}"
            wait_until(lambda path=running: ann.get(path).json()["state"] == "running", "ann's job runs")  # type: ignore[misc]
        empty = [node for node in http.get("/nodes").json()["items"] if node["gpus_free"] == GPUS_PER_NODE]
        cordoned, failing, reserved = empty[:3]
        shell.ok("nodes", "cordon", cordoned["id"])
        shell.ok("gpus", "mark", failing["gpus"][0]["id"], "failed", "--reason", "a rehearsal")
        gpus = [gpu["id"] for gpu in reserved["gpus"][:2]]
        body = {"name": "night", "pool": "default", "users": ["ann"], "gpu_ids": gpus, "lends": False}
        http.post("/reservations", json=body).raise_for_status()
        body = {"command": ["true"], "gpus": GPUS_PER_NODE, "time": 3600}
        job_id: str = bob.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(
            lambda: bob.get(f"/jobs/{job_id}").json()["estimated_start"] is not None, "bob's job has an estimate"
        )
        wait_until(lambda: bool(http.get("/alerts?state=firing").json()["items"]), "the failed GPU is an alert")
    return job_id


@pytest.mark.parametrize("number", NUMBERS)
def test_every_place_shows_the_same_number(server: CorralServer, waiting: str, visit: Visit, number: str) -> None:
    with server.http() as http:
        places = Places(api=http, shell=operator_of(server), console=visit(), waiting=waiting)
        seen: dict[str, float] = {}

        def agree() -> bool:
            seen.update({place: round(read(places), 3) for place, read in NUMBERS[number].items()})
            return len({*seen.values()}) == 1 and seen[next(iter(seen))] > 0

        # Alerts and estimates move on by themselves: places are compared until one look sees the same in all of them.
        try:
            wait_until(agree, number)
        except AssertionError as late:
            raise AssertionError(f"{number} differ: {seen}") from late
