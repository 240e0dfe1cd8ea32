"""A cluster is managed as a handbook about it describes: its configuration file, then allocation, scheduling,
monitoring, balancing and fault tolerance, from the command line and the API of a real server with 32 virtual GPUs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

#: The sections and keys of a usual file; intervals are shortened so that the story does not take minutes.
CONFIG = """
cluster:
  name: gpu-cluster-01
  total_gpus: 32

allocation:
  strategy: hybrid
  reserved_ratio: 0.3
  placement: round-robin

scheduling:
  algorithm: fair-share
  max_queue_size: 1000
  default_priority: 5

monitoring:
  interval_seconds: 0.5
  metrics_retention_days: 30
  alert_thresholds: {temperature: 85, utilization: 20, memory: 10, duration_seconds: 1}
  health: {confirm_readings: 2, idle_grace_minutes: 0.05, idle_fail_minutes: 0.1, recover_minutes: 0.05}

policies:
  max_gpus_per_user: 8
  max_job_duration_hours: 48
  enable_preemption: true

fault_tolerance:
  enable_checkpointing: true
  checkpoint_interval_minutes: 10
  auto_retry_failed_jobs: true
  max_retries: 3
"""
SAVING = """
import os, time
from corral import checkpoint

state = checkpoint.restore() or {}
for step in checkpoint.steps(100000, lambda: {"step": 1}):
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    home = tmp_path_factory.mktemp("cluster")
    (home / "cluster-config.yaml").write_text(CONFIG)
    with cli_server(home, "--virtual-nodes", "4x8xA100-80G", "--config", str(home / "cluster-config.yaml")) as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "ann")


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def got(http: httpx.Client, path: str, **params: Any) -> Any:
    answer = http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def gpus_of(job: dict[str, Any]) -> list[str]:
    return [gpu for grant in job["allocation"]["grants"] for gpu in grant["gpus"]]


def stopped(person: Person, *jobs: str) -> None:
    for job in jobs:
        person.run("stop", job)
    over = ("stopped", "completed", "failed")
    wait_until(lambda: all(person.state(job) in over for job in jobs), f"{', '.join(jobs)} have ended")


def break_gpus(server: CorralServer, faults: dict[str, Any]) -> None:
    """Breaks GPUs like `corral drill`."""
    path = server.home / "local" / "faults.json"
    path.with_suffix(".new").write_text(json.dumps({"gpus": faults}))
    path.with_suffix(".new").replace(path)


def metric(http: httpx.Client, name: str) -> float:
    """The sum over all its rows."""
    lines = http.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)


# ------------------------------------------------------------------------------------------------ allocation


def test_the_file_is_understood_as_it_stands(server: CorralServer, operator: Person, http: httpx.Client) -> None:
    file = str(server.home.parent / "cluster-config.yaml")
    operator.ok("config", "check", file)
    lines = operator.read("config", "show", "--config", file)["items"]
    shown = {line["key"]: line["value"] for line in lines}
    assert shown["allocation.strategy"] == "hybrid"
    assert shown["fault_tolerance.auto_retry_failed_jobs"] is True
    assert got(http, "/overview")["gpus"] == 32


def test_hybrid_reserves_its_share_and_every_count_of_free_gpus_agrees(operator: Person, http: httpx.Client) -> None:
    (share,) = got(http, "/reservations")["items"]
    assert (share["name"], len([gpu for gpus in share["nodes"].values() for gpu in gpus])) == (
        "share-default-a100-80g",
        9,
    )
    gpu = next(gpu["id"] for gpu in got(http, "/gpus", limit=100)["items"] if gpu["free"])
    operator.ok("gpus", "mark", gpu, "failed", "--reason", "rehearsal")
    node = next(one["id"] for one in got(http, "/nodes")["items"] if one["gpus_free"] == 8)
    operator.ok("nodes", "cordon", node)
    free = got(http, "/overview")["gpus_free"]
    assert 0 < free < 32 - 9
    assert operator.read("status")["free_gpus"] == free
    assert sum(one["gpus_free"] for one in got(http, "/nodes")["items"]) == free
    assert sum(one["gpus_free"] for one in got(http, "/pools")["items"]) == free
    assert sum(one["gpus_free"] for one in got(http, "/clusters")["items"]) == free
    assert sum(one["free"] for one in got(http, "/gpus", limit=100)["items"]) == free
    assert sum(got(http, "/gpus/map")["gpus"]["free"]) == free
    assert next(row["free"] for row in got(http, "/panel")["kinds"] if row["kind"] == "training") == free
    assert metric(http, "corral_gpus_free") == free
    operator.ok("nodes", "uncordon", node)
    operator.ok("gpus", "reset-health", gpu)


def test_balancing_goes_from_gpu_to_gpu(operator: Person, http: httpx.Client) -> None:
    """Round-robin: jobs that follow each other never get the GPU of the job before."""
    seen: list[str] = []
    for _ in range(4):
        job = operator.submit("--gpus", "1", "--", "sleep", "600")
        seen += gpus_of(operator.wait_for(job, "running"))
        stopped(operator, job)
    assert len(set(seen)) == 4


# ------------------------------------------------------------------------------------------------ scheduling


def test_limits_and_priorities_of_the_file_hold(ann: Person, operator: Person) -> None:
    refused = ann.run("submit", "--gpus", "9", "--", "true")
    assert refused.code != 0
    assert "8" in refused.err
    assert ann.read("show", (job := ann.submit("--hold", "--", "true")))["priority"] == 5
    assert ann.read("show", ann.submit("--hold", "--priority", "1", "--", "true"))["priority"] == 1
    assert ann.state(job) == "created"


# ------------------------------------------------------------------------------------------------ monitoring


def test_thresholds_of_the_file_are_alerts_with_values_of_now(operator: Person, http: httpx.Client) -> None:
    job = operator.submit("--gpus", "1", "--", "sleep", "600")
    (gpu,) = gpus_of(operator.wait_for(job, "running"))

    def firing(rule: str) -> list[dict[str, Any]]:
        found = got(http, "/alerts", state="firing")["items"]
        return [alert for alert in found if alert["rule"] == rule and alert["subject"] == gpu]

    wait_until(lambda: bool(firing("gpu-utilization")), "the utilisation of the file fires")
    wait_until(lambda: firing("gpu-utilization")[0]["value"] > 60, "its value follows the readings")
    assert f"{firing('gpu-utilization')[0]['value']:.0f} % busy" in firing("gpu-utilization")[0]["text"]
    assert f"under {job}" in firing("gpu-utilization")[0]["text"]
    wait_until(lambda: bool(firing("gpu-memory")), "so does the memory")
    stopped(operator, job)


def test_metrics_tell_times_errors_and_efficiency(server: CorralServer, operator: Person, http: httpx.Client) -> None:
    before = metric(http, "corral_job_completion_seconds_count")
    job = operator.submit("--gpus", "1", "--", "sleep", "600")
    (gpu,) = gpus_of(operator.wait_for(job, "running"))
    wait_until(lambda: metric(http, "corral_cluster_compute_efficiency_ratio") > 0, "SMs are active")
    break_gpus(server, {gpu: {"xids": [31]}})
    wait_until(lambda: metric(http, "corral_gpu_xid_errors_total") >= 1, "the XID error is counted")
    break_gpus(server, {})
    stopped(operator, job)
    operator.wait_for(operator.submit("--gpus", "1", "--", "true"), "completed")
    wait_until(lambda: metric(http, "corral_job_completion_seconds_count") > before, "the completion is counted")
    assert metric(http, "corral_job_start_seconds_count") >= 1
    assert got(http, f"/gpus/{gpu}")["reading"]["sm_activity"] is not None


# ------------------------------------------------------------------------------------------------ fault tolerance


def test_a_gpu_without_use_is_found_and_its_job_goes_on_elsewhere(
    server: CorralServer, operator: Person, http: httpx.Client
) -> None:
    job = operator.submit("--gpus", "1", "--grace", "1s", "--", "sleep", "600")
    idler = operator.submit("--gpus", "1", "--idles", "--grace", "1s", "--", "sleep", "600")
    (gpu,) = gpus_of(operator.wait_for(job, "running"))
    (other,) = gpus_of(operator.wait_for(idler, "running"))
    wait_until(lambda: (got(http, f"/gpus/{gpu}")["reading"]["utilization"] or 0) > 0.05, "the job works")
    break_gpus(server, {gpu: {"idle": True}, other: {"idle": True}})
    wait_until(lambda: got(http, f"/gpus/{gpu}")["health"] == "failed", "zero use is found")
    break_gpus(server, {})
    wait_until(lambda: operator.read("show", job)["attempt"] == 2, "the job is moved")
    assert gpu not in gpus_of(operator.wait_for(job, "running"))
    assert got(http, f"/gpus/{other}")["health"] == "healthy", "that job said that it idles"
    stopped(operator, job, idler)
    operator.ok("gpus", "reset-health", gpu)


def test_failed_programs_are_retried_elsewhere_and_crash_loops_end(operator: Person, tmp_path: Path) -> None:
    """`auto_retry_failed_jobs` of the file is the default; `--retry-on` says it for one job."""
    mark = tmp_path / "mark"
    program = f"if [ -e {mark} ]; then exit 0; fi; touch {mark}; sleep 31; exit 3"
    slow = operator.submit("--gpus", "1", "--", "sh", "-c", program.replace("sleep 31", "sleep 1"))
    loop = operator.submit("--gpus", "1", "--retries", "20", "--retry-on", "7", "--", "sh", "-c", "exit 7")
    never = operator.submit("--gpus", "1", "--retry-on", "oom", "--", "sh", "-c", "exit 7")
    assert operator.wait_for(never, "failed")["attempt"] == 1
    done = operator.wait_for(slow, "completed")
    assert (done["attempt"], done["retries"]) == (2, 1)
    ended = operator.wait_for(loop, "failed")
    assert (ended["attempt"], ended["exit_code"]) == (3, 7)
    assert "crash loop" in ended["message"]


def test_many_small_items_run_on_few_allocations(operator: Person, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = f'echo "$CORRAL_ARRAY_INDEX of $CORRAL_ARRAY_SIZE" >> {seen}'
    arguments = ("--name", "small", "--array", "1-40%4", "--pack", "--gpus", "1", "--", "sh", "-c", program)
    jobs = operator.read("submit", *arguments)["items"]
    assert [job["name"] for job in jobs] == ["small-1", "small-2", "small-3", "small-4"]
    for job in jobs:
        assert operator.wait_for(job["id"], "completed")["attempt"] == 1
    assert sorted(seen.read_text().splitlines()) == sorted(f"{index} of 40" for index in range(1, 41))
    operator.ok("files", "get", jobs[0]["id"], "items.tsv", "-d", str(tmp_path))
    results = (tmp_path / "items.tsv").read_text().splitlines()
    assert [line.split("\t")[:2] for line in results] == [[str(index), "0"] for index in range(1, 41, 4)]
    wrong = operator.run("submit", "--name", "other", "--array", "1-40%4", "--", "true")
    assert wrong.code != 0
    assert "pack" in wrong.err


def test_scattered_jobs_are_moved_together(operator: Person, http: httpx.Client) -> None:
    """Preview, approval, moves with receipts."""
    assert http.patch("/queues/default", json={"placement": "spread"}).status_code == 200
    saving = ("--gpus", "1", "--grace", "20s", "--checkpoint-interval", "1s")
    jobs = [operator.submit(*saving, "--", sys.executable, "-c", SAVING) for _ in range(3)]
    for job in jobs:
        operator.wait_for(job, "running")
    wait_until(
        lambda: all(operator.read("show", job)["checkpointed_at"] for job in jobs), "all have saved a checkpoint"
    )
    nodes = {gpu for job in jobs for gpu in [operator.read("show", job)["allocation"]["grants"][0]["node"]]}
    assert len(nodes) == 3
    plan = operator.read("analyse", "defragmentation")
    assert len(plan["moves"]) == 2
    assert operator.run("analyse", "defragmentation", "--status").code != 0, "none was started yet"
    operator.ok("analyse", "defragmentation", "--apply", "--yes")
    wait_until(
        lambda: operator.read("analyse", "defragmentation", "--status")["ended_at"] is not None, "the moves are over"
    )
    run = operator.read("analyse", "defragmentation", "--status")
    assert [move["state"] for move in run["moves"]] == ["done", "done"]
    receipts = {one["id"]: one for one in got(http, "/receipts")["items"]}
    assert {receipts[move["receipt"]]["rule"] for move in run["moves"]} == {"defragmentation"}
    for job in jobs:
        operator.wait_for(job, "running")
    where = {operator.read("show", job)["allocation"]["grants"][0]["node"] for job in jobs}
    assert len(where) == 1
    assert operator.run("analyse", "defragmentation", "--undo").code != 0, "nothing is left to cancel"
    stopped(operator, *jobs)
