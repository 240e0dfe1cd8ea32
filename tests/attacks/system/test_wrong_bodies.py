"""Requests with very many errors, or that make very much: none of them holds up all others."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.attacks.conftest import SharedMachine
from tests.integration.api import problem
from tests.servers.corral_server import plain_http

pytestmark = pytest.mark.slow

MOST = 50
#: Nearly as long as a body may be.
MANY = 230_000


def few_errors(answer: httpx.Response) -> None:
    assert 0 < len(problem(answer, 422)["errors"]) <= MOST
    assert len(answer.content) < 200_000


def test_a_body_of_unknown_fields_is_refused_in_a_few_words(machine: SharedMachine) -> None:
    unknown = {f"a{number}": 1 for number in range(MANY)}
    bodies = {
        "/jobs": unknown,
        "/jobs:batch": {"jobs": [{f"a{number}": 1 for number in range(100)}] * 2_000},
        "/me/tokens": unknown,
    }
    with machine.server.http("eve") as http:
        for path, body in bodies.items():
            few_errors(http.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"}))


def test_a_stranger_sends_no_long_body_and_gets_no_long_answer(machine: SharedMachine) -> None:
    with plain_http(f"{machine.server.url}/api/v1") as stranger:
        problem(stranger.post("/auth/login", json={f"a{number}": 1 for number in range(MANY)}), 413)
        few_errors(stranger.post("/auth/login", json={f"a{number}": 1 for number in range(4_000)}))
        query = "&".join(f"a{number}" for number in range(8_000))
        for path in ("/auth/providers", "/jobs", "/healthz"):
            few_errors(stranger.get(f"{path}?{query}"))


def test_an_array_with_large_variables_is_refused(machine: SharedMachine) -> None:
    """An array repeats the environment of its jobs, and every list of jobs shows them."""
    large = {f"A{number}": "x" * 3_000 for number in range(1_000)}
    medium = {f"A{number}": "x" * 1_000 for number in range(100)}
    with machine.server.http("eve") as http:
        job = {"name": "many-jobs", "command": ["true"], "hold": True}
        for path, body in (
            ("/jobs", {**job, "env": large}),
            ("/jobs:array", {**job, "array": "0-99", "env": large}),
            ("/jobs:array", {**job, "array": "0-999", "env": medium}),
        ):
            refused = problem(http.post(path, json=body), 422)
            assert refused["errors"][0]["field"] == "env"
        made = http.post("/jobs", json={**job, "env": medium}).raise_for_status().json()
        grown = {"env": {f"B{number}": "x" * 1_000 for number in range(100)}, "name": "grown"}
        problem(http.post(f"/jobs/{made['id']}/clone", json=grown), 422)
        assert len(http.get("/jobs").json()["items"]) == 1
