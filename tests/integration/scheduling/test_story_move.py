"""Two small trainings sit on a node each, and a large one needs a whole node: one of the small ones goes on beside the
other, from where it was, and no job waits in the queue for it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.audit import assert_journal_replays, assert_no_gpu_given_twice, attempts_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

CONFIG = """
policies: {preemption_moves: true, preemption_min_run_minutes: 0.02, preemption_patience_minutes: 0}
monitoring: {interval_seconds: 0.5, health: {idle_grace_minutes: null}}
"""
#: more than it gets through before it is asked to hurry, however slow the machine is
TOTAL = 3000
TRAINING = f"""
import hashlib, os, pathlib, time
from corral import checkpoint

place = pathlib.Path(os.environ["PLACE"])
state = checkpoint.restore() or {{"digest": ""}}
for step in checkpoint.steps({TOTAL}, lambda: state):
    if not (place / "hurry").exists():
        time.sleep(0.05)
    state["digest"] = hashlib.sha256(f"{{state['digest']}} {{step}}".encode()).hexdigest()
(place / os.environ["CORRAL_JOB_ID"]).write_text(state["digest"])
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CorralServer]:
    (tmp_path / "corral.yaml").write_text(CONFIG)
    started = CorralServer(tmp_path / "home", "--virtual-nodes", "2x4xA10", "--config", str(tmp_path / "corral.yaml"))
    started.start()
    yield started
    started.stop()


def undisturbed() -> str:
    digest = ""
    for step in range(TOTAL):
        digest = hashlib.sha256(f"{digest} {step}".encode()).hexdigest()
    return digest


def seen(http: httpx.Client, job: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/jobs/{job}").json()
    return found


def node_of(job: dict[str, Any]) -> str:
    return str(job["allocation"]["grants"][0]["node"])


def test_a_training_goes_on_elsewhere_so_that_a_whole_node_is_free(server: CorralServer, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with server.http() as http:
        queue = {"name": "ranked", "policy": "shortest", "preempts": True, "placement": "spread"}
        assert http.post("/queues", json=queue).status_code == 201

        def submit(name: str, gpus: int, time: str, command: list[str]) -> str:
            body = {"name": name, "gpus": gpus, "time": time, "command": command, "queue": "ranked"}
            more = {"env": {"PLACE": str(place)}, "checkpoint_interval": "1s"}
            answer = http.post("/jobs", json={**body, **more})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["id"])

        training = [sys.executable, "-c", TRAINING]
        small = [submit(f"small-{number}", 2, "1h", training) for number in (1, 2)]
        wait_until(lambda: all(seen(http, job)["checkpointed_at"] for job in small), "both have saved")
        before = {job: node_of(seen(http, job)) for job in small}
        assert len(set(before.values())) == 2
        large = submit("large", 4, "2h", ["sleep", "1"])
        wait_until(lambda: seen(http, large)["state"] == "completed", "the large one had a node for itself")
        after = {job: seen(http, job) for job in small}
        moved = [job for job in small if after[job]["attempt"] == 2]
        assert len(moved) == 1
        assert len({node_of(job) for job in after.values()}) == 1
        (receipt,) = http.get("/receipts").json()["items"]
        assert (receipt["job"], receipt["for_job"], receipt["rule"]) == (moved[0], large, "move")
        first = http.get(f"/jobs/{moved[0]}/attempts").json()["items"][0]
        assert first["end_reason"] == "moved"
        (place / "hurry").touch()
        wait_until(lambda: all(seen(http, job)["state"] == "completed" for job in small), "both are done")
    assert {(place / job).read_text() for job in small} == {undisturbed()}
    assert_no_gpu_given_twice(attempts_of(server.home))
    assert assert_journal_replays(server.home) > 0
