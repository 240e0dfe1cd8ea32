"""The server is killed, again and again, at random and at the worst moments: nothing is lost and nothing runs twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.audit import assert_no_gpu_given_twice, attempts_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

KILLS = 54
CRASHING = Path(__file__).parent.parent / "crashing_server.py"


class Witness:
    """Jobs write into one file when they begin and when they end: what really ran, whatever the server believes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def command(self, seconds: float, exit_code: int) -> list[str]:
        mark = f'echo "$CORRAL_ATTEMPT_ID $CORRAL_RANK %s" >> {self.path}'
        return ["sh", "-c", f"{mark % 'begin'}; sleep {seconds}; {mark % 'end'}; exit {exit_code}"]

    def lines(self, word: str) -> Counter[str]:
        lines = (line.split() for line in self.path.read_text().splitlines())
        return Counter(f"{attempt} {rank}" for attempt, rank, what in lines if what == word)


def job_for(rng: random.Random, witness: Witness, name: str) -> tuple[dict[str, Any], int]:
    exit_code = rng.choice([0, 0, 3, 17])
    shapes: list[dict[str, float]] = [{"gpus": 1}, {"gpus": 2}, {"gpus": 0.5}, {"gpus": 2, "nodes": 2}, {"gpus": 0}]
    shape = rng.choice(shapes)
    seconds = rng.choice([0, 0.05, 0.5, 1.5])
    return {"name": name, "command": witness.command(seconds, exit_code), "time": "5m", **shape}, exit_code


class Submitter:
    """Submits jobs and remembers which were accepted. The outcome of a request that was cut off is unknown."""

    def __init__(self, witness: Witness, rng: random.Random) -> None:
        self.tried: dict[str, int] = {}
        self.accepted: set[str] = set()
        self._witness = witness
        self._rng = rng

    def submit_some(self, server: CorralServer) -> None:
        with server.http() as http:
            for _ in range(self._rng.randint(2, 5)):
                name = f"crash-{len(self.tried):04d}"
                body, self.tried[name] = job_for(self._rng, self._witness, name)
                answer = http.post("/jobs", json=body)
                assert answer.status_code == 201, answer.text
                self.accepted.add(name)


def all_jobs(http: httpx.Client) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = http.get("/jobs", params={"limit": 500} | ({"cursor": cursor} if cursor else {})).json()
        jobs += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return jobs


@pytest.mark.timeout(900)  # more than fifty starts of a server, on whatever machine this is
def test_kill_the_server_more_than_fifty_times(tmp_path: Path) -> None:
    rng = random.Random(20260101)
    witness = Witness(tmp_path / "witness")
    server = CorralServer(tmp_path / "home", "--virtual-nodes", "4x4xA10", program=[str(CRASHING)])
    submitter = Submitter(witness, rng)
    server.start()
    server.token()
    server.kill()

    for kill in range(KILLS):
        # Every third time at a worst moment of its own making, else at a random one from outside.
        place = rng.choice(["before-launch", "after-launch"])
        crash = {"CRASH_AT": f"{place}:{rng.randint(1, 4)}"} if kill % 3 == 0 else {}
        server.start(crash, wait=False)
        try:
            server.wait_ready()
            submitter.submit_some(server)
        except (AssertionError, httpx.TransportError):
            assert crash, f"died by itself:\n{server.log()[-3000:]}"
        time.sleep(rng.uniform(0, 0.3))
        server.kill()

    server.start()
    with server.http() as http:
        wait_until(
            lambda: all(job["state"] in ("completed", "failed") for job in all_jobs(http)),
            "every job ends",
            seconds=90,
        )
        jobs = {job["name"]: job for job in all_jobs(http)}
    server.stop()

    assert len(submitter.accepted) > 100
    missing = submitter.accepted - jobs.keys()
    assert not missing, f"accepted and lost: {missing}"
    for name, job in jobs.items():
        exit_code = submitter.tried[name]
        assert (job["exit_code"], job["attempt"], job["end_reason"]) == (exit_code, 1, "exit_code"), job
        assert job["state"] == ("completed" if exit_code == 0 else "failed")
    begun, ended = witness.lines("begin"), witness.lines("end")
    assert set(begun.values()) == {1}, f"ran twice: {[name for name, count in begun.items() if count > 1]}"
    ranks = {f"{job['id']}.1 {rank}" for job in jobs.values() for rank in range(job["nodes"])}
    assert set(begun) <= ranks
    # One failing instance ends its gang, so that the others may not come to their end, or not even to their beginning.
    cut_short = ranks - set(ended)
    failed_gangs = {job["id"] for job in jobs.values() if job["nodes"] > 1 and job["exit_code"] != 0}
    assert {line.partition(".")[0] for line in cut_short} <= failed_gangs
    attempts = attempts_of(server.home)
    assert len(attempts) == len(jobs)
    assert_no_gpu_given_twice(attempts)
