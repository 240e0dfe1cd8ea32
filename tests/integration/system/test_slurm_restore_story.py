"""A backup of a server with jobs on a real Slurm; its machine is lost, and the backup is restored in an empty home.

The jobs go on meanwhile. The restored server takes up those that still run, knows how the others ended, charges them up
to their end, and starts none a second time.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.stores import open_store
from tests.integration.cli_harness import Person, operator_of
from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.integration.witness import Witness
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster
from tests.unit.control.ledger import assert_charged_once

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def servers(slurm_cluster: SlurmCluster) -> Iterator[list[CorralServer]]:
    started: list[CorralServer] = []
    yield started
    for server in started:
        server.kill()
    slurm_cluster.run("scancel", "--user=root", check=False)


def submit(server: CorralServer, command: list[str], **fields: Any) -> str:
    with server.http() as http:
        answer = http.post("/jobs", json={"command": command, "time": "1h", "grace": "2s", **fields})
        return str(answer.raise_for_status().json()["id"])


def job(server: CorralServer, job_id: str) -> dict[str, Any]:
    with server.http() as http:
        return dict(http.get(f"/jobs/{job_id}").raise_for_status().json())


def in_slurm(slurm: SlurmCluster) -> list[str]:
    return slurm.run("squeue", "--noheader", "--format=%i", "--states=RUNNING,PENDING").split()


def test_jobs_on_slurm_go_on_after_a_restore_in_an_empty_home(
    tmp_path: Path, slurm_cluster: SlurmCluster, servers: list[CorralServer]
) -> None:
    witness = Witness(tmp_path / "witness")
    first = server_on(slurm_cluster, tmp_path / "first")
    servers.append(first)
    first.start()
    operator_of(first).ok("budget", "price", "set", "A100", "--money", "36000", "--currency", "EUR")
    leave = tmp_path / "leave"
    counted = f'echo "$CORRAL_ATTEMPT_ID begun" >> {witness.directory}/lines'
    until_left = ["sh", "-c", f"{counted}; until [ -e {leave} ]; do sleep 0.1; done; exit 5"]
    over = submit(first, ["sh", "-c", counted], gpus=1)
    wait_until(lambda: job(first, over)["state"] == "completed", "the first one is over", 60)
    runs = submit(first, witness.command(3600), gpus=2)
    ends = submit(first, until_left, gpus=2)
    gang = submit(first, ["sh", "-c", f"{counted}; sleep 3600"], gpus=4, nodes=2)
    # Four whole nodes: it waits in corral for all others.
    waits = submit(first, ["sh", "-c", counted], gpus=8, nodes=4)
    wait_until(lambda: all(job(first, one)["state"] == "running" for one in (runs, ends, gang)), "three run", 120)
    wait_until(lambda: len(witness.of("begun")) == 5, "their programs run", 60)
    assert job(first, waits)["state"] == "queued"
    before = in_slurm(slurm_cluster)

    archive = str(tmp_path / "archive")
    operator = Person(server=first.url, home=first.home, env={"CORRAL_CONFIG": str(first.home / "corral.yaml")})
    operator.ok("backup", "create", "--to", archive)
    first.kill()
    config = shutil.copy(first.home / "corral.yaml", tmp_path / "corral.yaml")
    shutil.rmtree(first.home)
    leave.touch()
    wait_until(lambda: len(in_slurm(slurm_cluster)) == len(before) - 1, "one ends while there is no server", 60)
    restored_at = time.time()

    second = CorralServer(tmp_path / "second", "--config", str(config), "--take-over")
    servers.append(second)
    restorer = Person(server=second.url, home=tmp_path, env={})
    found = json.loads(restorer.ok("backup", "restore", "--from", archive, "--home", str(second.home), "-o", "json"))
    assert found["tables"]["jobs"] == 5
    second.start()
    wait_until(lambda: job(second, ends)["state"] == "failed", "its end is found in Slurm", 120)
    assert job(second, ends)["exit_code"] == 5
    for running in (runs, gang):
        assert job(second, running)["state"] == "running"
    wait_until(lambda: len(in_slurm(slurm_cluster)) == 2, "the two are in Slurm, and nothing else")
    assert set(in_slurm(slurm_cluster)) < set(before)
    assert job(second, over)["state"] == "completed"

    assert "jobs that run there are taken up again, without their output of before" in second.log()
    # They obey the restored server, and what waited runs now.
    with second.http() as http:
        for running in (runs, gang):
            http.post(f"/jobs/{running}/stop").raise_for_status()
    wait_until(lambda: all(job(second, one)["state"] == "stopped" for one in (runs, gang)), "both are stopped", 120)
    assert witness.of("ended") == [f"{runs}.1"]
    wait_until(lambda: job(second, waits)["state"] == "completed", "the one that waited has run", 120)
    begun = witness.of("begun")
    expected = [f"{over}.1", f"{runs}.1", f"{ends}.1", *[f"{gang}.1"] * 2, *[f"{waits}.1"] * 4]
    assert sorted(begun) == sorted(expected), "nothing ran a second time"
    assert witness.of("doubled") == []
    assert int(submit(second, ["true"]).removeprefix("j-")) > 10_000, "no number is given again"

    assert second.stop() == 0
    store = open_store(f"sqlite:///{second.home / 'corral.db'}")
    try:
        with store.read() as tx:
            assert assert_charged_once(tx) > 0
            (usage,) = [one for one in tx.usage.between(0.0, 1e18) if one.attempt_id == f"{ends}.1"]
            assert usage.ended_at is not None
            assert usage.ended_at <= restored_at, "it is charged up to its end, and not to the start of the next server"
    finally:
        store.close()
