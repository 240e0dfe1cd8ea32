"""Flavors, packages, quotas, the panel and scores over HTTP, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

SLEEP = ["sleep", "300"]
GIB = 1024**3


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "2x4xA10,1x4xH200", users=("ann", "bob")) as started:
        yield started


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def catalog(server: CorralServer) -> None:
    with server.http() as client:
        for flavor in (
            {"name": "a10", "models": ["A10"]},
            {"name": "h200", "models": ["H200"], "description": "the quick ones"},
            {"name": "gone", "models": ["V100"]},
        ):
            client.post("/flavors", json=flavor).raise_for_status()
        for package in (
            {"name": "a10-x2", "gpus": 2, "flavor": "a10"},
            {"name": "h200-x4", "gpus": 4, "flavor": "h200", "kinds": ["training", "distributed"]},
            {"name": "half", "gpus": 0.5, "flavor": "a10", "memory_bytes": "1GiB", "kinds": ["workbench"]},
            {"name": "v100-x1", "gpus": 1, "flavor": "gone"},
            {"name": "rdma-x1", "gpus": 1, "rdma": True},
        ):
            client.post("/packages", json=package).raise_for_status()


def offered(client: httpx.Client, **params: Any) -> dict[str, dict[str, Any]]:
    answer = client.get("/packages", params=params).raise_for_status().json()
    return {item["name"]: item for item in answer["items"]}


def stop_all(server: CorralServer) -> None:
    with server.http() as client:
        live = client.get("/jobs", params={"state": ["queued", "starting", "running"], "limit": 500}).json()["items"]
        for job in live:
            client.post(f"/jobs/{job['id']}/stop")
        wait_until(lambda: client.get("/overview").json()["gpus_allocated"] == 0, "everything is free again")


def test_the_lists_tell_everything_at_once(http: httpx.Client) -> None:
    flavors = {item["name"]: item for item in http.get("/flavors").json()["items"]}
    assert flavors["h200"] == http.get("/flavors/h200").json()
    assert (flavors["a10"]["gpus_total"], flavors["a10"]["packages"]) == (8, ["a10-x2", "half"])
    assert (flavors["gone"]["gpus_total"], flavors["gone"]["packages"]) == (0, ["v100-x1"])
    half = offered(http)["half"]
    assert half == http.get("/packages/half").json()
    assert (half["gpus"], half["memory_bytes"], half["kinds"], half["models"]) == (0.5, GIB, ["workbench"], ["A10"])
    assert half["available"] is None
    first = http.get("/packages", params={"limit": 2}).json()
    assert [item["name"] for item in first["items"]] == ["a10-x2", "h200-x4"]
    rest = http.get("/packages", params={"limit": 9, "cursor": first["next_cursor"]}).json()
    assert [item["name"] for item in rest["items"]] == ["half", "rdma-x1", "v100-x1"]


def test_only_what_can_be_had_is_offered_and_the_count_is_true(server: CorralServer) -> None:
    with server.http("ann") as ann:
        assert set(offered(ann, kind="workbench")) == {"a10-x2", "half"}, "no V100, no RDMA, and H200 is for training"
        found = offered(ann, kind="training")
        assert set(found) == {"a10-x2", "h200-x4"}
        reported = found["a10-x2"]
        assert (reported["free_count"], reported["queued"], reported["expected_wait_seconds"]) == (4, 0, 0)
        assert offered(ann, kind="distributed", nodes=2)["a10-x2"]["free_count"] == 2
        body = {"command": SLEEP, "package": "a10-x2", "time": "1h"}
        made = (
            ann.post("/jobs:batch", json={"jobs": [body] * reported["free_count"]}).raise_for_status().json()["items"]
        )
        job = made[0]
        assert (job["package"], job["flavor"], job["gpus"], job["models"]) == ("a10-x2", None, 2, ["A10"])

        def running() -> bool:
            return all(ann.get(f"/jobs/{item['id']}").json()["state"] == "running" for item in made)

        wait_until(running, "as many as were promised run")
        full = offered(ann, kind="training")["a10-x2"]
        assert full["free_count"] == 0
        assert 0 < full["expected_wait_seconds"] <= 3700
        more = ann.post("/jobs", json=body).raise_for_status().json()
        assert ann.get(f"/jobs/{more['id']}/why").json()["state"] == "queued"
        wait_until(lambda: offered(ann, kind="training")["a10-x2"]["queued"] == 1, "one waits for the same")
    stop_all(server)


def test_the_quota_decides_what_is_offered(server: CorralServer, http: httpx.Client) -> None:
    http.put("/users/bob/quota", json={"training": {"gpus": 3}}).raise_for_status()
    with server.http("bob") as bob:
        found = offered(bob, kind="training")
        assert set(found) == {"a10-x2"}
        assert found["a10-x2"]["free_count"] == 1
        reported = problem(bob.post("/jobs", json={"command": SLEEP, "package": "h200-x4"}), 409)
        assert (reported["asked"], reported["held"], reported["limit"]) == (4, 0, 3)
    http.put("/users/bob/quota", json={}).raise_for_status()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"package": "a10-x2", "gpus": 0}, "gpus"),
        ({"package": "a10-x2", "gpus": 2}, "gpus"),
        ({"package": "a10-x2", "cpus": 1}, "cpus"),
        ({"package": "a10-x2", "memory": "1GiB"}, "memory"),
        ({"package": "a10-x2", "flavor": "a10"}, "flavor"),
        ({"package": "a10-x2", "model": "H200"}, "model"),
        ({"package": "half"}, "package"),
        ({"package": "none"}, "package"),
        ({"flavor": "none", "gpus": 1}, "flavor"),
        ({"flavor": "h200"}, "gpus"),
        ({"flavor": "h200", "gpus": 1, "model": "A10"}, "model"),
        ({"flavor": "gone", "gpus": 1}, "model"),
        ({"package": ""}, "package"),
    ],
)
def test_contradictions_are_named(http: httpx.Client, body: dict[str, Any], field: str) -> None:
    for route in ("/jobs", "/jobs:plan"):
        answer = http.post(route, json={"command": SLEEP, **body})
        if route == "/jobs:plan" and answer.status_code == 200:
            assert answer.json()["outcome"] == "refuse"
            continue
        assert [error["field"] for error in problem(answer, 422)["errors"]] == [field]


BAD: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/flavors", {"name": "a b"}, 422, "name"),
    ("POST", "/flavors", {"name": "a10"}, 409, "name"),
    ("POST", "/flavors", {"name": "x", "models": [""]}, 422, "models[0]"),
    ("POST", "/flavors", {"name": "x", "model": "A10"}, 422, "model"),
    ("PATCH", "/flavors/none", {"models": []}, 404, "flavor"),
    ("PATCH", "/flavors/a10", {"name": "b10"}, 422, "name"),
    ("DELETE", "/flavors/a10", None, 409, "names"),
    ("DELETE", "/flavors/none", None, 404, "names"),
    ("POST", "/flavors:delete", {"names": []}, 422, "names"),
    ("POST", "/flavors:delete", {"names": ["gone", "none"]}, 404, "names"),
    ("POST", "/packages", {"name": "x"}, 422, "gpus"),
    ("POST", "/packages", {"name": "x", "gpus": 1.5}, 422, "gpus"),
    ("POST", "/packages", {"name": "x", "gpus": 1, "memory_bytes": "much"}, 422, "memory_bytes"),
    ("POST", "/packages", {"name": "x", "gpus": 1, "flavor": "none"}, 422, "flavor"),
    ("POST", "/packages", {"name": "x", "gpus": 1, "kinds": ["gaming"]}, 422, "kinds[0]"),
    ("POST", "/packages", {"name": "half", "gpus": 1}, 409, "name"),
    ("PATCH", "/packages/none", {"gpus": 1}, 404, "package"),
    ("PATCH", "/packages/half", {"gpus": 0, "flavor": None, "memory_bytes": 0}, 422, "gpus"),
    ("DELETE", "/packages/none", None, 404, "names"),
    ("POST", "/packages:delete", {"names": ["half", "none"]}, 404, "names"),
    ("GET", "/packages?kind=gaming", None, 422, "kind"),
    ("GET", "/packages?nodes=2", None, 422, "nodes"),
    ("GET", "/packages?kind=training&nodes=2", None, 422, "nodes"),
    ("POST", "/queues:delete", {"names": ["default"]}, 409, "name"),
    ("POST", "/queues:delete", {"names": ["none"]}, 404, "queue"),
    ("POST", "/quotas:batch", {"quota": {}}, 422, "all"),
    ("POST", "/quotas:batch", {"users": ["ann"], "all": True, "quota": {"training": {"gpus": 1}}}, 422, "all"),
    ("POST", "/quotas:batch", {"all": True, "quota": {}}, 422, "quota"),
    ("POST", "/quotas:batch", {"users": ["nobody"], "quota": {"training": {"gpus": 1}}}, 404, "user"),
    ("POST", "/quotas:batch", {"all": True, "quota": {"volumes": {"tape": 1}}}, 422, "quota.volumes.tape"),
    ("PUT", "/users/ann/quota", {"volumes": {"block": -1}}, 422, "volumes.block"),
    ("GET", "/panel?kind=gaming", None, 422, "kind"),
    ("GET", "/scores/absent", None, 404, "user"),
    ("GET", "/scores/ann?since=yesterday", None, 422, "since"),
    ("GET", "/scores/ann?points=501", None, 422, "points"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "field"), BAD)
def test_errors_name_the_wrong_field(
    http: httpx.Client, method: str, path: str, body: Any, status: int, field: str
) -> None:
    reported = problem(http.request(method, path, json=body), status)
    fields = [error["field"] for error in reported.get("errors", [])] or [reported.get("field", "")]
    assert fields == [field], reported


def test_scientists_look_and_operators_change(server: CorralServer) -> None:
    with server.http("ann") as ann:
        for path in ("/flavors", "/flavors/a10", "/packages", "/packages/half", "/me/quota", "/panel", "/scores"):
            assert ann.get(path).status_code == 200, path
        for method, path, body in (
            ("POST", "/flavors", {"name": "mine"}),
            ("PATCH", "/flavors/a10", {}),
            ("DELETE", "/flavors/gone", None),
            ("POST", "/flavors:delete", {"names": ["gone"]}),
            ("POST", "/packages", {"name": "mine", "gpus": 1}),
            ("PATCH", "/packages/half", {"gpus": 4}),
            ("DELETE", "/packages/half", None),
            ("POST", "/packages:delete", {"names": ["half"]}),
            ("POST", "/queues:delete", {"names": ["default"]}),
            ("GET", "/quotas", None),
            ("POST", "/quotas:batch", {"all": True, "quota": {"training": {"gpus": None}}}),
        ):
            assert problem(ann.request(method, path, json=body), 403)["type"] == "/problems/forbidden", path


def test_together_or_not_at_all(http: httpx.Client) -> None:
    http.post("/flavors", json={"name": "spare"}).raise_for_status()
    reported = problem(http.post("/flavors:delete", json={"names": ["spare", "a10"]}), 409)
    assert reported["packages"] == ["a10-x2", "half"]
    assert http.get("/flavors/spare").status_code == 200
    assert http.post("/flavors:delete", json={"names": ["spare"]}).json() == {"deleted": ["spare"]}
    for name in ("night", "day"):
        http.post("/queues", json={"name": name}).raise_for_status()
    problem(http.post("/queues:delete", json={"names": ["night", "default"]}), 409)
    assert http.post("/queues:delete", json={"names": ["night", "day"]}).json() == {"deleted": ["night", "day"]}
    http.post("/packages", json={"name": "small", "cpus": 1}).raise_for_status()
    edited = http.patch("/packages/small", json={"gpus": 1, "flavor": "a10", "rdma": True}).json()
    assert (edited["gpus"], edited["cpus"], edited["flavor"], edited["rdma"]) == (1, 1, "a10", True)
    assert http.delete("/packages/small").status_code == 204


def test_quotas_of_many_and_what_is_held_of_them(server: CorralServer, http: httpx.Client) -> None:
    change = {"training": {"gpus": 8}, "volumes": {"block": 1024}}
    answer = http.post("/quotas:batch", json={"users": ["ann", "bob"], "quota": change}).raise_for_status().json()
    assert [item["user"] for item in answer["items"]] == ["ann", "bob"]
    http.post("/quotas:batch", json={"all": True, "quota": {"training": {"cpus": 64}}}).raise_for_status()
    with server.http("ann") as ann:
        job = ann.post("/jobs", json={"command": SLEEP, "gpus": 1, "cpus": 0.5}).raise_for_status().json()
        mine = ann.get("/me/quota").json()
        assert mine == ann.get("/users/ann/quota").json()
        assert mine["kinds"]["training"]["gpus"] == {"limit": 8, "held": 1, "asked": 0}
        assert mine["kinds"]["training"]["cpus"] == {"limit": 64, "held": 0.5, "asked": 0}
        assert mine["kinds"]["workbench"]["gpus"] == {"limit": None, "held": 0, "asked": 0}
        assert mine["volumes"]["block"] == {"limit": 1024, "held": 0, "asked": 0}
        ann.post(f"/jobs/{job['id']}/stop").raise_for_status()
    listed = {item["user"]: item for item in http.get("/quotas").json()["items"]}
    assert set(listed) == {"ann", "bob", "operator"}
    assert listed["operator"]["kinds"]["training"]["gpus"]["limit"] is None
    http.post("/quotas:batch", json={"all": True, "quota": {"training": None, "volumes": None}}).raise_for_status()
    assert http.get("/users/ann/quota").json()["volumes"]["block"]["limit"] is None
    actions = http.get("/events", params={"action": "user.quota-set", "subject": "ann"}).json()["items"]
    assert len(actions) >= 3
    stop_all(server)


def test_the_panel_and_the_history_of_a_score(server: CorralServer) -> None:
    with server.http("bob") as bob:
        job = bob.post("/jobs", json={"command": SLEEP, "package": "h200-x4"}).raise_for_status().json()
        wait_until(lambda: bob.get(f"/jobs/{job['id']}").json()["state"] == "running", "it runs")
        waits = bob.post("/jobs", json={"command": SLEEP, "package": "h200-x4"}).raise_for_status().json()
        page = bob.get("/panel", params={"user": "bob", "kind": "training", "model": "H200"}).json()
        (row,) = page["items"]
        assert [row[word] for word in ("running", "queued", "occupied", "total", "free", "gap")] == [1, 1, 4, 4, 0, 4]
        (total,) = page["kinds"]
        assert (total["kind"], total["running"], total["total"]) == ("training", 1, 4)
        assert {item["kind"] for item in bob.get("/panel").json()["kinds"]} == {
            "workbench",
            "training",
            "distributed",
            "preset",
        }
        for one in (waits, job):
            bob.post(f"/jobs/{one['id']}/stop").raise_for_status()
        stop_all(server)
        history = bob.get("/scores/bob", params={"model": "H200", "points": 10}).json()["items"]
        assert 2 <= len(history) <= 10
        assert {item["model"] for item in history} == {"H200"}
        assert (history[0]["score"], history[0]["usage"], history[-1]["usage"]) == (0, 4, 0)
        assert max(item["score"] for item in history) > 0
        assert bob.get("/scores/operator").json()["items"] == []


def test_new_users_get_the_quota_of_the_settings(tmp_path: Path) -> None:
    config = tmp_path / "corral.yaml"
    config.write_text(
        "policies:\n  default_quota:\n    workbench: {gpus: 3, memory: 64GiB}\n    volumes: {block: 1TiB}\n"
    )
    with (
        api_server("--config", str(config), "--virtual-gpus", "4xA10", users=("ann",)) as server,
        server.http("ann") as ann,
    ):
        mine = ann.get("/me/quota").json()
        assert mine["kinds"]["workbench"]["gpus"] == {"limit": 3, "held": 0, "asked": 0}
        assert mine["kinds"]["workbench"]["memory_bytes"]["limit"] == 64 * GIB
        assert mine["kinds"]["training"]["gpus"]["limit"] is None
        assert mine["volumes"]["block"]["limit"] == 1024 * GIB
        bench = {"name": "bench", "image": "example.org/bench:1", "gpus": 4}
        reported = problem(ann.post("/workbenches", json=bench), 409)
        assert (reported["asked"], reported["held"], reported["limit"]) == (4, 0, 3)
