"""Reservations and drain previews over HTTP, against a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

SLEEP = ["sleep", "300"]


def moment(seconds: float) -> str:
    """So many seconds from now."""
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat().replace("+00:00", "Z")


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "3x4xA10", users=("ann", "bob")) as started:
        yield started


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client
        for job in client.get("/jobs", params={"state": ["queued", "starting", "running"]}).json()["items"]:
            client.post(f"/jobs/{job['id']}/stop")
        for one in client.get("/reservations").json()["items"]:
            client.delete(f"/reservations/{one['name']}").raise_for_status()
        wait_until(lambda: client.get("/overview").json()["gpus_allocated"] == 0, "everything is free again")


def reserve(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    body = {"name": "demo", "pool": "default", "gpus": 4, "users": ["ann"], "until": moment(3600), **fields}
    answer = client.post("/reservations", json=body)
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


def submit(server: CorralServer, user: str, **fields: Any) -> str:
    with server.http(user) as client:
        answer = client.post("/jobs", json={"command": SLEEP, "gpus": 4, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_window_from_its_making_to_its_end(http: httpx.Client, server: CorralServer) -> None:
    made = reserve(http, since=moment(1800), lends=False, note="the demo")
    assert (made["state"], made["gpu_count"], made["model"], made["lends"], made["note"]) == (
        "upcoming", 4, "A10", False, "the demo",
    )  # fmt: skip
    (node,) = made["nodes"]
    assert made["nodes"] == {node: made["gpus"]}
    assert (made["created_by"], made["in_force"], made["used_by_owners"], made["lent"]) == ("operator", True, 0, 0)
    with server.http("bob") as bob:
        assert bob.get("/reservations/demo").json() == made
        assert bob.get("/reservations").json() == {"items": [made], "next_cursor": None}
        assert bob.get("/reservations", params={"pool": "other"}).json()["items"] == []
        assert bob.get("/reservations", params={"until": moment(60)}).json()["items"] == []
        assert bob.get("/reservations", params={"since": moment(60)}).json()["items"] == [made]
    changed = http.patch("/reservations/demo", json={"gpus": 2, "since": moment(-5), "lends": True}).json()
    assert (changed["state"], changed["gpu_count"], changed["lends"]) == ("active", 2, True)
    assert {*changed["gpus"]} < {*made["gpus"]}
    assert http.delete("/reservations/demo").status_code == 204
    problem(http.get("/reservations/demo"), 404)
    actions = [event["action"] for event in http.get("/events", params={"subject": "demo"}).json()["items"]]
    assert actions == ["reservation.deleted", "reservation.edited", "reservation.created"]


def test_other_jobs_wait_and_are_shown_the_reservation_as_reason(http: httpx.Client, server: CorralServer) -> None:
    for number in range(3):
        reserve(http, name=f"part-{number}", lends=False)
    waiting, own = submit(server, "bob"), submit(server, "ann")
    wait_until(lambda: http.get(f"/jobs/{own}").json()["state"] == "running", "the owner runs")
    assert http.get(f"/jobs/{waiting}").json()["state"] == "queued"
    with server.http("bob") as bob:
        reported = bob.get(f"/jobs/{waiting}/why").json()
    (reason,) = [reason for reason in reported["reasons"] if reason["rule"] == "reserved"]
    assert "12 GPUs of pool default are reserved: 4 by part-0 for ann" in reason["detail"]
    assert reason["numbers"]["reserved_gpus"] == 12
    used = [one["used_by_owners"] for one in http.get("/reservations").json()["items"]]
    assert sum(used) == 4
    http.delete("/reservations/part-2").raise_for_status()
    http.delete("/reservations/part-1").raise_for_status()
    wait_until(lambda: http.get(f"/jobs/{waiting}").json()["state"] == "running", "it has room now")


def test_a_window_that_closes_lets_others_in_by_itself(http: httpx.Client, server: CorralServer) -> None:
    for number in range(3):
        reserve(http, name=f"brief-{number}", lends=False, until=moment(3.0))
    job = submit(server, "bob")
    assert http.get(f"/jobs/{job}").json()["state"] == "queued"
    wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "the window has closed")
    assert {one["state"] for one in http.get("/reservations").json()["items"]} == {"over"}


def test_conflicts_of_a_reservation_are_named(http: httpx.Client, server: CorralServer) -> None:
    jobs = [submit(server, "bob", preemptible=False) for _ in range(3)]
    wait_until(lambda: all(http.get(f"/jobs/{job}").json()["state"] == "running" for job in jobs), "all run")
    body = {"name": "demo", "pool": "default", "gpus": 4, "users": ["ann"], "until": moment(3600)}
    refused = problem(http.post("/reservations", json=body), 409)
    assert refused["detail"].startswith("asked for 4 GPUs of one model; free of others in that window: 0 of 12 A10.")
    assert sorted(refused["jobs"]) == sorted(jobs)
    assert (refused["asked"], refused["free"]) == (4, 0)


def test_draining_is_shown_before_it_is_done(http: httpx.Client, server: CorralServer) -> None:
    short, long = submit(server, "ann", time="20m"), submit(server, "bob", gpus=1, name="long-one")
    wait_until(lambda: all(http.get(f"/jobs/{job}").json()["state"] == "running" for job in (short, long)), "both run")
    (grant,) = http.get(f"/jobs/{long}").json()["allocation"]["grants"]
    found = http.get(f"/nodes/{grant['node']}/drain-preview").json()
    (job,) = found["jobs"]
    assert (job["id"], job["name"], job["user"], job["gpus"], job["gpu_count"]) == (
        long, "long-one", "bob", grant["gpus"], 1,
    )  # fmt: skip
    assert (job["displaced"], job["limit_at"], job["preemptible"]) == ("surely", None, True)
    assert len(job["goes_to"]) == 1
    assert job["goes_to"] != [grant["node"]]
    assert found["capacity_after"]["default"]["gpus"] == 8
    (other,) = http.get(f"/jobs/{short}").json()["allocation"]["grants"]
    later = http.get(f"/nodes/{other['node']}/drain-preview", params={"at": moment(7200)}).json()
    displaced = {job["id"]: job["displaced"] for job in later["jobs"]}
    assert displaced[short] == "no"
    assert all(node["state"] == "ready" for node in http.get("/nodes").json()["items"])


def test_lent_gpus_come_back_with_a_receipt(tmp_path: Path) -> None:
    config = tmp_path / "corral.yaml"
    config.write_text("policies: {preemption_min_run_minutes: 0}\n")
    args = ("--virtual-nodes", "1x4xA10", "--config", str(config))
    with api_server(*args, users=("ann", "bob")) as server, server.http() as http:
        reserve(http)
        borrower = submit(server, "bob", grace="5s")
        wait_until(lambda: http.get(f"/jobs/{borrower}").json()["state"] == "running", "it has borrowed")
        assert http.get("/reservations/demo").json()["lent"] == 4
        owner = submit(server, "ann")
        wait_until(lambda: http.get(f"/jobs/{owner}").json()["state"] == "running", "the owner has it back")
        assert http.get(f"/jobs/{borrower}").json()["state"] == "queued"
        (receipt,) = http.get(f"/jobs/{borrower}/receipts").json()["items"]
        assert (receipt["rule"], receipt["for_job"], receipt["gpus"]) == ("reservation", owner, 4)
        assert "reservation demo has 4 GPUs for ann" in receipt["detail"]
        http.post(f"/jobs/{owner}/stop").raise_for_status()
        wait_until(lambda: http.get(f"/jobs/{borrower}").json()["state"] == "running", "it borrows again")
