"""The default account of a job; users try to get the account of another user or of root."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import SharedMachine, shared_machine
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs can have other accounts: run as root"),
]
SHARED_UID = pwd.getpwnam("nobody").pw_uid


@pytest.fixture
def fresh() -> Iterator[CorralServer]:
    """A server as `make up` starts it for root, from a place that only root can pass."""
    with tempfile.TemporaryDirectory() as name:
        server = CorralServer(Path(name) / "home", "--virtual-gpus", "2xA10")
        server.start(CORRAL_ALLOW_ROOT="")
        yield server
        server.kill()


def run(server: CorralServer, user: str, *command: str) -> dict[str, Any]:
    """The ended job, with its log."""
    with server.http(user) as http:
        made = http.post("/jobs", json={"command": list(command)}).raise_for_status().json()["id"]
        wait_until(lambda: http.get(f"/jobs/{made}").json()["state"] in ("completed", "failed"), f"{made} ends")
        ended: dict[str, Any] = http.get(f"/jobs/{made}").json()
        return {**ended, "log": http.get(f"/jobs/{made}/logs").text}


def test_scientists_are_not_root_where_only_root_can_reach_the_home(fresh: CorralServer) -> None:
    ended = run(fresh, "operator", "id", "-u")
    assert (ended["state"], ended["log"]) == ("completed", "0\n")
    fresh.add_user("eve")
    ended = run(fresh, "eve", "id", "-u")
    assert (ended["state"], ended["end_reason"], ended["log"]) == ("failed", "launch_error", "")
    for words in ("jobs of eve cannot run here", str(fresh.home.parent), "CORRAL_HOME=", "local.allow_root: true"):
        assert words in ended["message"]
    assert "jobs of all users but operator are refused" in fresh.log()
    with fresh.http("eve") as http:
        assert http.get("/about").json()["isolation"]["separation"] == "accounts"
    # Another operator is not the one who has started the server.
    fresh.add_user("oscar", "operator")
    assert run(fresh, "oscar", "id", "-u")["end_reason"] == "launch_error"


def test_root_for_everybody_must_be_said_and_is_shown(fresh: CorralServer) -> None:
    fresh.stop()
    fresh.start(CORRAL_ALLOW_ROOT="true")
    fresh.add_user("eve")
    assert run(fresh, "eve", "id", "-u")["log"] == "0\n"
    with fresh.http("eve") as http:
        known = http.get("/about").json()["isolation"]
    assert known["separation"] == "single_user"
    assert "can change everything" in known["detail"]
    assert "single-user" in fresh.log()


def test_other_accounts_of_the_machine_do_not_read_the_store_of_a_single_user(fresh: CorralServer) -> None:
    fresh.stop()
    fresh.home.parent.chmod(0o755)
    fresh.home.chmod(0o755)
    fresh.start(CORRAL_ALLOW_ROOT="true")
    for path in (fresh.home, fresh.home / "corral.db", fresh.home / "local"):
        reading = subprocess.run(["ls", "-l", str(path)], user=SHARED_UID, capture_output=True, text=True, check=False)
        assert "Permission denied" in reading.stderr


def test_users_without_an_account_are_refused_and_share_none(machine: SharedMachine) -> None:
    for user in ("corral-zoe", "root", "nobody", "daemon"):
        machine.server.add_user(user)
        ended, _ = machine.run(user, "id -u")
        assert ended["end_reason"] == "launch_error"
        assert f"{user} has no account on this machine" in ended["message"]
    # An account that is made meanwhile is found.
    with temporary_account("corral-zoe", 47999):
        ended, log = machine.run("corral-zoe", "id -u")
        assert (ended["state"], log) == ("completed", "47999\n")


def test_a_user_who_is_called_like_anothers_account_does_not_get_it(machine: SharedMachine) -> None:
    impostor = machine.accounts["ann"]
    machine.server.add_user(impostor)
    ended, _ = machine.run(impostor, "id -u")
    assert ended["end_reason"] == "launch_error"
    assert f"the account {impostor} belongs to the user ann" in ended["message"]


def test_no_operator_has_a_workbench_on_a_shared_account(worker_id: str) -> None:
    with shared_machine(worker_id, settings=", share_default: true") as machine:
        machine.server.add_user("oscar", "operator")
        machine.server.add_user("zoe")
        assert machine.run("zoe", "id -u")[1] == f"{SHARED_UID}\n"
        # Batch jobs open nothing in the operator's browser.
        assert machine.run("oscar", "id -u")[1] == f"{SHARED_UID}\n"
        with machine.server.http("oscar") as http:
            # Jupyter in an image is not looked for before it starts.
            answer = http.post("/workbenches", json={"name": "bench", "image": "localhost/lab:1"})
            assert answer.status_code == 409, answer.text
            assert "would run as nobody, the account of operator, zoe, too" in answer.json()["detail"]
        with machine.server.http("oscar") as http:
            assert http.get("/about").json()["isolation"]["separation"] == "shared_accounts"
