"""Wrong requests: each is refused with a 4xx that names the field, and nothing in the store changes.

Wrong configuration files have their own table in tests/unit/server/settings/test_settings.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import API, api_server, dump, problem
from tests.integration.wrong_job_requests import WRONG_ABOUT_JOBS, job
from tests.integration.wrong_requests import WRONG_ABOUT_THE_REST
from tests.integration.wrong_storage_requests import WRONG_ABOUT_STORAGE
from tests.servers.corral_server import CorralServer

WRONG = [*WRONG_ABOUT_JOBS, *WRONG_ABOUT_STORAGE, *WRONG_ABOUT_THE_REST]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server() as running:
        with running.http() as http:
            http.post("/jobs", json=job(name="taken-name")).raise_for_status()
        yield running


@pytest.fixture(scope="module")
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"), WRONG, ids=[f"{n}-{w[0]}-{w[1][:30]}" for n, w in enumerate(WRONG)]
)
def test_a_wrong_request_is_refused_by_name_and_changes_nothing(
    server: CorralServer, http: httpx.Client, method: str, path: str, body: Any, status: int, field: str
) -> None:
    before = dump(server)
    if isinstance(body, bytes):
        answer = http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    else:
        answer = http.request(method, path, json=body)
    reported = problem(answer, status)
    if field:
        assert field in [entry["field"] for entry in reported["errors"]], reported
        assert all(entry["message"] for entry in reported["errors"])
    assert dump(server) == before


def test_an_unknown_field_is_answered_with_what_was_probably_meant(http: httpx.Client) -> None:
    reported = problem(http.post("/jobs", json=job(prioritty=3)), 422)
    assert "did you mean 'priority'" in reported["errors"][0]["message"]
    reported = problem(http.get("/jobs", params={"stat": "running"}), 422)
    assert "did you mean 'state'" in reported["errors"][0]["message"]


def test_all_wrong_fields_are_reported_at_once(http: httpx.Client) -> None:
    reported = problem(http.post("/jobs", json=job(gpus=-1, memory="x", priority=1000)), 422)
    assert {entry["field"] for entry in reported["errors"]} == {"gpus", "memory", "priority"}


def test_a_body_that_does_not_say_it_is_json_is_refused(http: httpx.Client) -> None:
    answer = http.post("/jobs", content=b'{"command": ["true"]}', headers={"Content-Type": "text/plain"})
    problem(answer, 422)


def test_a_wrong_last_event_id_is_refused(http: httpx.Client) -> None:
    reported = problem(http.get("/stream", headers={"Last-Event-ID": "abc"}), 422)
    assert reported["errors"][0]["field"] == "Last-Event-ID"


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(http: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(6):
            yield b" " * 1024 * 1024

    reported = problem(http.post("/jobs", content=endless(), headers={"Content-Type": "application/json"}), 413)
    assert "4194304" in reported["detail"]


def test_the_api_prefix_is_where_it_should_be(server: CorralServer) -> None:
    problem(httpx.get(f"{server.url}/jobs"), 404)
    problem(httpx.get(f"{server.url}{API}/jobs"), 401)
