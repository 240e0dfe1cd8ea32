"""The store goes away and comes back, at rest, under load and at the start: the server stays, refuses with 503, keeps
jobs running, and goes on by itself. What it accepted is there, and nothing runs twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.system.test_crashes import Witness, all_jobs
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer, plain_http
from tests.servers.postgres import HOW_TO_INSTALL, PostgresServer, find_account, find_programs

ENDED = ("completed", "failed", "stopped")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that no other test uses. Commits are durable, so that a crash may lose none."""
    programs, account = find_programs(), find_account()
    if programs is None or account is None:
        pytest.skip(HOW_TO_INSTALL)
    directory = Path(tempfile.mkdtemp(prefix="corral-pg-", dir="/tmp"))
    shutil.chown(directory, user=account)
    server = PostgresServer(
        directory=directory, programs=programs, account=account, settings={"synchronous_commit": "on"}
    )
    try:
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(directory)


@pytest.fixture
def server(tmp_path: Path, postgres: PostgresServer) -> Iterator[CorralServer]:
    made = CorralServer(tmp_path / "home", "--virtual-nodes", "4x4xA10", "--config", str(tmp_path / "corral.yaml"))
    made.home.mkdir()
    url = postgres.url(postgres.create_database())
    (tmp_path / "corral.yaml").write_text(f"storage:\n  database: {url}\n")
    yield made
    if made.is_running:
        made.kill()


def answers_503(server: CorralServer, path: str = "/jobs") -> bool:
    with server.http() as http:
        answer = http.get(path)
    if answer.status_code != 503:
        return False
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["type"] == "/problems/store-unavailable"
    return True


def is_ready(server: CorralServer) -> bool:
    with plain_http(server.url) as http:
        return http.get("/readyz").is_success


def finished(server: CorralServer) -> bool:
    with server.http() as http:
        return all(job["state"] in ENDED for job in all_jobs(http))


class Load:
    """Submits jobs all the time, and remembers what became of each request."""

    def __init__(self, server: CorralServer, witness: Witness) -> None:
        self.accepted: set[str] = set()
        self.refused: set[str] = set()
        self.unknown: set[str] = set()
        self.strange: list[str] = []
        self._server = server
        self._witness = witness
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(3)]
        server.token()
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        with self._server.http() as http:
            count = 0
            while not self._stopping.is_set():
                count += 1
                self._submit(http, f"load-{number}-{count:04d}")

    def _submit(self, http: httpx.Client, name: str) -> None:
        body = {"name": name, "command": self._witness.command(0.05, 0), "gpus": 1, "time": "5m"}
        try:
            answer = http.post("/jobs", json=body)
        except httpx.TransportError as error:
            self.strange.append(repr(error))
            return
        if answer.status_code == 201:
            self.accepted.add(name)
        elif answer.status_code == 503 and "before you try again" in answer.json()["detail"]:
            self.unknown.add(name)
        elif answer.status_code == 503:
            self.refused.add(name)
            self._stopping.wait(0.05)
        else:
            self.strange.append(answer.text)


def check(server: CorralServer, load: Load, witness: Witness) -> None:
    """Checks that no job is lost or runs twice, and that refused requests changed nothing."""
    assert not load.strange
    wait_until(lambda: finished(server), "every job ends", seconds=120)
    with server.http() as http:
        jobs = {job["name"]: job for job in all_jobs(http)}
    names = {name for name in jobs if name.startswith("load-")}
    assert load.accepted <= names, f"accepted and lost: {load.accepted - names}"
    assert names <= load.accepted | load.unknown, f"refused and there: {names - load.accepted - load.unknown}"
    wrong = [job for job in jobs.values() if (job["state"], job["attempt"]) != ("completed", 1)]
    assert not wrong
    assert set(witness.lines("begin").values()) == {1}
    assert len(witness.lines("end")) == len(jobs)


def test_at_rest(server: CorralServer, postgres: PostgresServer, tmp_path: Path) -> None:
    server.start()
    witness, gate = Witness(tmp_path / "witness"), tmp_path / "gate"
    mark = witness.command(0, 0)[2]
    with server.http() as http:
        body = {"name": "runs-on", "command": ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.05; done; {mark}"]}
        http.post("/jobs", json=body).raise_for_status()
        wait_until(lambda: http.get("/jobs").json()["items"][0]["state"] == "running", "it runs")
    postgres.stop()
    wait_until(lambda: answers_503(server), "it refuses")
    assert not is_ready(server)
    with server.http() as http:
        refused = http.post("/jobs", json={"name": "refused", "command": ["true"]})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert http.post("/auth/login", json={"user": "operator", "password": "wrong"}).status_code == 503
        assert http.get("/healthz").is_success
    # It ends while its end cannot be stored.
    gate.touch()
    wait_until(lambda: bool(witness.lines("end")), "the job ends")
    assert server.is_running
    postgres.restart(first=True)
    wait_until(lambda: is_ready(server), "it goes on by itself")
    wait_until(lambda: finished(server), "the end is found")
    with server.http() as http:
        (job,) = all_jobs(http)
        assert (job["name"], job["state"], job["exit_code"], job["attempt"]) == ("runs-on", "completed", 0, 1)
        http.post("/jobs", json={"name": "after", "command": ["true"]}).raise_for_status()
    wait_until(lambda: finished(server), "new jobs run")
    assert server.stop() == 0


@pytest.mark.parametrize("how", ["stop", "kill", "restart"])
def test_under_load(server: CorralServer, postgres: PostgresServer, tmp_path: Path, how: str) -> None:
    server.start()
    witness = Witness(tmp_path / "witness")
    load = Load(server, witness)
    try:
        for _ in range(3):
            before = len(load.accepted)
            wait_until(lambda before=before: len(load.accepted) > before + 20, "it accepts jobs")  # type: ignore[misc]
            if how == "restart":
                postgres.restart()
            else:
                (postgres.stop if how == "stop" else postgres.kill)()
                refused = len(load.refused)
                wait_until(lambda refused=refused: len(load.refused) > refused, "it refuses")  # type: ignore[misc]
                _start_again(postgres)
        before = len(load.accepted)
        wait_until(lambda: len(load.accepted) > before + 20, "it goes on by itself")
    finally:
        load.finish()
    check(server, load, witness)
    assert server.stop() == 0


def test_sessions_that_the_database_ends(server: CorralServer, postgres: PostgresServer, tmp_path: Path) -> None:
    """Imitates a failover: connections are cut at any moment, and new ones are accepted at once."""
    server.start()
    witness = Witness(tmp_path / "witness")
    load = Load(server, witness)
    try:
        for _ in range(15):
            before = len(load.accepted)
            wait_until(lambda before=before: len(load.accepted) > before + 3, "it accepts jobs")  # type: ignore[misc]
            postgres.end_sessions()
    finally:
        load.finish()
    check(server, load, witness)
    assert server.stop() == 0


def test_at_the_start(server: CorralServer, postgres: PostgresServer) -> None:
    postgres.stop()
    server.start(wait=False)
    with plain_http(server.url) as http:
        wait_until(lambda: _refuses(http), "it answers although there is no store")
        assert http.get("/healthz").json() == {"status": "ok"}
        assert http.post("/api/v1/auth/login", json={"user": "operator", "password": "x"}).status_code == 503
    assert server.is_running
    postgres.restart(first=True)
    server.wait_ready()
    with server.http() as http:
        http.post("/jobs", json={"name": "first", "command": ["true"]}).raise_for_status()
    assert server.stop() == 0
    # And it can be stopped while it waits.
    postgres.stop()
    server.start(wait=False)
    with plain_http(server.url) as http:
        wait_until(lambda: _refuses(http), "it waits")
    assert server.stop() == 0
    _start_again(postgres)


def test_a_sqlite_store_that_another_process_locks(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-nodes", "4x4xA10")
    server.start()
    witness = Witness(tmp_path / "witness")
    load = Load(server, witness)
    try:
        wait_until(lambda: len(load.accepted) > 20, "it accepts jobs")
        other = sqlite3.connect(server.home / "corral.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        wait_until(lambda: len(load.refused) > 5, "it refuses")
        with server.http() as http:
            # What can be read is shown.
            assert http.get("/jobs").is_success
        other.execute("ROLLBACK")
        other.close()
        before = len(load.accepted)
        wait_until(lambda: len(load.accepted) > before + 20, "it goes on by itself")
    finally:
        load.finish()
    check(server, load, witness)
    assert server.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system of its own: run as root")
def test_a_sqlite_store_on_a_full_disk(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", home], check=True)
    server = CorralServer(home, "--virtual-nodes", "1x2xA10")
    ballast = home / "ballast"
    try:
        server.start()
        with server.http() as http:
            http.post("/jobs", json={"name": "before", "command": ["true"]}).raise_for_status()
            wait_until(lambda: finished(server), "it runs")
            accepted = {"before"}

            def refuses() -> bool:
                # Again and again: the server gives up its reserve, and that is taken too.
                _fill(ballast)
                name = f"filling-{len(accepted)}"
                code = _submit(http, name).status_code
                if code == 201:
                    accepted.add(name)
                return code == 503

            wait_until(refuses, "it refuses")
            assert {job["name"] for job in all_jobs(http)} == accepted
            assert server.is_running
            ballast.unlink()
            try:
                wait_until(lambda: _submit(http, "after").status_code == 201, "it goes on by itself")
            except AssertionError as error:
                error.add_note(f"{_submit(http, 'after').text}\n{server.log()[-5000:]}")
                raise
            assert {job["name"] for job in all_jobs(http)} == accepted | {"after"}
        assert server.stop() == 0, server.log()[-5000:]
    finally:
        if server.is_running:
            server.kill()
        subprocess.run(["umount", "-l", home], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system of its own: run as root")
def test_a_start_on_a_full_disk(tmp_path: Path) -> None:
    """A server that was stopped has to make files when it starts: it gives up a part of its reserve for them."""
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", home], check=True)
    server = CorralServer(home, "--virtual-nodes", "1x2xA10")
    try:
        server.start()
        wait_until(lambda: (home / "reserve").exists(), "it has a reserve")
        assert server.stop() == 0
        _fill(home / "ballast")
        server.start()
        with server.http() as http:
            assert http.get("/jobs").is_success
        assert server.stop() == 0, server.log()[-5000:]
    finally:
        if server.is_running:
            server.kill()
        subprocess.run(["umount", "-l", home], check=True)


def _submit(http: httpx.Client, name: str) -> httpx.Response:
    # Large: what is written must need new pages.
    body = {"name": name, "command": ["true"], "env": {"LONG": "x" * 60_000}}
    return http.post("/jobs", json=body)


def _fill(ballast: Path) -> None:
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def _refuses(http: httpx.Client) -> bool:
    try:
        answer = http.get("/readyz")
    except httpx.TransportError:
        return False
    return answer.status_code == 503 and "Retry-After" in answer.headers


def _start_again(postgres: PostgresServer) -> None:
    """After a crash the old processes may need a moment to be gone."""

    def started() -> bool:
        try:
            postgres.restart(first=True)
        except RuntimeError:
            return False
        return True

    wait_until(started, "PostgreSQL starts again")
