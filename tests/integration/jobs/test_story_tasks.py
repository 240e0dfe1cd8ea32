"""Tasks for users of a GPU manager script: its configuration, its commands, its limits, and programs that grow and
shrink. By the command line and by the API."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.audit import assert_journal_replays, assert_no_gpu_given_twice, attempts_of
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist, stop_everything
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

#: A program that shows its place, and runs until it is stopped.
PROGRAM = """
import os, sys, time
rank, count = os.environ["CORRAL_RANK"], os.environ.get("NNODES", "1")
print(f"rank {rank} of {count}: {' '.join(sys.argv[1:])} visible {os.environ['CUDA_VISIBLE_DEVICES']}", flush=True)
time.sleep(600)
"""
#: A program that saves at once and then works, with as many GPUs as it is given. Its warning is SIGUSR1.
TRAINING = """
import signal, sys, time
from corral import checkpoint

warned = []
signal.signal(signal.SIGUSR1, lambda *_: warned.append("by SIGUSR1"))
state = checkpoint.restore() or {"begins": []}
state["begins"].append(sys.argv[2])
checkpoint.save(state, step=len(state["begins"]))
print("begins with", *state["begins"], flush=True)
for _ in range(6000):
    if warned:
        print("warned", *warned, flush=True)
        sys.exit(0)
    time.sleep(0.1)
"""


def manager_config(program: Path, *, notify: str = "restart", **scaling: Any) -> str:
    """The configuration of a GPU manager script, with the comments that such files have."""
    values = {
        "monitor_interval": 0.5,
        "max_gpus_per_task": 6,
        "max_total_gpus": 8,
        "max_manual_gpus": 6,
        "auto_scale": True,
        "program_template": {
            "command": shlex.join([sys.executable, str(program)]),
            "args": ["--gpus", "{gpu_list}"],
            "notify": notify,
            "env_vars": {"CUDA_VISIBLE_DEVICES": "{gpu_list}", "PYTHONUNBUFFERED": "1"},
        },
        "scaling": {"enabled": True, "min_gpus": 1, "max_gpus": 4, **scaling},
        "notification": {"enabled": True, "email": "ann@example.org", "gpu_available_threshold": 1},
    }
    return json.dumps(values, indent=2).replace("0.5,", "0.5,  // seconds")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tasks")
    (made / "program.py").write_text(PROGRAM)
    (made / "gpu_manager_config.json").write_text(manager_config(made / "program.py"))
    return made


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[CorralServer]:
    config = str(directory / "gpu_manager_config.json")
    with cli_server(directory, "--virtual-nodes", "3x4xA10", "--config", config) as made:
        yield made


@pytest.fixture
def ann(server: CorralServer) -> Iterator[Person]:
    made = operator_of(server)
    yield made
    stop_everything(made)


def held(person: Person) -> float:
    return float(person.read("status")["allocated_gpus"])


def wait_for_line(person: Person, task: str, pattern: str, *flags: str) -> None:
    line = re.compile(pattern, re.MULTILINE)
    wait_until(lambda: line.search(person.ok("logs", task, *flags)) is not None, f"{pattern} is in the log of {task}")


def test_the_configuration_is_read_and_its_gaps_are_named(ann: Person, directory: Path, server: CorralServer) -> None:
    config = str(directory / "gpu_manager_config.json")
    checked = ann.run("config", "check", config, code=0)
    assert "mailto://USER:PASSWORD@MAIL-SERVER?to=ann@example.org" in checked.err
    assert "MAIL-SERVER" in server.log()  # also the server names it at its start
    shown = ann.ok("config", "show", "--config", config)
    assert re.search(r"^policies.max_total_gpus +8 ", shown, re.MULTILINE)
    imported = ann.run("config", "import", config, code=0)
    assert "max_total_gpus: 8" in imported.out
    assert "mapped: auto_scale -> scaling.enabled" in imported.err
    assert [channel["name"] for channel in ann.read("channel", "ls")["items"]] == ["config-1"]


def test_the_workflow_with_the_flags_of_the_script(ann: Person) -> None:
    page = ann.ok("gpu-manager", "--status")
    for line in ("Total Nodes: 3", "Total GPUs: 12", "Free GPUs: 12", "Allocated GPUs: 0", "Active Tasks: 0"):
        assert line in page
    for task in ("training_task_1", "training_task_2"):
        said = ann.ok("gpu-manager", "--allocate", task)
        assert re.match(rf"Task {task}: 1 GPU, running on \S+ \(j-\d+\)", said)
        ann.ok("gpu-manager", "--start-program", task)
    page = ann.ok("gpu-manager", "--status")
    assert "Free GPUs: 10" in page
    for task in ("training_task_1", "training_task_2"):
        assert re.search(rf"^Task {task}: 1 GPU on \S+ \(running\)$", page, re.MULTILINE)
        wait_for_line(ann, task, r"^rank 0 of 1: --gpus (\d) visible \1$")
    assert "training_task_1" in ann.ok("show", "training_task_1")

    # Automatic allocations have a limit of their own; a number asks for more than that.
    refused = ann.run("gpu-manager", "--allocate", "training_task_3", code=1)
    assert "automatic allocations may hold 2 GPUs: asked 1, held 2" in refused.err
    assert "Task exp_train: 4 GPUs, running on" in ann.ok("gpu-manager", "--allocate", "exp_train", "--gpus", "4")

    assert "released" in ann.ok("gpu-manager", "--release", "training_task_1")
    ann.ok("stop", "training_task_2")
    ann.ok("release", "exp_train")
    wait_until(lambda: held(ann) == 0, "all GPUs are free again")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--status", "--release", "exp"), "--status and --release exclude each other"),
        (("--gpus", "4"), "--gpus belongs to --allocate"),
    ],
)
def test_flags_that_do_not_fit_together(ann: Person, flags: tuple[str, ...], message: str) -> None:
    assert message in ann.run("gpu-manager", *flags, code=2).err


def test_without_an_action_the_page_is_printed_again_and_again(ann: Person) -> None:
    watching = ann.start("gpu-manager", "--interval", "0.5")
    try:
        assert watching.stdout is not None
        lines = (line.strip() for line in watching.stdout)
        wait_until(lambda: next(lines) == "Total GPUs: 12", "the first page")
        wait_until(lambda: next(lines) == "Total GPUs: 12", "the second page")
    finally:
        watching.kill()
        watching.communicate()


def test_a_task_on_several_nodes_starts_its_program_on_each(ann: Person) -> None:
    said = ann.ok("allocate", "wide", "--gpus", "6")
    assert re.match(r"Task wide: 6 GPUs, running on \S+ and \S+ |Task wide: 6 GPUs, running on \S+, \S+ ", said)
    ann.ok("start-program", "wide")
    for rank in ("0", "1"):
        wait_for_line(ann, "wide", rf"^rank {rank} of 2: --gpus (\d,\d,\d) visible \1$", "--rank", rank)
    assert ann.read("show", "wide")["kind"] == "distributed"
    ann.ok("release", "wide")
    wait_until(lambda: held(ann) == 0, "the GPUs of both nodes are free again")


def test_an_elastic_gang_is_resized_on_each_of_its_nodes(ann: Person, server: CorralServer) -> None:
    show = "echo rank $NODE_RANK of $NNODES has $GPUS_PER_NODE: {gpu_count}; sleep 600"
    body = {"name": "gang", "nodes": 2, "min_gpus": 1, "max_gpus": 2, "command": ["sh", "-c", show], "grace": 2}
    with server.http() as http:
        http.post("/jobs", json=body).raise_for_status()
    assert ann.wait_for("gang", "running")["gpus"] == 1
    wait_for_line(ann, "gang", "^rank 1 of 2 has 1: 1$", "--rank", "1")
    assert "1 to 2 GPUs on each node" in ann.ok("show", "gang")
    ann.ok("resize", "gang", "--gpus", "2")
    wait_for_line(ann, "gang", "^rank 1 of 2 has 2: 2$", "--rank", "1")
    wait_until(lambda: held(ann) == 4, "it holds two GPUs on each of two nodes")


def test_beyond_the_total_a_task_is_refused_or_waits(ann: Person, server: CorralServer) -> None:
    bob = scientist(server, ann, "bob")
    ann.ok("allocate", "six", "--gpus", "6")
    bob.ok("allocate", "two", "--gpus", "2")
    refused = bob.run("allocate", "more", "--gpus", "1", code=1)
    assert "all jobs together may hold 8 GPUs: asks 1, holds 8" in refused.err
    assert "--wait" in refused.err
    server.token("bob", "bob-password-1")
    with server.client("bob") as client:
        view = client.tasks.allocate("more", gpus=1, wait=True)
        assert (view["job"]["state"], "waits" in (view["warning"] or "")) == ("queued", True)
        ann.ok("release", "six")
        job = client.jobs.wait_for_start(view["job"])
        assert job["state"] == "running"
        assert [task["task"] for task in client.tasks.list()] == ["more", "two"]
        client.tasks.release("more")
        client.tasks.release("two")


def test_the_log_is_in_a_file_besides_standard_error(server: CorralServer) -> None:
    written = (server.home / "corral.log").read_text()
    assert " INFO corral" in written
    for operation in ("job.submitted", "task.program-started", "job.stop-requested"):
        assert re.search(rf" INFO corral.operations \[\S+\] operator: {operation} j-\d+", written), operation
    assert (server.home / "corral.log").stat().st_mode & 0o077 == 0


def test_a_program_grows_into_idle_gpus_and_makes_room(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    thresholds = {"scale_up_threshold": 0.3, "scale_down_threshold": 0.01}
    config = tmp_path / "gpu_manager_config.json"
    quick = {**thresholds, "window_minutes": 0.02, "interval_minutes": 0.05}
    text = manager_config(tmp_path / "train.py", notify="SIGUSR1", **quick)
    config.write_text(text)
    with cli_server(tmp_path, "--virtual-nodes", "1x4xA10", "--config", str(config)) as server:
        ann = operator_of(server)
        ann.ok("allocate", "grows")
        assert ann.read("show", "grows")["gpus"] == 1  # its minimum, although four are free
        ann.ok("start-program", "grows")
        wait_until(lambda: ann.read("show", "grows")["gpus"] == 4, "it has taken the idle GPUs", seconds=90)
        wait_for_line(ann, "grows", r"^begins with \d 0,1,2,3$")

        ann.ok("submit", "--name", "other", "--gpus", "3", "--", "sleep", "600")
        ann.wait_for("other", "running")
        wait_until(lambda: ann.read("show", "grows")["gpus"] == 1, "it is back at its minimum")
        wait_for_line(ann, "grows", r"^begins with \d 0,1,2,3 \d$")
        assert "Task grows: 1 GPU on " in ann.ok("status", "--classic")
        waiting = ann.run("allocate", "late", code=0)
        assert "Warning: no GPU is free now: the task waits for one" in waiting.err
        assert "Task late: 1 GPU, queued" in waiting.out
        assert "warned by SIGUSR1" in ann.ok("logs", "grows", "--attempt", "1")
        ends = [attempt["end_reason"] for attempt in ann.read("show", "grows")["attempts"]]
        assert ends[:2] == ["resized", "resized"]
        ann.ok("release", "grows")
        stop_everything(ann)
        assert_no_gpu_given_twice(attempts_of(server.home))
        assert_journal_replays(server.home)
