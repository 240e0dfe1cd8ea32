"""Three servers over one PostgreSQL, with a real engine: the leader is killed, frozen, asked to step down, and its
database restarted, under a load of submits, stops and reads. `scripts/failover-drill` does it a hundred times."""

from __future__ import annotations

import json
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from corral.client.client import Client
from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.servers.corral_server import free_port
from tests.servers.cut_off import CutOff
from tests.servers.drill import Witness, durable_postgres
from tests.servers.failover import Failover, Servers
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)


@pytest.fixture
def servers(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Servers]:
    several = Servers(tmp_path / "home", postgres_server)
    yield several
    several.stop()
    postgres_server.drop_database(several.database)


def test_the_leader_changes_under_load(tmp_path: Path, servers: Servers) -> None:
    drill = Failover(servers, Witness(tmp_path / "witness"), random.Random(7), servers.start())
    drill.start()
    drill.kill()
    drill.freeze()
    drill.restart_database()
    drill.step_down()
    drill.kill()
    jobs = drill.end()

    assert drill.lost(jobs) == []
    assert drill.witness.doubled() == []
    assert [job for job in jobs.values() if job["state"] == "failed"] == []
    assert drill.reader.failed == []
    assert drill.reader.reads > 100
    assert len(drill.accepted()) > 20


def test_the_leader_is_cut_off_from_the_database_which_then_fails_over(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can make network namespaces: run as root")
    with ExitStack() as parts:
        directory = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="corral-cut-", dir="/tmp")))
        directory.chmod(0o755)
        cut_off = CutOff.take()
        parts.callback(cut_off.release)
        primary = durable_postgres(directory / "one", network=cut_off.network, port=free_port())
        parts.callback(primary.kill)
        replica = primary.replica(directory / "two", free_port())
        parts.callback(replica.stop)
        servers = Servers(tmp_path / "home", primary, replica=replica, cut_off=cut_off)
        parts.callback(servers.stop)
        drill = Failover(servers, Witness(tmp_path / "witness"), random.Random(11), servers.start())
        drill.start()
        drill.cut()
        drill.reader.end()
        drill.fail_over_database()
        jobs = drill.end()

        assert drill.lost(jobs) == []
        assert drill.witness.doubled() == []
        assert [job for job in jobs.values() if job["state"] == "failed"] == []
        assert drill.reader.failed == []


def test_a_standby_answers_reads_forwards_changes_and_follows(tmp_path: Path, servers: Servers) -> None:
    token = servers.start()
    leader = servers.leader()
    assert leader is not None
    first, second = servers.others(leader)
    with Client(first.url, token) as client, Client(second.url, token) as other:
        # The caller reads its own write at the same server, and soon at every other one.
        job = client.jobs.submit({"command": ["sh", "-c", "echo from the job; sleep 60"], "gpus": 1})
        assert client.jobs.get(job["id"])["id"] == job["id"]
        wait_until(lambda: other.jobs.get(job["id"])["state"] == "running", "the job runs")
        wait_until(lambda: "from the job" in other.jobs.log(job["id"]), "the log is read from the files")
        roles = sorted((one["role"], one["alive"]) for one in other.system.servers()["items"])
        assert roles == [("leader", True), ("standby", True), ("standby", True)]

        changes = servers.changes()
        shell = Person(server=f"{leader.url},{second.url}", home=tmp_path, env={"CORRAL_TOKEN": token})
        leads = [
            one["name"] for one in shell.run("cluster", "servers", "-o", "json").document["items"] if one["leads_since"]
        ]
        assert leads == [f"{socket.gethostname()}-{leader.port}"]
        assert shell.run("leader", "step-down").code == 0
        wait_until(lambda: servers.changes() > changes and servers.leader() is not leader, "another server leads")
        assert client.jobs.get(job["id"])["state"] == "running"
        stopped = client.jobs.stop(job["id"])
        assert stopped["id"] == job["id"]
        wait_until(lambda: other.jobs.get(job["id"])["state"] == "stopped", "the new leader has stopped it")


def test_open_terminals_go_on_when_the_leader_is_killed(tmp_path: Path, servers: Servers) -> None:
    token = servers.start()
    leader = servers.leader()
    assert leader is not None
    # The leader first: all of them lose their connection.
    addresses = ",".join(one.url for one in (leader, *servers.others(leader)))
    shell = Person(server=addresses, home=tmp_path, env={"CORRAL_TOKEN": token})
    go = tmp_path / "go"
    # Numbers its lines without end, until it is allowed to fail.
    script = f'n=0; until [ -e "{go}" ]; do n=$((n+1)); echo "line $n"; sleep 0.1; done; echo "after $n"; exit 7'
    program = ("--gpus", "1", "--", "sh", "-c", script)
    with Client(addresses, token) as client:
        job = client.jobs.submit({"command": ["sh", "-c", script], "gpus": 1})["id"]
        files = {name: tmp_path / name for name in ("events", "logs", "wait", "run")}
        events = shell.fork("events", "-f", "-o", "json", out=files["events"])
        logs = shell.fork("logs", "-f", job, out=files["logs"])
        ended = [
            logs,
            shell.fork("submit", "--wait", *program, out=files["wait"]),
            shell.fork("run", *program, out=files["run"]),
        ]
        wait_until(lambda: len(list(client.jobs.list(states=["running"]))) == 3, "all three jobs run")
        wait_until(lambda: all("line 1" in files[name].read_text() for name in ("logs", "run")), "their output is read")
        wait_until(lambda: "job.running" in files["events"].read_text(), "the events are followed")
        changes = servers.changes()
        leader.kill()
        wait_until(lambda: servers.changes() > changes, "another server leads")
        go.touch()
        assert [process.wait(timeout=120) for process in ended] == [7, 7, 7]

        for name in ("logs", "run"):
            *lines, last = files[name].read_text().splitlines()
            assert lines == [f"line {number}" for number in range(1, len(lines) + 1)], "each line once, in order"
            assert last == f"after {len(lines)}"
        jobs = {one["id"] for one in client.jobs.list(states=["failed"])}
        assert len(jobs) == 3

    def heard() -> list[dict[str, Any]]:
        return [json.loads(line) for line in files["events"].read_text().splitlines(keepends=True) if line[-1] == "\n"]

    wait_until(lambda: jobs <= {one["subject"] for one in heard() if one["action"] == "job.failed"}, "ends are heard")
    numbers = [one["id"] for one in heard()]
    assert numbers == sorted(set(numbers)), "each event is heard once"
    events.terminate()
    events.wait(timeout=30)
