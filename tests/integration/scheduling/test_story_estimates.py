"""When will it start? What the API, the dry run and the command line say about it, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


@pytest.fixture
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as running:
        yield running


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def submit(http: httpx.Client, command: list[str], **body: Any) -> str:
    job: str = http.post("/jobs", json={"command": command, **body}).raise_for_status().json()["id"]
    return job


def job_of(http: httpx.Client, job: str) -> dict[str, Any]:
    view: dict[str, Any] = http.get(f"/jobs/{job}").raise_for_status().json()
    return view


def test_a_waiting_job_shows_its_estimated_start_and_its_error_afterwards(server: CorralServer) -> None:
    with server.http("ann") as ann, server.http("bob") as bob:
        holder = submit(bob, ["sleep", "600"], gpus=4, time=900)
        wait_until(lambda: job_of(bob, holder)["state"] == "running", "bob's job runs")
        waiting = submit(ann, ["sleep", "1"], gpus=2, time=60)
        assert job_of(ann, waiting)["state"] == "queued"
        wait_until(lambda: job_of(ann, waiting)["estimated_start"] is not None, "its start is estimated")

        reported = job_of(ann, waiting)["estimated_start"]
        assert at(reported["made_at"]) < at(reported["p50"]) < at(reported["p90"]) <= at(reported["made_at"]) + 935
        [listed] = [job for job in ann.get("/jobs").json()["items"] if job["id"] == waiting]
        assert listed["estimated_start"] is not None
        assert job_of(bob, holder)["estimated_start"] is None

        why = ann.get(f"/jobs/{waiting}/why").raise_for_status().json()
        assert "run forward 9 times" in why["estimate"]["basis"]
        assert at(why["estimate"]["p50"]) <= at(why["estimate"]["p90"])
        assert bob.get(f"/jobs/{holder}/why").json()["estimate"] is None

        plan = ann.post("/jobs:plan", json={"command": ["true"], "gpus": 1, "time": 60}).raise_for_status().json()
        assert plan["outcome"] == "wait"
        assert plan["would_start"]["after"] == [waiting]
        assert plan["would_start"]["preempting"] == []
        assert plan["would_start"]["at"] == plan["estimate"]["p50"] <= plan["estimate"]["p90"]

        assert ann.get("/estimates/accuracy").json()["started"] == 0
        bob.post(f"/jobs/{holder}/stop").raise_for_status()
        wait_until(lambda: job_of(ann, waiting)["state"] in ("running", "completed"), "it starts")
        wait_until(lambda: ann.get("/estimates/accuracy").json()["started"] > 0, "what became of it is known")
        found = ann.get("/estimates/accuracy").raise_for_status().json()
        assert found["before_p90"] == 1
        assert found["median_error_seconds"] > 0
        assert {one["job"] for one in found["recent"]} == {waiting}
        assert bob.get("/estimates/accuracy").json()["recent"] == []
        assert sum(row["started"] for row in found["by_horizon"]) == found["started"]
        assert ann.get("/estimates/accuracy?since=2099-01-01T00:00:00Z").json()["estimates"] == 0


def test_a_job_that_never_starts_says_nothing_about_estimates(server: CorralServer) -> None:
    with server.http("ann") as ann:
        holder = submit(ann, ["sleep", "600"], gpus=4, time=900)
        waiting = submit(ann, ["true"], gpus=4, time=60)
        wait_until(lambda: ann.get("/estimates/accuracy").json()["estimates"] == 1, "an estimate is kept")
        ann.post(f"/jobs/{waiting}/stop").raise_for_status()
        wait_until(lambda: ann.get("/estimates/accuracy").json()["estimates"] == 0, "it is withdrawn")
        assert job_of(ann, holder)["state"] in ("starting", "running")


def test_followers_hear_that_starts_were_estimated_anew(server: CorralServer) -> None:
    with server.http("ann") as ann, ann.stream("GET", "/stream") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        submit(ann, ["sleep", "600"], gpus=4, time=900)
        submit(ann, ["true"], gpus=4, time=60)
        assert any(line == "event: estimates" for line in lines)


def test_estimates_outlast_a_restart(server: CorralServer) -> None:
    with server.http("ann") as ann:
        holder = submit(ann, ["sleep", "600"], gpus=4, time=900)
        waiting = submit(ann, ["true"], gpus=4, time=60)
        wait_until(lambda: ann.get("/estimates/accuracy").json()["estimates"] == 1, "an estimate is kept")
    server.kill()
    server.start()
    with server.http("ann") as ann:
        assert ann.get("/estimates/accuracy").json()["estimates"] >= 1
        ann.post(f"/jobs/{holder}/stop").raise_for_status()
        wait_until(lambda: job_of(ann, waiting)["state"] == "completed", "it has run")
        wait_until(lambda: ann.get("/estimates/accuracy").json()["started"] > 0, "what became of it is known")
