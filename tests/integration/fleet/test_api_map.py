"""The map of all GPUs and the overview, as the console fetches them every few seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

MEASURED = ("utilization", "memory", "temperature", "power")


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "2x4xA10,1x2xA100-80G", users=("ann", "bob")) as running:
        yield running


def map_of(http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/gpus/map").raise_for_status().json()
    return found


def rows_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns as one object per GPU, with names in place of numbers."""
    columns = found["gpus"]
    assert {len(column) for column in columns.values()} == {len(columns["id"])}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for row in rows:
        row["node"] = found["nodes"][row["node"]]["id"]
        row["model"] = found["models"][row["model"]]
        row["pool"] = found["pools"][row["pool"]]
        row["owner"] = None if row["owner"] is None else found["owners"][row["owner"]]
    return rows


def test_the_map_says_the_same_as_the_list(server: CorralServer) -> None:
    with server.http() as http:
        wait_until(lambda: not any(map_of(http)["gpus"]["stale"]), "all GPUs are read")
        rows = {row["id"]: row for row in rows_of(map_of(http))}
        listed = http.get("/gpus", params={"limit": 500}).json()["items"]
        assert len(listed) == len(rows) == 10
        for gpu in listed:
            row = rows[gpu["id"]]
            same = ("node", "index", "model", "pool", "health", "allocated")
            assert {key: row[key] for key in same} == {key: gpu[key] for key in same}
            assert 0 <= row["memory"] <= 1
            assert all(row[key] is not None for key in MEASURED)


def test_others_jobs_are_seen_as_their_owners_only(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann, server.http("bob") as bob:
        body = {"command": ["sleep", "60"], "gpus": 2, "model": "A10"}
        job = ann.post("/jobs", json=body).raise_for_status().json()["id"]
        wait_until(lambda: ann.get(f"/jobs/{job}").json()["state"] == "running", "the job runs")

        def held(http: httpx.Client) -> list[tuple[Any, ...]]:
            return [(row["owner"], row["job"], row["allocated"]) for row in rows_of(map_of(http)) if row["allocated"]]

        assert held(ann) == held(operator) == [("ann", job, 1)] * 2
        assert held(bob) == [("ann", None, 1)] * 2
        ann.post(f"/jobs/{job}/stop").raise_for_status()
        wait_until(lambda: held(bob) == [], "the GPUs are free again")


def test_pages_of_the_map_are_the_whole_map(server: CorralServer) -> None:
    def fixed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in row.items() if key not in (*MEASURED, "stale")} for row in rows]

    with server.http() as http:
        pages: list[dict[str, Any]] = []
        cursor = None
        while cursor is not None or not pages:
            params = {"limit": 4} | ({} if cursor is None else {"cursor": cursor})
            pages.append(http.get("/gpus/map", params=params).raise_for_status().json())
            cursor = pages[-1]["next_cursor"]
        # A node is never divided, and one whose GPUs are too many for a page has a page of its own.
        assert [len(page["nodes"]) for page in pages] == [1, 1, 1]
        whole = map_of(http)
        assert whole["next_cursor"] is None
        assert [row for page in pages for row in fixed(rows_of(page))] == fixed(rows_of(whole))
        assert http.get("/gpus/map", params={"cursor": "nonsense"}).status_code == 422


def test_pages_of_lists_are_the_whole_lists(server: CorralServer) -> None:
    with server.http() as http:
        for path in ("/nodes", "/gpus"):
            whole = [item["id"] for item in http.get(path, params={"limit": 500}).json()["items"]]
            found: list[str] = []
            cursor = None
            while cursor is not None or not found:
                params = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
                page = http.get(path, params=params).raise_for_status().json()
                found += [item["id"] for item in page["items"]]
                cursor = page["next_cursor"]
            assert found == whole
            assert http.get(path, params={"cursor": "WzEsMl0"}).status_code == 422


def test_the_map_stands_before_a_gpu_of_that_name(server: CorralServer) -> None:
    with server.http() as http:
        assert "gpus" in http.get("/gpus/map").json()
        assert http.get("/gpus/maps").status_code == 404


def test_the_overview_counts_nodes_waits_and_what_is_measured(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann:
        too_much = {"command": ["true"], "gpus": 4, "model": "A10"}
        jobs = [ann.post("/jobs", json=too_much | {"command": ["sleep", "60"]}).json()["id"] for _ in range(3)]
        wait_until(lambda: operator.get("/overview").json()["running"] == 2, "two of three run")
        wait_until(lambda: operator.get("/overview").json()["wait_seconds_max"], "the third waits")
        node = operator.get("/nodes").json()["items"][-1]["id"]
        operator.post(f"/nodes/{node}/cordon").raise_for_status()
        overview = operator.get("/overview").json()
        operator.post(f"/nodes/{node}/uncordon").raise_for_status()
        assert overview["nodes_by_state"] == {"ready": 2, "cordoned": 1, "draining": 0, "drained": 0, "down": 0}
        assert overview["queued"] == 1
        assert 0 < overview["wait_seconds_median"] == overview["wait_seconds_max"] < 60
        assert overview["temperature_mean_celsius"] <= overview["temperature_celsius"]
        assert overview["power_watts"] < overview["power_limit_watts"]
        assert 0 <= overview["idle_gpus"] <= overview["gpus_allocated"] == 8
        for job in jobs:
            ann.post(f"/jobs/{job}/stop").raise_for_status()
        wait_until(lambda: operator.get("/overview").json()["wait_seconds_max"] is None, "no job waits any more")
