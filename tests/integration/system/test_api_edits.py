"""ETags and If-Match on a real server, and the headers of limits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers.corral_server import CorralServer, plain_http

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    made = CorralServer(Path(tmp_path_factory.mktemp("edits")) / "server", "--virtual-gpus", "2xA100-80G")
    made.start()
    yield made
    made.stop()


def test_an_edit_with_the_etag_that_was_read_passes_and_a_stale_one_is_refused(server: CorralServer) -> None:
    with server.http() as http:
        http.post("/queues", json={"name": "night"}).raise_for_status()
        read = http.get("/queues/night").headers["ETag"]
        first = http.patch("/queues/night", json={"weight": 2}, headers={"If-Match": read})
        assert first.status_code == 200
        assert first.headers["ETag"] not in ("", read)
        stale = http.patch("/queues/night", json={"weight": 3}, headers={"If-Match": read})
        assert stale.status_code == 412
        assert stale.json()["type"] == "/problems/changed-meanwhile"
        assert stale.headers["ETag"] == first.headers["ETag"]
        assert http.get("/queues/night").json()["weight"] == 2
        assert http.patch("/queues/night", json={"weight": 4}, headers={"If-Match": "*"}).status_code == 200
        assert http.patch("/queues/night", json={"weight": 5}).status_code == 200, "without a condition"


def test_fields_that_cannot_be_edited_leave_the_etag_alone(server: CorralServer) -> None:
    with server.http() as http:
        before = http.get("/queues/default").headers["ETag"]
        job = http.post("/jobs", json={"command": ["true"], "hold": True}).json()["id"]
        assert http.get("/queues/default").headers["ETag"] == before
        held = http.get(f"/jobs/{job}").headers["ETag"]
        http.patch(f"/jobs/{job}", json={"time": "2h"}).raise_for_status()
        assert http.get(f"/jobs/{job}").headers["ETag"] != held


def test_one_of_simultaneous_edits_with_the_same_etag_passes(server: CorralServer) -> None:
    with server.http() as http:
        http.post("/queues", json={"name": "race"}).raise_for_status()
        read = http.get("/queues/race").headers["ETag"]

        def edit(weight: int) -> int:
            return http.patch("/queues/race", json={"weight": weight}, headers={"If-Match": read}).status_code

        with ThreadPoolExecutor(8) as pool:
            statuses = sorted(pool.map(edit, range(2, 10)))
    assert statuses == [200] + [412] * 7


def test_an_object_that_is_not_there_and_one_that_the_caller_may_not_edit(server: CorralServer) -> None:
    server.add_user("eve")
    with server.http() as http:
        assert http.patch("/queues/none", json={"weight": 2}, headers={"If-Match": "*"}).status_code == 404
        read = http.get("/queues/default").headers["ETag"]
    with server.http("eve") as http:
        assert http.patch("/queues/default", json={"weight": 2}, headers={"If-Match": read}).status_code == 403


def test_failed_sign_ins_show_how_many_remain(server: CorralServer) -> None:
    with plain_http(f"{server.url}/api/v1") as http:
        answers = [http.post("/auth/login", json={"user": "nobody", "password": "wrong-password"}) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429]
    assert [answer.headers["RateLimit"] for answer in answers[:5]] == [
        f'"sign-in";r={left};t=0' for left in (4, 3, 2, 1, 0)
    ]
    assert answers[0].headers["RateLimit-Policy"].startswith('"sign-in";q=5;w=')
    assert answers[5].headers["RateLimit"].startswith('"sign-in";r=0;t=')
    assert int(answers[5].headers["Retry-After"]) >= 1


def test_a_name_that_is_taken_is_a_conflict(server: CorralServer) -> None:
    """The same problem for every kind of object that has a name."""
    bodies = {
        "/queues": {"name": "taken"},
        "/groups": {"name": "taken"},
        "/flavors": {"name": "taken", "models": ["A100-80G"]},
        "/packages": {"name": "taken", "gpus": 1},
        "/users": {"name": "taken", "password": "a-password-of-taken"},
        "/volumes": {"name": "taken", "type": "filesystem", "size": "1GiB"},
        "/datasets": {"name": "taken"},
        "/permission-groups": {"name": "taken"},
    }
    with server.http() as http:
        for path, body in bodies.items():
            first = http.post(path, json=body)
            assert first.status_code == 201, (path, first.text)
            second = http.post(path, json=body)
            assert (second.status_code, second.json()["type"]) == (409, "/problems/name-taken"), (path, second.text)
