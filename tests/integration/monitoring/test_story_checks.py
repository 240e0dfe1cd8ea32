"""GPUs are checked by jobs: on request, in idle gaps, and before a GPU returns from quarantine. By the command line and
the API, with the real program of a check, on the processor in place of a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

#: No processor reaches the limit for A100.
CONFIG = """
monitoring:
  interval_seconds: 0.5
  checks:
    before_return: true
    checks: [compute, memory]
    limits: {A100-80G: {compute_tflops: 1000000}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    home = tmp_path_factory.mktemp("checks")
    (home / "corral.yaml").write_text(CONFIG)
    fleet = "1x2xA10,1x1xA100-80G"
    with cli_server(home, "--virtual-nodes", fleet, "--config", str(home / "corral.yaml")) as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def gpus_of(operator: Person, model: str) -> list[str]:
    return [gpu["id"] for gpu in operator.read("gpus")["items"] if gpu["model"] == model]


def health_of(operator: Person, gpu: str) -> str:
    return str(operator.read("gpus", "show", gpu)["health"])


def break_gpu(server: CorralServer, faults: dict[str, Any]) -> None:
    path = server.home / "local" / "faults.json"
    path.with_suffix(".new").write_text(json.dumps({"gpus": faults}))
    path.with_suffix(".new").replace(path)


def test_a_node_is_checked_and_its_results_are_shown(operator: Person, http: httpx.Client) -> None:
    gpus = gpus_of(operator, "A10")
    node = operator.read("gpus", "show", gpus[0])["node"]
    checks = operator.read("health", "run", node, "--checks", "compute,memory,disk", "--wait")["items"]
    assert {check["gpu"]: check["state"] for check in checks} == dict.fromkeys(gpus, "passed")
    metrics = [{item["metric"] for item in check["measurements"]} for check in checks]
    assert all({"compute_tflops", "memory_gb_per_second"} <= found for found in metrics)
    assert sum("disk_write_mb_per_second" in found for found in metrics) == 1
    for check in checks:
        grants = operator.read("show", check["job"])
        assert (grants["state"], grants["priority"]) == ("completed", 100)
    listed = http.get("/health-checks", params={"gpu": gpus[0]}).json()["items"]
    assert [check["gpu"] for check in listed] == [gpus[0]]
    assert listed[0]["is_simulated"] is True
    assert "by the processor" in operator.ok("health", "ls", "--gpu", gpus[0])


def test_a_gpu_below_the_limit_of_its_model_goes_into_quarantine_with_a_ticket(operator: Person) -> None:
    (gpu,) = gpus_of(operator, "A100-80G")
    assert operator.run("health", "run", gpu, "--wait").code == 1
    shown = operator.read("gpus", "show", gpu)
    assert shown["health"] == "suspect"
    assert [item["sign"] for item in shown["evidence"]] == ["check"]
    ticket = operator.ok("health", "ticket", gpu)
    assert "at least 1e+06 is expected" in ticket
    assert f"corral health run {gpu}" in ticket


def test_a_gpu_returns_from_quarantine_only_when_a_check_passes(server: CorralServer, operator: Person) -> None:
    gpu = gpus_of(operator, "A10")[0]
    operator.ok("gpus", "mark", gpu, "failed", "--reason", "odd noise")
    break_gpu(server, {gpu: {"ecc_uncorrected": 3}})
    operator.ok("gpus", "reset-health", gpu)
    wait_until(lambda: latest(operator, gpu)["state"] == "failed", "the check finds the fault")
    assert health_of(operator, gpu) == "failed"
    break_gpu(server, {})
    operator.ok("gpus", "reset-health", gpu)
    wait_until(lambda: health_of(operator, gpu) == "healthy", "the check passes, and the GPU is back")
    assert latest(operator, gpu)["cause"] == "return"
    actions = [event["action"] for event in operator.read("events", "--subject", gpu, "--limit", "100")["items"]]
    assert "gpu.returned" in actions


def latest(operator: Person, gpu: str) -> dict[str, Any]:
    found = operator.read("health", "ls", "--gpu", gpu)["items"][0]
    assert isinstance(found, dict)
    return found


def test_a_check_waits_for_its_gpu_and_says_so(operator: Person) -> None:
    gpus = gpus_of(operator, "A10")
    wait_until(lambda: all(health_of(operator, gpu) == "healthy" for gpu in gpus), "all are healthy")
    job = operator.submit("--gpus", "2", "--model", "A10", "--idles", "--grace", "1s", "--", "sleep", "600")
    operator.wait_for(job, "running")
    (check,) = operator.read("health", "run", gpus[1], "--checks", "compute")["items"]
    assert f"GPU {gpus[1]}, which it checks, is in use by {job}" in operator.ok("why", check["job"])
    assert operator.run("health", "run", gpus[1]).code == 1
    operator.ok("stop", job)
    wait_until(lambda: latest(operator, gpus[1])["state"] == "passed", "the check ran after the job")


def test_only_operators_check_gpus(server: CorralServer, operator: Person) -> None:
    ann = scientist(server, operator, "ann")
    gpu = gpus_of(operator, "A10")[0]
    assert ann.run("health", "run", gpu).code == 3
    assert ann.run("health", "ticket", gpu).code == 3
    assert operator.run("health", "run", "nothing").code == 4
    assert operator.run("health", "run", gpu, "--checks", "colour").code == 2
