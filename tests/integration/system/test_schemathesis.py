"""The API against its own description: requests made up from it, good ones and bad ones, by an operator and by a
scientist. No answer is a 500, and every answer is one that the description announces, in its shape."""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from corral.server.http.app import bare_app
from corral.server.http.description.api_description import describe
from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

#: Per route and user. More find little more: what a route can be asked is in its first few dozen requests.
EXAMPLES = 5
FORBIDDEN = 403
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
schema = schemathesis.openapi.from_dict(describe(bare_app()))
# The stream never ends, and signing out would end the test.
routes = schema.exclude(operation_id=["stream_events", "logout"])
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


#: How often a route was refused to a user.
refused: Counter[tuple[str, str]] = Counter()

#: For every second request the thing that it is about is really there.
THERE = {"/users/": "eve", "/jobs/": "j-1", "/scores/": "ann", "/tasks/": "things", "/presets/": "detection"}


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "eve")) as running:
        with running.http("ann") as ann, running.http() as operator:
            ann.post("/jobs", json={"command": ["true"], "hold": True}).raise_for_status()
            ann.post("/tasks", json={"task": "things", "gpus": 1}).raise_for_status()
            for kind in ("flavors", "packages", "groups", "pools", "permission-groups"):
                body = {"name": "things", **({"cpus": 1} if kind == "packages" else {})}
                operator.post(f"/{kind}", json=body).raise_for_status()
            node = operator.get("/nodes").json()["items"][0]
            THERE.update({"/nodes/": node["id"], "/gpus/": node["gpus"][0]["id"]})
        yield running
        assert running.is_running
        assert "Traceback" not in running.log()
        stop_all(running)


def stop_all(server: CorralServer) -> None:
    """Stops everything that was started: it would outlive the server and the tests."""
    with server.http() as operator:

        def live() -> list[str]:
            found = operator.get("/jobs", params={"state": ["starting", "running", "stopping"]}).raise_for_status()
            return [job["id"] for job in found.json()["items"]]

        for job in live():
            operator.post(f"/jobs/{job}/stop", json={})
        wait_until(lambda: not live(), "all jobs are over")


@cache
def connection(server: CorralServer, user: str) -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # else every request looks for a proxy in the environment
    session.headers["Authorization"] = f"Bearer {server.token(user)}"
    atexit.register(session.close)
    return session


@routes.parametrize()
@bounded
def test_every_answer_is_one_that_was_announced(case: schemathesis.Case[Any], server: CorralServer) -> None:
    """Each request is sent by both, because to make one up takes longer than to answer it: first by the one who may do
    less, so that it is still there for the other."""
    harmless(case)
    about_something(case)
    for user in ("ann", "operator"):
        asked = (user, case.operation.label)
        # Who may not do a thing at all is refused whatever is in the request: that needs no hundred proofs.
        if refused[asked] < EXAMPLES:
            session = connection(server, user)
            answer = case.call_and_validate(base_url=server.url, session=session, timeout=30, checks=CHECKS)
            refused[asked] += answer.status_code == FORBIDDEN


def harmless(case: schemathesis.Case[Any]) -> None:
    """Excludes routes that run made-up programs on this machine, and answers that never end."""
    body = case.body
    if isinstance(body, dict) and case.operation.label in ("POST /api/v1/jobs", "POST /api/v1/jobs:batch"):
        many = body.get("jobs")
        for job in many if isinstance(many, list) else [body]:
            if isinstance(job, dict):
                job["hold"] = True
    if isinstance(body, dict) and case.operation.label == "POST /api/v1/workbenches":
        body["hold"] = True
    if isinstance(body, dict) and case.operation.label.endswith("/run"):
        others = body.get("overrides")
        body["overrides"] = {**(others if isinstance(others, dict) else {}), "hold": True}
    if isinstance(body, dict) and case.operation.label.endswith("/program") and "command" in body:
        body["command"] = ["true"]
    case.query = {name: value for name, value in (case.query or {}).items() if name != "follow"}


def about_something(case: schemathesis.Case[Any]) -> None:
    for name, value in (case.path_parameters or {}).items():
        there = next((known for part, known in THERE.items() if f"{part}{{" in case.path), "things")
        if len(str(value)) % 2 and name != "id":
            case.path_parameters[name] = there
