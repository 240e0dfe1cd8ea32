"""Measurements through the API: of GPUs, nodes, jobs and the whole installation.

A server without its network, and a history that the test itself has filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from corral.control.fleet.gpu_holders import holders
from corral.control.monitoring.attempt_usage import save_measured
from corral.control.ports import CLUSTER, GpuReading, Metric, Round
from corral.core.monitoring.attempt_usage import Measured
from corral.server.http.app import build_app
from corral.server.http.context import NoHistory, ServerContext
from corral.server.monitoring.usage_meter import UsageMeter
from corral.server.schemas.base import rfc3339
from corral.server.settings.settings_sources import load_settings
from corral.server.wiring.assembly import assembled
from tests.integration.api import problem
from tests.integration.inside import PASSWORD, served, signed_in
from tests.integration.waiting import wait_until
from tests.unit.control.histories import MemoryHistory


@dataclass(frozen=True, kw_only=True, slots=True)
class House:
    context: ServerContext
    history: MemoryHistory
    url: str
    operator: httpx.Client
    scientist: httpx.Client

    @property
    def now(self) -> float:
        return self.context.clock.now()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    home: Path = tmp_path_factory.mktemp("home")
    # Read so seldom that the server itself measures nothing meanwhile.
    overrides = {"home": home, "local.virtual_gpus": "2xA10", "monitoring.interval_seconds": 3600}
    settings = load_settings(
        overrides=overrides, environ={"CORRAL_BOOTSTRAP_PASSWORD": PASSWORD, "CORRAL_ALLOW_ROOT": "true"}
    )
    history = MemoryHistory()
    with assembled(settings) as assembly:
        context = replace(assembly.context, history=history)
        with served(build_app(context)) as url:
            operator = signed_in(url, "operator", PASSWORD)
            for user in ("ann", "bob"):
                body = {"name": user, "password": f"password-of-{user}"}
                operator.post("users", json=body).raise_for_status()
            ann = signed_in(url, "ann", "password-of-ann")
            yield House(context=context, history=history, url=url, operator=operator, scientist=ann)


@pytest.fixture(scope="module")
def gpu(house: House) -> str:
    """The last minute of a GPU: one reading every 5 seconds."""
    found: str = house.operator.get("gpus").json()["items"][0]["id"]
    node: str = house.operator.get("nodes").json()["items"][0]["id"]
    begin = house.now - 60
    for step in range(12):
        house.history.append(
            begin + 5 * step,
            {
                Metric.GPU_UTILIZATION: {found: step / 10},
                Metric.GPU_POWER: {found: 100.0},
                Metric.NODE_CPU: {node: 0.25},
                Metric.CLUSTER_ALLOCATION: {CLUSTER: 0.5},
                Metric.QUEUE_LENGTH: {"default": float(step)},
            },
        )
    return found


def test_a_gpu(house: House, gpu: str) -> None:
    answer = house.scientist.get(f"gpus/{gpu}/metrics", params={"metric": ["utilization", "power"], "step": 3600})
    shown = answer.raise_for_status().json()
    use, power = shown["series"]
    assert (use["metric"], use["subject"], use["unit"]) == ("utilization", gpu, "ratio")
    assert sum(point["count"] for point in use["points"]) == 12
    assert (max(point["most"] for point in use["points"]), power["unit"]) == (1.1, "watts")
    assert shown["step_seconds"] == 3600
    assert {point["mean"] for point in power["points"]} == {100}
    everything = house.scientist.get(f"gpus/{gpu}/metrics").json()
    assert everything["step_seconds"] == 3600, "not below what is measured"
    names = [series["metric"] for series in everything["series"]]
    assert " ".join(names) == "utilization memory_used temperature power energy sm_clock memory_clock throttled"
    problem(house.scientist.get("gpus/nowhere/metrics"), 404)


def test_a_node_and_the_whole_installation(house: House, gpu: str) -> None:
    node = house.operator.get("nodes").json()["items"][0]["id"]
    cpu = house.scientist.get(f"nodes/{node}/metrics", params={"metric": "cpu"}).raise_for_status().json()
    assert {point["mean"] for point in cpu["series"][0]["points"]} == {0.25}
    problem(house.scientist.get("nodes/nowhere/metrics"), 404)
    trends = house.scientist.get("trends", params={"metric": ["allocation", "queue_length"]}).json()
    allocation, length = trends["series"]
    assert (allocation["subject"], allocation["unit"], trends["step_seconds"]) == ("cluster", "ratio", 3600)
    assert (length["metric"], length["subject"], length["unit"]) == ("queue_length", "default", "count")
    assert max(point["most"] for point in length["points"]) == 11


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"metric": "happiness"}, "metric"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-01-03T10:00:00"}, "until"),
        ({"since": "2026-01-03T10:00:00Z", "until": "2026-01-03T10:00:00Z"}, "since"),
        ({"since": "2020-01-03T10:00:00Z", "until": "2026-01-03T10:00:00Z", "step": "1"}, "step"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
        ({"until": "9999-12-31T23:59:59-14:00"}, "until"),
        ({"step": "0"}, "step"),
        ({"step": "nan"}, "step"),
        ({"steps": "60"}, "steps"),
    ],
)
def test_wrong_questions_name_their_field(house: House, gpu: str, params: dict[str, str], field: str) -> None:
    for path in (f"gpus/{gpu}/metrics", "trends"):
        reported = problem(house.scientist.get(path, params=params), 422)
        assert reported["errors"][0]["field"] == field


def test_usage_of_a_job_is_measured(house: House, gpu: str) -> None:
    body = {"name": "measured", "command": ["sleep", "600"], "gpus": 2}
    job = house.scientist.post("jobs", json=body).raise_for_status().json()["id"]
    wait_until(lambda: house.scientist.get(f"jobs/{job}").json()["state"] == "running", "it runs")
    measured = Measured(
        gpu_seconds=3600.0,
        busy_gpu_seconds=900.0,
        idle_gpu_seconds=1800.0,
        energy_joules=7_200_000.0,
        memory_peak_bytes=1 << 30,
    )
    house.context.controller.execute(save_measured, {f"{job}.1": measured}).result(10)
    later = house.now + 1
    house.history.append(later, {Metric.GPU_UTILIZATION: {gpu: 0.5}, Metric.GPU_POWER: {gpu: 70.0}})
    span = {"since": rfc3339(later - 1), "until": rfc3339(later + 10)}

    usage = house.scientist.get(f"jobs/{job}").json()["usage"]
    expected = {"measured_gpu_hours": 1, "utilization": 0.25, "idle_gpu_hours": 0.5, "energy_kwh": 2}
    assert expected.items() <= usage.items()
    assert (usage["memory_peak_bytes"], usage["gpu_hours"] > 0) == (1 << 30, True)
    (attempt,) = house.scientist.get(f"jobs/{job}/attempts").json()["items"]
    assert expected.items() <= attempt["usage"].items()

    shown = house.scientist.get(f"jobs/{job}/metrics", params=span).raise_for_status().json()
    assert expected.items() <= shown["totals"].items()
    assert [one["attempt_id"] for one in shown["attempts"]] == [f"{job}.1"]
    assert {one["subject"] for one in shown["series"]} == {job}
    by_name = {one["metric"]: one["points"] for one in shown["series"]}
    assert [point["mean"] for point in by_name["power"]] == [70.0]
    each = house.operator.get(f"jobs/{job}/metrics", params={**span, "per_gpu": "true", "metric": "utilization"}).json()
    assert {one["subject"]: len(one["points"]) for one in each["series"]} == {gpu: 1, each["series"][1]["subject"]: 0}
    bob = signed_in(house.url, "bob", "password-of-bob")
    problem(bob.get(f"jobs/{job}/metrics"), 404)
    house.scientist.post(f"jobs/{job}/stop").raise_for_status()


def test_the_meter_counts_for_a_running_job(house: House) -> None:
    context = house.context
    job = house.scientist.post("jobs", json={"name": "metered", "command": ["sleep", "600"], "gpus": 1}).json()["id"]
    wait_until(lambda: house.scientist.get(f"jobs/{job}").json()["state"] == "running", "it runs")
    begun = house.now
    for _ in range(2):  # the second one goes on from what the first has stored
        meter = UsageMeter(controller=context.controller, store=context.store, now=begun, interval_seconds=5.0)
        for at in (begun, begun + 5):
            held = context.controller.inspect(holders).result(10)
            readings = [GpuReading(gpu_id=gpu, at=at, utilization=0.5, power_watts=360.0) for gpu in held]
            meter.take(Round(at=at, gpus=readings, holders=held))
        meter.stop()
    usage = house.scientist.get(f"jobs/{job}").json()["usage"]
    assert (usage["utilization"], usage["measured_gpu_hours"]) == (0.5, pytest.approx(10 / 3600))
    assert usage["energy_kwh"] == pytest.approx(0.001)
    house.scientist.post(f"jobs/{job}/stop").raise_for_status()


def test_a_job_that_has_not_run_used_nothing(house: House) -> None:
    job = house.scientist.post("jobs", json={"name": "waits", "command": ["true"], "hold": True}).json()["id"]
    shown = house.scientist.get(f"jobs/{job}/metrics").raise_for_status().json()
    assert (shown["attempts"], shown["totals"]["utilization"], shown["totals"]["gpu_hours"]) == ([], None, 0)
    assert all(one["points"] == [] for one in shown["series"])


def test_an_unavailable_history_is_reported(house: House, gpu: str) -> None:
    with served(build_app(replace(house.context, history=NoHistory()))) as url:
        client = signed_in(url, "ann", "password-of-ann")
        for path in (f"gpus/{gpu}/metrics", "trends"):
            assert problem(client.get(path), 503)["type"] == "/problems/history-unavailable"
