"""A job fills the disk that the server lives on. Everybody else still signs in, reads and stops; then it recovers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.attacks.conftest import SharedMachine
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, plain_http

pytestmark = pytest.mark.slow

#: Takes whatever becomes free, until it is stopped.
FILL = "while :; do cat /dev/zero >> $CORRAL_OUTPUT_DIR/fill; sleep 0.05; done 2>/dev/null"


@pytest.fixture
def cramped(machine: SharedMachine) -> Iterator[SharedMachine]:
    """The machine, with a home on a small disk without anything that only root could take."""
    machine.server.kill()
    home = machine.server.home
    config = machine.place / "corral.yaml"
    config.write_text(config.read_text() + "disk: {job_limit: 0, min_free: 20MiB, reserve: 16MiB}\n")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "corral-test", str(home)], check=True)
    try:
        machine.server.forget_tokens()
        machine.start()
        for user in machine.accounts:
            machine.server.add_user(user)
        yield machine
    finally:
        machine.server.kill()
        subprocess.run(["umount", "-l", str(home)], check=True)


def free_bytes(machine: SharedMachine) -> int:
    found = os.statvfs(machine.server.home)
    return found.f_bavail * found.f_frsize


def test_on_a_full_disk_users_sign_in_read_and_stop_jobs(cramped: SharedMachine) -> None:
    before = cramped.submit("ann", "echo hello; exec sleep 300", name="before", grace="1s")
    cramped.wait("ann", before, "running")
    filler = cramped.submit("eve", FILL, name="filler", grace="1s")
    cramped.wait("eve", filler, "running")
    # The reserve is given up, and taken by the job, too.
    wait_until(lambda: free_bytes(cramped) < 1 << 20, "the disk is full")
    wait_until(lambda: (cramped.server.home / "reserve").stat().st_size == 0, "the reserve is given up")
    wait_until(lambda: free_bytes(cramped) < 1 << 20, "the disk is full again")

    with plain_http(f"{cramped.server.url}/api/v1") as http:
        for number in range(20):
            body = {"user": "ann", "password": "password-of-ann", "token_name": f"again-{number}"}
            assert http.post("/auth/login", json=body).is_success
        assert http.get("/readyz").status_code == 200
    assert cramped.log("ann", before) == "hello\n"
    with cramped.server.http("ann") as http:
        assert len(http.get("/jobs").raise_for_status().json()["items"]) == 1
        after = http.post("/jobs", json={"name": "after", "command": ["/bin/echo", "done"]}).raise_for_status().json()
        http.post(f"/jobs/{before}/stop").raise_for_status()
    waiting = cramped.wait("ann", after["id"], "starting")
    wait_until(lambda: "free" in (cramped.job("ann", after["id"])["message"] or ""), "it says why it waits")
    assert waiting["attempt"] == 1
    with cramped.server.http() as http:
        parts = {part["name"]: part for part in http.get("/about").raise_for_status().json()["parts"]}
        assert not parts["disk"]["healthy"]
        assert "nothing is launched" in parts["disk"]["detail"]
        http.post(f"/jobs/{filler}/stop").raise_for_status()
        cramped.wait("eve", filler, "stopped")
        assert cramped.wait("ann", before)["state"] == "stopped"
        http.delete(f"/jobs/{filler}").raise_for_status()
    # Recovery needs no operator: waiting jobs run, and the reserve is there again.
    assert cramped.wait("ann", after["id"])["state"] == "completed"
    wait_until(lambda: (cramped.server.home / "reserve").stat().st_size == 16 << 20, "the reserve is made again")


def test_a_server_starts_on_a_full_disk(cramped: SharedMachine) -> None:
    filler = cramped.submit("eve", FILL, name="filler", grace="1s")
    cramped.wait("eve", filler, "running")
    wait_until(lambda: (cramped.server.home / "reserve").stat().st_size == 0, "the reserve is given up")
    wait_until(lambda: free_bytes(cramped) < 1 << 20, "the disk is full")
    cramped.server.kill()
    cramped.start()
    with plain_http(f"{cramped.server.url}/api/v1") as http:
        body = {"user": "operator", "password": PASSWORD, "token_name": "again"}
        assert http.post("/auth/login", json=body).is_success
    with cramped.server.http() as http:
        http.post(f"/jobs/{filler}/stop").raise_for_status()
    assert cramped.wait("eve", filler)["state"] == "stopped"
