"""Two teams share eight GPUs. What one lends comes back when the other needs it; the victim saves first, goes on
later as if nothing had happened, and both sides hold a receipt of it.

The training's state is a digest over all its steps, one after the other: a step that is lost or done twice would show.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.audit import assert_journal_replays, assert_no_gpu_given_twice, attempts_of
from tests.integration.cli_harness import Person, operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

MIN_RUN_SECONDS = 1.5
CONFIG = f"""
policies: {{preemption_min_run_minutes: {MIN_RUN_SECONDS / 60}}}
monitoring:
  interval_seconds: 0.5
  health: {{idle_grace_minutes: null}}
fault_tolerance: {{checkpoint_interval_minutes: 60}}
"""
#: more than it gets through before it is asked to hurry, however slow the machine is
TOTAL = 3000
TRAINING = f"""
import hashlib, json, os, pathlib, time
from corral import checkpoint

place = pathlib.Path(os.environ["PLACE"])
state = checkpoint.restore() or {{"digest": ""}}
with (place / "begins").open("a") as witness:
    witness.write(json.dumps(checkpoint.steps_done()) + "\\n")
for step in checkpoint.steps({TOTAL}, lambda: state):
    if not (place / "hurry").exists():
        time.sleep(0.05)
    state["digest"] = hashlib.sha256(f"{{state['digest']}} {{step}}".encode()).hexdigest()
(place / "result").write_text(state["digest"])
"""
#: It takes its time to save, and then says so.
SLOW_SAVER = """
import os, pathlib, signal, sys, time

place = pathlib.Path(os.environ["PLACE"])
def save(*_):
    (place / "warned").touch()
    while not (place / "finish").exists():
        time.sleep(0.02)
    saved = pathlib.Path(os.environ["CORRAL_CHECKPOINT_DIR"]) / "own"
    saved.write_text("weights")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
(place / "up").touch()
while True:
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    directory = tmp_path_factory.mktemp("preemption")
    (directory / "corral.yaml").write_text(CONFIG)
    made = CorralServer(directory / "home", "--virtual-nodes", "2x4xA10", "--config", str(directory / "corral.yaml"))
    try:
        made.start()
        for name in ("ann", "bob", "eve"):
            made.add_user(name)
        yield made
    finally:
        made.kill()


@pytest.fixture
def shell(server: CorralServer) -> Iterator[Person]:
    """Removes everything that a story leaves before the next one."""
    yield operator_of(server)
    with server.http() as http:
        for job in http.get("/jobs", params={"state": ["queued", "running", "starting"]}).json()["items"]:
            http.post(f"/jobs/{job['id']}/stop")
        wait_until(lambda: not live(http), "everything has ended")
        for queue in http.get("/queues").json()["items"]:
            http.patch(f"/queues/{queue['name']}", json={"guaranteed_gpus": 0}).raise_for_status()


def live(http: httpx.Client) -> list[str]:
    states = ["queued", "starting", "running", "stopping"]
    return [job["id"] for job in http.get("/jobs", params={"state": states}).json()["items"]]


def submit(http: httpx.Client, name: str, **values: Any) -> str:
    body = {"name": name, "gpus": 4, "command": ["sleep", "600"], "grace": 20, **values}
    answer = http.post("/jobs", json=body)
    assert answer.is_success, answer.text
    return str(answer.json()["id"])


def training(place: Path, program: str = TRAINING) -> dict[str, Any]:
    place.mkdir()
    return {"command": [sys.executable, "-c", program], "env": {"PLACE": str(place)}}


def becomes(http: httpx.Client, job: str, state: str) -> dict[str, Any]:
    wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == state, f"{job} is {state}", seconds=45.0)
    view: dict[str, Any] = http.get(f"/jobs/{job}").json()
    return view


def receipts(http: httpx.Client, job: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = http.get(f"/jobs/{job}/receipts").json()["items"]
    return items


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def undisturbed() -> str:
    digest = ""
    for step in range(TOTAL):
        digest = hashlib.sha256(f"{digest} {step}".encode()).hexdigest()
    return digest


def test_lent_gpus_come_back_and_the_borrower_goes_on_later(
    server: CorralServer, shell: Person, tmp_path: Path
) -> None:
    shell.ok("queue", "create", "vision", "--guaranteed-gpus", "4", "--weight", "2", "--description", "Image models")
    assert shell.read("queue", "show", "vision")["description"] == "Image models"
    shell.ok("queue", "create", "speech", "--guaranteed-gpus", "4")
    refusal = shell.run("queue", "edit", "speech", "--guaranteed-gpus", "5", code=2).err
    assert "pool default has 8, of which 4 are guaranteed to queue vision" in refusal
    place = tmp_path / "training"
    with server.http("ann") as ann, server.http("bob") as bob, server.http("eve") as eve:
        # All GPUs are free, and all are guaranteed to others: a job that is not preemptible does not get them.
        firm = submit(eve, "firm", preemptible=False)
        assert http_state(eve, firm) == "queued"
        assert "owed" in [reason["rule"] for reason in eve.get(f"/jobs/{firm}/why").json()["reasons"]]
        eve.post(f"/jobs/{firm}/stop")

        # Bob's team uses everything while Ann's has nothing to do.
        own = submit(bob, "own-four", queue="speech")
        becomes(bob, own, "running")
        borrowed = submit(bob, "borrowed", queue="speech", **training(place))
        becomes(bob, borrowed, "running")
        shown = {view["name"]: view for view in shell.read("queue", "ls")["items"]}
        assert [shown["speech"][word] for word in ("held_gpus", "borrowed_gpus", "owed_gpus")] == [8, 4, 0]
        assert [shown["vision"][word] for word in ("held_gpus", "borrowed_gpus", "owed_gpus")] == [0, 0, 4]
        assert "holds 8, 4 of them borrowed" in shell.ok("queue", "show", "speech")

        # Ann's team wants its own: the borrower is warned, saves, and waits again.
        urgent = submit(ann, "urgent", queue="vision")
        becomes(ann, urgent, "running")
        victim = becomes(bob, borrowed, "queued")
        assert (victim["preemptions"], victim["preempted_for"], victim["retries"]) == (1, urgent, 0)
        assert victim["message"].startswith(f"is preempted for {urgent} (urgent) of ann: ")
        assert http_state(bob, own) == "running", "GPUs that its queue is guaranteed are not taken"

        # Both hold the same receipt, and no other user does.
        wait_until(lambda: receipts(ann, urgent)[0]["saved"] is True, "what it saved was looked at")
        (theirs,), (mine,) = receipts(bob, borrowed), receipts(ann, urgent)
        assert (theirs.pop("role"), mine.pop("role")) == ("preempted", "preempting")
        assert theirs == mine
        assert (mine["rule"], mine["user"], mine["for_user"], mine["gpus"]) == ("guarantee", "bob", "ann", 4)
        assert (mine["job"], mine["for_job"], mine["attempt"], mine["back_at"]) == (borrowed, urgent, 1, None)
        assert "4" in mine["detail"]
        assert mine["lost_gpu_seconds"] < 4 * 5.0, "what it did after the warning, at most"
        assert eve.get(f"/jobs/{urgent}/receipts").status_code == 404
        assert [item["id"] for item in ann.get("/receipts").json()["items"]] == [mine["id"]]
        assert eve.get("/receipts").json()["items"] == []
        assert [item["id"] for item in shell.read("receipts", "--rule", "guarantee")["items"]] == [mine["id"]]
        assert "guarantee" in shell.ok("receipts", urgent)
        assert shell.read("show", borrowed)["receipts"][0]["id"] == mine["id"]

        # Ann is done, and the training goes on where it was.
        ann.post(f"/jobs/{urgent}/stop")
        becomes(bob, borrowed, "running")
        (place / "hurry").touch()
        becomes(bob, borrowed, "completed")
        assert (place / "result").read_text() == undisturbed()
        begins = [json.loads(line) for line in (place / "begins").read_text().splitlines()]
        assert (begins[0], len(begins)) == (0, 2)
        assert begins[1] > 0
        (over,) = receipts(bob, borrowed)
        assert seconds(over["at"]) <= seconds(over["ended_at"]) <= seconds(over["back_at"])
        metrics = httpx.get(f"{server.url}/metrics", headers=ann.headers).text
        assert 'corral_preemptions_total{rule="guarantee"} 1' in metrics
    assert_no_gpu_given_twice(attempts_of(server.home))
    assert_journal_replays(server.home)


def http_state(http: httpx.Client, job: str) -> str:
    return str(http.get(f"/jobs/{job}").json()["state"])


def test_the_front_of_a_queue_that_preempts_takes_from_its_end(server: CorralServer, shell: Person) -> None:
    assert "cannot preempt" in shell.run("queue", "create", "rush", "--preempts", code=2).err
    shell.ok("queue", "create", "rush", "--policy", "priority", "--preempts")
    assert "priority, backfill, preempts" in shell.ok("queue", "show", "rush")
    with server.http("ann") as ann, server.http("bob") as bob:
        firm = submit(bob, "firm", queue="rush", priority=9, preemptible=False)
        becomes(bob, firm, "running")
        low = submit(bob, "low-prio", queue="rush", priority=8)
        becomes(bob, low, "running")
        high = submit(ann, "high-prio", queue="rush", priority=1)
        becomes(ann, high, "running")
        assert becomes(bob, low, "queued")["preemptions"] == 1
        assert http_state(bob, firm) == "running", "it is not preemptible"
        (receipt,) = receipts(ann, high)
        assert (receipt["rule"], receipt["job"]) == ("order", low)
        (attempt,) = bob.get(f"/jobs/{low}/attempts").json()["items"]
        ran = seconds(receipt["at"]) - seconds(attempt["planned_at"])
        assert ran >= MIN_RUN_SECONDS, "every job runs for a while before it is preempted"
        assert attempt["end_reason"] == "preempted"
        # One that is not before it waits like everybody.
        equal = submit(bob, "no-better", queue="rush", priority=1)
        assert http_state(bob, equal) == "queued"
        wait_until(lambda: receipts(ann, high)[0]["saved"] is False, "it saved nothing, and that is known")


def test_lent_gpus_of_a_reservation_come_back_to_the_owner(server: CorralServer, shell: Person) -> None:
    shell.ok("reservation", "create", "sprint", "--gpus", "4", "--user", "eve", "--until", "1h")
    with server.http("bob") as bob, server.http("eve") as eve:
        jobs = [submit(bob, f"anywhere-{n}") for n in (1, 2)]
        for job in jobs:
            becomes(bob, job, "running")
        owners = submit(eve, "owners")
        becomes(eve, owners, "running")
        (receipt,) = receipts(eve, owners)
        assert (receipt["rule"], receipt["for_user"], "sprint" in receipt["detail"]) == ("reservation", "eve", True)
        assert sorted(http_state(bob, job) for job in jobs) == ["queued", "running"]
    shell.ok("reservation", "rm", "-y", "sprint")


def test_a_server_that_is_killed_between_the_warning_and_the_end(
    server: CorralServer, shell: Person, tmp_path: Path
) -> None:
    place = tmp_path / "slow"
    with server.http("ann") as ann, server.http("bob") as bob:
        shell.ok("queue", "create", "second", "--policy", "priority", "--preempts")
        low = submit(bob, "slow-saver", gpus=3, queue="second", priority=8, **training(place, SLOW_SAVER))
        others = [submit(bob, f"filling-{n}", gpus=n, queue="second", priority=1) for n in (1, 4)]
        for job in others:
            becomes(bob, job, "running")
        wait_until((place / "up").exists, "it runs")
        high = submit(ann, "highest", gpus=3, queue="second", priority=0)
        wait_until((place / "warned").exists, "it is warned")
        assert http_state(bob, low) == "stopping"
    server.kill()
    (place / "finish").touch()
    server.start()
    with server.http("ann") as ann, server.http("bob") as bob:
        becomes(ann, high, "running")
        assert becomes(bob, low, "queued")["preemptions"] == 1
        wait_until(lambda: receipts(bob, low)[0]["saved"] is True, "its last save is found")
        assert len(receipts(bob, low)) == 1, "no job is preempted twice for one job"
        assert [http_state(bob, job) for job in others] == ["running", "running"]
    assert_no_gpu_given_twice(attempts_of(server.home))
    assert_journal_replays(server.home)
