"""Waste found on a running server, over the API and at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.unit.cli.runner import corral


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    config = tmp_path_factory.mktemp("config") / "corral.yaml"
    config.write_text("monitoring: {interval_seconds: 0.5}\n")
    with api_server("--virtual-nodes", "2x2xA10", "--config", str(config), users=("ann",)) as running:
        yield running


@pytest.fixture(scope="module")
def scattered(server: CorralServer) -> list[str]:
    """A job on each of two nodes with two GPUs, and one that waits for both GPUs of a node."""
    with server.http("ann") as ann:

        def submitted(name: str, gpus: int) -> str:
            job: str = ann.post("/jobs", json={"name": name, "command": ["sleep", "600"], "gpus": gpus}).json()["id"]
            return job

        jobs = [submitted(f"work-{number}", 1) for number in range(3)]
        wait_until(lambda: {_state(ann, job) for job in jobs} == {"running"}, "they run")
        ann.post(f"/jobs/{jobs[0]}/stop").raise_for_status()
        wait_until(lambda: _state(ann, jobs[0]) == "stopped", "it has stopped")
        wide = submitted("wide-job", 2)
        wait_until(lambda: _state(ann, wide) == "queued", "it waits")
    return [*jobs[1:], wide]


def _state(http: httpx.Client, job: str) -> str:
    state: str = http.get(f"/jobs/{job}").json()["state"]
    return state


def test_scattered_gpus_are_found_and_a_plan_is_shown(server: CorralServer, scattered: list[str]) -> None:
    moved, kept, wide = scattered
    with server.http() as http:
        found = http.get("/analysis", params={"period": "1d"}).raise_for_status().json()
        (finding,) = [one for one in found["findings"] if one["kind"] == "fragmentation"]
        assert (finding["subject"], finding["severity"]) == ("default/A10", "warning")
        assert finding["evidence"]["waiting_job"] == wide
        assert (finding["evidence"]["free_gpus"], finding["evidence"]["freed_nodes"]) == (2, 1)
        plan = http.get("/analysis/defragmentation").raise_for_status().json()
        (move,) = plan["moves"]
        assert move["job"] in (moved, kept)
        assert plan["helps"] == [wide]
        assert plan["frees"][0]["node"] == move["from_node"] != move["to_node"]
        assert move["after"]["grants"][0]["node"] == move["to_node"]
        assert _state(http, wide) == "queued", "nothing was moved"


def test_usage_by_everything(server: CorralServer, scattered: list[str]) -> None:
    with server.http() as http:
        usage = http.get("/analysis").json()["usage"]
    (ann,) = usage["by_user"]
    assert (ann["key"], ann["jobs"]) == ("ann", 3)
    assert [rows[0]["key"] for rows in (usage["by_group"], usage["by_queue"], usage["by_model"])] == [
        "default",
        "default",
        "A10",
    ]
    assert usage["total"]["gpu_hours"] == pytest.approx(ann["gpu_hours"])
    assert ann["gpu_hours"] > 0


def test_only_operators_look(server: CorralServer) -> None:
    with server.http("ann") as ann:
        for path in ("/analysis", "/analysis/defragmentation"):
            problem(ann.get(path), 403)


def test_at_the_command_line(server: CorralServer, scattered: list[str]) -> None:
    env = {"CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token()}
    shown = corral("analyse", "--period", "1d", **env)
    assert shown.exit_code == 0
    assert "[warning] 2 free A10 of pool default are scattered" in shown.stdout
    assert "corral analyse defragmentation" in shown.stdout
    assert "GPU-HOURS" in shown.stdout
    assert json.loads(corral("analyse", "-o", "json", **env).stdout)["findings"]
    plan = corral("analyse", "defragmentation", **env)
    assert scattered[2] in plan.stdout
    assert "nothing was moved" in plan.stdout
    assert json.loads(corral("analyse", "defragmentation", "-o", "json", **env).stdout)["helps"] == [scattered[2]]
    wrong = corral("analyse", "--period", "soon", **env)
    assert wrong.exit_code == 2
    assert "period" in wrong.stderr


def test_a_job_shows_what_it_used(server: CorralServer, scattered: list[str]) -> None:
    env = {"CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token("ann")}
    shown = corral("show", scattered[0], **env)
    assert shown.exit_code == 0
    assert "GPU-hours" in shown.stdout
    usage = json.loads(corral("show", scattered[0], "-o", "json", **env).stdout)
    assert usage["usage"]["gpu_hours"] > 0
    assert usage["attempts"][0]["usage"]["gpu_hours"] == pytest.approx(usage["usage"]["gpu_hours"], abs=0.01)


def test_readings_belong_to_the_job_that_held_the_gpu(server: CorralServer, scattered: list[str]) -> None:
    job = scattered[1]
    with server.http("ann") as ann:

        def series() -> dict[str, list[dict[str, float]]]:
            shown = ann.get(f"/jobs/{job}/metrics").raise_for_status().json()
            return {one["metric"]: one["points"] for one in shown["series"]}

        wait_until(lambda: all(series().values()), "there are readings of everything")
        assert 0 < series()["power"][-1]["mean"] < 1000
        ann.post(f"/jobs/{job}/stop").raise_for_status()
        wait_until(lambda: ann.get(f"/jobs/{job}").json()["usage"]["measured_gpu_hours"] > 0, "it is written down")
        usage = ann.get(f"/jobs/{job}").json()["usage"]
        assert 0 < usage["utilization"] <= 1
        assert usage["measured_gpu_hours"] <= usage["gpu_hours"]
        assert usage["energy_kwh"] > 0
        assert usage["memory_peak_bytes"] > 0
