"""Advice for jobs that wait: what the API suggests is one request away, and does help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

SLEEP = {"command": ["sleep", "600"]}


@pytest.fixture
def server() -> Iterator[CorralServer]:
    """Four GPUs, of which bob holds three."""
    with api_server(users=("ann", "bob")) as running:
        with running.http("bob") as http:
            job = http.post("/jobs", json=SLEEP | {"gpus": 3}).raise_for_status().json()["id"]
            wait_until(lambda: state_of(http, job) == "running", "bob's job runs")
        yield running


def state_of(http: httpx.Client, job: str) -> str:
    state: str = http.get(f"/jobs/{job}").json()["state"]
    return state


def advice(http: httpx.Client, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http.get(f"/jobs/{job}/why").raise_for_status().json()["suggestions"]
    return found


def test_a_suggestion_is_applied_with_one_request_and_the_job_starts(server: CorralServer) -> None:
    with server.http("ann") as ann:
        job = ann.post("/jobs", json=SLEEP | {"gpus": 2}).raise_for_status().json()["id"]
        [smaller] = [item for item in advice(ann, job) if "gpus" in item["change"]["body"]]
        assert smaller["title"] == "Ask for 1 GPU instead of 2"
        assert smaller["effect"]["outcome"] == "start"
        assert smaller["change"] == {"operation": "edit", "body": {"gpus": 1}}
        edited = ann.patch(f"/jobs/{job}", json=smaller["change"]["body"]).raise_for_status().json()
        assert edited["gpus"] == 1
        wait_until(lambda: state_of(ann, job) == "running", "the smaller job runs")
        assert advice(ann, job) == []


def test_advice_is_for_those_who_can_follow_it(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann, server.http("bob") as bob:
        job = ann.post("/jobs", json=SLEEP | {"gpus": 2}).raise_for_status().json()["id"]
        own = [item["change"] for item in advice(ann, job)]
        assert own == [item["change"] for item in advice(operator, job)] != []
        problem(bob.get(f"/jobs/{job}/why"), 404)
        operator.patch(
            "/permission-groups/everyone", json={"functions": ["train", "see-others-jobs"]}
        ).raise_for_status()
        assert advice(bob, job) == []


def test_a_held_job_is_started_by_its_own_route(server: CorralServer) -> None:
    with server.http("ann") as ann:
        job = ann.post("/jobs", json=SLEEP | {"gpus": 1, "hold": True}).raise_for_status().json()["id"]
        [start] = advice(ann, job)
        assert start["change"] == {"operation": "start", "body": {}}
        ann.post(f"/jobs/{job}/start").raise_for_status()
        wait_until(lambda: state_of(ann, job) == "running", "the job runs")


def test_sizes_of_jobs_that_wait_are_checked_as_those_of_new_ones(server: CorralServer) -> None:
    with server.http("ann") as ann:
        job = ann.post("/jobs", json=SLEEP | {"gpus": 4}).raise_for_status().json()["id"]
        for body, status, word in (
            ({"gpus": 5}, 422, "gpus"),
            ({"model": "H900"}, 422, "model"),
            ({"package": "none-such"}, 422, "package"),
            ({"gpus": -1}, 422, "gpus"),
            ({"gpus": 2, "min_gpus": 1}, 422, "gpus"),
            ({"image": "x"}, 422, "image"),
        ):
            answer = ann.patch(f"/jobs/{job}", json=body)
            assert word in [error["field"] for error in problem(answer, status)["errors"]], answer.text
        assert ann.get(f"/jobs/{job}").json()["gpus"] == 4
        elastic = ann.patch(f"/jobs/{job}", json={"min_gpus": 1, "max_gpus": 2}).raise_for_status().json()
        assert (elastic["elastic"]["min_gpus"], elastic["elastic"]["max_gpus"]) == (1, 2)
        wait_until(lambda: state_of(ann, job) == "running", "it begins with what is free")
        reported = problem(ann.patch(f"/jobs/{job}", json={"gpus": 1}), 409)
        assert "only a job that waits can be changed" in reported["detail"]


def test_a_job_that_can_never_start_is_refused_and_why_says_never_after_the_limit_changed(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann:
        operator.post("/queues", json={"name": "small", "max_gpus": 1}).raise_for_status()
        refusal = problem(ann.post("/jobs", json=SLEEP | {"gpus": 2, "queue": "small"}), 409)
        assert refusal["detail"] == "queue small may hold 1 GPU: asks 2, holds 0; it can never start under this limit"
        plan = ann.post("/jobs:plan", json=SLEEP | {"gpus": 2, "queue": "small"}).raise_for_status().json()
        assert (plan["outcome"], plan["detail"]) == ("refuse", refusal["detail"])
        job = ann.post("/jobs", json=SLEEP | {"gpus": 2}).raise_for_status().json()["id"]
        operator.patch("/queues/default", json={"max_gpus": 1}).raise_for_status()
        why = ann.get(f"/jobs/{job}/why").raise_for_status().json()
        assert why["summary"].startswith("queue default may hold 1 GPU: asks 2")
        assert why["summary"].endswith("it can never start under this limit")
        assert why["estimate"] is None
