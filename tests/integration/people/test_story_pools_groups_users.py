"""The operator's work of document 002 by command line and API: status of the platform, pools, groups and users."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.cli_harness import CORRAL, Person, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "1x4xA10,1x4xA100-80G", users=("ann", "ben", "eve")) as running:
        yield running


@pytest.fixture(scope="module")
def root(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as http:
        yield http


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


def part(root: httpx.Client, name: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = root.get("/parts").raise_for_status().json()["items"]
    return next(one for one in parts if one["name"] == name)


def test_each_part_of_the_platform_has_a_state(root: httpx.Client, operator: Person, server: CorralServer) -> None:
    parts = root.get("/parts").json()["items"]
    assert {"server", "store", "controller", "history", "disk", "cluster local", "outbox local"} <= {
        one["name"] for one in parts
    }
    assert {"worker alerting", "worker recording", "spawner (local)"} <= {one["name"] for one in parts}
    assert all(one["healthy"] for one in parts), [one for one in parts if not one["healthy"]]
    shown = operator.ok("cluster")
    assert "controller" in shown
    assert "spawner (local)" in operator.ok("cluster", "show", "local")
    assert "local" in operator.ok("cluster", "ls")
    assert "Every part works." in operator.run("cluster", "--failing", code=0).err
    with server.http("ann") as ann:
        problem(ann.get("/parts"), 403)
        assert ann.get("/clusters").status_code == 200


def test_a_part_that_was_restarted_is_counted_with_its_error(root: httpx.Client, operator: Person) -> None:
    before = part(root, "spawner (local)")
    os.kill(int(before["detail"].removeprefix("process ")), signal.SIGKILL)
    wait_until(lambda: part(root, "spawner (local)")["restarts"] == before["restarts"] + 1, "it was started again")
    after = part(root, "spawner (local)")
    assert after["healthy"]
    assert after["since"] > before["since"]
    assert after["last_error"] == "the spawner ended with status -9"
    made = root.post("/jobs", json={"command": ["true"], "gpus": 0, "name": "still-runs"}).json()
    wait_until(lambda: root.get(f"/jobs/{made['id']}").json()["state"] == "completed", "jobs are launched")
    assert operator.run("cluster", "log", "spawner (local)").code == 0
    assert operator.run("cluster", "log", "no such part").code == 4
    assert problem(root.get("/parts/nothing/log"), 404)["detail"]


def test_pools_are_made_with_their_gpus_and_deleted_together(root: httpx.Client, operator: Person) -> None:
    a10 = sorted(gpu["id"] for gpu in root.get("/gpus").json()["items"] if gpu["model"] == "A10")
    operator.ok("pool", "create", "small", "--gpu", a10[0], "--gpu", a10[1])
    operator.ok("pool", "create", "large", "--gpu", a10[2])
    assert {pool["name"]: pool["gpus_total"] for pool in root.get("/pools").json()["items"]} == {
        "default": 5,
        "large": 1,
        "small": 2,
    }
    # Taken into a group, it is not offered to another one.
    operator.ok("group", "create", "vision", "--pool", "small")
    refused = operator.run("group", "create", "speech", "--pool", "small")
    assert refused.code == 1
    assert "Pools without a group: large" in refused.err
    # One question for several, and a result for each.
    both = operator.run("pool", "rm", "-y", "small", "large")
    assert both.code == 1
    assert "Deleted pool large" in both.out
    assert "small" in both.err
    assert "group vision" in both.err
    assert {pool["name"] for pool in root.get("/pools").json()["items"]} == {"default", "small"}
    root.patch("/groups/vision", json={"pool": None}).raise_for_status()
    operator.ok("group", "rm", "-y", "vision")
    operator.ok("pool", "rm", "-y", "small")
    assert {gpu["pool"] for gpu in root.get("/gpus").json()["items"]} == {"default"}


def test_a_user_moves_between_groups_by_leaving_the_first(root: httpx.Client, operator: Person) -> None:
    operator.ok("group", "create", "audio")
    refused = problem(root.patch("/groups/audio", json={"add_users": ["ann"]}), 409)
    assert "default" in refused["detail"]
    root.patch("/groups/default", json={"remove_users": ["ann"]}).raise_for_status()
    root.patch("/groups/audio", json={"add_users": ["ann"]}).raise_for_status()
    assert root.get("/users/ann").json()["group"] == "audio"
    problem(root.delete("/groups/audio"), 409)
    root.patch("/groups/audio", json={"remove_users": ["ann"]}).raise_for_status()
    assert root.delete("/groups/audio").status_code == 204
    root.patch("/groups/default", json={"add_users": ["ann"]}).raise_for_status()


def at_a_terminal(person: Person, answer: str, *args: str) -> str:
    """The output of a command at a terminal at which the question is answered."""
    main, other = pty.openpty()
    with subprocess.Popen(
        [*CORRAL, *args], env=person.environment(), cwd=person.home, stdin=other, stdout=other, stderr=other
    ) as process:
        os.close(other)
        os.write(main, f"{answer}\n".encode())
        shown = b""
        # The end of a terminal is an error, not an empty read.
        with contextlib.suppress(OSError):
            while chunk := os.read(main, 4096):
                shown += chunk
        process.wait()
    os.close(main)
    return shown.decode()


def test_a_role_change_is_confirmed(operator: Person, root: httpx.Client) -> None:
    asked = at_a_terminal(operator, "n", "user", "role", "eve", "operator")
    assert "Make eve an operator, who manages users, pools and all jobs?" in asked
    assert root.get("/users/eve").json()["role"] == "scientist"
    operator.ok("user", "role", "-y", "eve", "operator")
    assert root.get("/users/eve").json()["role"] == "operator"
    operator.ok("user", "role", "-y", "eve", "scientist")
    assert "not a role" in operator.run("user", "role", "-y", "eve", "king").err


def test_last_seen_counts_signing_in(server: CorralServer, root: httpx.Client) -> None:
    root.post("/users", json={"name": "zoe", "password": "a-password-of-zoe"}).raise_for_status()
    assert root.get("/users/zoe").json()["last_seen_at"] is None
    body = {"user": "zoe", "password": "a-password-of-zoe"}
    with httpx.Client(base_url=server.url) as browser:
        assert browser.post("/api/v1/auth/login", json=body).is_success
    assert root.get("/users/zoe").json()["last_seen_at"] is not None


def test_several_users_are_deleted_each_with_its_result(
    root: httpx.Client, server: CorralServer, operator: Person
) -> None:
    with server.http("ben") as ben:
        job = ben.post("/jobs", json={"command": ["sleep", "600"], "gpus": 1, "name": "bens-own"}).json()["id"]
    done = operator.run("user", "rm", "-y", "ben", "eve", "not-there")
    assert done.code == 1
    assert "Deleted user eve" in done.out
    assert "1 active job:" in done.err
    assert job in done.err
    assert "not-there" in done.err
    assert {user["name"] for user in root.get("/users").json()["items"]} >= {"ben"}
    root.post(f"/jobs/{job}/stop")
    wait_until(lambda: root.get(f"/jobs/{job}").json()["state"] == "stopped", "the job has ended")
    operator.ok("user", "rm", "-y", "ben")
