"""A day on a shared fleet: 11 nodes with 44 GPUs, three users, 200 jobs of mixed sizes and gangs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.integration.audit import (
    assert_gangs_are_whole,
    assert_journal_replays,
    assert_no_gpu_given_twice,
    attempts_of,
)
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

USERS = ("ann", "ben", "eve")
JOBS = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CorralServer]:
    server = CorralServer(tmp_path / "home", "--virtual-nodes", "11x4xA10")
    server.start()
    for user in USERS:
        server.add_user(user)
    yield server
    server.stop()


def mixed_jobs(rng: random.Random, count: int, queue: str) -> list[dict[str, Any]]:
    jobs = []
    for _ in range(count):
        shape: dict[str, float] = rng.choice(
            [{"gpus": 1}, {"gpus": 2}, {"gpus": 4}, {"gpus": 0.5}, {"gpus": 0, "cpus": 2}, {"gpus": 4, "nodes": 3}]
        )
        seconds = rng.choice([0, 0.02, 0.1])
        jobs.append({"command": ["sleep", str(seconds)], "queue": queue, "time": "10m", **shape})
    return jobs


def submit_all(server: CorralServer, queue: str) -> dict[str, dict[str, Any]]:
    """Three users take turns with batches of their own; every job by its id."""
    rng = random.Random(7)
    submitted: dict[str, dict[str, Any]] = {}
    for number in range(20):
        user = USERS[number % len(USERS)]
        with server.http(user) as http:
            answer = http.post("/jobs:batch", json={"jobs": mixed_jobs(rng, JOBS // 20, queue)})
            assert answer.status_code == 201, answer.text
            submitted |= {job["id"]: job for job in answer.json()["items"]}
    return submitted


def wait_for_all(server: CorralServer, count: int) -> None:
    with server.http() as http:
        wait_until(
            lambda: http.get("/overview").json()["jobs"].get("completed", 0) == count,
            f"{count} jobs complete",
            seconds=180,
        )


def test_everything_completes_and_no_gpu_is_given_twice(server: CorralServer) -> None:
    submitted = submit_all(server, "default")
    wait_for_all(server, JOBS)

    attempts = attempts_of(server.home)
    assert len(attempts) == JOBS
    assert assert_no_gpu_given_twice(attempts) == 44
    assert_gangs_are_whole(attempts, {job_id: job["nodes"] for job_id, job in submitted.items()})
    assert all(attempt.exit_code == 0 for attempt in attempts)
    assert assert_journal_replays(server.home) > 0

    with server.http() as http:
        nodes = http.get("/nodes").json()["items"]
        assert sum(node["gpus_free"] for node in nodes) == 44
        scores = http.get("/scores").json()["items"]
        assert {score["user"] for score in scores} == set(USERS)
        assert all(score["usage"] == 0 and score["score"] > 0 for score in scores)


def test_in_a_strict_fcfs_queue_jobs_start_in_the_order_of_their_creation(server: CorralServer) -> None:
    with server.http() as http:
        queue = {"name": "strict-line", "policy": "fcfs", "blocking": "strict"}
        assert http.post("/queues", json=queue).status_code == 201
    submitted = submit_all(server, "strict-line")
    wait_for_all(server, JOBS)

    planned_at = {attempt.job_id: attempt.planned_at for attempt in attempts_of(server.home)}
    lines: dict[tuple[bool, bool], list[str]] = {}
    for job_id, job in submitted.items():
        lines.setdefault((job["gpus"] > 0, job["nodes"] > 1), []).append(job_id)
    assert len(lines) == 3  # single and gang jobs on GPUs, and those without
    for jobs in lines.values():
        for earlier, later in pairwise(jobs):
            assert planned_at[earlier] <= planned_at[later], f"{later} overtook {earlier}"
