"""Looking for things: filters of the list of jobs, their counts, and one field for everything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.servers.corral_server import CorralServer

HELD = {"command": ["true"], "hold": True}


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as running:
        for user, names in (("ann", ("resnet-big", "bert")), ("bob", ("resnet-small",))):
            with running.http(user) as http:
                time.sleep(0.05)
                for name in names:
                    http.post("/jobs", json=HELD | {"name": name}).raise_for_status()
        with running.http("bob") as http:
            http.post("/jobs:array", json=HELD | {"name": "grid", "array": "0-2"}).raise_for_status()
            http.post("/jobs", json=HELD | {"name": "grid-extra"}).raise_for_status()
        yield running


def names(http: httpx.Client, **filters: Any) -> list[str]:
    found = http.get("/jobs", params={"sort": "id", **filters}).raise_for_status().json()["items"]
    total = http.get("/jobs:counts", params=filters).raise_for_status().json()["total"]
    assert total == len(found)
    return [job["name"] for job in found]


def test_filters_go_together_and_their_counts_agree(server: CorralServer) -> None:
    with server.http() as http:
        assert names(http, q="RESNET") == ["resnet-big", "resnet-small"]
        assert names(http, q="bob") == ["resnet-small", "grid-0", "grid-1", "grid-2", "grid-extra"]
        assert names(http, q="j-2") == ["bert"]
        assert names(http, user=["ann", "bob"], name="net") == ["resnet-big", "resnet-small"]
        assert names(http, array="grid") == ["grid-0", "grid-1", "grid-2"]
        second, third = (datetime.fromisoformat(http.get(f"/jobs/j-{n}").json()["created_at"]) for n in (2, 3))
        between = (second + (third - second) / 2).isoformat()
        assert names(http, until=between) == ["resnet-big", "bert"]
        assert names(http, since=between, user="ann") == []
        counts = http.get("/jobs:counts").json()
        assert counts["total"] == counts["by_state"]["created"] == 7
        assert counts["by_state"]["running"] == 0


def test_no_user_counts_or_finds_others_jobs_by_filtering(server: CorralServer) -> None:
    with server.http("ann") as http:
        assert names(http) == ["resnet-big", "bert"]
        assert names(http, user="bob") == names(http, q="bob") == names(http, array="grid") == []
        assert names(http, user=["ann", "bob"]) == ["resnet-big", "bert"]
        assert [item["id"] for item in http.get("/search", params={"q": "resnet"}).json()["items"]] == ["j-1"]
        assert http.get("/search", params={"q": "bob"}).json()["items"] == []


def test_search_shows_what_it_is_and_where(server: CorralServer) -> None:
    with server.http() as http:
        found = http.get("/search", params={"q": "bob"}).json()["items"]
        assert {"type": "user", "id": "bob", "title": "bob", "detail": ""} in found
        [job, *_] = http.get("/search", params={"q": "bert"}).json()["items"]
        assert job == {"type": "job", "id": "j-2", "title": "bert", "detail": "created, ann"}
        everything = http.get("/search", params={"q": "e", "limit": 50}).json()["items"]
        assert {"job", "queue", "pool", "group", "alert-rule"} <= {item["type"] for item in everything}
        assert len(http.get("/search", params={"q": "e", "limit": 3}).json()["items"]) == 3


def test_bad_questions_are_refused_by_name(server: CorralServer) -> None:
    with server.http() as http:
        for path, params, field in (
            ("/search", {}, "q"),
            ("/search", {"q": ""}, "q"),
            ("/search", {"q": "x", "limit": "51"}, "limit"),
            ("/jobs", {"since": "yesterday"}, "since"),
            ("/jobs:counts", {"until": "2026-01-01"}, "until"),
            ("/jobs:counts", {"sort": "id"}, "sort"),
            ("/jobs", {"user": ""}, "user"),
        ):
            reported = problem(http.get(path, params=params), 422)
            assert field in reported["detail"], reported
