"""A distributed job over virtual nodes that really adds up numbers between its processes, and what becomes of it when
one of its instances, or a node under it, fails."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from corral.engines.local.faults import FAULTS_FILE, Faults, write_faults
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.torch_python import torch_python

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent.parent / "programs"
#: eight ranks of 1 to 8 times the numbers 1 to 1002
TOTAL = 36 * sum(range(1003))


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "3x4xA100-80G") as running:
        yield running


@dataclass(kw_only=True)
class Gang:
    http: httpx.Client
    id: str
    until: Path

    @property
    def view(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/jobs/{self.id}").raise_for_status().json()
        return found

    def attempts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get(f"/jobs/{self.id}/attempts").raise_for_status().json()["items"]
        return found

    def nodes(self, attempt: int) -> list[str]:
        return [grant["node"] for grant in self.attempts()[attempt - 1]["allocation"]["grants"]]

    def log(self, rank: int, attempt: int) -> str:
        answer = self.http.get(f"/jobs/{self.id}/logs", params={"rank": rank, "attempt": attempt})
        return answer.text if answer.is_success else ""

    def works(self, attempt: int) -> None:
        """All eight ranks have been round the ring, so that the gang is whole."""

        def all_round() -> bool:
            logs = self.log(0, attempt) + self.log(1, attempt)
            return all(f"rank {rank} went round" in logs for rank in range(8))

        wait_until(all_round, f"attempt {attempt} of {self.id} works")

    def main_process(self, rank: int, attempt: int) -> int:
        reported = next(
            line for line in self.log(rank, attempt).splitlines() if line.startswith(f"instance {rank} is ")
        )
        return int(reported.rpartition(" ")[2])

    def finish(self) -> None:
        """Let it come to its end, and check what it has added up."""
        attempt = self.view["attempt"]
        self.until.touch()
        wait_until(lambda: self.view["ended_at"] is not None, "the end")
        assert (self.view["state"], self.view["exit_code"]) == ("completed", 0), self.log(0, attempt)
        results = [line for rank in (0, 1) for line in self.log(rank, attempt).splitlines() if " has " in line]
        assert sorted(results) == [f"rank {rank} of 8 has {TOTAL}" for rank in range(8)]


@pytest.fixture
def gang(server: CorralServer, tmp_path: Path) -> Iterator[Gang]:
    with server.http() as http:
        until = tmp_path / "enough"
        body = {
            "name": "gang",
            "kind": "distributed",
            "nodes": 2,
            "gpus": 4,
            "time": "10m",
            "command": [sys.executable, str(PROGRAMS / "ring.py"), str(until)],
        }
        made = Gang(http=http, id=http.post("/jobs", json=body).raise_for_status().json()["id"], until=until)
        yield made
        write_faults(server.home / "local" / FAULTS_FILE, Faults())
        http.post(f"/jobs/{made.id}/stop")
        wait_until(lambda: made.view["ended_at"] is not None, "nothing is left behind")
        http.delete(f"/jobs/{made.id}").raise_for_status()


def test_eight_ranks_on_two_nodes_add_up_with_the_exported_environment_alone(gang: Gang) -> None:
    gang.works(attempt=1)
    assert len(set(gang.nodes(1))) == 2
    gang.finish()


def test_a_killed_instance_ends_the_gang_and_is_named(gang: Gang) -> None:
    """The program's own failure: the others end, nothing is tried again."""
    gang.works(attempt=1)
    os.kill(gang.main_process(rank=1, attempt=1), signal.SIGKILL)
    wait_until(lambda: gang.view["ended_at"] is not None, "the end of the whole gang")
    view = gang.view
    assert (view["state"], view["end_reason"], view["exit_code"], view["attempt"]) == ("failed", "exit_code", 137, 1)
    assert view["message"] == f"instance 1 on {gang.nodes(1)[1]}: killed by SIGKILL"


def test_a_lost_node_sends_the_whole_gang_elsewhere(server: CorralServer, gang: Gang) -> None:
    """Not the program's own failure: it is tried again, whole, without that node, and every attempt keeps its log."""
    gang.works(attempt=1)
    lost = gang.nodes(1)[1]
    write_faults(server.home / "local" / FAULTS_FILE, Faults(down=frozenset({lost})))
    wait_until(lambda: gang.view["attempt"] == 2, "the next attempt")
    gang.works(attempt=2)
    first, second = gang.attempts()
    assert first["end_reason"] == "node_lost"
    assert first["message"].endswith(f"node {lost} went down") or first["message"] == f"node {lost} is down"
    assert lost not in gang.nodes(2)
    assert len(set(gang.nodes(2))) == 2
    assert (gang.view["retries"], gang.view["faults"], second["end_reason"]) == (0, 1, None)
    gang.finish()
    for attempt in (1, 2):
        for rank in (0, 1):
            assert f"instance {rank} is " in gang.log(rank, attempt), "every attempt keeps its log"


def test_a_lost_instance_is_tried_again_with_the_whole_gang(server: CorralServer, gang: Gang) -> None:
    """Kills the supervisor, as if a part of the platform had crashed: this end counts, whatever ends the other
    instances.
    """
    gang.works(attempt=1)
    main = gang.main_process(rank=1, attempt=1)
    supervisor = int(Path(f"/proc/{main}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: gang.view["attempt"] == 2, "the next attempt")
    gang.works(attempt=2)
    assert gang.attempts()[0]["end_reason"] == "lost"
    assert gang.attempts()[0]["message"].startswith("instance 1 on ")
    gang.finish()


def test_the_same_with_torchrun_and_gloo(server: CorralServer) -> None:
    with server.http() as http:
        # The defaults of these two break PyTorch 1.13 on Python 3.11. Lines then begin with "[default0]:".
        shown = ["--redirects", "1", "--tee", "1"]
        command = [torch_python(), "-m", "torch.distributed.run", *shown, str(PROGRAMS / "gloo.py")]
        body = {"name": "gloo", "nodes": 2, "gpus": 4, "time": "10m", "command": command}
        job = http.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{job}").json()["ended_at"] is not None, "the end", seconds=300)
        logs = [http.get(f"/jobs/{job}/logs", params={"rank": rank}).text for rank in (0, 1)]
        assert http.get(f"/jobs/{job}").json()["state"] == "completed", logs
        results = sorted(line[line.index("rank") :] for log in logs for line in log.splitlines() if " has " in line)
        assert results == [f"rank {rank} of 8 has {36 * sum(range(1000))}" for rank in range(8)]
