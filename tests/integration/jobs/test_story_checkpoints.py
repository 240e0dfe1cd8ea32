"""A training that is killed in every way there is, and comes to the same result as if nothing had happened.

Its state is a digest over all its steps, one after the other: a step that is lost or done twice would show in the
result. What it really did stands in a file that every attempt writes into.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_harness import Person, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

INTERVAL_SECONDS = 1.2
CONFIG = f"""
monitoring:
  interval_seconds: 0.5
  health: {{confirm_readings: 2, idle_grace_minutes: null}}
fault_tolerance:
  checkpoint_interval_minutes: {INTERVAL_SECONDS / 60}
"""
#: Slow until it may hurry: long enough for every kill, and done at once after the last.
TOTAL = 20_000
STEP_SECONDS = 0.02
#: A step takes at least its time, and after each it is asked whether the interval is over: so many fit, and one more.
STEPS_PER_INTERVAL = round(INTERVAL_SECONDS / STEP_SECONDS) + 1

TRAINING = f"""
import hashlib, json, os, pathlib, time
from corral import checkpoint

place = pathlib.Path(os.environ["PLACE"])
witness = (place / "witness").open("a", buffering=1)

def note(**words):
    witness.write(json.dumps({{"attempt": int(os.environ.get("CORRAL_ATTEMPT", 0)), **words}}) + "\\n")

state = checkpoint.restore() or {{"digest": ""}}
given = {{name: value for name, value in os.environ.items() if name.startswith("CORRAL_")}}
note(begin=checkpoint.steps_done(), pid=os.getpid(), helper=checkpoint.__file__, given=given)
for step in checkpoint.steps({TOTAL}, lambda: state):
    if not (place / "hurry").exists():
        time.sleep({STEP_SECONDS})
    state["digest"] = hashlib.sha256(f"{{state['digest']}} {{step}}".encode()).hexdigest()
    note(step=step)
(place / "result").write_text(state["digest"])
"""


@dataclass(kw_only=True)
class Training:
    """A job, and what it has left on the disk."""

    http: httpx.Client
    id: str
    place: Path

    @property
    def view(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/jobs/{self.id}").json()
        return found

    @property
    def checkpoints(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get(f"/jobs/{self.id}/checkpoints").json()["items"]
        return found

    def lines(self, attempt: int) -> list[dict[str, Any]]:
        """The complete lines that an attempt has written."""
        path = self.place / "witness"
        text = path.read_text() if path.exists() else ""
        found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in found if line["attempt"] == attempt]

    def begun(self, attempt: int) -> dict[str, Any]:
        wait_until(lambda: bool(self.lines(attempt)), f"attempt {attempt} of {self.id} begins")
        return self.lines(attempt)[0]

    def steps(self, attempt: int) -> list[int]:
        return [line["step"] for line in self.lines(attempt) if "step" in line]

    def trains(self, attempt: int, steps: int = 5) -> None:
        """Waits until the attempt has done this number of further steps."""
        done = len(self.steps(attempt))
        wait_until(lambda: len(self.steps(attempt)) >= done + steps, f"attempt {attempt} of {self.id} trains")

    def saves(self, attempt: int) -> None:
        wait_until(
            lambda: any(item["good"] and item["attempt"] == attempt for item in self.checkpoints),
            f"attempt {attempt} of {self.id} saves",
        )

    def becomes(self, state: str) -> dict[str, Any]:
        seen: list[dict[str, Any]] = []

        def reached() -> bool:
            seen.append(self.view)
            return bool(seen[-1]["state"] == state)

        wait_until(reached, f"{self.id} is {state}")
        return seen[-1]

    def kill(self, attempt: int) -> None:
        os.kill(self.begun(attempt)["pid"], signal.SIGKILL)

    def post(self, action: str) -> None:
        answer = self.http.post(f"/jobs/{self.id}/{action}")
        assert answer.is_success, answer.text

    def resumes(self, attempt: int, *, lost: int) -> dict[str, Any]:
        """The attempt begins at the last good step; at most so many steps of the one before are done again."""
        begun = self.begun(attempt)
        source = Path(begun["given"]["CORRAL_RESUME_FROM"])
        assert source.parent == Path(begun["given"]["CORRAL_CHECKPOINT_DIR"])
        assert begun["begin"] == int(source.name.rpartition("-")[2]), "it goes on where the chosen checkpoint ended"
        before = self.steps(attempt - 1)
        assert begun["begin"] > self.lines(attempt - 1)[0]["begin"], "the attempt before was not in vain"
        assert 0 <= before[-1] + 1 - begun["begin"] <= lost
        wait_until(lambda: bool(self.steps(attempt)), f"attempt {attempt} of {self.id} goes on")
        assert self.steps(attempt)[0] == begun["begin"]
        return begun

    def comes_to(self, result: str) -> None:
        (self.place / "hurry").touch()
        self.becomes("completed")
        assert (self.place / "result").read_text() == result


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The result of a run without a platform, in which nothing happened."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "hurry").touch()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
    subprocess.run([sys.executable, "-c", TRAINING], env={**clean, "PLACE": str(place)}, check=True, timeout=120)
    return (place / "result").read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    directory = tmp_path_factory.mktemp("checkpoints")
    (directory / "corral.yaml").write_text(CONFIG)
    made = CorralServer(directory / "home", "--virtual-nodes", "3x2xA10", "--config", str(directory / "corral.yaml"))
    try:
        made.start()
        yield made
    finally:
        made.kill()


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    if not server.is_running:
        server.start()  # a story that kills it may have failed in between
    with server.http() as client:
        yield client
        for job in client.get("/jobs", params={"state": ["queued", "starting", "running"]}).json()["items"]:
            client.post(f"/jobs/{job['id']}/stop")


def train(http: httpx.Client, place: Path, name: str, **values: Any) -> Training:
    place.mkdir(exist_ok=True)
    body = {
        "name": name,
        "command": [sys.executable, "-c", TRAINING],
        "gpus": 1,
        "env": {"PLACE": str(place)},
        **values,
    }
    answer = http.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text
    return Training(http=http, id=answer.json()["id"], place=place)


def test_killed_in_every_way(server: CorralServer, http: httpx.Client, tmp_path: Path, undisturbed: str) -> None:
    shell = Person(server=server.url, home=server.home)
    training = train(http, tmp_path / "training", "killed-often")

    # Its environment has every variable, and it finds the helper that the platform installs.
    begun = training.begun(1)
    assert begun["begin"] == 0
    assert float(begun["given"]["CORRAL_CHECKPOINT_INTERVAL_SECONDS"]) == pytest.approx(INTERVAL_SECONDS)
    assert begun["given"]["CORRAL_CHECKPOINT_KEEP"] == "3"
    assert "CORRAL_RESUME_FROM" not in begun["given"]
    assert Path(begun["helper"]).is_relative_to(server.home / "helper")

    # The process is killed. That is its own failure: it does not come back by itself.
    training.saves(1)
    training.trains(1, steps=17)
    training.kill(1)
    ended = training.becomes("failed")
    assert (ended["end_reason"], ended["attempt"]) == ("exit_code", 1)
    training.post("start")
    training.resumes(2, lost=STEPS_PER_INTERVAL)

    # The server is killed. The program does not notice.
    training.saves(2)
    server.kill()
    training.trains(2)
    server.start()
    assert training.becomes("running")["attempt"] == 2
    training.trains(2)
    assert sum("begin" in line for line in training.lines(2)) == 1

    # Server and process are killed.
    server.kill()
    training.trains(2)
    training.kill(2)
    server.start()
    training.becomes("failed")
    training.post("start")
    training.resumes(3, lost=STEPS_PER_INTERVAL)

    # Its GPU fails: it is warned, saves, and goes on with another one.
    training.saves(3)
    training.becomes("running")
    (gpu,) = training.view["allocation"]["grants"][0]["gpus"]
    shell.ok("drill", "lose-gpu", gpu)
    training.resumes(4, lost=0)
    view = training.becomes("running")
    assert view["allocation"]["grants"][0]["gpus"] != [gpu]

    # It is preempted: warned again.
    training.trains(4)
    training.post("requeue")
    training.resumes(5, lost=0)

    # Its node is lost, without a warning.
    training.saves(5)
    node = training.becomes("running")["allocation"]["grants"][0]["node"]
    shell.ok("drill", "lose-node", node)
    training.resumes(6, lost=STEPS_PER_INTERVAL)

    # The owner stops it, and starts it again.
    training.trains(6)
    training.post("stop")
    training.becomes("stopped")
    training.post("start")
    training.resumes(7, lost=0)

    training.comes_to(undisturbed)
    reasons = [item["end_reason"] for item in http.get(f"/jobs/{training.id}/attempts").json()["items"]]
    assert reasons == [
        "exit_code", "exit_code", "gpu_failed", "preempted", "node_lost", "stopped_by_user", "exit_code"
    ]  # fmt: skip
    shell.ok("drill", "clear")


def test_a_time_limit_costs_nothing(http: httpx.Client, tmp_path: Path, undisturbed: str) -> None:
    training = train(http, tmp_path / "training", "out-of-time", time="4s", checkpoint_interval="1h")
    assert training.becomes("failed")["end_reason"] == "timed_out"
    assert training.begun(1)["given"]["CORRAL_CHECKPOINT_INTERVAL_SECONDS"] == "3600"
    training.post("start")
    training.resumes(2, lost=0)
    assert training.becomes("failed")["end_reason"] == "timed_out"
    # However slow this machine is: from now on in a hurry, in as many attempts as it takes.
    (training.place / "hurry").touch()
    attempt = 2
    while training.view["state"] == "failed":
        attempt += 1
        training.post("start")
        training.resumes(attempt, lost=0)
        wait_until(lambda: training.view["state"] in ("completed", "failed"), "it ends")
    training.comes_to(undisturbed)


def test_a_torn_checkpoint_is_never_resumed_from(http: httpx.Client, tmp_path: Path, undisturbed: str) -> None:
    rng = random.Random(5)
    training = train(http, tmp_path / "training", "torn-often")
    for attempt, what in enumerate(("state", "manifest.json", "state"), 1):
        wait_until(
            lambda attempt=attempt: sum(item["attempt"] == attempt for item in training.checkpoints) > 1,  # type: ignore[misc]
            "there are two of this attempt",
        )
        training.kill(attempt)
        training.becomes("failed")
        newest, second = training.checkpoints[:2]
        torn = Path(newest["path"]) / what
        os.truncate(torn, rng.randrange(torn.stat().st_size))
        seen = training.checkpoints[0]
        assert (seen["name"], seen["good"]) == (newest["name"], False)
        assert seen["problem"]
        training.post("start")
        begun = training.resumes(attempt + 1, lost=2 * STEPS_PER_INTERVAL)
        assert begun["given"]["CORRAL_RESUME_FROM"] == second["path"]
    training.comes_to(undisturbed)


def test_people_see_what_was_saved_and_can_ask_for_more(
    server: CorralServer, http: httpx.Client, tmp_path: Path
) -> None:
    operator = operator_of(server)
    training = train(http, tmp_path / "training", "asked-to-save", checkpoint_interval="1h")
    training.trains(1)
    assert training.becomes("running")["checkpointed_at"] is None
    assert "No checkpoint was saved" in operator.run("checkpoints", training.id, code=0).err
    operator.ok("checkpoint", training.id)
    training.saves(1)
    (saved,) = training.checkpoints
    wait_until(lambda: training.view["checkpointed_at"] == saved["saved_at"], "the platform has noticed")
    assert saved["size_bytes"] > 0
    assert f"(step {saved['step']})" in operator.ok("show", training.id)
    assert saved["name"] in operator.ok("checkpoints", training.id)
    actions = [item["action"] for item in http.get("/events", params={"subject": training.id}).json()["items"]]
    assert {"job.checkpointed", "job.checkpoint-requested"} <= set(actions)

    training.post("stop")
    training.becomes("stopped")
    assert training.checkpoints[0]["step"] == training.steps(1)[-1] + 1, "it saved on the warning"
    last = training.checkpoints[0]["saved_at"]
    wait_until(lambda: training.view["checkpointed_at"] == last, "the last save is noticed after the end")
    assert http.post(f"/jobs/{training.id}/checkpoint").status_code == 409


def test_switched_off_a_program_gets_the_directory_only(tmp_path: Path) -> None:
    config = tmp_path / "corral.yaml"
    config.write_text("fault_tolerance: {enable_checkpointing: false}\n")
    server = CorralServer(tmp_path / "home", "--virtual-gpus", "1xA10", "--config", str(config))
    server.start()
    try:
        with server.http() as http:
            body = {"command": ["sh", "-c", "env"], "env": {"PYTHONPATH": "/mine"}, "name": "shows-its-environment"}
            job_id = http.post("/jobs", json=body).json()["id"]
            wait_until(lambda: http.get(f"/jobs/{job_id}").json()["state"] == "completed", "it ends")
            reported = dict(line.split("=", 1) for line in http.get(f"/jobs/{job_id}/logs").text.splitlines())
    finally:
        server.kill()
    assert {name for name in reported if "CHECKPOINT" in name or "RESUME" in name} == {"CORRAL_CHECKPOINT_DIR"}
    assert reported["PYTHONPATH"] == "/mine"
