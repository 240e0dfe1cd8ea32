"""Sign-in over the wire: who is let in, for how long, and who never is."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator

import httpx
import pytest
from starlette.routing import WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from corral.server.http.app import bare_app
from corral.server.http.description.api_description import describe
from tests.integration.api import API, anonymous, api_server, problem
from tests.servers.corral_server import PASSWORD, CorralServer

#: Everything that answers without signing in. An addition needs a reason.
OPEN = {
    ("get", "/static/corral.css"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", f"{API}/healthz"),
    ("get", f"{API}/readyz"),
    ("get", f"{API}/auth/providers"),
    ("post", f"{API}/auth/login"),
}
#: The console's page at any address, and its files: they hold no data. 503 and 404 where it is not built.
CONSOLE = {("get", "/{path}"): (200, 503), ("get", "/assets/{name}"): (404,)}
#: The way in itself, to a provider and back. It answers strangers, but gives nothing away.
WAYS_IN = {
    ("get", f"{API}/auth/{{id}}/login"): 404,
    ("get", f"{API}/auth/{{id}}/callback"): 400,
    # only adds the slash; who may go on is asked there
    ("get", "/workbenches/{job}/jupyter"): 307,
    ("get", "/apps/{job}"): 307,
}


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as running:
        yield running


def sign_in(client: httpx.Client, user: str, password: str) -> str:
    """Sign in as a browser does; the CSRF token."""
    answer = client.post(f"{API}/auth/login", json={"user": user, "password": password})
    assert answer.status_code == 200, answer.text
    assert "token" not in answer.json()
    return str(answer.json()["csrf_token"])


def test_no_route_but_the_open_ones_answers_strangers(server: CorralServer) -> None:
    app = bare_app()
    sockets = [route for route in app.routes if isinstance(route, WebSocketRoute)]
    routes = {
        (method.lower(), route.path_format)  # type: ignore[attr-defined]
        for route in app.routes
        if route not in sockets
        for method in route.methods - {"HEAD"}  # type: ignore[attr-defined]
    }
    described = {(method, path) for path, entry in describe(app)["paths"].items() for method in entry}
    assert described <= routes
    assert len(routes) > 50
    with anonymous(server) as client:
        for method, path in sorted(routes - OPEN - WAYS_IN.keys() - CONSOLE.keys()):
            address = re.sub(r"\{\w+\}", "j-1", path)
            problem(client.request(method, address, json={} if method in ("post", "put", "patch") else None), 401)
            reported = problem(client.request(method, address, headers={"Authorization": "Bearer corral_wrong"}), 401)
            assert "token" in reported["detail"]
        for method, path in OPEN - {("post", f"{API}/auth/login")}:
            assert client.request(method, path).status_code == 200
        for (method, path), statuses in CONSOLE.items():
            answer = client.request(method, path, headers={"Accept": "text/html"})
            assert answer.status_code in statuses
            assert "set-cookie" not in answer.headers
        for (method, path), status in WAYS_IN.items():
            answer = client.request(method, path.replace("{id}", "lab"))
            assert answer.status_code == status
            assert "corral_session=" not in answer.headers.get("set-cookie", "")
    for route in sockets:
        address = re.sub(r"\{\w+\}", "j-1", route.path_format)
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{server.url.replace('http', 'ws', 1)}{address}")
        assert refused.value.response.status_code == 401


def test_a_browser_session_needs_the_csrf_token_for_changes_only(server: CorralServer) -> None:
    with anonymous(server) as browser:
        csrf = sign_in(browser, "ann", "password-of-ann")
        cookie = next(iter(browser.cookies.jar))
        assert cookie.name == "corral_session"
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "lax"
        me = browser.get(f"{API}/me").json()
        assert (me["name"], me["role"], me["csrf_token"]) == ("ann", "scientist", csrf)

        body = {"command": ["true"], "hold": True}
        assert problem(browser.post(f"{API}/jobs", json=body), 403)["type"] == "/problems/csrf"
        wrong = browser.post(f"{API}/jobs", json=body, headers={"X-CSRF-Token": "guess"})
        assert problem(wrong, 403)["type"] == "/problems/csrf"
        assert browser.post(f"{API}/jobs", json=body, headers={"X-CSRF-Token": csrf}).status_code == 201

        problem(browser.post(f"{API}/auth/logout"), 403)
        stolen = dict(browser.cookies)
        assert browser.post(f"{API}/auth/logout", headers={"X-CSRF-Token": csrf}).status_code == 204
    with httpx.Client(base_url=server.url, cookies=stolen) as thief:
        problem(thief.get(f"{API}/me"), 401)


def test_no_other_page_can_sign_its_visitors_in(server: CorralServer) -> None:
    """The attacker signs the victim in as a user of the attacker's choice, who then sees the victim's actions."""
    body = {"user": "ann", "password": "password-of-ann"}
    host = server.url.removeprefix("http://")
    with anonymous(server) as browser:
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://{host}.evil.example"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "cross-site", "Origin": server.url},
        ):
            answer = browser.post(f"{API}/auth/login", json=body, headers=headers)
            assert problem(answer, 403)["type"] == "/problems/other-origin", headers
            assert "set-cookie" not in answer.headers
        form = {"user": "ann", "password": "password-of-ann"}
        sent = json.dumps(body)
        for answer in (
            browser.post(f"{API}/auth/login", data=form),
            browser.post(f"{API}/auth/login", content=sent),
            browser.post(f"{API}/auth/login", content=sent, headers={"Content-Type": "text/plain"}),
            browser.post(f"{API}/auth/login", content=sent, headers={"Content-Type": "text/plain; application/json"}),
        ):
            assert problem(answer, 415)["type"] == "/problems/not-json"
            assert "set-cookie" not in answer.headers
        for headers in (
            {},
            {"Origin": server.url},
            {"Origin": server.url, "Sec-Fetch-Site": "same-origin"},
            # behind a proxy that asks under another name
            {"Origin": "https://gpu.example.org", "Sec-Fetch-Site": "same-origin"},
        ):
            assert browser.post(f"{API}/auth/login", json=body, headers=headers).status_code == 200, headers


def test_tokens_are_shown_once_kept_as_hashes_and_can_be_revoked(server: CorralServer) -> None:
    with server.http("ann") as http:
        made = http.post("/me/tokens", json={"name": "laptop", "expires_in_days": 1}).json()
        token = made["token"]
        assert re.fullmatch(r"corral_[0-9A-Za-z]{43}", token)
        listed = http.get("/me/tokens").json()["items"]
        assert made["id"] in [entry["id"] for entry in listed]
        assert all("token" not in entry for entry in listed)
        with sqlite3.connect(server.home / "corral.db") as store:
            assert token[7:] not in "\n".join(store.iterdump())
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{server.url}{API}/me", headers=bearer).json()["name"] == "ann"
        assert http.delete(f"/me/tokens/{made['id']}").status_code == 204
        problem(httpx.get(f"{server.url}{API}/me", headers=bearer), 401)
    with server.http("bob") as other:
        mine = other.get("/me/tokens").json()["items"][0]["id"]
    with server.http("ann") as http:
        problem(http.delete(f"/me/tokens/{mine}"), 404)


def test_a_disabled_user_is_out_at_once_and_stays_out(server: CorralServer) -> None:
    server.add_user("carl")
    with server.http("carl") as carl, server.http() as operator:
        assert carl.get("/me").status_code == 200
        assert operator.patch("/users/carl", json={"disabled": True}).json()["disabled"] is True
        problem(carl.get("/me"), 401)
        body = {"user": "carl", "password": "password-of-carl"}
        reported = problem(httpx.post(f"{server.url}{API}/auth/login", json=body), 401)
        assert reported["detail"] == "The user name or the password is wrong."


def test_scientists_cannot_do_operators_work(server: CorralServer) -> None:
    with server.http("ann") as ann:
        problem(ann.get("/users"), 403)
        problem(ann.post("/users", json={"name": "eve", "role": "operator"}), 403)
        problem(ann.patch("/users/ann", json={"role": "operator"}), 403)
        problem(ann.put("/users/ann/quota", json={}), 403)
        problem(ann.get("/users/bob/quota"), 403)
        assert ann.get("/users/ann/quota").status_code == 200
        problem(ann.post("/queues", json={"name": "mine-only"}), 403)
        node = ann.get("/nodes").json()["items"][0]["id"]
        problem(ann.post(f"/nodes/{node}/cordon"), 403)


def test_a_changed_password_ends_sessions_and_the_old_one_is_over(server: CorralServer) -> None:
    server.add_user("dora")
    with anonymous(server) as browser:
        csrf = sign_in(browser, "dora", "password-of-dora")
        change = {"old": "password-of-dora", "new": "a-better-password"}
        headers = {"X-CSRF-Token": csrf}
        before = dict(browser.cookies)
        assert browser.post(f"{API}/me/password", json=change, headers=headers).status_code == 204
        with httpx.Client(base_url=server.url, cookies=before) as elsewhere:
            problem(elsewhere.get(f"{API}/me"), 401)
        me = browser.get(f"{API}/me").json()
        assert me["name"] == "dora", "who changed it stays signed in"
        assert me["csrf_token"] not in (None, csrf)
        old = {"user": "dora", "password": "password-of-dora"}
        problem(browser.post(f"{API}/auth/login", json=old), 401)


def test_guessing_is_stopped_and_known_and_unknown_names_look_the_same() -> None:
    with api_server(users=("ann",)) as server, anonymous(server) as client:
        for user in ("ann", "absent"):
            body = {"user": user, "password": "a-wrong-guess"}
            reported = [problem(client.post(f"{API}/auth/login", json=body), 401)["detail"] for _ in range(5)]
            assert set(reported) == {"The user name or the password is wrong."}
            answer = client.post(f"{API}/auth/login", json=body)
            assert problem(answer, 429)["retry_after_seconds"] > 0
            assert 0 < int(answer.headers["Retry-After"]) <= 60
        right = {"user": "ann", "password": "password-of-ann"}
        problem(client.post(f"{API}/auth/login", json=right), 429)
        operator = {"user": "operator", "password": PASSWORD}
        assert client.post(f"{API}/auth/login", json=operator).status_code == 200
        assert "a-wrong-guess" not in server.log()
        assert "password-of-ann" not in server.log()


def test_the_first_start_prints_a_one_time_password_that_must_be_replaced() -> None:
    with api_server(CORRAL_BOOTSTRAP_PASSWORD="") as server, anonymous(server) as browser:
        lines = server.log().splitlines()
        place = next(n for n, line in enumerate(lines) if "one-time password" in line)
        password = lines[place + 1].strip()
        csrf = sign_in(browser, "operator", password)
        headers = {"X-CSRF-Token": csrf}
        assert browser.get(f"{API}/me").json()["must_change_password"] is True
        assert problem(browser.get(f"{API}/jobs"), 403)["type"] == "/problems/password-change-required"
        change = {"old": password, "new": "my-own-password"}
        assert browser.post(f"{API}/me/password", json=change, headers=headers).status_code == 204
        assert browser.get(f"{API}/me").json()["must_change_password"] is False
        assert browser.get(f"{API}/jobs").status_code == 200

        server.stop()
        server.start(CORRAL_BOOTSTRAP_PASSWORD="")
        assert server.log().count("one-time password") == 1
        # The password is nowhere but on the screen.
        with sqlite3.connect(server.home / "corral.db") as store:
            assert password not in "\n".join(store.iterdump())


def test_sign_ins_are_in_the_audit_log_with_their_addresses(server: CorralServer) -> None:
    with server.http() as operator:
        server.add_user("erin")
        events = operator.get("/events", params={"actor": "erin"}).json()["items"]
    assert [(event["action"], event["source"]) for event in events] == [("token.created", "127.0.0.1")]
