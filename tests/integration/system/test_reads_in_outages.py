"""Three servers over one PostgreSQL, held in each state in which a server cannot answer a read at once: a caller that
repeats its read once, at the next server and after the time that the answer names, gets it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.failover import READS, Servers
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)


class Callers:
    """A user at each server. They wait longer for an answer than any server takes."""

    def __init__(self, servers: Servers, token: str) -> None:
        self.servers = servers
        headers = {"Authorization": f"Bearer {token}"}
        self._clients = {
            one.port: httpx.Client(base_url=f"{one.url}/api/v1", headers=headers, timeout=15.0, trust_env=False)
            for one in servers.all
        }

    def read(self, server: CorralServer, path: str) -> httpx.Response:
        return self._clients[server.port].get(path)

    def change(self, server: CorralServer) -> httpx.Response:
        body = {"command": ["true"], "time": "1m"}
        return self._clients[server.port].post("/jobs", json=body, timeout=60.0)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@pytest.fixture
def callers(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Callers]:
    servers = Servers(tmp_path / "home", postgres_server)
    made = Callers(servers, servers.start())
    yield made
    made.close()
    servers.stop()
    postgres_server.drop_database(servers.database)


def pause_of(refused: httpx.Response) -> float:
    assert refused.status_code == 503, refused.text
    return float(refused.headers["Retry-After"])


def test_reads_are_refused_with_a_time_while_the_database_is_silent(callers: Callers) -> None:
    """A server that starts meanwhile takes no connection that it could not serve."""
    servers = callers.servers
    leader = servers.leader()
    assert leader is not None
    starting = servers.others(leader)[0]
    refused = []
    with servers.postgres.frozen():
        starting.kill()
        servers.start_one(starting, wait=False)
        for server in servers.others(starting):
            # What a server has in memory is answered; what needs the store is not waited for.
            answers = [callers.read(server, path) for path in READS]
            refused += [(server, path) for path, one in zip(READS, answers, strict=True) if not one.is_success]
            assert all(pause_of(one) >= 1 for one in answers if not one.is_success)
        # While it asks the database for the first time, there is nothing to connect to.
        with suppress(httpx.ConnectError):
            assert pause_of(callers.read(starting, READS[0])) >= 1
    assert refused
    wait_until(lambda: servers.leader() is not None, "one leads again")
    for server, path in refused:
        later = next(one for one in servers.others(server) if one is not starting)
        assert callers.read(later, path).is_success
    starting.wait_ready()


def test_no_read_is_refused_while_the_database_restarts(callers: Callers) -> None:
    servers = callers.servers
    restarted = threading.Event()
    failed: list[str] = []
    reads = 0

    def restart() -> None:
        servers.postgres.restart()
        restarted.set()

    thread = threading.Thread(target=restart)
    thread.start()
    while not restarted.is_set() or reads < 2 * len(READS):
        server, path = servers.all[reads % 3], READS[reads % len(READS)]
        reads += 1
        answer = callers.read(server, path)
        if not answer.is_success:
            time.sleep(pause_of(answer))
            answer = callers.read(servers.all[(reads + 1) % 3], path)
        if not answer.is_success:
            failed.append(f"{path}: {answer.status_code} {answer.text}")
    thread.join()
    assert failed == []


def test_a_change_that_waits_for_a_frozen_leader_is_given_up_when_its_own_server_leads(callers: Callers) -> None:
    servers = callers.servers
    leader = servers.leader()
    assert leader is not None
    assert leader.process is not None
    answers: dict[int, httpx.Response] = {}
    leader.process.send_signal(signal.SIGSTOP)
    try:
        others = servers.others(leader)

        def ask(server: CorralServer) -> None:
            answers[server.port] = callers.change(server)

        changes = [threading.Thread(target=ask, args=(one,)) for one in others]
        for change in changes:
            change.start()
        for change in changes:
            change.join()
        assert len(answers) == len(others), "none waits for the frozen leader"
        assert {answer.status_code for answer in answers.values()} <= {201, 503}, answers
        assert all(pause_of(answer) >= 1 for answer in answers.values() if answer.status_code == 503)
        wait_until(lambda: all(callers.read(one, "/jobs:counts").is_success for one in others), "reads go on")
        wait_until(lambda: callers.change(others[0]).status_code == 201, "changes go on")
    finally:
        leader.process.send_signal(signal.SIGCONT)
