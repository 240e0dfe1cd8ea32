"""A sweep, what comes after it, and doing it all once more: arrays, dependencies, clones and the way back to the queue,
by the command line against a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

#: stores the array variables of its environment, and fails where $BAD is its index
MEMBER = """
import json, os, pathlib, sys
given = {name: os.environ[f"CORRAL_ARRAY_{name}"] for name in ("INDEX", "SIZE", "NAME")}
place = pathlib.Path(sys.argv[1])
(place / f"part-{given['INDEX']}.json").write_text(json.dumps({**given, "LR": os.environ.get("LR")}))
sys.exit(given["INDEX"] == os.environ.get("BAD"))
"""
COLLECT = """
import json, pathlib, sys
place = pathlib.Path(sys.argv[1])
parts = [json.loads(path.read_text()) for path in place.glob("part-*.json")]
(place / "total.json").write_text(json.dumps(sorted(int(part["INDEX"]) for part in parts)))
"""
#: saves what it has counted when it is warned, and goes on from there
COUNTER = """
import os, pathlib, signal, sys, time
saved = pathlib.Path(os.environ["CORRAL_CHECKPOINT_DIR"]) / "count"
count = int(saved.read_text()) if saved.exists() else 0
def save(*_):
    saved.write_text(str(count))
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("from", count, flush=True)
while count < 1_000_000:
    count += 1
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("pipeline"), "--virtual-gpus", "4xA100-80G") as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def maria(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "maria")


def states(who: Person, name: str) -> list[str]:
    jobs = who.read("jobs", "-a", "--name", name, "--limit", "100")["items"]
    return sorted(job["state"] for job in jobs)


def test_a_sweep_and_what_collects_it(maria: Person, tmp_path: Path) -> None:
    program = (sys.executable, "-c", MEMBER, str(tmp_path))
    made = maria.read("submit", "--name", "sweep", "--array", "0-10:2,7", "--gpus", "1", "--hold", "--", *program)
    assert [job["name"] for job in made["items"]] == [f"sweep-{n}" for n in (0, 2, 4, 6, 7, 8, 10)]
    total = maria.read(
        "submit", "--name", "total", "--after", "sweep", "--", sys.executable, "-c", COLLECT, str(tmp_path)
    )
    assert (total["state"], total["after"]) == ("queued", [job["id"] for job in made["items"]])

    why = maria.read("why", "total")
    assert [reason["rule"] for reason in why["reasons"]] == ["dependency"]
    assert (why["position"], why["reasons"][0]["numbers"]) == (None, {"jobs": 7})
    assert why["summary"].startswith(f"it comes after {made['items'][0]['id']} (not started), ")
    assert f"after {made['items'][0]['id']}" in maria.ok("jobs", "--name", "total")

    maria.ok("start", "--array", "sweep")
    assert maria.wait_for("total", "completed")["after"] == []
    assert json.loads((tmp_path / "total.json").read_text()) == [0, 2, 4, 6, 7, 8, 10]
    assert json.loads((tmp_path / "part-7.json").read_text()) == {
        "INDEX": "7",
        "SIZE": "7",
        "NAME": "sweep",
        "LR": None,
    }
    assert "sweep, index 7 of 7 jobs" in maria.ok("show", "sweep-7")

    again = maria.read("clone", "sweep-7", "--env", "LR=0.2")
    assert again["name"] == "sweep-7-2"
    maria.wait_for("sweep-7-2", "completed")
    assert json.loads((tmp_path / "part-7.json").read_text())["LR"] == "0.2"
    maria.ok("rm", "-y", "--array", "sweep")
    assert states(maria, "sweep-") == ["completed"], "the clone is none of the array"


def test_job_after_a_failed_job_never_starts(maria: Person, operator: Person, tmp_path: Path) -> None:
    program = (sys.executable, "-c", MEMBER, str(tmp_path))
    maria.ok("submit", "--name", "brittle", "--array", "1-3", "--env", "BAD=2", "--hold", "--", *program)
    maria.ok("submit", "--name", "reduce", "--after", "brittle", "--", "true")
    maria.ok("submit", "--name", "publish", "--after", "reduce", "--", "true")
    refused = operator.run("-o", "json", "submit", "--after", "publish", "--", "true", code=2)
    assert refused.problem["errors"][0]["field"] == "--after"
    maria.ok("start", "--array", "brittle")
    bad = maria.wait_for("brittle-2", "failed")
    for name in ("reduce", "publish"):
        end = maria.wait_for(name, "stopped")
        assert (end["end_reason"], end["attempts"]) == ("dependency_failed", [])
        assert end["message"] == f"{bad['id']} (brittle-2) failed (exit code 1)"
    late = maria.run("submit", "--after", "brittle-2", "--", "true", code=1)
    assert f"--after: {bad['id']} (brittle-2) failed (exit code 1): what comes after it would never start" in late.err
    assert "would never start" in maria.run("start", "reduce", code=1).err
    # Without what failed it can be had all the same.
    assert maria.read("clone", "reduce", "--after", "none", "--name", "reduce-anyway")["after"] == []
    maria.wait_for("reduce-anyway", "completed")


def test_an_array_is_stopped_in_one_step_and_nothing_of_it_starts_meanwhile(maria: Person) -> None:
    made = maria.read("submit", "--name", "long", "--array", "0-19", "--gpus", "1", "--", "sleep", "300")["items"]
    # The answer shows the job as it was committed: the first ones have their GPUs.
    assert [job["state"] for job in made] == ["starting"] * 4 + ["queued"] * 16
    for job in made[:4]:
        maria.wait_for(job["id"], "running")
    assert maria.ok("stop", "--array", "long").startswith("Array long: ")
    wait_until(lambda: states(maria, "long-") == ["stopped"] * 20, "all have stopped")
    assert [maria.read("show", job["id"])["attempt"] for job in made] == [1] * 4 + [0] * 16
    assert "has ended already" in maria.run("stop", "--array", "long", code=1).err
    assert "there is no array 'wide'" in maria.run("stop", "--array", "wide", code=4).err


def test_back_to_the_queue_and_on_from_where_it_was(maria: Person, operator: Person) -> None:
    job = maria.submit("--name", "counter", "--gpus", "1", "--", sys.executable, "-c", COUNTER)
    wait_until(lambda: "from 0" in maria.run("logs", "counter").out, "it counts")
    assert operator.read("requeue", job)["stopping_for"] == "preempted"
    wait_until(lambda: maria.read("show", "counter")["attempt"] == 2, "the next attempt")
    wait_until(lambda: "from" in maria.run("logs", "counter").out, "it goes on")
    view = maria.read("show", "counter")
    assert view["retries"] == 0, "it costs no retry"
    first = view["attempts"][0]
    assert (first["end_reason"], first["message"]) == ("preempted", "sent back to its queue by an operator")
    assert int(maria.ok("logs", "counter").split()[1]) > 0
    assert maria.ok("logs", "counter", "--attempt", "1").split() == ["from", "0"], "every attempt keeps its log"
    maria.ok("stop", "counter")
    maria.wait_for("counter", "stopped")
    assert "only one that runs" in maria.run("requeue", "counter", code=1).err


def test_a_clone_stays_with_its_owner(maria: Person, operator: Person) -> None:
    job = maria.submit("--name", "private", "--env", "KEY=secret", "--hold", "--", "true")
    assert maria.read("clone", "private", "--hold")["env"] == {"KEY": "secret"}
    assert "would bring its environment" in operator.run("clone", job, code=3).err
