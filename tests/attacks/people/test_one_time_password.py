"""A one-time password is good for one thing: replacing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.attacks.conftest import SharedMachine
from tests.servers.fork_server import ENTRY_POINT

API = "/api/v1"
GIVEN = "given-by-the-operator"
OWN = "chosen-by-eve-alone"


@pytest.fixture
def reset(machine: SharedMachine) -> SharedMachine:
    """The operator has given eve a new password, for one use."""
    with machine.server.http() as operator:
        operator.patch("/users/eve", json={"password": GIVEN}).raise_for_status()
    return machine


def anonymous(machine: SharedMachine) -> httpx.Client:
    return httpx.Client(base_url=f"{machine.server.url}{API}", timeout=30)


def test_one_time_password_gives_no_token(reset: SharedMachine) -> None:
    body = {"user": "eve", "password": GIVEN, "token_name": "cli"}
    with anonymous(reset) as http:
        refused = http.post("/auth/login", json=body)
        assert refused.status_code == 403
        assert refused.json()["type"] == "/problems/password-change-required"
        assert "token" not in refused.json()

        same = http.post("/auth/login", json={**body, "new_password": GIVEN})
        short = http.post("/auth/login", json={**body, "new_password": "short"})
        assert (same.status_code, short.status_code) == (422, 422)

        answer = http.post("/auth/login", json={**body, "new_password": OWN})
        assert answer.status_code == 200
        token = answer.json()["token"]
        assert http.get("/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert http.post("/auth/login", json={**body, "new_password": "another-one"}).status_code == 401


def test_a_session_that_it_opened_makes_no_token_and_ends_with_it(reset: SharedMachine) -> None:
    with anonymous(reset) as thief, anonymous(reset) as eve:
        opened = thief.post("/auth/login", json={"user": "eve", "password": GIVEN})
        csrf = {"X-CSRF-Token": opened.json()["csrf_token"]}
        assert thief.post("/me/tokens", json={"name": "kept"}, headers=csrf).status_code == 403
        body = {"user": "eve", "password": GIVEN, "token_name": "cli", "new_password": OWN}
        eve.post("/auth/login", json=body).raise_for_status()
        assert thief.get("/me").status_code == 401


def test_the_command_line_asks_for_a_password_of_ones_own(reset: SharedMachine, tmp_path: Path) -> None:
    def login(typed: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *ENTRY_POINT, "login", "--user", "eve", "--password-stdin"]
        env = {"HOME": str(tmp_path), "CORRAL_SERVER": reset.server.url, "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, input=typed, env=env, text=True, capture_output=True, check=False)

    alone = login(f"{GIVEN}\n")
    assert alone.returncode == 2
    assert "one-time password" in alone.stderr
    assert not list(tmp_path.rglob("*credentials*"))
    assert login(f"{GIVEN}\n{OWN}\n").returncode == 0


def test_a_password_change_can_revoke_tokens(machine: SharedMachine) -> None:
    with machine.server.http("ann") as ann:
        stolen = ann.post("/me/tokens", json={"name": "laptop"}).raise_for_status().json()["token"]
        change = {"old": "password-of-ann", "new": "a-new-password"}
        with anonymous(machine) as thief:
            headers = {"Authorization": f"Bearer {stolen}"}
            ann.post("/me/password", json=change).raise_for_status()
            assert thief.get("/me", headers=headers).status_code == 200, "only if the user wants it"
            again = {"old": "a-new-password", "new": "an-even-newer-one", "revoke_tokens": True}
            ann.post("/me/password", json=again).raise_for_status()
            assert thief.get("/me", headers=headers).status_code == 401
        assert ann.get("/me").status_code == 200, "the token that asked for it stays"
        assert len(ann.get("/me/tokens").json()["items"]) == 1
