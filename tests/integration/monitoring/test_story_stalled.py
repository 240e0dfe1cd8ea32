"""A training hangs: its owner gets a notice, and it goes on elsewhere from its checkpoint if its owner allows that. By
the command line and the API, with real programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

CONFIG = """
monitoring:
  interval_seconds: 0.5
  pace: {hung_minutes: 0.05, hung_steps: 5, window_minutes: 0.02}
"""
#: Does ten steps, saves, and hangs in its first attempt; completes in a later one.
HANGING = """
import os, time
from corral import checkpoint

state = checkpoint.restore() or {"begun": os.environ["CORRAL_NODE"]}
for step in checkpoint.steps(14, lambda: state):
    time.sleep(0.3)
    if step == 9 and os.environ["CORRAL_ATTEMPT"] == "1":
        checkpoint.save(state, step=step + 1)
        while True:
            time.sleep(1)
print("from step", checkpoint.steps_done(), "begun on", state["begun"], "now on", os.environ["CORRAL_NODE"])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    home = tmp_path_factory.mktemp("stalled")
    (home / "corral.yaml").write_text(CONFIG)
    with cli_server(home, "--virtual-nodes", "2x2xA10", "--config", str(home / "corral.yaml")) as started:
        yield started


@pytest.fixture(scope="module")
def ann(server: CorralServer) -> Person:
    return scientist(server, operator_of(server), "ann")


def events_of(person: Person, job: str) -> list[str]:
    return [event["action"] for event in person.read("events", "--subject", job, "--limit", "200")["items"]]


def test_a_hung_training_is_reported_to_its_owner_and_keeps_running(
    server: CorralServer, ann: Person, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(HANGING)
    job = ann.submit("--gpus", "1", "--grace", "1s", "--", sys.executable, str(program))
    wait_until(lambda: ann.read("show", job)["hung_since"] is not None, "the hang is noticed")
    assert ann.state(job) == "running"
    assert "hangs: no step since" in ann.ok("show", job)
    items = ann.read("inbox")["items"]
    assert [item["kind"] for item in items if item["action"] == "job.hung"] == ["stalled"]
    ann.ok("stop", job)
    ann.wait_for(job, "stopped")


def test_stalled_job_goes_on_elsewhere_from_its_checkpoint_if_its_owner_allows_it(
    server: CorralServer, ann: Person, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(HANGING)
    job = ann.submit("--gpus", "1", "--grace", "1s", "--restart-if-hung", "--", sys.executable, str(program))
    first = ann.wait_for(job, "running")["allocation"]["grants"][0]["node"]
    done = ann.wait_for(job, "completed")
    assert (done["attempt"], done["retries"]) == (2, 1)
    assert events_of(ann, job).count("job.hung") == 1
    log = ann.ok("logs", job)
    assert f"from step 14 begun on {first} now on " in log
    assert f"now on {first}" not in log
