"""Many people submit at once, to one server and to two: together they never hold more than their quota."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from corral.stores import open_store
from tests.integration.api import problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)

QUOTAS = {"ann": 5.0, "ben": 2.5}
THREADS = 16
ENDED = ("stopped", "completed", "failed")


@contextmanager
def serving(home: Path, database: str, *options: str) -> Iterator[CorralServer]:
    server = CorralServer(home, "--virtual-gpus", "4xA10", *options)
    try:
        server.start(CORRAL_DATABASE=database)
        yield server
    finally:
        server.kill()


@pytest.fixture
def server(tmp_path: Path, empty_database_url: str) -> Iterator[CorralServer]:
    with serving(tmp_path / "home", empty_database_url) as server:
        set_up_people(server)
        yield server
        stop_all(server)


def set_up_people(server: CorralServer) -> None:
    for user, gpus in QUOTAS.items():
        server.add_user(user)
        with server.http() as http:
            http.put(f"/users/{user}/quota", json={"training": {"gpus": gpus}}).raise_for_status()


def stop_all(server: CorralServer) -> None:
    with server.http() as http:
        for job in all_jobs(http):
            if job["state"] not in ENDED:
                http.post(f"/jobs/{job['id']}/stop")
        wait_until(lambda: all(job["state"] in ENDED for job in all_jobs(http)), "every job ends")


def all_jobs(http: httpx.Client) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    cursor: dict[str, str] | None = {}
    while cursor is not None:
        page = http.get("/jobs", params={"limit": 500, **cursor}).json()
        jobs += page["items"]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    return jobs


def a_job(gpus: float) -> dict[str, Any]:
    return {"command": ["sleep", "600"], "gpus": gpus, "grace": 1}


def at_once(act: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """The results of all threads, which start at the same moment."""
    start = threading.Barrier(threads)

    def run(number: int) -> Any:
        start.wait(timeout=30)
        return act(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def check_refusal(answer: httpx.Response, asked: float, limit: float) -> None:
    """The numbers are those of the moment when it was refused."""
    refusal = problem(answer, 409)
    assert refusal["type"] == "/problems/insufficient-quota"
    assert (refusal["resource"], refusal["asked"], refusal["limit"]) == ("gpus", asked, limit)
    assert refusal["held"] <= limit < refusal["held"] + asked
    assert (refusal["held"] * 2).is_integer()
    for number in (asked, refusal["held"], limit):
        assert f"{number:g}" in refusal["detail"]


def gpus_of(answer: httpx.Response) -> list[float]:
    body = answer.json()
    return [job["gpus"] for job in body.get("items", [body])]


def test_submitting_at_once_fills_the_quota_and_never_exceeds_it(server: CorralServer) -> None:
    def submit(number: int) -> list[tuple[str, float, httpx.Response]]:
        """Some submit single jobs, some two at a time, which are taken together or not at all."""
        rng = random.Random(number)
        user = ("ann", "ben")[number % 2]
        answers = []
        with server.http(user) as http:
            for gpus in [rng.choice([0.5, 1, 2]) for _ in range(4)] + [0.5] * 4:
                if rng.random() < 0.4:
                    answers.append((user, 2 * gpus, http.post("/jobs:batch", json={"jobs": [a_job(gpus)] * 2})))
                else:
                    answers.append((user, gpus, http.post("/jobs", json=a_job(gpus))))
        return answers

    answers = list(itertools.chain.from_iterable(at_once(submit)))
    held = dict.fromkeys(QUOTAS, 0.0)
    refused: dict[str, list[float]] = {user: [] for user in QUOTAS}
    for user, asked, answer in answers:
        if answer.status_code == 201:
            assert sum(gpus_of(answer)) == asked
            held[user] += asked
        else:
            check_refusal(answer, asked, QUOTAS[user])
            refused[user].append(asked)
    # Nothing ended meanwhile, and requests for the smallest part were refused: the quota is used up.
    assert all(0.5 in asked for asked in refused.values())
    assert held == QUOTAS
    with server.http() as http:
        jobs = all_jobs(http)
        for user, limit in QUOTAS.items():
            assert sum(job["gpus"] for job in jobs if job["user"] == user) == limit
        assert {job["state"] for job in jobs} <= {"queued", "starting", "running"}
        # Only the kind with a limit is full.
        workbench = http.post("/workbenches", json={"name": "bench", "image": "example.org/bench:1", "gpus": 1})
        assert workbench.status_code == 201


def test_ended_jobs_make_room_and_usage_never_exceeds_the_quota(server: CorralServer) -> None:
    def come_and_go(number: int) -> int:
        """Submits, and stops its own job again as soon as it has one."""
        rng = random.Random(number)
        user = ("ann", "ben")[number % 2]
        taken = 0
        with server.http(user) as http:
            for _ in range(12):
                gpus = rng.choice([0.5, 1, 2])
                answer = http.post("/jobs", json=a_job(gpus))
                if answer.status_code == 201:
                    taken += 1
                    http.post(f"/jobs/{answer.json()['id']}/stop").raise_for_status()
                else:
                    check_refusal(answer, gpus, QUOTAS[user])
        return taken

    taken = sum(at_once(come_and_go))
    with server.http() as http:
        wait_until(lambda: all(job["state"] in ENDED for job in all_jobs(http)), "every job ends")
        jobs = all_jobs(http)
    assert len(jobs) == taken > THREADS
    for user, limit in QUOTAS.items():
        # In the order of time; what ends goes before what begins at the same millisecond.
        mine = [job for job in jobs if job["user"] == user]
        steps = [(job["ended_at"], 0, -job["gpus"]) for job in mine] + [
            (job["queued_at"], 1, job["gpus"]) for job in mine
        ]
        levels = list(itertools.accumulate(change for _, _, change in sorted(steps)))
        assert 0 < max(levels) <= limit
        assert levels[-1] == 0


def test_a_quota_that_changes_in_the_middle_counts_from_then_on(server: CorralServer) -> None:
    lowered = threading.Event()

    def act(number: int) -> list[tuple[bool, httpx.Response]]:
        answers = []
        if number == 0:
            with server.http() as http:
                http.put("/users/ann/quota", json={"training": {"gpus": 2}}).raise_for_status()
            lowered.set()
            return []
        with server.http("ann") as http:
            for _ in range(8):
                # Known before asking, so that an answer after it can only be by the new quota.
                after = lowered.is_set()
                answers.append((after, http.post("/jobs", json=a_job(0.5))))
        return answers

    answers = list(itertools.chain.from_iterable(at_once(act)))
    held = 0.5 * sum(answer.status_code == 201 for _, answer in answers)
    assert 2 <= held <= 5
    for after, answer in answers:
        if answer.status_code != 201:
            refusal = problem(answer, 409)
            assert refusal["limit"] in ((2,) if after else (2, 5))
            # What was taken under the larger quota stays, and may be more than the smaller one allows.
            assert refusal["limit"] < refusal["held"] + 0.5 <= 5.5
    with server.http() as http:
        assert 0.5 * len(all_jobs(http)) == held


# ------------------------------------------------------------------------------------------------ two servers


class Submitters:
    """Threads that submit to a server until it does not answer any more, and remember what it said."""

    def __init__(self, server: CorralServer, user: str, prefix: str, threads: int = 3) -> None:
        self.accepted: set[str] = set()
        #: refused by the quota
        self.refused: set[str] = set()
        #: refused because the server is no longer the one
        self.turned_away: set[str] = set()
        #: the connection broke: the outcome is unknown
        self.unknown: set[str] = set()
        self._stop = threading.Event()
        self._server = server
        self._user = user
        self._prefix = prefix
        self._pool = ThreadPoolExecutor(threads)
        self._done = [self._pool.submit(self._run, number) for number in range(threads)]

    @property
    def not_there(self) -> set[str]:
        return self.refused | self.turned_away

    def finish(self) -> None:
        self._stop.set()
        for done in self._done:
            done.result(timeout=60)
        self._pool.shutdown()

    def _run(self, number: int) -> None:
        with self._server.http(self._user) as http:
            for count in itertools.count():
                if self._stop.is_set():
                    return
                name = f"{self._prefix}-{number}-{count}"
                try:
                    answer = http.post("/jobs", json={**a_job(0.5), "name": name})
                except httpx.ConnectError:
                    return
                except httpx.TransportError:
                    self.unknown.add(name)
                    return
                self._note(name, answer)

    def _note(self, name: str, answer: httpx.Response) -> None:
        if answer.status_code == 201:
            self.accepted.add(name)
        elif answer.status_code == 503:
            self.turned_away.add(name)
        else:
            check_refusal(answer, 0.5, QUOTAS[self._user])
            self.refused.add(name)


def test_a_second_server_takes_over_and_the_first_one_writes_no_more(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    database = postgres_server.url(postgres_server.create_database())
    with ExitStack() as stack:
        old = stack.enter_context(serving(tmp_path / "old", database))
        set_up_people(old)
        with old.http() as http:
            # Nothing starts: the two servers have no machine in common, and only the store is looked at here.
            for node in http.get("/nodes").json()["items"]:
                http.post(f"/nodes/{node['id']}/cordon").raise_for_status()
            http.put("/users/ann/quota", json={"training": {"gpus": None}}).raise_for_status()
        old_ann, old_ben = Submitters(old, "ann", "ann-old"), Submitters(old, "ben", "ben-old")
        for submitters in (old_ann, old_ben):
            stack.callback(submitters.finish)
        wait_until(lambda: len(old_ann.accepted) > 5 and len(old_ben.refused) > 5, "the first server is busy")

        new = stack.enter_context(serving(tmp_path / "new", database, "--take-over"))
        for user in QUOTAS:
            new.token(user, f"password-of-{user}")
        new_ann, new_ben = Submitters(new, "ann", "ann-new"), Submitters(new, "ben", "ben-new")
        for submitters in (new_ann, new_ben):
            stack.callback(submitters.finish)
        assert old.process is not None
        # It finds out by itself, says so, and ends with an error.
        assert old.process.wait(timeout=60) == 1
        assert "another server has taken over" in old.log()
        wait_until(lambda: len(new_ann.accepted) > 20 and len(new_ben.refused) > 20, "the second server is busy")
        everybody = (old_ann, old_ben, new_ann, new_ben)
        for submitters in everybody:
            submitters.finish()
        with new.http() as http:
            jobs = all_jobs(http)
        new.stop()

    # What was promised is there and what was refused is not, whichever server it was.
    names = {job["name"] for job in jobs}
    promised = set().union(*(each.accepted for each in everybody))
    assert promised <= names <= promised.union(*(each.unknown for each in everybody))
    assert not names & set().union(*(each.not_there for each in everybody))
    assert sum(job["gpus"] for job in jobs if job["user"] == "ben") == QUOTAS["ben"]
    assert not new_ben.accepted
    # After the first word of the second server there is none of the first, and no number is given twice.
    numbers = {job["name"]: int(job["id"].removeprefix("j-")) for job in jobs}
    assert len(set(numbers.values())) == len(jobs)
    assert max(numbers[name] for name in names - new_ann.accepted) < min(numbers[name] for name in new_ann.accepted)
    store = open_store(database)
    with store.read() as transaction:
        assert transaction.jobs.counts() == {"queued": len(jobs)}
    store.close()
