"""A server moves to PostgreSQL and back: its jobs keep running, and no other step than stop and start is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.server.wiring.run import EXIT_STORE
from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.integration.witness import Witness
from tests.servers.corral_server import CorralServer
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


def test_the_store_moves_while_a_job_runs(tmp_path: Path, database: str) -> None:
    witness = Witness(tmp_path / "witness")
    server = CorralServer(tmp_path / "home", "--virtual-gpus=8xA100-80G")
    person = Person(server=server.url, home=server.home)
    try:
        server.start()
        with server.http() as http:
            job = http.post("/jobs", json={"command": witness.command(300), "gpus": 1}).json()["id"]
        wait_until(lambda: witness.of("begun") == [f"{job}.1"], "it runs")
        copied = json.loads(person.ok("store", "move", "--to", database, "--copy-only", "-o", "json"))
        assert copied["moved"] is False
        busy = person.run("store", "move", "--to", database, "--wait", "0", "-o", "json", code=1)
        assert "still runs" in busy.err
        moving = person.start("store", "move", "--to", database, "-o", "json")
        assert moving.stderr is not None
        assert any("Stop the server now" in line for line in iter(moving.stderr.readline, ""))
        server.stop()
        out, _ = moving.communicate(timeout=120)
        moved = json.loads(out)
        assert moved["moved"] is True
        assert {table["name"]: table["rows"] for table in moved["items"]}["jobs"] == 1
        server.start(wait=False)
        assert server.process is not None
        assert server.process.wait(timeout=60) == EXIT_STORE
        assert "was moved to postgresql://" in server.log()
        server.start(CORRAL_DATABASE=database)
        with server.http() as http:
            wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "it is found")
            assert http.get(f"/jobs/{job}").json()["attempt"] == 1
        server.stop()
        there = Person(server=server.url, home=server.home, env={"CORRAL_DATABASE": database})
        there.ok("store", "move", "--to", "sqlite")
        server.start()
        with server.http() as http:
            wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "it is found again")
            http.post(f"/jobs/{job}/stop").raise_for_status()
        assert witness.of("begun") == [f"{job}.1"]
    finally:
        server.kill()
