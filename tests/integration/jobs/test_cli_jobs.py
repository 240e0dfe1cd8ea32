"""A scientist's day at the command line, against a real server with real processes."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist, stop_everything
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

HOLD = ("--", "sleep", "600")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-jobs"), "--virtual-gpus", "8xA100-80G") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def maria(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "maria")


@pytest.fixture(autouse=True)
def nothing_left_over(operator: Person) -> Iterator[None]:
    """Every story begins with an idle fleet."""
    yield
    stop_everything(operator)


def test_the_first_job_gets_its_gpus_and_its_output_is_there(operator: Person) -> None:
    script = "import os; print('gpus', os.environ['CUDA_VISIBLE_DEVICES'], os.environ['CORRAL_JOB_ID'])"
    done = operator.run("submit", "--name", "first", "--gpus", "2", "--wait", "--", "python3", "-c", script, code=0)
    assert "Submitted j-" in done.err
    assert "completed" in done.err

    view = operator.read("show", "first")
    assert view["state"] == "completed"
    assert view["exit_code"] == 0
    assert len(view["attempts"]) == 1
    _, gpus, job_id = operator.ok("logs", "first").split()
    assert job_id == view["id"]
    assert len(set(gpus.split(","))) == 2
    assert set(gpus.split(",")) <= {str(index) for index in range(8)}

    listed = operator.ok("jobs", "-a").splitlines()
    assert listed[0].split()[:4] == ["ID", "NAME", "USER", "STATE"]
    assert any("first" in line and "completed" in line and "exit code 0" in line for line in listed[1:])
    assert "Command" in operator.ok("show", "first")
    assert operator.ok("rm", "-y", "first").startswith(f"Deleted {view['id']} (first)")
    assert "there is no job" in operator.run("show", "first", code=4).err.lower()


def test_commands_exit_like_the_job(operator: Person) -> None:
    failing = operator.run("submit", "--wait", "-o", "json", "--", "sh", "-c", "echo before the end; exit 7", code=7)
    job = failing.document
    assert (job["state"], job["exit_code"], job["end_reason"]) == ("failed", 7, "exit_code")

    followed = operator.run("logs", "-f", job["id"], code=7)
    assert followed.out == "before the end\n"
    assert "failed, exit code 7" in followed.err
    assert operator.run("logs", job["id"], code=0).out == "before the end\n"
    pieces = [json.loads(line) for line in operator.run("logs", "-f", "-o", "json", job["id"], code=7).out.splitlines()]
    assert "".join(piece.get("text", "") for piece in pieces) == "before the end\n"
    end = {"state": "failed", "exit_code": 7, "end_reason": "exit_code", "message": "exit code 7"}
    assert pieces[-1] == end


def test_a_log_is_followed_while_it_is_written(operator: Person, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"echo one; while [ ! -e {gate} ]; do sleep 0.05; done; echo two; exit 3"
    job = operator.submit("--", "sh", "-c", script)
    following = operator.start("logs", "-f", job)
    assert following.stdout is not None
    # the first line is here although the job still waits for us
    assert following.stdout.readline() == "one\n"
    assert operator.state(job) == "running"
    gate.touch()
    out, err = following.communicate(timeout=60)
    assert out == "two\n"
    assert following.returncode == 3, err


def test_the_last_lines_and_earlier_attempts_can_be_read(operator: Person) -> None:
    job = operator.submit("--", "sh", "-c", "seq 1 100; echo attempt $CORRAL_ATTEMPT")
    operator.wait_for(job, "completed")
    assert operator.ok("logs", "--tail", "2", job) == "100\nattempt 1\n"
    operator.ok("start", job)
    operator.wait_for(job, "completed")
    assert operator.ok("logs", "--tail", "1", job) == "attempt 2\n"
    assert operator.ok("logs", "--tail", "1", "--attempt", "1", job) == "attempt 1\n"
    assert operator.run("logs", "--attempt", "9", job).code == 4
    assert operator.run("logs", "--rank", "4", job).code == 4


def test_ctrl_c_stops_the_waiting_and_not_the_job(operator: Person) -> None:
    waiting = operator.start("submit", "--name", "long-one", "--gpus", "1", "--wait", *HOLD)
    wait_until(lambda: "long-one" in operator.ok("jobs", "--state", "running"), "the job that is waited for runs")
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    assert "corral logs -f j-" in err
    assert "Traceback" not in err
    assert operator.state("long-one") == "running"


def test_a_job_file_is_submitted_with_flags_on_top(operator: Person) -> None:
    (operator.home / "job.yaml").write_text(
        "name: from-file\ngpus: 4\ntime: 10m\nenv:\n  WORD: 007\nworkdir: .\ncommand: echo $WORD $MORE; pwd\n"
    )
    operator.run("submit", "-f", "job.yaml", "--gpus", "1", "--env", "MORE=bond", "--wait", code=0)
    view = operator.read("show", "from-file")
    assert (view["gpus"], view["time_limit_seconds"]) == (1, 600)
    assert operator.ok("logs", "from-file") == f"007 bond\n{operator.home}\n"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("gpus: 1\ngpuss: 2\ncommand: 'true'\n", 2, "bad.yaml:2: gpuss: unknown key"),
        ("name: x\ncommand: 'true'\n", 2, "bad.yaml:1: name"),
        ("command: 'true'\n\ngpus: two\n", 2, "bad.yaml:3: gpus"),
        ("command: 'true'\nmemory: plenty\n", 2, "bad.yaml:2: memory"),
        ("command: 'true'\ntime: soon\n", 2, "bad.yaml:2: time"),
        ("command: 'true'\nqueue: nowhere\n", None, "queue"),
        ("command: 'true'\nenv: {1A: x}\n", 2, "bad.yaml:2: env"),
        ("command: []\n", 2, "there is nothing to run"),
    ],
)
def test_a_bad_job_file_is_refused_with_its_line_and_leaves_nothing(
    operator: Person, text: str, code: int | None, message: str
) -> None:
    (operator.home / "bad.yaml").write_text(text)
    before = len(operator.read("jobs", "-a", "--limit", "500")["items"])
    done = operator.run("submit", "-f", "bad.yaml", code=code)
    assert done.code != 0
    assert message in done.err
    assert len(operator.read("jobs", "-a", "--limit", "500")["items"]) == before


def test_a_taken_name_is_refused_with_a_suggestion(operator: Person) -> None:
    operator.submit("--name", "taken", "--hold", "--", "true")
    refused = operator.run("submit", "--name", "taken", "--", "true", code=1)
    assert "--name" in refused.err
    assert "Hint: Choose another name" in refused.err
    problem = operator.run("submit", "--name", "taken", "-o", "json", "--", "true", code=1).problem
    assert problem["status"] == 409
    assert problem["type"].endswith("name-taken")
    operator.ok("rm", "-y", "taken")


def test_jobs_are_held_started_stopped_and_removed(operator: Person) -> None:
    job = operator.submit("--name", "life", "--hold", *HOLD)
    assert operator.state("life") == "created"
    assert "queued" in operator.ok("start", "life") or operator.state("life") in ("starting", "running")
    operator.wait_for("life", "running")
    assert operator.run("rm", "-y", "life", code=1).err.startswith("Error:")
    operator.ok("stop", job)
    view = operator.wait_for("life", "stopped")
    assert view["end_reason"] == "stopped_by_user"
    assert operator.run("stop", "life", code=1).err.startswith("Error:")
    operator.ok("rm", "-y", "life")
    assert operator.run("why", "life", code=4).err.startswith("Error:")


def test_a_job_that_can_never_start_is_refused_with_the_limit(operator: Person, maria: Person) -> None:
    operator.ok("queue", "create", "tiny", "--max-gpus", "1")
    try:
        refused = maria.run("submit", "--queue", "tiny", "--gpus", "2", "--", "true", code=1).err
        assert "queue tiny may hold 1 GPU: asks 2, holds 0; it can never start under this limit" in refused
    finally:
        operator.ok("queue", "rm", "-y", "tiny")


def test_a_waiting_job_knows_why_and_its_place(operator: Person, maria: Person) -> None:
    holder = maria.submit("--name", "holder", "--gpus", "8", *HOLD)
    maria.wait_for(holder, "running")
    first = maria.submit("--name", "wait-1", "--gpus", "8", *HOLD)
    second = maria.submit("--name", "wait-2", "--gpus", "8", *HOLD)

    why = maria.read("why", second)
    assert why["state"] == "queued"
    assert why["reasons"]
    assert first in [ref["id"] for ref in why["ahead"]]
    text = maria.ok("why", "wait-2")
    assert text.startswith(f"{second} is queued")
    assert f"{first} (wait-1, maria)" in text

    assert order(maria) == [first, second]
    maria.ok("move", "wait-2", "--before", "wait-1")
    assert order(maria) == [second, first]
    maria.ok("move", "wait-2", "--after", "wait-1")
    assert order(maria) == [first, second]

    assert maria.run("pin", second, code=3).err.startswith("Error:")
    operator.ok("pin", second)
    assert order(maria) == [second, first]
    assert any("wait-2" in line and "5*" in line for line in maria.ok("queue").splitlines())
    operator.ok("unpin", second)
    assert order(maria) == [first, second]

    planned = maria.read("submit", "--dry-run", "--gpus", "8", "--", "true")
    assert planned["outcome"] == "wait"
    assert planned["ahead_count"] >= 1
    assert maria.ok("submit", "--dry-run", "--gpus", "8", "--", "true").startswith("It would wait")
    impossible = maria.run("submit", "--dry-run", "--gpus", "64", "--", "true")
    assert impossible.out.startswith(("It would be refused", "It would wait"))


def order(person: Person) -> list[str]:
    (queue,) = person.read("queue")["items"]
    return [job["id"] for line in queue["lines"] for job in line["jobs"]]


def test_filters_narrow_the_list(operator: Person, maria: Person) -> None:
    ids = [operator.submit("--name", f"filter-{n}", "--hold", "--", "true") for n in range(3)]
    bench = ("filter-m", "--image", "example.org/bench:1", "--hold")
    mine = maria.read("workbench", "create", *bench)["id"]
    named = operator.read("jobs", "--name", "filter-")["items"]
    assert [job["id"] for job in named] == [mine, *reversed(ids)]
    assert [job["id"] for job in operator.read("jobs", "--user", "maria", "--name", "filter")["items"]] == [mine]
    assert [job["id"] for job in operator.read("jobs", "--kind", "workbench", "--name", "filter")["items"]] == [mine]
    assert operator.read("jobs", "--state", "running", "--name", "filter-")["items"] == []
    cut = operator.run("jobs", "--name", "filter-", "--limit", "2", code=0)
    assert len(cut.out.splitlines()) == 3
    assert "Shown: the newest 2 jobs" in cut.err
    assert operator.run("jobs", "--state", "flying", code=2).err.startswith("Error: --state")
    operator.ok("rm", "-y", *ids, mine)


def test_a_description_is_given_shown_found_and_changed_at_any_time(operator: Person, maria: Person) -> None:
    (operator.home / "job.yaml").write_text("name: noted\ngpus: 1\ndescription: Baseline\ncommand: sleep 600\n")
    operator.ok("submit", "-f", "job.yaml")
    wait_until(lambda: operator.read("show", "noted")["state"] == "running", "the job to run")
    assert re.search(r"^Description +Baseline$", operator.ok("show", "noted"), re.MULTILINE)
    operator.ok("edit", "noted", "--description", "Ablation study")
    assert [job["name"] for job in operator.read("jobs", "--search", "ablation")["items"]] == ["noted"]
    assert operator.read("jobs", "--search", "baseline")["items"] == []
    assert operator.read("clone", "noted", "--hold", "--name", "noted-2")["description"] == "Ablation study"
    refused = operator.run("edit", "noted", "--description", "bell \a", code=2).err
    assert "--description: must not contain control characters" in refused
    assert "only a job that waits can be changed" in operator.run("edit", "noted", "--priority", "1", code=1).err
    bench = maria.read("workbench", "create", "described", "--description", "For the lecture", "--hold")
    assert bench["job"]["description"] == "For the lecture"
    operator.ok("stop", "noted")
    wait_until(lambda: operator.read("show", "noted")["state"] == "stopped", "the job to stop")
    operator.ok("edit", "noted", "--description", "")
    assert operator.read("show", "noted")["description"] == ""
    operator.ok("rm", "-y", "noted", "noted-2", bench["id"])


def test_a_pipe_gets_one_line_per_job(operator: Person) -> None:
    name = "n" * 63
    operator.submit("--name", name, "--hold", "--", "true")
    lines = operator.ok("jobs", "--name", name).splitlines()
    assert len(lines) == 2
    assert name in lines[1]
    assert lines[1].isascii()
    operator.ok("rm", "-y", name)
