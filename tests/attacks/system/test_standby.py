"""Against a server that stands by: it must refuse what the leader refuses, and no caller may pass for another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.authorisation_table import EXPECTED
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer, plain_http
from tests.servers.failover import Servers
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)

MARK = "X-Corral-Forwarded"
#: An address of this machine, but not the one that the servers trust as a proxy, and use among themselves.
ELSEWHERE = "127.0.0.2"
CLAIMED = "203.0.113.77"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    servers: Servers
    leader: CorralServer
    standby: CorralServer
    token: str

    def http(self, server: CorralServer, token: str = "", *, address: str = "127.0.0.1") -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, transport=transport, timeout=30)

    def operator(self, server: CorralServer) -> httpx.Client:
        return self.http(server, self.token)

    def new_token(self, name: str, **body: Any) -> dict[str, Any]:
        with self.operator(self.leader) as http:
            made = http.post("/me/tokens", json={"name": name, **body}).raise_for_status().json()
        assert isinstance(made, dict)
        return made

    def secrets(self) -> set[str]:
        return {str(self.servers.row(f"SELECT {column} FROM servers LIMIT 1")[0]) for column in ("key", "session")}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer) -> Iterator[Pair]:
    home: Path = tmp_path_factory.mktemp("pair") / "home"
    home.mkdir()
    # A proxy on the same machine, as in the manual: the servers' own address is a trusted one.
    (home / "corral.yaml").write_text("server: {trusted_proxies: [127.0.0.1]}\n")
    servers = Servers(home, postgres_server, 2)
    try:
        token = servers.start()
        leader = servers.leader()
        assert leader is not None
        (standby,) = servers.others(leader)
        yield Pair(servers=servers, leader=leader, standby=standby, token=token)
    finally:
        servers.stop()
        postgres_server.drop_database(servers.database)


def test_no_route_of_a_standby_is_open_that_the_leader_closes(pair: Pair) -> None:
    """Every route of the table: strangers and tokens that may only read get the same refusals at both servers."""
    small = pair.new_token("small", scopes=["read"])["token"]
    compared = 0
    with pair.http(pair.leader) as leader, pair.http(pair.standby) as standby:
        for (method, path), row in EXPECTED.items():
            for role, secret in (("stranger", ""), ("small", small)):
                if row["stranger"] != "401" or (role == "small" and (method == "GET" or row["small"] != "403")):
                    continue
                address = path.replace("{job}", "j-1").replace("{", "").replace("}", "")
                headers = {"Authorization": f"Bearer {secret}"} if secret else {}
                body: dict[str, Any] | None = {} if method in ("POST", "PUT", "PATCH") else None
                answers = [one.request(method, address, json=body, headers=headers) for one in (leader, standby)]
                assert [one.status_code for one in answers] == [int(row[role])] * 2, f"{method} {path} as {role}"
                compared += 1
    assert compared > 300


class Listener(threading.Thread):
    """Follows the event stream of a server until the server ends it."""

    def __init__(self, pair: Pair, server: CorralServer, token: str) -> None:
        super().__init__(name="listener", daemon=True)
        self._pair, self._server, self._token = pair, server, token
        self.opened, self.ended = threading.Event(), threading.Event()
        self.start()
        assert self.opened.wait(60)

    def run(self) -> None:
        with self._pair.http(self._server, self._token) as http, http.stream("GET", "/stream") as answer:
            for _ in answer.iter_lines():
                self.opened.set()
        self.ended.set()

    def must_end(self) -> None:
        assert self.ended.wait(60), "the stream goes on although its token was revoked"
        self.join(timeout=30)


def test_a_token_that_was_revoked_at_the_leader_is_refused_by_the_standby_and_ends_its_stream(pair: Pair) -> None:
    made = pair.new_token("to be revoked")
    listener = Listener(pair, pair.standby, made["token"])
    with pair.http(pair.standby, made["token"]) as revoked, pair.operator(pair.leader) as operator:
        assert revoked.get("/me").is_success
        operator.delete(f"/me/tokens/{made['id']}").raise_for_status()
        wait_until(lambda: revoked.get("/me").status_code == 401, "the standby refuses the token")
        assert revoked.get("/jobs").status_code == 401
        assert revoked.post("/jobs", json={"command": ["true"]}).status_code == 401
        # The next event that the caller might have seen ends it at the latest.
        operator.post("/jobs", json={"command": ["true"], "hold": True}).raise_for_status()
    listener.must_end()


def test_a_user_who_was_disabled_at_the_leader_is_refused_by_the_standby(pair: Pair) -> None:
    with pair.operator(pair.leader) as operator, pair.http(pair.standby) as standby:
        operator.post("/users", json={"name": "mallory", "password": "password-of-mallory"}).raise_for_status()
        body = {"user": "mallory", "password": "password-of-mallory", "token_name": "test"}
        token = standby.post("/auth/login", json=body).raise_for_status().json()["token"]
        standby.headers["Authorization"] = f"Bearer {token}"
        assert standby.get("/me").is_success
        assert standby.get("/servers").status_code == 403
        operator.patch("/users/mallory", json={"disabled": True}).raise_for_status()
        wait_until(lambda: standby.get("/me").status_code == 401, "the standby refuses the user")


@pytest.mark.parametrize("at", ["leader", "standby"])
def test_no_caller_can_claim_another_address(pair: Pair, at: str) -> None:
    """Neither by the header of reverse proxies nor by that of the servers: the audit log has the real address, and so
    have the pauses after wrong passwords."""
    server = pair.leader if at == "leader" else pair.standby
    name = pair.servers.row("SELECT name FROM servers LIMIT 1")[0]
    forged = [
        {"X-Forwarded-For": CLAIMED, "X-Real-IP": CLAIMED, "Forwarded": f"for={CLAIMED}"},
        {MARK: f"{name} {'0' * 32} {CLAIMED}"},
        {MARK: f"{name}  {CLAIMED}"},
    ]
    with pair.http(server, address=ELSEWHERE) as http:
        for number, headers in enumerate(forged):
            body = {"user": "operator", "password": PASSWORD, "token_name": f"{at} {number}"}
            answer = http.post("/auth/login", json=body, headers=headers)
            # A standby forwards nothing that claims to be forwarded already.
            assert answer.status_code == (503 if at == "standby" and MARK in headers else 200), answer.text
    sources = pair.servers.row("SELECT string_agg(DISTINCT source, ' ') FROM events")[0].split()
    assert CLAIMED not in sources
    assert ELSEWHERE in sources


def test_a_session_needs_its_csrf_token_and_an_own_page_at_the_standby_too(pair: Pair) -> None:
    with plain_http(f"{pair.standby.url}/api/v1") as browser:
        signed = browser.post("/auth/login", json={"user": "operator", "password": PASSWORD}).raise_for_status().json()
        csrf = {"X-CSRF-Token": signed["csrf_token"]}
        job = {"command": ["true"], "hold": True}
        assert browser.post("/jobs", json=job).status_code == 403
        assert browser.post("/jobs", json=job, headers={"X-CSRF-Token": "guess"}).status_code == 403
        for foreign in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert browser.post("/jobs", json=job, headers={**csrf, **foreign}).status_code == 403
            assert browser.get("/jobs", headers=foreign).status_code == 403
        own = {**csrf, "Origin": pair.standby.url}
        assert browser.post("/jobs", json=job, headers=own).status_code == 201


def test_the_keys_of_the_servers_are_never_shown(pair: Pair) -> None:
    texts = []
    for server in (pair.leader, pair.standby):
        with pair.operator(server) as http:
            for path in ("/servers", "/settings", "/about", "/nodes", "/events?limit=100"):
                answer = http.get(path)
                texts.append(f"{answer.headers}{answer.text}")
    texts.append(pair.leader.log())
    assert not [secret for secret in pair.secrets() for text in texts if secret in text]


#: Answers with the headers of the request.
ECHO = """
import http.server, os
class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(self.headers).encode())
http.server.HTTPServer(("127.0.0.1", int(os.environ["CORRAL_APP_PORT"])), Echo).serve_forever()
"""


def test_the_key_of_a_server_does_not_reach_the_program_of_a_job(pair: Pair) -> None:
    """A page of an app that is opened at the standby goes through both servers: with the key the program could send
    requests under any address, past the pauses after wrong passwords."""
    with pair.operator(pair.leader) as http:
        job = http.post("/jobs", json={"command": ["python3", "-c", ECHO], "port": 0}).raise_for_status().json()["id"]
    headers = {"Authorization": f"Bearer {pair.token}", "X-Visit": "from the standby"}

    def page() -> httpx.Response:
        return httpx.get(f"{pair.standby.url}/apps/{job}/", headers=headers, timeout=30)

    wait_until(lambda: page().status_code == 200, "the app answers")
    shown = page().text
    assert "from the standby" in shown
    assert MARK.lower() not in shown.lower()
    assert not [secret for secret in pair.secrets() if secret in shown]


def test_a_stream_from_before_a_take_over_ends_with_its_token_too(pair: Pair) -> None:
    """The last test of this module: the leader is gone then."""
    made = pair.new_token("from before")
    listener = Listener(pair, pair.standby, made["token"])
    changes = pair.servers.changes()
    pair.leader.kill()
    wait_until(lambda: pair.servers.changes() > changes, "the standby leads")
    with pair.operator(pair.standby) as operator:
        wait_until(lambda: operator.delete(f"/me/tokens/{made['id']}").is_success, "the token is revoked", 120)
        operator.post("/jobs", json={"command": ["true"], "hold": True}).raise_for_status()
    listener.must_end()
