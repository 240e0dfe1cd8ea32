"""An elastic training on eight GPUs: it grows into what is idle, makes room for others within its grace time, and comes
to the same result as if nothing had happened.

Its state is a digest over all its steps, one after the other: a step that is lost or done twice would show in the
result. With more GPUs it does more steps at once, as a real one would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.audit import assert_journal_replays, assert_no_gpu_given_twice, attempts_of
from tests.integration.cli_harness import operator_of
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

GRACE_SECONDS = 20.0
CONFIG = """
monitoring:
  interval_seconds: 0.5
  health: {idle_grace_minutes: null}
scaling:
  max_gpus: 8
  scale_up_threshold: 0.3
  scale_down_threshold: 0.01
  window_minutes: 0.02
  interval_minutes: 0.05
fault_tolerance:
  checkpoint_interval_minutes: 0.01
"""
TOTAL = 4000
TRAINING = f"""
import hashlib, json, os, pathlib, sys, time
from corral import checkpoint

place = pathlib.Path(os.environ["PLACE"])
witness = (place / "witness").open("a", buffering=1)
gpus = int(sys.argv[1])
state = checkpoint.restore() or {{"digest": ""}}
print(f"training on {{gpus}} GPUs: {{sys.argv[2]}}", flush=True)
devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
begun = {{"gpus": gpus, "list": sys.argv[2], "devices": devices, "begin": checkpoint.steps_done()}}
witness.write(json.dumps(begun) + "\\n")
for step in checkpoint.steps({TOTAL}, lambda: state):
    if not (place / "hurry").exists():
        time.sleep(0.1 / gpus)
    state["digest"] = hashlib.sha256(f"{{state['digest']}} {{step}}".encode()).hexdigest()
witness.write(json.dumps({{"gpus": gpus, "end": checkpoint.steps_done()}}) + "\\n")
(place / "result").write_text(state["digest"])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    directory = tmp_path_factory.mktemp("elastic")
    (directory / "corral.yaml").write_text(CONFIG)
    made = CorralServer(directory / "home", "--virtual-nodes", "1x8xA10", "--config", str(directory / "corral.yaml"))
    try:
        made.start()
        yield made
    finally:
        made.kill()


def undisturbed(place: Path) -> str:
    """The result of a run without a platform, in which nothing happened."""
    place.mkdir()
    (place / "hurry").touch()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
    command = [sys.executable, "-c", TRAINING, "1", ""]
    subprocess.run(command, env={**clean, "PLACE": str(place)}, check=True, timeout=120)
    return (place / "result").read_text()


def test_from_two_to_eight_and_back(server: CorralServer, tmp_path: Path) -> None:
    server.add_user("bob")
    place = tmp_path / "training"
    place.mkdir()
    with server.http() as http, server.http("bob") as bob:
        # Six of eight GPUs are taken: it starts with its minimum.
        taken = post(bob, "/jobs", {"name": "taken", "gpus": 6, "command": ["sleep", "600"], "grace": 1})
        becomes(http, taken["id"], "running")
        job = post(
            http,
            "/jobs",
            {
                "name": "stretchy",
                "min_gpus": 2,
                "max_gpus": 8,
                "grace": GRACE_SECONDS,
                "command": [sys.executable, "-c", TRAINING, "{gpu_count}", "{gpu_list}"],
                "env": {"PLACE": str(place)},
            },
        )
        attempt = runs_with(http, place, job["id"], 2)
        assert attempt == 1

        # The others are gone: it grows into all that is idle, by what was measured of it.
        post(bob, f"/jobs/{taken['id']}/stop", None)
        assert runs_with(http, place, job["id"], 8) == 2
        view = http.get(f"/jobs/{job['id']}").json()
        assert (view["gpus"], view["elastic"]["min_gpus"], view["elastic"]["max_gpus"]) == (8, 2, 8)

        # Others queue: it is back at its minimum within its grace time, and all of them run.
        queued = [
            post(bob, "/jobs", {"name": f"other-{n}", "gpus": 2, "command": ["sleep", "600"], "grace": 1})
            for n in range(3)
        ]
        for other in queued:
            becomes(http, other["id"], "running")
        assert runs_with(http, place, job["id"], 2) == 3
        warned, ended = (event_time(http, job["id"], action) for action in ("job.resizing", "job.resized"))
        assert ended - warned <= GRACE_SECONDS
        receipt = events(http, job["id"], "job.resizing")[-1]["detail"]
        assert (receipt["cause"], receipt["from_gpus"], receipt["to_gpus"]) == ("others", 8, 2)
        assert set(receipt["for"]) <= {other["id"] for other in queued}

        # Its result is that of an undisturbed run, whatever happened.
        (place / "hurry").touch()
        becomes(http, job["id"], "completed")
        assert (place / "result").read_text() == undisturbed(tmp_path / "undisturbed")
        check_attempts(place)
        attempts = http.get(f"/jobs/{job['id']}/attempts").json()["items"]
        assert [item["end_reason"] for item in attempts[:-1]] == ["resized"] * (len(attempts) - 1)
        assert attempts[-1]["end_reason"] == "exit_code"
        sizes = [len(item["allocation"]["grants"][0]["gpus"]) for item in attempts]
        assert sizes[:3] == [2, 8, 2]
        assert all(2 <= size <= 8 for size in sizes)
        log = http.get(f"/jobs/{job['id']}/logs", params={"attempt": 2}).text
        assert "training on 8 GPUs: 0,1,2,3,4,5,6,7" in log
        for other in queued:
            post(bob, f"/jobs/{other['id']}/stop", None)
            becomes(http, other["id"], "stopped")
    assert assert_no_gpu_given_twice(attempts_of(server.home)) == 8
    assert_journal_replays(server.home)


def test_resized_by_hand(server: CorralServer, tmp_path: Path) -> None:
    """It was never seen to save, so only its owner resizes it while no job waits."""
    shell = operator_of(server)
    (tmp_path / "job.yaml").write_text("name: by-hand\nmin-gpus: 2\nmax-gpus: 4\ncommand: [sleep, '600']\ngrace: 5\n")
    job = shell.submit("-f", str(tmp_path / "job.yaml"))
    view = shell.wait_for(job, "running")
    assert (view["gpus"], view["elastic"]["min_gpus"], view["elastic"]["max_gpus"]) == (2, 2, 4)
    assert "2 to 4 GPUs" in shell.ok("show", job)
    assert "may have 2 to 4 GPUs" in shell.run("resize", job, "--gpus", "5", code=2).err
    assert "continues with 4" in shell.ok("resize", job, "--gpus", "4")
    wait_until(lambda: shell.read("show", job)["attempt"] == 2, "its next attempt begins")
    view = shell.wait_for(job, "running")
    assert (view["gpus"], view["elastic"]["next_gpus"]) == (4, None)
    shell.ok("stop", job)
    shell.wait_for(job, "stopped")


def test_elastic_job_that_may_restart_begins_with_idle_gpus(server: CorralServer) -> None:
    shell = operator_of(server)
    size = ("--min-gpus", "2", "--max-gpus", "8", "--restart-unsaved", "--grace", "1s")
    job = shell.submit("--name", "over", *size, "--", "sleep", "600")
    view = shell.wait_for(job, "running")
    assert (view["gpus"], view["restart_unsaved"]) == (8, True)
    other = shell.submit("--name", "needs-six", "--gpus", "6", "--", "sleep", "600")
    shell.wait_for(other, "running")
    wait_until(lambda: shell.read("show", job)["gpus"] == 2, "it has started over with its minimum")
    for each in (job, other):
        shell.ok("stop", each)
        shell.wait_for(each, "stopped")


def check_attempts(place: Path) -> None:
    """Each attempt went on where the one before had saved, with the GPUs that it was given."""
    lines = [json.loads(line) for line in (place / "witness").read_text().splitlines()]
    begins = [line for line in lines if "begin" in line]
    assert [line["begin"] for line in begins] == sorted(line["begin"] for line in begins)
    assert begins[0]["begin"] == 0
    assert all(line["begin"] > 0 for line in begins[1:])
    assert all(len(line["list"].split(",")) == line["gpus"] for line in begins)
    assert lines[-1]["end"] == TOTAL


def runs_with(http: httpx.Client, place: Path, job_id: str, gpus: int) -> int:
    """Wait until its program has begun on so many GPUs; the number of that attempt."""
    seen: list[dict[str, Any]] = []

    def reached() -> bool:
        seen.append(http.get(f"/jobs/{job_id}").json())
        path = place / "witness"
        text = path.read_text() if path.exists() else ""
        begun = [json.loads(line)["gpus"] for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return bool(seen[-1]["state"] == "running" and seen[-1]["gpus"] == gpus and len(begun) == seen[-1]["attempt"])

    wait_until(reached, f"{job_id} runs with {gpus} GPUs", seconds=90.0)
    return int(seen[-1]["attempt"])


def becomes(http: httpx.Client, job_id: str, state: str) -> None:
    wait_until(lambda: http.get(f"/jobs/{job_id}").json()["state"] == state, f"{job_id} is {state}", seconds=90.0)


def post(http: httpx.Client, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
    answer = http.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def events(http: httpx.Client, job_id: str, action: str) -> list[dict[str, Any]]:
    """Oldest first."""
    items = http.get("/events", params={"subject": job_id, "limit": 200}).json()["items"]
    return sorted((item for item in items if item["action"] == action), key=lambda item: int(item["id"]))


def event_time(http: httpx.Client, job_id: str, action: str) -> float:
    return datetime.fromisoformat(events(http, job_id, action)[-1]["at"]).timestamp()
