"""Faulty GPUs, lost nodes and idle jobs on a real server with virtual GPUs: seen, acted upon, and brought back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.client.client import Client
from corral.client.http.errors import ApiProblem
from corral.client.views import GpuView, JobCreate, JobView
from tests.integration.cli_harness import Person, cli_server, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

HEALTH = """
monitoring:
  interval_seconds: 0.5
  health: {confirm_readings: 3, idle_grace_minutes: 0.05, idle_fail_minutes: 0.1, recover_minutes: 0.03}
"""
IDLE = """
monitoring:
  interval_seconds: 0.5
  health: {idle_grace_minutes: null}
  idle_reclaim: {enabled: true, window_minutes: 0.08, warning_minutes: 0.1, extension_minutes: 60}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    home = tmp_path_factory.mktemp("health")
    (home / "corral.yaml").write_text(HEALTH)
    arguments = ("--virtual-nodes", "3x2xA10", "--config", str(home / "corral.yaml"))
    with cli_server(home, *arguments) as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    """At the command line."""
    return operator_of(server)


@pytest.fixture
def client(server: CorralServer) -> Iterator[Client]:
    """The same operator, over the API."""
    with server.client() as client:
        yield client


class Drill:
    """The faults of GPUs; written like by `corral drill`."""

    def __init__(self, server: CorralServer) -> None:
        self._path = server.home / "local" / "faults.json"

    def break_gpus(self, faults: dict[str, Any]) -> None:
        self._write({"gpus": faults})

    def break_node(self, node: str) -> None:
        self._write({"nodes": {node: "down"}})

    def mend(self) -> None:
        self._write({})

    def _write(self, faults: dict[str, Any]) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(faults))
        new.replace(self._path)


@pytest.fixture
def drill(server: CorralServer) -> Iterator[Drill]:
    drill = Drill(server)
    yield drill
    drill.mend()


def running(client: Client, gpus: int = 1) -> JobView:
    """A job that sleeps on its GPUs."""
    body: JobCreate = {"command": ["sleep", "600"], "gpus": gpus, "grace": 1}
    return until_running(client, client.jobs.submit(body)["id"])


def until_running(client: Client, job: str, attempt: int = 1) -> JobView:
    def is_up() -> bool:
        view = client.jobs.get(job)
        return view["state"] == "running" and view["attempt"] == attempt

    wait_until(is_up, f"attempt {attempt} of {job} runs")
    return client.jobs.get(job)


def gpus_of(job: JobView) -> list[str]:
    assert job["allocation"] is not None
    return [gpu for grant in job["allocation"]["grants"] for gpu in grant["gpus"]]


def until_health(client: Client, gpu: str, health: str) -> GpuView:
    wait_until(lambda: client.fleet.gpu(gpu)["health"] == health, f"{gpu} is {health}")
    return client.fleet.gpu(gpu)


def node_states(client: Client) -> dict[str, str]:
    return {node["id"]: node["state"] for node in client.fleet.nodes()}


def actions(server: CorralServer, subject: str) -> list[str]:
    """Oldest first."""
    with server.http() as http:
        found = http.get("/events", params={"subject": subject}).raise_for_status().json()["items"]
    return [event["action"] for event in found][::-1]


def test_a_hot_gpu_fails_and_its_job_runs_elsewhere(
    server: CorralServer, client: Client, operator: Person, drill: Drill
) -> None:
    job = running(client)
    (gpu,) = gpus_of(job)
    drill.break_gpus({gpu: {"temperature": 97}})
    until_health(client, gpu, "failed")
    again = until_running(client, job["id"], attempt=2)
    assert gpus_of(again) != [gpu]
    first, _ = client.jobs.attempts(job["id"])
    assert first["end_reason"] == "gpu_failed"
    assert first["message"].startswith(f"GPU {gpu} failed: 97 °C, more than 85 °C")
    assert actions(server, gpu) == ["gpu.suspect", "gpu.failed"]
    shown = operator.ok("gpus", "show", gpu)
    assert "hot: 97 °C, more than 85 °C" in shown
    assert "What to do: Look at the fans" in shown

    assert "97 °C" in operator.run("gpus", "self-test", gpu, code=1).out
    with pytest.raises(ApiProblem, match=f"job {job['id']} .* holds GPU"):
        client.fleet.self_test_gpu(gpus_of(again)[0])
    drill.mend()
    assert operator.ok("gpus", "self-test", gpu).strip() == f"{gpu} has passed and is healthy"
    client.jobs.stop(job["id"])


def test_a_suspect_gpu_is_trusted_again(client: Client, drill: Drill) -> None:
    gpu = list(client.fleet.gpus())[-1]["id"]
    drill.break_gpus({gpu: {"xids": [74]}})
    wait_until(lambda: bool(client.fleet.gpu(gpu).get("evidence")), "an error of the driver is seen")
    drill.mend()
    found = client.fleet.gpu(gpu).get("evidence", [])
    assert found[0]["text"] == "XID 74: an error on an NVLink connection"
    until_health(client, gpu, "healthy")


def test_an_operators_word(client: Client, operator: Person) -> None:
    gpu = next(client.fleet.gpus())["id"]
    assert operator.ok("gpus", "mark", gpu, "suspect", "--reason", "odd noise").strip() == f"{gpu} is suspect"
    with pytest.raises(ApiProblem, match="health"):
        client.fleet.mark_gpu(gpu, "shiny", "it looks so")
    view = client.fleet.gpu(gpu)
    assert (view["health"], view.get("evidence", [])[-1]["text"]) == ("suspect", "odd noise (operator)")
    assert client.fleet.reset_gpu_health(gpu)["health"] == "healthy"
    assert client.fleet.gpu(gpu).get("evidence") == []


def test_a_lost_node_is_down_and_comes_back_as_it_was(client: Client, operator: Person, drill: Drill) -> None:
    job = running(client, gpus=2)
    assert job["allocation"] is not None
    node = job["allocation"]["grants"][0]["node"]
    drill.break_node(node)
    wait_until(lambda: node_states(client)[node] == "down", "the node is down")
    again = until_running(client, job["id"], attempt=2)
    assert again["allocation"] is not None
    assert again["allocation"]["grants"][0]["node"] != node
    assert client.jobs.attempts(job["id"])[0]["end_reason"] == "node_lost"
    assert "still there" in operator.run("nodes", "rm", "-y", node, code=1).err
    assert "will be cordoned when it is back" in operator.ok("nodes", "cordon", node)
    drill.mend()
    wait_until(lambda: node_states(client)[node] == "cordoned", "it is back, and cordoned as was said meanwhile")
    assert client.fleet.change_node(node, "uncordon")["state"] == "ready"
    client.jobs.stop(job["id"])


def test_a_hung_job_is_moved_once(client: Client, drill: Drill) -> None:
    job = running(client)
    (gpu,) = gpus_of(job)
    drill.break_gpus({item["id"]: {"idle": True} for item in client.fleet.gpus()})
    failed = until_health(client, gpu, "failed")
    assert "under a running job" in failed.get("evidence", [])[-1]["text"]
    again = until_running(client, job["id"], attempt=2)
    # It hangs there, too, for at least as long as another one that hangs for the first time.
    other = running(client)
    until_health(client, gpus_of(other)[0], "failed")
    assert client.fleet.gpu(gpus_of(again)[0])["health"] == "suspect", "found, but its job stays there"
    assert client.jobs.get(job["id"])["state"] == "running"
    for stopped in (job, other):
        client.jobs.stop(stopped["id"])
    for faulty in (gpu, gpus_of(other)[0], gpus_of(again)[0]):
        client.fleet.reset_gpu_health(faulty)


def test_an_idle_job_is_warned_and_stopped_unless_it_is_given_more_time(tmp_path: Path) -> None:
    (tmp_path / "corral.yaml").write_text(IDLE)
    arguments = ("--virtual-gpus", "2xA10", "--config", str(tmp_path / "corral.yaml"))
    with cli_server(tmp_path, *arguments) as server, server.client() as client:
        operator = operator_of(server)
        kept, reclaimed = running(client)["id"], running(client)["id"]
        with pytest.raises(ApiProblem, match="not warned"):
            client.jobs.extend(kept)
        idle = {gpu: {"idle": True} for job in (kept, reclaimed) for gpu in gpus_of(client.jobs.get(job))}
        Drill(server).break_gpus(idle)
        wait_until(lambda: client.jobs.get(kept).get("idle_warning") is not None, "it is warned")
        warned, extended = client.jobs.get(kept).get("idle_warning"), client.jobs.extend(kept).get("idle_warning")
        assert warned is not None
        assert extended is not None
        assert (extended["warned_at"], extended["deadline"] > warned["deadline"]) == (warned["warned_at"], True)
        server.kill()
        server.start()
        assert "it was given more time" in operator.ok("show", kept)
        assert client.jobs.get(kept).get("idle_warning") == extended
        with pytest.raises(ApiProblem, match="more time already"):
            client.jobs.extend(kept)
        wait_until(lambda: client.jobs.get(reclaimed)["state"] == "stopped", "the other one is stopped")
        over = client.jobs.get(reclaimed)
        assert over["end_reason"] == "evicted"
        assert over["message"].startswith(
            "stopped because it did nothing with what it held (GPUs: 1): their use was 0.0%"
        )
        assert client.jobs.get(kept)["state"] == "running"
        reported = {job: [action for action in actions(server, job) if "idle" in action] for job in (kept, reclaimed)}
        assert reported == {
            kept: ["job.idle-warned", "job.idle-extended"],
            reclaimed: ["job.idle-warned", "job.idle-stopped"],
        }
