"""A training on a real Slurm that is preempted, and whose node dies: it goes on from its checkpoint on another node, as
its user's own account, and comes to the same result as if nothing had happened."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.integration.cli_harness import Person
from tests.integration.jobs.test_story_checkpoints import TRAINING, Training, train, undisturbed
from tests.integration.slurm_server import server_on
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

__all__ = ["undisturbed"]

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ACCOUNT = "corral-test-cleo"
#: the tests' own may be where other accounts cannot pass
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")
SETTINGS = f"""
local: {{allow_root: true, run_as: {{users: {{operator: root, cleo: {ACCOUNT}}}}}}}
policies: {{preemption_min_run_minutes: 0.01}}
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """On the file system that all nodes share, where the account of a job can pass."""
    directory = Path(tempfile.mkdtemp(prefix="corral-saves-", dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def server(slurm_cluster: SlurmCluster, home: Path) -> Iterator[CorralServer]:
    if PYTHON is None:
        pytest.skip("this machine has no Python of its own: install it (Debian package: python3)")
    started = server_on(slurm_cluster, home / "home", settings=SETTINGS)
    with temporary_account(ACCOUNT, 54323):
        started.start()
        started.add_user("cleo")
        yield started
        if started.is_running:
            started.stop()
        for user in ("root", ACCOUNT):
            slurm_cluster.run("scancel", f"--user={user}", check=False)
        # An account whose programs run cannot be removed.
        wait_until(lambda: not slurm_cluster.run("squeue", "-h", f"--user={ACCOUNT}").strip(), "its jobs have ended")


def node_of(training: Training) -> str:
    return str(training.becomes("running")["allocation"]["grants"][0]["node"])


def begin(http: httpx.Client, home: Path, name: str, command: Sequence[str | None], **values: object) -> Training:
    place = home / name
    place.mkdir()
    place.chmod(0o777)  # it is another account that writes there
    return train(http, place, name, command=command, **values)


def test_preempted_and_left_without_its_node_it_goes_on_elsewhere(
    server: CorralServer, slurm_cluster: SlurmCluster, home: Path, undisturbed: str
) -> None:
    shell = Person(server=server.url, home=home, env={"CORRAL_TOKEN": server.token("cleo")})
    with server.http("cleo") as http, server.http() as operator:
        queue = {"name": "whole", "guaranteed_gpus": 32}
        assert operator.post("/queues", json=queue).status_code == 201
        training = begin(http, home, "moves-about", [PYTHON, "-c", TRAINING], checkpoint_interval="1h", grace=30)

        # Asked to save, it saves: as the job's own account, in a directory that the server made.
        first = node_of(training)
        training.trains(1)
        shell.ok("checkpoint", training.id)
        training.saves(1)
        (saved,) = training.checkpoints
        assert Path(saved["path"]).stat().st_uid == 54323
        assert saved["name"] in shell.ok("checkpoints", training.id)
        (listed,) = json.loads(shell.ok("checkpoints", training.id, "-o", "json"))["items"]
        assert (listed["name"], listed["good"]) == (saved["name"], True)

        # Another queue is guaranteed the whole cluster: the training is warned, saves, and goes on elsewhere later.
        whole = {"name": "taker", "command": ["sleep", "600"], "gpus": 8, "nodes": 4, "queue": "whole"}
        taker = operator.post("/jobs", json=whole).json()["id"]
        wait_until(lambda: operator.get(f"/jobs/{taker}").json()["state"] == "running", "the taker runs")
        (receipt,) = http.get(f"/jobs/{training.id}/receipts").json()["items"]
        assert (receipt["role"], receipt["rule"], receipt["for_job"]) == ("preempted", "guarantee", taker)
        operator.post(f"/nodes/{first}/cordon").raise_for_status()
        operator.post(f"/jobs/{taker}/stop").raise_for_status()
        training.resumes(2, lost=0)
        second = node_of(training)
        assert second != first
        operator.post(f"/nodes/{first}/uncordon").raise_for_status()

        # Its node dies without a warning: what it saved on the way counts.
        training.trains(2)
        shell.ok("checkpoint", training.id)
        training.saves(2)
        slurm_cluster.crash_node(second)
        try:
            before = training.checkpoints[0]["step"]
            # A node that does not answer is lost when Slurm gives it up, and not before.
            attempt = lambda: http.get(f"/jobs/{training.id}").json()["attempt"]  # noqa: E731
            wait_until(lambda: attempt() == 3, "its node is given up", seconds=300)
            training.resumes(3, lost=training.steps(2)[-1] + 1 - before)
            assert node_of(training) != second
        finally:
            slurm_cluster.start_node(second)

        training.comes_to(undisturbed)
        reasons = [item["end_reason"] for item in http.get(f"/jobs/{training.id}/attempts").json()["items"]]
    assert reasons == ["preempted", "node_lost", "exit_code"]


def test_a_gang_saves_when_it_is_warned_and_goes_on_with_other_nodes(
    server: CorralServer, home: Path, undisturbed: str
) -> None:
    own = 'mkdir -p -m 777 "$PLACE/$CORRAL_RANK"; export PLACE="$PLACE/$CORRAL_RANK"; exec "$0" -c "$1"'
    with server.http("cleo") as http, server.http() as operator:
        gang = begin(
            http, home, "gang", ["sh", "-c", own, PYTHON, TRAINING], nodes=2, gpus=8, checkpoint_interval="1h", grace=30
        )
        ranks = [replace(gang, place=gang.place / str(rank)) for rank in range(2)]
        before = {grant["node"] for grant in gang.becomes("running")["allocation"]["grants"]}
        for rank in ranks:
            rank.trains(1)
        for node in before:
            operator.post(f"/nodes/{node}/cordon").raise_for_status()
        gang.post("requeue")
        ranks[0].resumes(2, lost=0)
        after = {grant["node"] for grant in gang.becomes("running")["allocation"]["grants"]}
        assert (len(after), before & after) == (2, set())
        assert ranks[1].begun(2)["begin"] == ranks[0].begun(2)["begin"], "all go on where the first one saved"
        for node in before:
            operator.post(f"/nodes/{node}/uncordon").raise_for_status()
        for rank in reversed(ranks):
            (rank.place / "hurry").touch()
        gang.becomes("completed")
    assert [(rank.place / "result").read_text() for rank in ranks] == [undisturbed, undisturbed]
