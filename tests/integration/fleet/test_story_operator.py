"""The operator's day of document 000: overview, flavors, queues, GPUs, alerts, analysis and reports, by command line
and API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.cli_harness import Person, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "2x4xA10,1x4xA100-80G", users=("ann",)) as running:
        yield running


@pytest.fixture(scope="module")
def root(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as http:
        yield http


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def run_job(root: httpx.Client, **body: Any) -> dict[str, Any]:
    made = root.post("/jobs", json={"command": ["sleep", "600"], "gpus": 1, **body})
    assert made.status_code == 201, made.text
    job_id = made.json()["id"]
    wait_until(lambda: root.get(f"/jobs/{job_id}").json()["state"] == "running", f"{job_id} runs")
    found: dict[str, Any] = root.get(f"/jobs/{job_id}").json()
    return found


def test_the_overview_has_the_figures_of_the_whole_cluster(root: httpx.Client) -> None:
    job = run_job(root, name="overview", gpus=3)
    try:
        wait_until(lambda: root.get("/overview").json()["power_watts"] is not None, "the GPUs are read")
        now = root.get("/overview").json()
        assert (now["nodes"], now["gpus"], now["gpus_allocated"]) == (3, 12, 3)
        # Allocation is what unfinished jobs ask for, of all GPUs; utilisation is what is measured, of all GPUs.
        assert now["allocation"] == pytest.approx(3 / 12)
        assert now["utilization"] is not None
        assert now["temperature_celsius"] > 0
        asked = root.post("/jobs", json={"command": ["true"], "gpus": 8, "nodes": 2, "name": "too-large", "hold": True})
        assert asked.status_code in (201, 422), asked.text
    finally:
        root.post(f"/jobs/{job['id']}/stop")


def test_a_flavor_binds_jobs_to_hardware_with_cpus_and_memory_per_gpu(operator: Person, root: httpx.Client) -> None:
    operator.ok(
        *("flavor", "create", "balanced", "--model", "A10"),
        *("--cpus-per-gpu", "0.25", "--memory-per-gpu", "64MiB", "--default-gpus", "1"),
    )
    assert "0.25 CPUs, 64MiB" in operator.ok("flavor", "ls")
    job = run_job(root, name="with-flavor", gpus=2, flavor="balanced")
    assert (job["gpus"], job["cpus"], job["memory_bytes"], job["allocation"]["model"]) == (2, 0.5, 128 << 20, "A10")
    root.post(f"/jobs/{job['id']}/stop")
    refused = problem(root.patch("/flavors/balanced", json={"cpus_per_gpu": -1}), 422)
    assert refused["errors"][0]["field"] == "cpus_per_gpu"
    operator.ok("flavor", "edit", "balanced", "--cpus-per-gpu", "0")
    assert root.get("/flavors/balanced").json()["cpus_per_gpu"] == 0


def test_queues_order_jobs_by_the_policy_that_the_operator_chooses(operator: Person, root: httpx.Client) -> None:
    operator.ok("queue", "create", "night", "--policy", "weighted", "--weight", "2")
    queue = root.get("/queues/night").json()
    assert (queue["policy"], queue["weight"]) == ("weighted", 2)
    operator.ok("queue", "edit", "night", "--policy", "priority")
    assert root.get("/queues/night").json()["policy"] == "priority"


def test_each_gpu_shows_load_power_temperature_and_its_jobs(root: httpx.Client, operator: Person) -> None:
    job = run_job(root, name="on-a-gpu")
    (gpu_id,) = [gpu for grant in job["allocation"]["grants"] for gpu in grant["gpus"]]

    def read() -> bool:
        gpu = root.get(f"/gpus/{gpu_id}").json()
        return gpu["reading"] is not None and [one["id"] for one in gpu["jobs"]] == [job["id"]]

    wait_until(read, "the GPU is read and has its job")
    reading = root.get(f"/gpus/{gpu_id}").json()["reading"]
    assert {"utilization", "power_watts", "temperature_celsius"} <= set(reading)
    assert job["id"] in operator.ok("gpus")
    root.post(f"/jobs/{job['id']}/stop")


def test_thresholds_become_alerts(operator: Person, root: httpx.Client) -> None:
    signals = {signal["name"] for signal in root.get("/alert-signals").json()["items"]}
    assert {"gpu-temperature", "gpu-power", "gpu-utilization"} <= signals
    operator.ok("alert", "rule", "create", "room", "--signal", "gpus-free", "--at-least", "1", "--severity", "info")
    wait_until(
        lambda: any(alert["rule"] == "room" for alert in root.get("/alerts").json()["items"]), "the alert is there"
    )
    operator.ok("alert", "rule", "rm", "-y", "room")


def test_the_analysis_and_the_report_give_numbers_to_decide_by(operator: Person, root: httpx.Client) -> None:
    assert "findings" in root.get("/analysis").json()
    assert operator.run("analyse").code == 0
    made = operator.ok("report", "--period", "1d", "--format", "csv", "-f", "report.csv")
    assert "report.csv" in made


def test_the_resource_panel_is_by_kind_and_by_model_for_a_user_a_group_and_all(root: httpx.Client) -> None:
    job = run_job(root, name="in-the-panel", gpus=2, model=["A100-80G"])
    for query in ({"user": "operator"}, {"group": "default"}, {}):
        page = root.get("/panel", params=query).json()
        training = next(row for row in page["kinds"] if row["kind"] == "training")
        model = next(row for row in page["models"] if row["model"] == "A100-80G")
        assert (training["running"], training["occupied"]) == (1, 2)
        assert (model["running"], model["occupied"], model["total"], model["free"], model["gap"]) == (1, 2, 4, 2, 0)
    ann = root.get("/panel", params={"user": "ann"}).json()
    assert sum(row["running"] for row in ann["kinds"]) == 0
    assert problem(root.get("/panel", params={"user": "ann", "group": "default"}), 422)["errors"][0]["field"] == "group"
    problem(root.get("/panel", params={"group": "nowhere"}), 404)
    root.post(f"/jobs/{job['id']}/stop")
