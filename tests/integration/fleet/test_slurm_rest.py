"""A server that has the address and a token of slurmrestd, and no Slurm commands: a job from submission to end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ACCOUNT = "corral-test-dee"
#: says when it may be stopped, and that it had time to save
SAVES = "trap 'echo saved; exit 7' TERM; id -un; echo ready; while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def server(slurm_rest: SlurmCluster) -> Iterator[CorralServer]:
    home = Path(tempfile.mkdtemp(prefix="corral-rest-", dir="/tmp"))
    home.chmod(0o755)  # jobs' accounts pass here
    (home / "token").write_text(slurm_rest.token())
    (home / "token").chmod(0o600)
    made = server_on(
        slurm_rest,
        home / "home",
        settings=f"local: {{allow_root: true, run_as: {{users: {{operator: root, dee: {ACCOUNT}}}}}}}\n"
        "server: {log_level: debug}\n",
        programs="/no/such/place",
        rest=f"{{url: '{slurm_rest.start_rest()}', token_file: {home}/token}}",
    )
    made.start()
    yield made
    if made.is_running:
        made.stop()
    slurm_rest.run("scancel", "--user=root", check=False)
    shutil.rmtree(home, ignore_errors=True)


def submitted(http: httpx.Client, text: str, **more: Any) -> str:
    answer = http.post("/jobs", json={"command": ["sh", "-c", text], "gpus": 1, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def state_of(http: httpx.Client, job: str) -> str:
    return str(http.get(f"/jobs/{job}").json()["state"])


def says(http: httpx.Client, job: str, word: str) -> bool:
    return word in http.get(f"/jobs/{job}/logs").text


def health(http: httpx.Client) -> dict[str, Any]:
    (found,) = http.get("/clusters").json()["items"]
    return dict(found)


def in_slurm(cluster: SlurmCluster) -> list[str]:
    """How many nodes each job of that account has."""
    return cluster.run("squeue", "-h", f"--user={ACCOUNT}", "-o", "%D").split()


def test_a_users_gang_runs_outlives_the_server_and_saves_when_it_is_stopped(
    server: CorralServer, slurm_rest: SlurmCluster
) -> None:
    server.add_user("dee")
    with temporary_account(ACCOUNT, 54_329), server.http("dee") as http:
        gang = submitted(http, SAVES, kind="distributed", nodes=2)
        wait_until(lambda: says(http, gang, "ready"), "it runs", seconds=60)
        assert says(http, gang, ACCOUNT)
        assert in_slurm(slurm_rest) == ["2"]
        server.kill()
        server.start()
        assert state_of(http, gang) == "running"
        assert http.post(f"/jobs/{gang}/stop", json={}).status_code == 200
        wait_until(lambda: state_of(http, gang) == "stopped", "it is stopped", seconds=60)
        assert says(http, gang, "saved")
        # Nothing of that account runs any more, or it could not be removed.
        wait_until(lambda: not in_slurm(slurm_rest), "Slurm is done with it", seconds=60)


def test_while_slurmrestd_is_away_jobs_run_on_and_new_ones_wait(server: CorralServer, slurm_rest: SlurmCluster) -> None:
    with server.http() as http:
        first = submitted(http, SAVES)
        wait_until(lambda: says(http, first, "ready"), "it runs", seconds=60)
        slurm_rest.kill_rest()
        try:
            wait_until(lambda: not health(http)["healthy"], "the cluster is reported as away", seconds=60)
            assert "slurmrestd at http://127.0.0.1" in str(health(http))
            second = submitted(http, "exit 0")
            assert state_of(http, first) == "running"
        finally:
            slurm_rest.start_rest()
        wait_until(lambda: state_of(http, second) == "completed", "the other has run", seconds=60)
        http.post(f"/jobs/{first}/stop", json={})
        wait_until(lambda: state_of(http, first) == "stopped", "it is stopped", seconds=60)


def test_without_scontrol_nodes_are_withheld_here_only(server: CorralServer, slurm_rest: SlurmCluster) -> None:
    with server.http() as http:
        assert http.post("/nodes/node3/cordon").json()["state"] == "cordoned"
        wait_until(lambda: "cannot change nodes (v0.0.38), and scontrol is not here" in server.log(), "it is said")
        assert http.get("/nodes/node3").json()["state"] == "cordoned"
        assert "DRAIN" not in slurm_rest.run("scontrol", "show", "node", "node3", "-o")
        assert http.post("/nodes/node3/uncordon").json()["state"] == "ready"


def test_the_token_is_shown_nowhere(server: CorralServer) -> None:
    """After all of the above, with a server that logs everything."""
    token = (server.home.parent / "token").read_text()
    with server.http() as http:
        answers = [http.get(path) for path in ("/settings", "/clusters", "/about")]
    assert [answer.status_code for answer in answers] == [200] * 3
    shown = "".join(answer.text for answer in answers)
    assert token not in server.log() + shown
    assert token.split(".")[2] not in server.log() + shown
