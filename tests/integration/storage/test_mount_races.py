"""A hundred jobs that mount the same few volumes, submitted at once: never two writers, never a writer with readers."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from corral.stores import open_store
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow

USERS = ("ann", "ben", "eve", "kim")
VOLUMES = tuple(f"data-{number}" for number in range(5))
JOBS, THREADS = 100, 20
ENDED = ("stopped", "completed", "failed")
#: when it was planned, when it ended, the job, whether it writes
Interval = tuple[float, float, str, bool]


@pytest.fixture
def server(tmp_path: Path, empty_database_url: str) -> Iterator[CorralServer]:
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "4xA10")
    try:
        server.start(CORRAL_DATABASE=empty_database_url)
        for user in USERS:
            server.add_user(user)
        with server.http("ann") as ann:
            for name in (*VOLUMES, "everybodys"):
                kind = "filesystem" if name == "everybodys" else "block"
                ann.post("/volumes", json={"name": name, "type": kind, "size": "1MiB"}).raise_for_status()
                shares = [{"kind": "user", "name": user, "mode": "rw"} for user in USERS[1:]]
                ann.put(f"/volumes/{name}/shares", json={"shares": shares}).raise_for_status()
            made = lambda: [one["state"] for one in ann.get("/volumes").json()["items"]]  # noqa: E731
            wait_until(lambda: set(made()) == {"ready"}, "the volumes are made")
        yield server
    finally:
        server.kill()


def submissions(server: CorralServer) -> list[dict[str, Any]]:
    """The results of submissions from many threads, which start at the same moment."""
    start = threading.Barrier(THREADS)

    def submit(thread: int) -> list[dict[str, Any]]:
        rng, made = random.Random(thread), []
        with server.http(USERS[thread % len(USERS)]) as http:
            start.wait(timeout=30)
            for _ in range(JOBS // THREADS):
                mode = rng.choice(["ro", "ro", "rw"])
                mounts = [f"ann/{rng.choice(VOLUMES)}:/data:{mode}", "ann/everybodys:/all:rw"]
                answer = http.post("/jobs", json={"command": ["true"], "mounts": mounts})
                assert answer.status_code == 201, answer.text
                made.append(answer.json())
        return made

    with ThreadPoolExecutor(THREADS) as pool:
        return list(itertools.chain.from_iterable(pool.map(submit, range(THREADS))))


def held(database: str, jobs: list[dict[str, Any]]) -> dict[str, list[Interval]]:
    """The times in which each job held each volume, from the stored attempts, exactly as the server planned them."""
    intervals: dict[str, list[Interval]] = {}
    store = open_store(database)
    try:
        with store.read() as tx:
            for job in jobs:
                for attempt in tx.attempts.of_job(job["id"]):
                    assert attempt.ended_at is not None
                    for mount in job["mounts"]:
                        one = (attempt.planned_at, attempt.ended_at, job["id"], mount["mode"] == "rw")
                        intervals.setdefault(mount["volume_id"], []).append(one)
    finally:
        store.close()
    return intervals


def overlaps(one: Interval, other: Interval) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def test_a_hundred_starts_at_once_never_share_what_is_written(server: CorralServer, empty_database_url: str) -> None:
    jobs = submissions(server)
    assert len({job["id"] for job in jobs}) == JOBS
    with server.http() as http:
        counts = lambda: http.get("/jobs:counts").json()["by_state"]  # noqa: E731
        wait_until(lambda: counts()["completed"] == JOBS, "every job completes", seconds=240)
        shared = http.get("/volumes/everybodys", params={"owner": "ann"}).json()
    server.stop()
    intervals = held(empty_database_url, jobs)
    together = 0
    for volume, holders in intervals.items():
        for one, other in itertools.combinations(holders, 2):
            if not overlaps(one, other):
                continue
            if volume == shared["id"]:
                together += 1
                continue
            assert not one[3], (volume, one, other)
            assert not other[3], (volume, one, other)
    # Others ran beside them all the while: it was the volumes that kept them apart, and nothing else.
    assert together > JOBS
    assert sum(is_writer for name, one in intervals.items() if name != shared["id"] for *_, is_writer in one) > 20
