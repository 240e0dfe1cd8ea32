"""Two servers over a real Kubernetes: the leader is killed, and frozen, while jobs run, write and are watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.kubernetes_server import clean_up, pods_of, server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.failover import Servers
from tests.servers.kubernetes.access import KubernetesAccess
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CORRAL = str(Path(sys.executable).parent / "corral")
COUNT = "n=0; while :; do n=$((n+1)); echo line $n; sleep 0.2; done"


@pytest.fixture
def servers(
    kubernetes_access: KubernetesAccess, postgres_server: PostgresServer, tmp_path: Path
) -> Iterator[tuple[Servers, str]]:
    first = server_on(kubernetes_access, tmp_path / "corral")
    both = Servers(first.home, postgres_server, 0)
    both.all = [first, CorralServer(first.home, "--config", str(first.home / "corral.yaml"))]
    token = both.start()
    yield both, token
    both.stop()
    clean_up(kubernetes_access, first)


def shell(server: CorralServer, token: str, job: str) -> str:
    """The output of a command in the job."""
    environment = {**os.environ, "CORRAL_SERVER": server.url, "CORRAL_TOKEN": token}
    words = [CORRAL, "shell", job, "--", "sh", "-c", 'echo "$CORRAL_ATTEMPT_ID"']
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.strip() or done.stderr


def test_jobs_logs_and_shells_survive_leaders(
    servers: tuple[Servers, str], kubernetes_access: KubernetesAccess
) -> None:
    both, token = servers
    old = both.leader()
    assert old is not None
    (standby,) = both.others(old)
    (http,) = [client for one, client in zip(both.all, both.clients(token), strict=True) if one is standby]
    body = {"command": ["sh", "-c", COUNT], "time": "10m", "grace": "1s"}
    jobs = [http.post("/jobs", json=body).raise_for_status().json()["id"] for _ in range(3)]

    def all_run() -> bool:
        return all(http.get(f"/jobs/{job}").json()["state"] == "running" for job in jobs)

    def lines(job: str) -> list[str]:
        return [line for line in http.get(f"/jobs/{job}/logs").text.splitlines() if line.startswith("line ")]

    def write_on() -> None:
        before = {job: len(lines(job)) for job in jobs}
        wait_until(lambda: all(len(lines(job)) > before[job] + 5 for job in jobs), "their logs go on", 60)

    wait_until(all_run, "they run", 120)
    pods = {job: [pod["metadata"]["uid"] for pod in pods_of(kubernetes_access, old, job)] for job in jobs}
    # Through the standby, which has no engines.
    assert shell(standby, token, jobs[0]) == f"{jobs[0]}.1"
    write_on()

    old.kill()
    wait_until(lambda: both.leader() is standby, "the other one leads", 60)
    write_on()
    assert shell(standby, token, jobs[0]) == f"{jobs[0]}.1"

    both.start_one(old)
    assert standby.process is not None
    standby.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: both.leader() is old, "the first one leads again", 60)
    standby.process.send_signal(signal.SIGCONT)
    (http,) = [client for one, client in zip(both.all, both.clients(token), strict=True) if one is old]
    write_on()

    assert all_run()
    for job in jobs:
        assert [pod["metadata"]["uid"] for pod in pods_of(kubernetes_access, old, job)] == pods[job]
        written = lines(job)
        assert written == [f"line {number}" for number in range(1, len(written) + 1)]
        http.post(f"/jobs/{job}/stop").raise_for_status()
    wait_until(lambda: not any(pods_of(kubernetes_access, old, job) for job in jobs), "their pods are gone", 60)
