"""Users, profile, keys, tokens, the audit log and the licence over the wire."""

from __future__ import annotations

import base64
import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.integration.api import API, api_server, dump, problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
SCRIPT = Path(__file__).parents[3] / "scripts" / "make-licence"


def make_licence(*args: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *args], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def private_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("licence") / "key.pem"


@pytest.fixture(scope="module")
def config(private_key: Path) -> Path:
    """Settings that believe in licences of that key."""
    public = make_licence("new-key", str(private_key))
    config = private_key.with_name("corral.yaml")
    config.write_text(f"server:\n  licence_public_key: {public}\nlocal:\n  virtual_gpus: 4xA100-80G\n")
    return config


@pytest.fixture(scope="module")
def server(config: Path) -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob"), CORRAL_CONFIG=str(config)) as running:
        yield running


def test_the_list_of_users_has_what_a_page_of_them_needs(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann:
        body = {"name": "eve", "display_name": "Eve Example", "email": "eve@example.org", "group": None}
        made = operator.post("/users", json=body).json()
        assert (made["group"], made["permission_group"], made["provider"]) == (None, "everyone", "local")
        job = ann.post("/jobs", json={"command": ["sleep", "600"]}).json()["id"]

        def shown() -> dict[str, dict[str, object]]:
            return {user["name"]: user for user in operator.get("/users").json()["items"]}

        assert shown()["ann"]["active_jobs"] == 1
        wait_until(lambda: shown()["ann"]["last_seen_at"] is not None, "ann was seen")
        assert shown()["eve"]["last_seen_at"] is None
        for params, names in (
            ({"q": "EXAMPLE.org"}, ["eve"]),
            ({"role": "operator"}, ["operator"]),
            ({"group": "default", "q": "ann"}, ["ann"]),
            ({"permission_group": "without-members"}, []),
        ):
            assert [user["name"] for user in operator.get("/users", params=params).json()["items"]] == names
        refused = problem(operator.delete("/users/ann"), 409)
        assert refused["jobs"] == [job]
        operator.post(f"/jobs/{job}/stop").raise_for_status()
        assert operator.delete("/users/eve").status_code == 204


def test_a_profile_is_one_s_own_and_a_role_is_not(server: CorralServer) -> None:
    with server.http("bob") as bob:
        edited = bob.patch("/me", json={"display_name": "Bob", "email": "bob@example.org"}).json()
        assert (edited["display_name"], edited["email"], edited["role"]) == ("Bob", "bob@example.org", "scientist")
        assert (edited["group"], edited["pool"], edited["permission_group"]) == ("default", "default", "everyone")
        assert "train" in edited["functions"]
        assert "see-others-jobs" not in edited["functions"]
        problem(bob.patch("/me", json={"role": "operator"}), 422)
        problem(bob.patch("/me", json={"email": "nowhere"}), 422)
        # Others act meanwhile: their events are newer.
        assert bob.get("/me").json() | {"event_id": edited["event_id"]} == edited


def test_keys_are_checked_and_a_private_one_never_stays_anywhere(server: CorralServer) -> None:
    with server.http("ann") as ann, server.http("bob") as bob:
        made = ann.post("/me/ssh-keys", json={"name": "laptop", "public_key": f"{KEY} ann@laptop"}).json()
        assert made["fingerprint"] == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"
        assert made["public_key"] == KEY
        problem(bob.post("/me/ssh-keys", json={"name": "mine", "public_key": KEY}), 409)
        problem(bob.delete(f"/me/ssh-keys/{made['id']}"), 404)
        secret = base64.b64encode(b"a very private thing").decode()
        text = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{secret}\n-----END OPENSSH PRIVATE KEY-----\n"
        refused = bob.post("/me/ssh-keys", json={"name": "mine", "public_key": text})
        assert "never paste it" in problem(refused, 422)["detail"]
        for place in (refused.text, server.log(), dump(server)):
            assert secret not in place
        assert bob.get("/me/ssh-keys").json()["items"] == []
        assert ann.delete(f"/me/ssh-keys/{made['id']}").status_code == 204


def test_a_token_shows_its_scope_and_when_it_was_used(server: CorralServer) -> None:
    with server.http("bob") as bob:
        body = {"name": "dashboard", "scopes": ["read", "read"], "expires_in_days": 2}
        made = bob.post("/me/tokens", json=body).json()
        assert made["scopes"] == ["read"]
        with httpx.Client(base_url=server.url + API, headers={"Authorization": f"Bearer {made['token']}"}) as reader:
            assert reader.get("/jobs").status_code == 200
            reported = problem(reader.post("/jobs", json={"command": ["true"]}), 403)
            assert (reported["type"], reported["scope"]) == ("/problems/insufficient-scope", "jobs")
            assert reader.post("/auth/logout").status_code == 204, "it may always end itself"
            problem(reader.get("/jobs"), 401)
        problem(bob.post("/me/tokens", json={"name": "x", "scopes": []}), 422)
        problem(bob.post("/me/tokens", json={"name": "x", "scopes": ["everything"]}), 422)


def test_without_the_function_a_sign_in_token_is_as_short_as_a_session(server: CorralServer) -> None:
    with server.http() as operator, server.http("bob") as bob:
        operator.post("/permission-groups", json={"name": "tokenless", "functions": ["train"]}).raise_for_status()
        operator.post("/permission-groups/tokenless/users", json={"users": ["bob"]}).raise_for_status()
        body = {"user": "bob", "password": "password-of-bob", "token_name": "laptop"}
        token = httpx.post(f"{server.url}{API}/auth/login", json=body).json()["token"]
        assert token
        (listed,) = [entry for entry in bob.get("/me/tokens").json()["items"] if entry["name"] == "laptop"]
        created, expires = (datetime.fromisoformat(listed[name]) for name in ("created_at", "expires_at"))
        assert expires - created == timedelta(hours=12)
        assert problem(bob.post("/me/tokens", json={"name": "long"}), 403)["function"] == "tokens"
        operator.post("/permission-groups/everyone/users", json={"users": ["bob"]}).raise_for_status()


def test_the_audit_log_is_searched_and_exported(server: CorralServer) -> None:
    with server.http() as operator, server.http("ann") as ann:
        ann.post("/jobs", json={"name": "needle_100", "command": ["true"], "hold": True}).raise_for_status()
        found = operator.get("/events", params={"q": "NEEDLE_1"}).json()["items"]
        assert [(event["action"], event["actor"]) for event in found] == [("job.submitted", "ann")]
        assert operator.get("/events", params={"q": "needle%1"}).json()["items"] == []
        assert [event["id"] for event in ann.get("/events", params={"q": "needle"}).json()["items"]] == [found[0]["id"]]

        exported = operator.get("/events/export", params={"format": "csv", "q": "needle"})
        assert exported.headers["content-type"].startswith("text/csv")
        assert "attachment" in exported.headers["content-disposition"]
        (row,) = list(csv.DictReader(io.StringIO(exported.text)))
        assert (row["id"], row["subject"]) == (str(found[0]["id"]), found[0]["subject"])
        assert json.loads(row["detail"]) == found[0]["detail"]

        lines = operator.get("/events/export", params={"format": "jsonl"}).text.splitlines()
        everything = [json.loads(line) for line in lines]
        assert [event["id"] for event in everything] == sorted((event["id"] for event in everything), reverse=True)
        assert everything[-1]["id"] == 1, "from the first one on"
        problem(ann.get("/events/export"), 403)
        problem(operator.get("/events/export", params={"format": "xml"}), 422)


def test_a_licence_is_verified_shown_and_not_needed(server: CorralServer, private_key: Path, config: Path) -> None:
    with server.http() as operator, server.http("ann") as ann:
        about = ann.get("/about").json()
        assert about["licence"]["state"] == "none"
        assert {part["name"]: part["healthy"] for part in about["parts"]} == {
            "store": True,
            "controller": True,
            "cluster local": True,
            "disk": True,
            "workers": True,
        }
        token = make_licence("sign", str(private_key), "Institute for Tests", "--days", "90")
        problem(ann.put("/about/licence", json={"token": token}), 403)
        reported = problem(operator.put("/about/licence", json={"token": token[:-4] + "AAAA"}), 422)
        assert reported["errors"][0]["field"] == "token"
        expired = make_licence("sign", str(private_key), "Institute for Tests", "--days", "-1")
        assert "ran out" in problem(operator.put("/about/licence", json={"token": expired}), 422)["detail"]
        assert operator.put("/about/licence", json={"token": token}).json()["state"] == "valid"
        assert ann.get("/about").json()["licence"]["holder"] == "Institute for Tests"
        soon = make_licence("sign", str(private_key), "Institute for Tests", "--days", "10")
        assert operator.put("/about/licence", json={"token": soon}).json()["state"] == "expiring"
        server.stop()
        server.start(CORRAL_CONFIG=str(config))
        warned = {"action": "licence.expiring"}
        wait_until(
            lambda: bool(operator.get("/events", params=warned).json()["items"]), "a warning is in the audit log"
        )
        assert "runs out on" in server.log()
        assert operator.delete("/about/licence").status_code == 204
        problem(operator.delete("/about/licence"), 404)
        assert ann.post("/jobs", json={"command": ["true"], "hold": True}).status_code == 201
