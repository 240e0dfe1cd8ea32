"""Three servers over one PostgreSQL, under a load of submits, stops and reads, while their leader changes.

Used by the story of the failover, and by `scripts/failover-drill` for many changes.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer, plain_http
from tests.servers.cut_off import CutOff
from tests.servers.drill import Witness, all_jobs
from tests.servers.postgres import PostgresServer

GPUS = "--virtual-nodes=2x16xA100-80G"
ENDED = ("completed", "failed", "stopped")
#: A server that does not answer within this time is not asked further.
TIMEOUT_SECONDS = 4.0
READS = ("/jobs?limit=20", "/jobs:counts", "/overview", "/nodes", "/queues", "/events?limit=5", "/me", "/servers")


def api(server: CorralServer, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return plain_http(f"{server.url}/api/v1", headers=headers, timeout=TIMEOUT_SECONDS)


class Servers:
    """Servers with one home and one database; which one leads, the database says."""

    def __init__(
        self,
        home: Path,
        postgres: PostgresServer,
        count: int = 3,
        *,
        replica: PostgresServer | None = None,
        cut_off: CutOff | None = None,
    ) -> None:
        """Creates the servers. With `cut_off`, the first server is there, and the databases must listen there; both are
        in the address of the store if there is a `replica`.
        """
        self.postgres = postgres
        self.database = postgres.create_database()
        self.url = postgres.url(self.database)
        self.replica, self.cut_off = replica, cut_off
        if cut_off is not None:
            databases = [postgres] if replica is None else [postgres, replica]
            hosts, ports = ",".join(cut_off.database for _ in databases), ",".join(str(one.port) for one in databases)
            place = f"host={hosts}&port={ports}&target_session_attrs=read-write"
            self.url = f"postgresql://corral@/{self.database}?{place}"
        self.all = [CorralServer(home, GPUS) for _ in range(count)]
        if cut_off is not None:
            first = CorralServer(home, GPUS, "--host", cut_off.address, program=cut_off.program)
            first.url = f"http://{cut_off.address}:{first.port}"
            self.all[0] = first
        self._environment = {"CORRAL_DATABASE": self.url, "CORRAL_HIGH_AVAILABILITY": "true"}

    def start(self) -> str:
        """All of them; the first one leads. A token that every one knows."""
        for number, server in enumerate(self.all):
            self.start_one(server)
            if not number:
                wait_until(lambda: self.leader() is not None, "one leads")
        wait_until(lambda: self._signs_in(self.all[-1]), "sign-in works at every server")
        return self.all[-1].token()

    def start_one(self, server: CorralServer, *, wait: bool = True) -> None:
        server.start(self._environment, wait=wait)

    def clients(self, token: str) -> list[httpx.Client]:
        return [api(one, token) for one in self.all]

    def row(self, statement: str) -> tuple[Any, ...]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(statement.encode()).fetchone()
        assert found is not None
        return found

    def leader(self) -> CorralServer | None:
        """The leader; None while no server leads, or the leader is dead."""
        found = self.row("SELECT coalesce((SELECT server FROM leases), '')")[0]
        return next((one for one in self.all if one.is_running and found.endswith(f"-{one.port}")), None)

    def changes(self) -> int:
        return int(self.row("SELECT changes FROM leases")[0])

    def others(self, server: CorralServer) -> list[CorralServer]:
        return [one for one in self.all if one is not server and one.is_running]

    def stop(self) -> None:
        for server in self.all:
            if server.is_running:
                assert server.process is not None
                server.process.send_signal(signal.SIGCONT)
            server.kill()

    def _signs_in(self, server: CorralServer) -> bool:
        try:
            return bool(server.token())
        except httpx.HTTPStatusError:
            return False


class Reader(threading.Thread):
    """Reads at random servers. A read that fails is repeated once, at the next server, after the time that the answer
    names."""

    def __init__(self, servers: Servers, token: str, rng: random.Random) -> None:
        super().__init__(name="reader", daemon=True)
        self.reads = 0
        self.repeated = 0
        self.failed: list[str] = []
        self._servers, self._rng = servers, rng
        self._token = token
        self._ending = threading.Event()

    def run(self) -> None:
        clients = self._servers.clients(self._token)
        while not self._ending.wait(0.02):
            path, place = self._rng.choice(READS), self._rng.randrange(len(clients))
            self.reads += 1
            trouble, pause = self._read(clients[place], path)
            if not trouble:
                continue
            self.repeated += 1
            self._ending.wait(pause)
            # As the command line does: an address at which no server listens is no try.
            again = ""
            for step in (1, 2):
                again, _ = self._read(clients[(place + step) % len(clients)], path)
                if "ConnectError" not in again:
                    break
            if again:
                self.failed.append(f"{path}: {trouble}; then {again}")
        for client in clients:
            client.close()

    def end(self) -> None:
        self._ending.set()
        self.join(timeout=30)

    def _read(self, client: httpx.Client, path: str) -> tuple[str, float]:
        """The error of an answer, and how long to wait."""
        try:
            answer = client.get(path)
        except httpx.TransportError as error:
            return f"{client.base_url}: {error!r}", 0.0
        if answer.is_success:
            return "", 0.0
        pause = float(answer.headers.get("Retry-After", "0"))
        return f"{client.base_url}: {answer.status_code} {answer.text[:200]}", pause


class Load(threading.Thread):
    """Submits and stops at one server. What is cut off may have happened or not."""

    def __init__(self, server: CorralServer, token: str, witness: Witness, rng: random.Random) -> None:
        super().__init__(name=f"load-{server.port}", daemon=True)
        self.accepted: list[str] = []
        self.refused: Counter[str] = Counter()
        self._client, self._witness, self._rng = api(server, token), witness, rng
        self._ending = threading.Event()

    def run(self) -> None:
        while not self._ending.wait(self._rng.choice((0.05, 0.15, 0.3))):
            try:
                self._act(self._client)
            except httpx.TransportError as error:
                self.refused[type(error).__name__] += 1
        self._client.close()

    def end(self) -> None:
        self._ending.set()
        self.join(timeout=30)

    def _act(self, client: httpx.Client) -> None:
        if self.accepted and self._rng.random() < 0.15:
            client.post(f"/jobs/{self._rng.choice(self.accepted[-30:])}/stop")
            return
        seconds = self._rng.choice((0.1, 0.5, 2.0, 6.0))
        body = {"command": self._witness.command(seconds), "gpus": self._rng.choice((0.5, 1, 2)), "grace": "1s"}
        answer = client.post("/jobs", json={**body, "time": "10m"})
        if answer.status_code == 201:
            self.accepted.append(answer.json()["id"])
        else:
            self.refused[str(answer.status_code)] += 1


class Failover:
    """Changes the leader in several ways, and measures the time until the next placement."""

    def __init__(self, servers: Servers, witness: Witness, rng: random.Random, token: str) -> None:
        self.servers = servers
        self.witness = witness
        # One for each server: a server that does not answer delays the submits at that server only.
        self.loads = [Load(one, token, witness, random.Random(rng.random())) for one in servers.all]
        self.reader = Reader(servers, token, random.Random(rng.random()))
        #: seconds until the next placement, by the way in which the leader was lost
        self.took: dict[str, list[float]] = {}
        self._token = token

    def start(self) -> None:
        for one in (*self.loads, self.reader):
            one.start()
        wait_until(lambda: len(self.accepted()) > 5, "jobs are accepted")

    def accepted(self) -> list[str]:
        return [job_id for load in self.loads for job_id in load.accepted]

    def kill(self) -> None:
        """The leader dies; it is started again when another one leads."""
        former = self._leader()
        self._lose("kill -9", former.kill)
        self.servers.start_one(former)

    def freeze(self) -> None:
        """The leader stops, another one leads, and then the former one goes on."""
        former = self._leader()
        assert former.process is not None
        process = former.process
        self._lose("SIGSTOP", lambda: process.send_signal(signal.SIGSTOP))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: self._stands_by(former), "the former leader stands by", 240)

    def step_down(self) -> None:
        former = self._leader()
        self._lose("step-down", lambda: self._post(former, "/servers:step-down"))
        wait_until(lambda: self._stands_by(former), "the former leader stands by", 240)

    def can_cut(self) -> bool:
        return self.servers.cut_off is not None and self._leader() is self.servers.all[0]

    def cut(self) -> None:
        """The leader, which must be the one that can be cut off, loses the database and nothing else. Then it is
        connected again."""
        former, cut_off = self._leader(), self.servers.cut_off
        assert cut_off is not None
        assert former is self.servers.all[0]
        self._lose("network cut", cut_off.cut)
        cut_off.mend()
        wait_until(lambda: self._stands_by(former), "the former leader stands by", 240)

    def fail_over_database(self) -> None:
        """The database dies, and its copy takes over. Reads that need it fail meanwhile: the reader must have ended."""
        replica = self.servers.replica
        assert replica is not None
        self.servers.postgres.kill()
        replica.promote()
        before, began = self._last_event(), time.time()
        self._note("PostgreSQL fail-over", began, before)

    def restart_database(self) -> None:
        """Mostly the leader stays the same."""
        before = self._last_event()
        began = time.time()
        self.servers.postgres.restart()
        self._note("PostgreSQL restart", began, before)

    def end(self) -> dict[str, dict[str, Any]]:
        """End the load; all jobs, when they have ended."""
        for load in self.loads:
            load.end()
        self.reader.end()
        wait_until(lambda: not self._unfinished(), "every job ends", 300)
        with self._http(self._leader()) as http:
            return all_jobs(http)

    def lost(self, jobs: dict[str, dict[str, Any]]) -> list[str]:
        """Jobs that were accepted and are gone, or completed without having run."""
        ran = {name.partition(".")[0] for name in self.witness.of("completed")}
        untrue = [job_id for job_id, job in jobs.items() if job["state"] == "completed" and job_id not in ran]
        return sorted({*self.accepted()} - {*jobs}) + untrue

    def _leader(self) -> CorralServer:
        wait_until(lambda: self.servers.leader() is not None, "one leads", 120)
        found = self.servers.leader()
        assert found is not None
        return found

    def _lose(self, way: str, lose: Callable[[], None]) -> None:
        changes, before, began = self.servers.changes(), self._last_event(), time.time()
        lose()
        wait_until(lambda: self.servers.changes() > changes, f"another server leads after {way}", 120)
        self._note(way, began, before)

    def _note(self, way: str, began: float, before: int) -> None:
        """The time until the first placement after the event, which is recorded with its time."""
        planned = f"SELECT min(at) FROM events WHERE action = 'job.planned' AND id > {before} AND at > {began}"
        if not way.startswith("PostgreSQL"):
            # Not a placement of the former leader that was committed in the same moment.
            planned += " AND at > (SELECT since FROM leases)"
        wait_until(lambda: self.servers.row(planned)[0] is not None, f"a job starts after {way}", 120)
        self.took.setdefault(way, []).append(float(self.servers.row(planned)[0]) - began)

    def _last_event(self) -> int:
        return int(self.servers.row("SELECT coalesce(max(id), 0) FROM events")[0])

    def _stands_by(self, server: CorralServer) -> bool:
        if not server.is_running:
            return False
        try:
            with self._http(server) as http:
                roles = {one["pid"]: one["role"] for one in http.get("/servers").raise_for_status().json()["items"]}
                assert server.process is not None
                return roles.get(server.process.pid) == "standby" and http.get("/readyz").is_success
        except httpx.HTTPError:
            return False

    def _unfinished(self) -> bool:
        placeholders = ", ".join(f"'{state}'" for state in ENDED)
        return bool(self.servers.row(f"SELECT count(*) FROM jobs WHERE state NOT IN ({placeholders})")[0])

    def _http(self, server: CorralServer) -> httpx.Client:
        return api(server, self._token)

    def _post(self, server: CorralServer, path: str) -> None:
        """Sends a request until it is accepted: the store may have been unavailable a moment before."""
        with self._http(server) as http:
            wait_until(lambda: http.post(path).is_success, f"{path} is accepted")
