"""Two servers that might both act: a second home on one store, a server that was frozen, a backup that was restored.

Every program leaves its process id under the name of its job: one that finds another alive is a double.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from corral.server.wiring.run import EXIT_HELD
from tests.integration.waiting import wait_until
from tests.integration.witness import Witness
from tests.servers.corral_server import CorralServer
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)

GPUS = "--virtual-gpus=32xA100-80G"


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "witness")


@pytest.fixture
def servers() -> Iterator[list[CorralServer]]:
    started: list[CorralServer] = []
    yield started
    for server in started:
        if server.is_running:
            assert server.process is not None
            server.process.send_signal(signal.SIGCONT)
            _end_jobs(server)
        server.kill()


def _end_jobs(server: CorralServer) -> None:
    """Best effort: a server that was superseded cannot."""
    try:
        with server.http() as http:
            for job in http.get("/jobs", params={"limit": 200}).json()["items"]:
                http.post(f"/jobs/{job['id']}/stop")
    except (httpx.HTTPError, KeyError):
        return  # the test has said already what it found


def submit(server: CorralServer, witness: Witness, count: int, seconds: float = 120.0) -> list[str]:
    with server.http() as http:
        bodies = [{"command": witness.command(seconds), "gpus": 1, "grace": "20s"} for _ in range(count)]
        return [http.post("/jobs", json=body).raise_for_status().json()["id"] for body in bodies]


def job(server: CorralServer, job_id: str) -> dict[str, Any]:
    with server.http() as http:
        return dict(http.get(f"/jobs/{job_id}").raise_for_status().json())


def all_running(server: CorralServer, jobs: list[str]) -> bool:
    with server.http() as http:
        states = {one["id"]: one["state"] for one in http.get("/jobs", params={"limit": 200}).json()["items"]}
    return all(states.get(one) == "running" for one in jobs)


def refused(server: CorralServer, **env: str) -> str:
    """Start a server that must not; what it said."""
    server.start(env, wait=False)
    assert server.process is not None
    assert server.process.wait(timeout=60) == EXIT_HELD, server.log()
    return server.log()


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


def test_a_second_home_on_one_database_is_refused(
    tmp_path: Path, witness: Witness, servers: list[CorralServer], database: str
) -> None:
    first, second = CorralServer(tmp_path / "first", GPUS), CorralServer(tmp_path / "second", GPUS)
    servers.append(first)
    first.start(CORRAL_DATABASE=database)
    jobs = submit(first, witness, 16)
    wait_until(lambda: len(witness.of("begun")) == 16, "16 jobs run")
    for _ in range(2):
        said = refused(second, CORRAL_DATABASE=database)
        assert f"belongs to the home {first.home}" in said
        assert "--take-over" in said
        assert first.process is not None
        assert f"Its server runs now (process {first.process.pid})" in said
    assert all_running(first, jobs), "the first one goes on"
    # A server of the same home is no second one.
    first.kill()
    first.start(CORRAL_DATABASE=database)
    wait_until(lambda: all_running(first, jobs), "they are found again")
    assert len(witness.of("begun")) == 16
    assert witness.of("doubled") == []


def test_a_server_that_was_frozen_runs_nothing_when_it_wakes(
    tmp_path: Path, witness: Witness, servers: list[CorralServer], database: str
) -> None:
    first, second = CorralServer(tmp_path / "first", GPUS), CorralServer(tmp_path / "second", GPUS, "--take-over")
    servers += [first, second]
    first.start(CORRAL_DATABASE=database)
    jobs = submit(first, witness, 12)
    wait_until(lambda: len(witness.of("begun")) == 12, "12 jobs run")
    # Some are on their way at the very moment: planned and committed, and perhaps launched.
    jobs += submit(first, witness, 4)
    assert first.process is not None
    first.process.send_signal(signal.SIGSTOP)
    second._tokens = first._tokens
    second.start(CORRAL_DATABASE=database)
    wait_until(lambda: all_running(second, jobs), "all are found, or launched")
    later = submit(second, witness, 2)
    first.process.send_signal(signal.SIGCONT)
    first.process.wait(timeout=60)
    wait_until(lambda: all_running(second, [*jobs, *later]), "all of them run")
    assert "another server has taken over" in first.log()
    assert witness.of("doubled") == []
    begun = witness.of("begun")
    assert sorted(begun) == sorted({*begun}), "no attempt began twice"
    assert {attempt.partition(".")[0] for attempt in begun} == {*jobs, *later}
    assert witness.running() == {*jobs, *later}
    assert [event["action"] for event in _events(second) if event["action"] == "server.took-over"]
    # The first home has lost its right: it does not come back by itself.
    assert "--take-over" in refused(first, CORRAL_DATABASE=database)


def _events(server: CorralServer) -> list[dict[str, Any]]:
    with server.http() as http:
        return list(http.get("/events", params={"limit": 200}).raise_for_status().json()["items"])


def test_a_copy_of_a_home_is_another_home(tmp_path: Path, witness: Witness, servers: list[CorralServer]) -> None:
    first = CorralServer(tmp_path / "first", GPUS)
    servers.append(first)
    first.start()
    jobs = submit(first, witness, 2)
    wait_until(lambda: len(witness.of("begun")) == 2, "2 jobs run")
    first.stop()
    shutil.copytree(first.home, tmp_path / "copy", ignore=shutil.ignore_patterns("events", "*.sock"))
    copy = CorralServer(tmp_path / "copy", GPUS)
    assert f"belongs to the home {first.home}" in refused(copy)
    # To move a home is not to copy it.
    first.start()
    wait_until(lambda: all_running(first, jobs), "they are found again")
    assert witness.of("doubled") == []


def back_up(home: Path, to: Path) -> None:
    with closing(sqlite3.connect(home / "corral.db")) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def test_a_restored_file_beside_living_jobs_doubles_none(
    tmp_path: Path, witness: Witness, servers: list[CorralServer]
) -> None:
    """The first server lives on with its own store; the second one has a backup of it, in a home of its own."""
    first, second = CorralServer(tmp_path / "first", GPUS), CorralServer(tmp_path / "second", GPUS, "--take-over")
    servers += [first, second]
    first.start()
    known = submit(first, witness, 4)
    wait_until(lambda: all_running(first, known), "4 jobs run")
    second.home.mkdir()
    back_up(first.home, second.home / "corral.db")
    unknown = submit(first, witness, 2)
    wait_until(lambda: len(witness.of("begun")) == 6, "6 jobs run")
    careful = CorralServer(second.home, GPUS)
    assert f"belongs to the home {first.home}" in refused(careful)
    second._tokens = first._tokens
    second.start()
    wait_until(lambda: all_running(second, known), "those that the backup knows are found")
    wait_until(lambda: witness.running() == {*known}, "what it does not know is ended")
    assert len(witness.of("begun")) == 6
    assert witness.of("doubled") == []
    assert witness.running().isdisjoint(unknown)
    # The first one is no longer obeyed by the engine, although its own store is.
    with first.http() as http:
        http.post("/jobs", json={"command": witness.command(60), "gpus": 1}).raise_for_status()
    wait_until(lambda: "another server has taken over" in first.log(), "it says why nothing starts")
    assert witness.running() == {*known}
    new = submit(second, witness, 1)
    wait_until(lambda: all_running(second, new), "the second one runs jobs")
    assert witness.of("doubled") == []


def test_an_older_file_in_the_same_home_doubles_none(
    tmp_path: Path, witness: Witness, servers: list[CorralServer]
) -> None:
    """The backup is from before the jobs began: to it they wait."""
    server = CorralServer(tmp_path / "home", GPUS)
    servers.append(server)
    server.start()
    with server.http() as http:
        bodies = [{"command": witness.command(120), "gpus": 1, "grace": "20s", "hold": True} for _ in range(4)]
        jobs = [http.post("/jobs", json=body).raise_for_status().json()["id"] for body in bodies]
        for one in jobs[:2]:
            http.post(f"/jobs/{one}/start").raise_for_status()
    wait_until(lambda: len(witness.of("begun")) == 2, "2 jobs run")
    back_up(server.home, tmp_path / "backup.db")
    with server.http() as http:
        for one in jobs[2:]:
            http.post(f"/jobs/{one}/start").raise_for_status()
    after = submit(server, witness, 1)
    wait_until(lambda: len(witness.of("begun")) == 5, "5 jobs run")
    server.stop()
    for name in ("corral.db", "corral.db-wal", "corral.db-shm"):
        (server.home / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", server.home / "corral.db")
    server.start()
    wait_until(lambda: witness.running() == {*jobs[:2]}, "what the store does not know of is ended")
    with server.http() as http:
        for one in jobs[2:]:
            http.post(f"/jobs/{one}/start").raise_for_status()
    wait_until(lambda: all_running(server, jobs), "all run again", seconds=120)
    new = submit(server, witness, 1)
    assert {*new}.isdisjoint(after), "the id of a job that the store has forgotten is not given again"
    wait_until(lambda: all_running(server, new), "a new one, too")
    assert witness.of("doubled") == []
    assert job(server, jobs[0])["attempt"] == 1, "it was never interrupted"


def test_a_restored_database_beside_living_jobs_doubles_none(
    tmp_path: Path, witness: Witness, servers: list[CorralServer], database: str, postgres_server: PostgresServer
) -> None:
    first, second = CorralServer(tmp_path / "first", GPUS), CorralServer(tmp_path / "second", GPUS, "--take-over")
    servers += [first, second]
    first.start(CORRAL_DATABASE=database)
    jobs = submit(first, witness, 4)
    wait_until(lambda: all_running(first, jobs), "4 jobs run")
    name = postgres_server.create_database()
    try:
        dump = subprocess.run(
            [str(postgres_server.programs / "pg_dump"), database], check=True, capture_output=True, timeout=60
        )
        restored = postgres_server.url(name)
        psql = [str(postgres_server.programs / "psql"), "-q", "-v", "ON_ERROR_STOP=1", restored]
        subprocess.run(psql, input=dump.stdout, check=True, capture_output=True, timeout=60)
        assert "belongs to the home" in refused(CorralServer(second.home, GPUS), CORRAL_DATABASE=restored)
        second._tokens = first._tokens
        second.start(CORRAL_DATABASE=restored)
        wait_until(lambda: all_running(second, jobs), "they are found")
        assert sorted(witness.of("begun")) == sorted(f"{one}.1" for one in jobs)
        assert witness.of("doubled") == []
        with first.http() as http:
            http.post(f"/jobs/{jobs[0]}/stop")
        wait_until(lambda: "another server has taken over" in first.log(), "the first one stops nothing")
        assert witness.of("ended") == []
        second.stop()
    finally:
        postgres_server.drop_database(name)


def test_a_job_in_a_directory_that_no_engine_manages_keeps_the_server_from_starting(
    tmp_path: Path, witness: Witness, servers: list[CorralServer]
) -> None:
    """The home before was moved away under its living jobs, and its place cannot be found any more."""
    first = CorralServer(tmp_path / "first", GPUS)
    servers.append(first)
    first.start()
    submit(first, witness, 1)
    wait_until(lambda: len(witness.of("begun")) == 1, "a job runs")
    second = CorralServer(tmp_path / "second", GPUS, "--take-over")
    second.home.mkdir()
    back_up(first.home, second.home / "corral.db")
    place = first.home / "local" / "place-id"
    kept = place.read_text()
    place.write_text(json.dumps("another"))
    assert "run on this machine in directories that this server does not manage" in refused(second)
    place.write_text(kept)
    assert witness.of("doubled") == []
