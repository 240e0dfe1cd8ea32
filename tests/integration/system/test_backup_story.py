"""A backup of a server under load, restored elsewhere: the tables are equal, nothing runs twice, no id is used again.

The schedule, a bucket, and damaged archives are tested without a server in `tests/contract/system/test_backups.py`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from corral.server.wiring.run import EXIT_HELD
from corral.stores.copying.table_rows import digest_of, tables_of
from corral.stores.database.opening import open_database
from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.integration.witness import Witness
from tests.servers.corral_server import CorralServer
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)

GPUS = "--virtual-gpus=8xA100-80G"


@pytest.fixture
def servers() -> Iterator[list[CorralServer]]:
    started: list[CorralServer] = []
    yield started
    for server in started:
        if server.is_running:
            with server.http() as http:
                for job in http.get("/jobs", params={"limit": 200}).json()["items"]:
                    http.post(f"/jobs/{job['id']}/stop")
        server.kill()


@pytest.fixture
def databases(postgres_server: PostgresServer) -> Iterator[list[str]]:
    names = [postgres_server.create_database() for _ in range(2)]
    yield [postgres_server.url(name) for name in names]
    for name in names:
        postgres_server.drop_database(name)


def submit(server: CorralServer, command: list[str], **fields: Any) -> str:
    with server.http() as http:
        return str(http.post("/jobs", json={"command": command, **fields}).raise_for_status().json()["id"])


def state(server: CorralServer, job: str) -> dict[str, Any]:
    with server.http() as http:
        return dict(http.get(f"/jobs/{job}").raise_for_status().json())


def digests(url: str) -> dict[str, tuple[int, str]]:
    database = open_database(url)
    try:
        with database.reader.connect() as connection:
            found = {str(table.name): digest_of(connection, table) for table in tables_of(connection)}
            assert inspect(connection).has_table("jobs")
    finally:
        database.dispose()
    return {name: (digest.rows, digest.hex) for name, digest in found.items()}


class Load:
    """Submits short jobs until it is stopped."""

    def __init__(self, server: CorralServer) -> None:
        self._server = server
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.submitted: list[str] = []

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        command = ["sh", "-c", "echo made > $CORRAL_OUTPUT_DIR/result; echo said"]
        while not self._is_over.is_set():
            self.submitted.append(submit(self._server, command, gpus=1))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_backup_under_load_is_restored_in_another_home(
    kind: str, tmp_path: Path, databases: list[str], servers: list[CorralServer]
) -> None:
    witness = Witness(tmp_path / "witness")
    first = CorralServer(tmp_path / "first", GPUS)
    servers.append(first)
    # Restored into the other kind of store: the archive is the same for both.
    urls = {"sqlite": f"sqlite:///{first.home / 'corral.db'}", "postgresql": databases[0]}
    first.start(CORRAL_DATABASE=urls[kind])
    operator = Person(server=first.url, home=first.home, env={"CORRAL_DATABASE": urls[kind]})
    long = [submit(first, witness.command(300), gpus=1) for _ in range(2)]
    wait_until(lambda: len(witness.of("begun")) == 2, "both long jobs run")
    archive = str(tmp_path / "archive")
    with Load(first) as load:
        wait_until(lambda: len(load.submitted) > 10, "some jobs were submitted")
        under_load = json.loads(operator.ok("backup", "create", "--to", archive, "-o", "json"))
    assert 0 < under_load["tables"]["jobs"] <= len(load.submitted) + 2
    wait_until(lambda: state(first, load.submitted[-1])["state"] == "completed", "the load is over")
    first.stop()
    made = json.loads(operator.ok("backup", "create", "--to", archive, "-o", "json"))
    assert made["tables"]["jobs"] == len(load.submitted) + 2
    assert made["written_bytes"] < made["file_bytes"] + 2_000_000
    later = digests(urls[kind])
    assert {name: rows for name, (rows, _) in later.items()} == made["tables"]

    # A rehearsal changes nothing; the restore says what is missing.
    second = CorralServer(tmp_path / "second", GPUS, "--take-over")
    servers.append(second)
    other = {"sqlite": databases[1], "postgresql": f"sqlite:///{second.home / 'corral.db'}"}[kind]
    restorer = Person(server=second.url, home=tmp_path, env={"CORRAL_DATABASE": other})
    where = ("--from", archive, "--home", str(second.home), "-o", "json")
    rehearsed = json.loads(restorer.ok("backup", "restore", "--check", *where))
    assert rehearsed["rehearsal"] is True
    assert not second.home.exists()
    restored = json.loads(restorer.ok("backup", "restore", *where))
    assert restored["tables"] == made["tables"]
    assert any("metric history" in line for line in restored["missing"])
    now = digests(other)
    assert {name for name in now if now[name] != later[name]} == {"counters", "meta"}
    refused = restorer.run("backup", "restore", *where, code=1)
    assert "is not empty" in refused.problem["detail"]

    # The former server did not say that it is gone: without --take-over the restored one does not start.
    careful = CorralServer(second.home, GPUS)
    careful.start(CORRAL_DATABASE=other, wait=False)
    assert careful.process is not None
    assert careful.process.wait(timeout=60) == EXIT_HELD
    second.start(CORRAL_DATABASE=other)
    wait_until(lambda: all(state(second, job)["state"] == "running" for job in long), "the living jobs are found")
    assert sorted(witness.of("begun")) == sorted(f"{job}.1" for job in long), "nothing ran a second time"
    assert witness.of("doubled") == []
    done = load.submitted[0]
    with second.http() as http:
        assert http.get(f"/jobs/{done}/logs", params={"tail": 10}).text.strip().endswith("said")
        listed = http.get(f"/jobs/{done}/files").raise_for_status().json()["items"]
    assert "result" in json.dumps(listed)
    fresh = submit(second, ["true"], gpus=1)
    assert int(fresh.removeprefix("j-")) > 10_000, "no number is given again"


def test_launches_planned_in_a_backup_are_not_repeated(tmp_path: Path, servers: list[CorralServer]) -> None:
    """A job that was starting at the time of the backup may have run since: its attempt is not launched, the job
    continues with the next one."""
    witness = Witness(tmp_path / "witness")
    first = CorralServer(tmp_path / "first", GPUS)
    servers.append(first)
    first.start()
    job = submit(first, witness.command(0.01), gpus=1)
    wait_until(lambda: state(first, job)["state"] == "completed", "it is over")
    first.kill()
    _set_back_to_starting(first.home / "corral.db")
    person = Person(server=first.url, home=first.home)
    person.ok("backup", "create", "--to", str(tmp_path / "archive"))
    second = CorralServer(tmp_path / "second", GPUS, "--take-over")
    servers.append(second)
    person.ok("backup", "restore", "--from", str(tmp_path / "archive"), "--home", str(second.home))
    # The machine of the former server is gone.
    (first.home / "local" / "place-id").unlink()
    second.start()
    wait_until(lambda: state(second, job)["state"] == "completed", "it ran")
    assert witness.of("begun") == [f"{job}.1", f"{job}.2"], "the attempt of the backup was not launched again"


def _set_back_to_starting(path: Path) -> None:
    """Sets the store back to the time between the plan of the attempt and its launch."""
    with closing(sqlite3.connect(path)) as store, store:
        (body,) = store.execute("SELECT body FROM jobs").fetchone()
        (allocation,) = store.execute("SELECT allocation FROM attempts").fetchone()
        document = {key: value for key, value in json.loads(body).items() if key not in ("exit_code", "end_reason")}
        document |= {"allocation": json.loads(allocation), "allocated_at": 1.0}
        changed = "state = 'starting', started_at = NULL, ended_at = NULL, body = ?"
        store.execute(f"UPDATE jobs SET {changed}", [json.dumps(document)])
        store.execute("UPDATE attempts SET started_at = NULL, ended_at = NULL, end_reason = NULL, exit_code = NULL")
