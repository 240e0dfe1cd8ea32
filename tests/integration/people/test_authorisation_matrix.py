"""Authorisation: every kind of caller tries every route of the API's description, compared with one table.

A route that is not in the table fails, so that every new route needs a decision about who may use it.
"""

from __future__ import annotations

import base64
import itertools
import re
import secrets
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from corral.server.http.app import bare_app
from corral.server.http.description.api_description import describe
from tests.integration.api import API, api_server, problem
from tests.integration.authorisation_table import EXPECTED
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer, plain_http

pytestmark = pytest.mark.slow

#: Those who must find a thing untouched come before those who may change it.
ORDER = ("stranger", "disabled", "expired", "small", "other", "operator", "owner")
#: What a token of scope `jobs` may change besides jobs and tasks: itself.
ALSO_WITH_JOBS = {("POST", "/auth/logout"), ("POST", "/auth/login")}

_numbers = itertools.count()


def public_key() -> str:
    fields = (b"ssh-ed25519", secrets.token_bytes(32))
    blob = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


#: Bodies that are valid; every other route gets an empty object.
BODIES: dict[tuple[str, str], Callable[[], Any]] = {
    ("PUT", "/me/first-steps"): lambda: {"dismissed": False},
    ("POST", "/me/inbox/read"): lambda: {"until": 0},
    ("PUT", "/me/inbox/settings"): lambda: {"muted": []},
    ("POST", "/jobs"): lambda: {"command": ["true"], "hold": True},
    ("POST", "/jobs:batch"): lambda: {"jobs": [{"command": ["true"], "hold": True}]},
    ("POST", "/jobs:array"): lambda: {
        "name": f"array{next(_numbers)}",
        "array": "0-1",
        "command": ["true"],
        "hold": True,
    },
    ("POST", "/jobs:stop"): lambda: {"array": "no-such-array"},
    ("POST", "/jobs/{job}/clone"): lambda: {"hold": True},
    ("POST", "/jobs:plan"): lambda: {"command": ["true"]},
    ("PATCH", "/jobs/{job}"): lambda: {"priority": 7},
    ("POST", "/presets"): lambda: {"yaml": "name: mine\ncommand: [x]\n"},
    ("POST", "/presets/{preset}/run"): lambda: {"overrides": {"hold": True}},
    ("POST", "/jobs/{job}/move"): lambda: {"before": "j-1"},
    ("POST", "/jobs/{job}/resize"): lambda: {"gpus": 2},
    ("POST", "/jobs/{job}/resize:plan"): lambda: {"gpus": 2},
    ("POST", "/me/ssh-keys"): lambda: {"name": f"key {next(_numbers)}", "public_key": public_key()},
    ("POST", "/images"): lambda: {"name": f"image-{next(_numbers)}", "address": "registry.example.org/x:1"},
    ("POST", "/volumes"): lambda: {"name": f"volume-{next(_numbers)}", "type": "block", "size": "1MiB"},
    ("PATCH", "/volumes/{volume}"): lambda: {"size": "2MiB"},
    ("PUT", "/volumes/{volume}/shares"): lambda: {"shares": []},
    ("POST", "/volumes/{volume}/uploads"): lambda: {"path": "x", "size": 1},
    ("POST", "/volumes/{volume}/uploads/{upload}/complete"): lambda: {"checksum": "0" * 64},
    ("PUT", "/registry-logins/{login}"): lambda: {"registry": "h.example.org", "username": "ann", "secret": "s"},
    ("PUT", "/secrets/{secret}"): lambda: {"value": "hush"},
    ("POST", "/datasets"): lambda: {"name": f"set-{next(_numbers)}"},
    ("PATCH", "/datasets/{dataset}"): lambda: {"description": "about"},
    ("PUT", "/datasets/{dataset}/shares"): lambda: {"shares": []},
    ("PUT", "/datasets/{dataset}/tags/{tag}"): lambda: {"version": "latest"},
    ("POST", "/datasets/{dataset}/commits"): lambda: {"tree": "0" * 64},
    ("POST", "/datasets/{dataset}/objects:missing"): lambda: {"ids": ["0" * 64]},
    ("POST", "/datasets/{dataset}/versions/{version}/objects:lengths"): lambda: {"ids": []},
    ("POST", "/datasets/{dataset}/versions/{version}/objects:read"): lambda: {"ids": []},
    ("POST", "/me/tokens"): lambda: {"name": "one more"},
    ("POST", "/me/password"): lambda: {"old": "a wrong guess", "new": "a long new password"},
    ("POST", "/workbenches"): lambda: {"name": f"bench-{next(_numbers)}", "hold": True},
    ("POST", "/quotas:batch"): lambda: {"users": ["nobody"], "quota": {}},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class House:
    """One server with everybody in it."""

    server: CorralServer
    tokens: dict[str, str]
    client: httpx.Client
    node: str

    def request(self, role: str, method: str, path: str, *, token: str | None = None, body: Any = None) -> int:
        secret = token or self.tokens[role]
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        sent = {} if body is None and method in ("POST", "PUT", "PATCH") else body
        # Opened and left: the answer of /stream never ends.
        with self.client.stream(method, f"{API}{path}", headers=headers, json=sent) as answer:
            return answer.status_code

    def owners(self, method: str, path: str, body: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.tokens['owner']}"}
        answer = self.client.request(method, f"{API}{path}", headers=headers, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def address(self, path: str) -> str:
        """The path with the things that it is about: new ones of the owner's each time, or what is not there."""
        if "{job}" in path:
            state = {"hold": not path.endswith("/stop")}
            body = {"command": ["sleep", "600"] if path.endswith("/stop") else ["true"], **state}
            query = "?q=x" if path.endswith("/search") else ""
            path = path.replace("{kind}/{share}", "group/nowhere")
            return path.replace("{job}", self.owners("POST", "/jobs", body)["id"]) + query
        if "{workbench}" in path:
            body = {"name": f"bench-{next(_numbers)}", "hold": True}
            return path.replace("{workbench}", self.owners("POST", "/workbenches", body)["id"])
        if "{image}" in path:
            body = BODIES["POST", "/images"]()
            return path.replace("{image}", self.owners("POST", "/images", body)["name"])
        if "{volume}" in path:
            body = BODIES["POST", "/volumes"]()
            query = "?path=x" if "/files" in path else ""
            path = path.replace("{upload}", "0" * 32).replace("{part}", "0") + query
            return path.replace("{volume}", self.owners("POST", "/volumes", body)["id"])
        if "{dataset}" in path:
            made = self.owners("POST", "/datasets", BODIES["POST", "/datasets"]())["id"]
            path = path.replace("{dataset}", made).replace("{pack}", "0" * 64 + "?index_bytes=1")
            return re.sub(r"\{\w+\}", "nowhere", path) + ("?path=x" if path.endswith("/content") else "")
        if "{login}" in path:
            body = BODIES["PUT", "/registry-logins/{login}"]()
            return path.replace("{login}", self.owners("PUT", f"/registry-logins/l-{next(_numbers)}", body)["name"])
        if "{secret}" in path:
            body = BODIES["PUT", "/secrets/{secret}"]()
            return path.replace("{secret}", self.owners("PUT", f"/secrets/s-{next(_numbers)}", body)["name"])
        if "{token_id}" in path:
            return path.replace("{token_id}", self.owners("POST", "/me/tokens", {"name": "to be deleted"})["id"])
        if "{key}" in path:
            body = BODIES["POST", "/me/ssh-keys"]()
            return path.replace("{key}", self.owners("POST", "/me/ssh-keys", body)["id"])
        path = path.replace("{kind}/{name}", "user/ann")
        given = {"{node}": self.node, "{user}": "ann", "{task}": "matrix", "{alert}": "9999", "{delivery}": "9999"}
        given["{preset}"] = "detection"
        for name, value in given.items():
            path = path.replace(name, value)
        return re.sub(r"\{\w+\}", "nowhere", path)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with api_server(users=("ann", "bob", "carl")) as server:
        with server.http("ann") as ann, server.http() as operator:
            expired = ann.post("/me/tokens", json={"name": "expired", "expires_in_days": 1e-7}).json()["token"]
            small = ann.post("/me/tokens", json={"name": "small", "scopes": ["read"]}).json()["token"]
            jobs = ann.post("/me/tokens", json={"name": "jobs", "scopes": ["jobs"]}).json()["token"]
            disabled = server.token("carl")
            operator.patch("/users/carl", json={"disabled": True}).raise_for_status()
            ann.post("/tasks", json={"task": "matrix", "gpus": 1}).raise_for_status()
            node = operator.get("/nodes").json()["items"][0]["id"]
        tokens = {
            "stranger": "",
            "owner": server.token("ann"),
            "other": server.token("bob"),
            "operator": server.token("operator"),
            "disabled": disabled,
            "expired": expired,
            "small": small,
            "jobs": jobs,
        }
        with plain_http(server.url) as client:
            yield House(server=server, tokens=tokens, client=client, node=node)


def described() -> set[tuple[str, str]]:
    return {
        (method.upper(), path.removeprefix(API))
        for path, operations in describe(bare_app())["paths"].items()
        for method in operations
    }


def test_the_table_has_every_route_and_no_other() -> None:
    assert described() - EXPECTED.keys() == set(), "decide who may use these"
    assert EXPECTED.keys() - described() == set(), "these are gone"


#: Routes that the description leaves out and that are about no user's things.
WITHOUT_OWNER = {
    "/api/docs",
    "/api/v1/openapi.json",
    "/apps/{job}",  # these two only add a slash
    "/assets/{name:path}",
    "/healthz",
    "/metrics",
    "/readyz",
    "/static/corral.css",
    "/workbenches/{job}/jupyter",
    "/{path:path}",
}
REFUSED = {"stranger": {401}, "disabled": {401}, "expired": {401}, "small": {403}, "other": {403, 404}}


def undescribed() -> list[APIRoute | APIWebSocketRoute]:
    routes = [route for route in bare_app().routes if isinstance(route, APIRoute | APIWebSocketRoute)]
    return [
        route for route in routes if not getattr(route, "include_in_schema", False) and route.path not in WITHOUT_OWNER
    ]


@pytest.mark.parametrize("route", undescribed(), ids=lambda route: f"{type(route).__name__} {route.path}")
def test_every_route_to_a_program_in_a_job_is_for_its_owner(house: House, route: APIRoute | APIWebSocketRoute) -> None:
    """Routes for programs are not described: shells, tunnels, apps and Jupyter."""
    assert "{job}" in route.path, "decide who may use it"
    path = house.address(route.path.replace("{path:path}", "x"))
    got = {}
    for role in REFUSED:
        headers = {"Authorization": f"Bearer {house.tokens[role]}"} if house.tokens[role] else {}
        if isinstance(route, APIRoute):
            got[role] = house.client.get(path, headers=headers).status_code
        else:
            url = f"ws://127.0.0.1:{house.server.port}{path}"
            with pytest.raises(InvalidStatus) as refused:
                connect(url, additional_headers=headers, proxy=None)
            got[role] = refused.value.response.status_code
    assert {role: status for role, status in got.items() if status not in REFUSED[role]} == {}


def met(expected: str, status: int) -> bool:
    if expected == "ok":
        return 200 <= status < 300
    if expected == "in":
        return status not in (401, 403) and status < 500
    return status == int(expected)


@pytest.mark.parametrize(("method", "path"), EXPECTED, ids=lambda part: part)
def test_every_route_answers_each_role_as_the_table_says(house: House, method: str, path: str) -> None:
    got = {}
    for role in ORDER:
        token = spare(house, role) if path == "/auth/logout" else None
        body = BODIES.get((method, path), lambda: None)()
        got[role] = house.request(role, method, house.address(path), token=token, body=body)
    expected = EXPECTED[method, path]
    wrong = {role: (expected[role], status) for role, status in got.items() if not met(expected[role], status)}
    assert wrong == {}, "role: (expected, got)"


def spare(house: House, role: str) -> str | None:
    """A token of its own to sign out with, so that the others stay."""
    if role not in ("owner", "other", "operator", "small"):
        return None
    of = "owner" if role == "small" else role
    headers = {"Authorization": f"Bearer {house.tokens[of]}"}
    body = {"name": "spare", "scopes": ["read" if role == "small" else "full"]}
    return str(house.client.post(f"{API}/me/tokens", headers=headers, json=body).json()["token"])


def test_a_token_for_jobs_changes_jobs_and_tasks_only(house: House) -> None:
    changing = [(method, path) for method, path in EXPECTED if method != "GET"]
    assert len(changing) > 40
    for method, path in set(changing) - ALSO_WITH_JOBS:
        is_job = path.startswith(("/jobs", "/tasks", "/workbenches")) or path.endswith("/run")
        body = BODIES.get((method, path), lambda: None)()
        headers = {"Authorization": f"Bearer {house.tokens['jobs']}"}
        sent = {} if body is None and method != "DELETE" else body
        answer = house.client.request(method, f"{API}{house.address(path)}", headers=headers, json=sent)
        if is_job and not path.endswith("pin"):
            assert answer.status_code not in (401, 403), (method, path, answer.text)
        elif not is_job:
            reported = problem(answer, 403)
            assert reported["type"] == "/problems/insufficient-scope", (method, path)
            assert reported["scope"] == "full"


def test_other_users_see_a_job_without_private_fields(house: House) -> None:
    with house.server.http("ann") as ann, house.server.http("bob") as bob, house.server.http() as operator:
        secret = {"name": "secret-project", "command": ["sleep", "600"], "gpus": 1}
        running = ann.post("/jobs", json=secret).json()["id"]
        wait_until(lambda: ann.get(f"/jobs/{running}").json()["state"] == "running", "it runs")
        waiting = ann.post("/jobs", json={**secret, "name": "secret-next", "gpus": 4}).json()["id"]
        own = bob.post("/jobs", json={"name": "own-work", "command": ["true"], "gpus": 4}).json()["id"]

        def seen() -> str:
            """Everything that bob can look at."""
            paths = ["/jobs", "/jobs?user=ann", "/nodes", "/gpus", "/queues/default/order", "/events?limit=500"]
            paths += ["/tasks", "/pools/default", "/panel", "/overview", f"/jobs/{own}/why", "/scores", "/metrics"]
            return "\n".join(bob.get(path).text for path in paths)

        everything = seen()
        assert "secret-project" not in everything
        assert f'"{running}"' not in everything
        assert waiting not in everything
        places = [place for line in bob.get("/queues/default/order").json()["lines"] for place in line["jobs"]]
        hidden = next(place for place in places if place["user"] == "ann")
        assert (hidden["id"], hidden["name"], hidden["gpus"]) == (None, None, 4)
        holders = [job for node in bob.get("/nodes").json()["items"] for job in node["jobs"]]
        assert {(job["id"], job["user"]) for job in holders} == {(None, "ann")}
        ahead = bob.get(f"/jobs/{own}/why").json()["ahead"]
        assert {(ref["id"], ref["name"], ref["user"]) for ref in ahead} <= {(None, None, "ann")}
        for path in ("", "/why", "/attempts", "/logs"):
            problem(bob.get(f"/jobs/{running}{path}"), 404)

        everyone = operator.get("/permission-groups/everyone").json()["functions"]
        operator.post("/permission-groups", json={"name": "curious", "functions": [*everyone, "see-others-jobs"]})
        operator.post("/permission-groups/curious/users", json={"users": ["bob"]}).raise_for_status()
        everything = seen()
        assert "secret-project" in everything
        assert waiting in everything
        for path in ("", "/why", "/attempts"):
            assert bob.get(f"/jobs/{running}{path}").status_code == 200
        # What a job runs and writes stays its owner's.
        assert bob.get(f"/jobs/{running}").json()["command"] == []
        problem(bob.get(f"/jobs/{running}/logs"), 404)
        problem(bob.post(f"/jobs/{running}/stop"), 404)
        operator.post("/permission-groups/everyone/users", json={"users": ["bob"]}).raise_for_status()
        assert "secret-project" not in seen(), "it holds at once"
        for job in (running, waiting, own):
            operator.post(f"/jobs/{job}/stop")


def test_a_function_that_is_taken_away_is_gone_at_the_next_request(house: House) -> None:
    with house.server.http() as operator, house.server.http("bob") as bob:
        operator.post("/permission-groups", json={"name": "nothing"}).raise_for_status()
        operator.post("/permission-groups/nothing/users", json={"users": ["bob"]}).raise_for_status()
        assert bob.get("/me").json()["functions"] == []
        body = {"command": ["true"]}
        for path, sent, function in (
            ("/jobs", body, "train"),
            ("/jobs", {**body, "nodes": 2}, "distribute"),
            ("/workbenches", {"name": "bench", "image": "example.org/bench:1"}, "workbench"),
            ("/jobs:plan", body, "train"),
            ("/jobs:batch", {"jobs": [body]}, "train"),
            ("/tasks", {"task": "mine"}, "tasks"),
            ("/me/tokens", {"name": "mine"}, "tokens"),
        ):
            reported = problem(bob.post(path, json=sent), 403)
            assert (reported["type"], reported["function"]) == ("/problems/not-permitted", function)
        operator.patch("/permission-groups/nothing", json={"functions": ["train"]}).raise_for_status()
        assert bob.post("/jobs", json={**body, "hold": True}).status_code == 201
        operator.post("/permission-groups/everyone/users", json={"users": ["bob"]}).raise_for_status()
        assert bob.post("/me/tokens", json={"name": "mine"}).status_code == 201
