"""Habits against a real server: aliases, formats, questions, `corral run`, project folders, and names of ended jobs."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Iterator

import pytest
import yaml

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

SLURM = """#!/bin/bash
#SBATCH --job-name=from-slurm
#SBATCH --gres=gpu:1
#SBATCH --time=00:05:00
echo slurm script on $CUDA_VISIBLE_DEVICES
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("habits"), "--virtual-gpus", "2xA100-80G") as server:
        yield server


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "ann")


def test_lists_have_every_format(ann: Person, operator: Person) -> None:
    mine = ann.submit("--name", "formats", "--hold", "--", "true")
    other = operator.submit("--name", "others", "--hold", "--", "true")
    assert ann.ok("ps", "-q").split() == [mine]
    assert set(operator.ok("get", "jobs", "-A", "-o", "name").split()) >= {mine, other}
    assert operator.ok("jobs", "--user", "me", "-q").split() == operator.ok("ls", "--mine", "-q").split() == [other]
    assert yaml.safe_load(ann.ok("describe", "job", "formats", "-o", "yaml"))["id"] == mine
    rows = list(csv.DictReader(io.StringIO(ann.ok("jobs", "-o", "csv"))))
    assert [(row["id"], row["name"], json.loads(row["command"])) for row in rows] == [(mine, "formats", ["true"])]
    assert ann.ok("jobs", "--columns", "state,id,kind").splitlines()[0].split() == ["STATE", "ID", "KIND"]
    assert "IMAGE" in ann.ok("jobs", "-o", "wide").splitlines()[0]
    assert "no column 'nope'" in ann.run("jobs", "--columns", "nope", code=2).err
    assert ann.ok("node", "-q").split() == ann.ok("nodes", "--quiet").split()
    for person, job in ((ann, mine), (operator, other)):
        person.ok("delete", "-y", job)


def test_deletion_without_a_terminal_needs_the_option_yes(ann: Person, operator: Person) -> None:
    job = ann.submit("--hold", "--", "true")
    assert "-y" in ann.run("rm", job, code=2).err
    assert ann.state(job) == "created"
    ann.ok("rm", "-y", job)
    operator.ok("queue", "create", "asked")
    operator.run("delete", "queue", "asked", code=2)
    assert "asked" in operator.ok("queues", "ls")
    operator.ok("delete", "queue", "-y", "asked")
    # what can be undone is not refused
    operator.ok("user", "role", "ann", "scientist")


def test_run_prints_the_output_and_ends_with_the_jobs_exit_code(ann: Person) -> None:
    done = ann.run("run", "--gpus", "1", "--", "sh", "-c", "echo on GPU $CUDA_VISIBLE_DEVICES; exit 7")
    assert (done.code, done.out) == (7, "on GPU 0\n")
    assert "exit code 7" in done.err
    assert ann.run("run", "--", "true").code == 0


def test_ctrl_c_is_passed_on_to_the_job(ann: Person) -> None:
    script = "trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    process = ann.start("run", "--name", "interrupted", "--", "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    # the shell itself may say that its sleep was terminated
    assert out.endswith("saved\n")
    assert "stopping" in err
    assert ann.read("show", "interrupted")["state"] == "stopped"
    assert process.returncode in (5, 130), err


def test_a_project_folder_is_submitted_without_arguments(ann: Person) -> None:
    project = ann.home / "resnet-project"
    project.mkdir()
    (project / "requirements.txt").write_text("torch>=2\nnumpy\n")
    (project / "train.py").write_text("import os\nprint('trained on', os.environ['CUDA_VISIBLE_DEVICES'])\n")
    ann.ok("init", "job", str(project))
    written = yaml.safe_load((project / "corral.job.yaml").read_text())
    assert (written["name"], written["gpus"], written["command"]) == ("resnet-project", 1, "python3 train.py")
    assert "exists already" in ann.run("init", "job", str(project), code=1).err
    inside = Person(server=ann.server, home=project, env={"CORRAL_HOME": str(ann.home)})
    assert inside.ok("run") == "trained on 0\n"
    # the first one has ended: its name goes on with a number
    assert inside.read("submit", "--gpus", "0")["name"] == "resnet-project-2"
    ann.wait_for("resnet-project-2", "completed")


def test_a_slurm_script_becomes_a_job_file(ann: Person) -> None:
    project = ann.home / "slurm-project"
    project.mkdir()
    (project / "train.sbatch").write_text(SLURM)
    inside = Person(server=ann.server, home=project, env={"CORRAL_HOME": str(ann.home)})
    inside.ok("init", "job")
    written = yaml.safe_load((project / "corral.job.yaml").read_text())
    assert (written["gpus"], written["command"]) == (1, "bash train.sbatch")
    assert inside.ok("run") == "slurm script on 0\n"


def test_the_shell_completes_names_from_the_server(ann: Person) -> None:
    job = ann.submit("--name", "completed-by-shell", "--hold", "--", "true")

    def completed(line: str) -> str:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - (0 if line.endswith(" ") else 1))}
        shell = Person(server=ann.server, home=ann.home, env={"_CORRAL_COMPLETE": "complete_bash", **words})
        return shell.run().out

    assert "completed-by-shell" in completed("corral show comp")
    assert job in completed("corral stop j-")
    assert "default" in completed("corral submit --queue ")
    assert "ann" in completed("corral jobs --user ")
    ann.ok("rm", "-y", job)


def test_colours_are_left_out(ann: Person) -> None:
    wait_until(lambda: "\x1b[" not in ann.ok("nodes", "--no-color"), "plain text")
    assert "\x1b[" not in ann.ok("--no-color", "status")
