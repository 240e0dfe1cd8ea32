"""A workbench from its making to its end: SSH with a real client, restarts of the workbench and of the server, the
command line. And what is missing is reported."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import new_key
from tests.e2e.jupyter import Kernel
from tests.e2e.workbench_steps import create, look, ssh, token, until_ready, until_state
from tests.integration.api import problem
from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

# ---------------------------------------------------------------- SSH


def test_the_registered_key_logs_in_and_no_other(server: CorralServer, keys: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    view = create(server, "ann", "shell", gpus=2, ssh=True, jupyter=False, env={"GREETING": 'it\'s "me" $HOME'})
    assert view["jupyter"] is None
    done = ssh(view, keys, 'echo "$GREETING|$CUDA_VISIBLE_DEVICES|$CORRAL_JOB_ID"', known_hosts=known)
    assert done.returncode == 0, done.stderr
    indexes = ",".join(gpu.rpartition("-")[2] for gpu in view["job"]["allocation"]["grants"][0]["gpus"])
    greeting, gpus, job_id = done.stdout.strip().split("|")
    assert greeting == 'it\'s "me" $HOME', "the job's environment, as it was given"
    assert len(gpus.split(",")) == 2, indexes
    assert job_id == view["id"]
    assert ssh(view, keys, "exit 7", known_hosts=known).returncode == 7
    refused = ssh(view, tmp_path / "other", "true", known_hosts=known)
    assert refused.returncode == 255
    assert "Permission denied" in refused.stderr
    password = ssh(view, keys, "true", known_hosts=known)
    assert password.returncode == 0
    sent = tmp_path / "sent.txt"
    sent.write_text("hello")
    where = view["ssh"]
    options = ["-F", "none", "-b", "-", "-i", str(keys), "-P", str(where["port"]), "-o", "IdentitiesOnly=yes"]
    copied = subprocess.run(
        ["sftp", *options, "-o", f"UserKnownHostsFile={known}", f"{where['account']}@{where['host']}"],
        input=f"put {sent} sent.txt\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert copied.returncode == 0, copied.stderr
    assert ssh(view, keys, "cat sent.txt", known_hosts=known).stdout == "hello"


def test_a_key_that_is_removed_opens_nothing_any_more(server: CorralServer, keys: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    view = create(server, "ann", "revoking", ssh=True, jupyter=False)
    later = new_key(tmp_path, "later")
    assert ssh(view, keys, "true", known_hosts=known).returncode == 0
    assert ssh(view, later, "true", known_hosts=known).returncode == 255
    with server.http("ann") as http:
        added = http.post(
            "/me/ssh-keys", json={"name": f"{tmp_path.name} later", "public_key": later.with_suffix(".pub").read_text()}
        ).json()
        assert ssh(view, later, "true", known_hosts=known).returncode == 0, "at once"
        http.delete(f"/me/ssh-keys/{added['id']}").raise_for_status()
        assert ssh(view, later, "true", known_hosts=known).returncode == 255, "at once"
    assert ssh(view, keys, "true", known_hosts=known).returncode == 0


# ---------------------------------------------------------------- its life


def test_a_restart_keeps_settings_files_port_and_host_key(server: CorralServer, keys: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    before = create(server, "ann", "survivor-2", gpus=1, ssh=True, env={"COLOUR": "blue"}, idle_stop="2h")
    kernel = Kernel(before["jupyter"]["address"], token(server, "ann"))
    kernel.run("open('kept.txt', 'w').write('kept')")
    with server.http("ann") as http:
        http.post("/workbenches/survivor-2/stop").raise_for_status()
        stopped = until_state(server, "ann", "survivor-2", "stopped")
        assert stopped["idle_seconds"] is None
        problem(httpx.get(f"{before['jupyter']['address']}lab", headers=token(server, "ann")), 409)
        http.post("/workbenches/survivor-2/start").raise_for_status()
    after = until_ready(server, "ann", "survivor-2")
    assert after["job"]["attempt"] == before["job"]["attempt"] + 1
    for same in ("id", "idle_stop_seconds", "image", "venv"):
        assert after[same] == before[same]
    assert after["jupyter"]["address"] == before["jupyter"]["address"]
    assert after["ssh"]["command"] == before["ssh"]["command"], "what people have in their configuration still works"
    assert ssh(before, keys, "echo $COLOUR", known_hosts=known).stdout == "blue\n", "nor does the host key alarm them"
    kernel = Kernel(after["jupyter"]["address"], token(server, "ann"))
    assert kernel.run("print(open('kept.txt').read())") == "kept\n"
    reported = problem(httpx.delete(f"{server.url}/api/v1/workbenches/survivor-2", headers=token(server, "ann")), 409)
    assert "stop it first" in reported["detail"]


def test_workbench_outlives_the_server(server: CorralServer) -> None:
    view = create(server, "carl", "survivor")
    kernel = Kernel(view["jupyter"]["address"], token(server, "carl"))
    kernel.run("answer = 42")
    server.kill()
    server.start()
    wait_until(lambda: look(server, "carl", "survivor")["state"] == "running", "the next server knows it")
    again = look(server, "carl", "survivor")
    assert again["job"]["attempt"] == view["job"]["attempt"]
    wait_until(lambda: bool(look(server, "carl", "survivor")["jupyter"]["ready"]), "it is reported as ready")
    assert kernel.run("print(answer)") == "42\n", "the same kernel, through the next server"


def test_an_unused_one_is_stopped(server: CorralServer) -> None:
    with server.http("carl") as http:
        http.post("/workbenches", json={"name": "forgotten", "idle_stop": 1}).raise_for_status()
    stopped = until_state(server, "carl", "forgotten", "stopped")
    assert stopped["job"]["end_reason"] == "evicted"
    assert "it was not used" in stopped["message"]


def test_computing_workbench_is_not_idle(server: CorralServer) -> None:
    view = create(server, "carl", "diligent", idle_stop=6)
    kernel = Kernel(view["jupyter"]["address"], token(server, "carl"))
    kernel.run("import time\nuntil = time.monotonic() + 12\nwhile time.monotonic() < until: pass")
    assert look(server, "carl", "diligent")["state"] == "running"
    until_state(server, "carl", "diligent", "stopped")


# ---------------------------------------------------------------- refusals


def test_missing_programs_are_reported_before_it_waits(server: CorralServer, tmp_path: Path) -> None:
    with server.http("bob") as http:
        reported = problem(http.post("/workbenches", json={"name": "keyless", "ssh": True}), 409)
        assert reported["type"] == "/problems/missing"
        assert "corral key add" in reported["detail"]
        empty = tmp_path / "empty"
        (empty / "bin").mkdir(parents=True)
        body = {"name": "bare-one", "env": {"PATH": str(empty / "bin")}}
        reported = problem(http.post("/workbenches", json=body), 409)
        assert reported["errors"][0]["field"] == "jupyter"
        assert "pip install jupyterlab" in reported["detail"]
        assert http.get("/workbenches").json()["items"] == []


def test_workbench_without_its_key_does_not_start_again(
    server: CorralServer, ssh_programs: None, tmp_path: Path
) -> None:
    key = new_key(tmp_path, "carl")
    with server.http("carl") as http:
        body = {"name": "laptop", "public_key": key.with_suffix(".pub").read_text()}
        added = http.post("/me/ssh-keys", json=body).json()
        http.post("/workbenches", json={"name": "keyed", "ssh": True, "hold": True}).raise_for_status()
        http.delete(f"/me/ssh-keys/{added['id']}").raise_for_status()
        assert "you have none" in problem(http.post("/workbenches/keyed/start"), 409)["detail"]
        assert "you have none" in problem(http.post("/jobs/keyed/start"), 409)["detail"]
    with server.http() as operator:
        job_id = look(server, "carl", "keyed")["id"]
        assert "carl has none" in problem(operator.post(f"/workbenches/{job_id}/start"), 409)["detail"]


def test_an_environment_that_turns_out_empty_is_reported_at_its_end(server: CorralServer, tmp_path: Path) -> None:
    """The program disappears between the check and the start, like a missing program in an image."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    jupyter = programs / "jupyter-lab"
    jupyter.write_text("#!/bin/sh\nexit 3\n")
    jupyter.chmod(0o755)
    with server.http("carl") as http:
        body = {"name": "broken", "venv": str(tmp_path / "venv")}
        http.post("/workbenches", json=body).raise_for_status()
        failed = until_state(server, "carl", "broken", "failed")
        assert failed["job"]["end_reason"] == "launch_error"
        assert "Jupyter did not start" in failed["message"]
        assert "Jupyter has ended with 3" in http.get("/jobs/broken/logs").text


# ---------------------------------------------------------------- the command line


@pytest.fixture
def ann(server: CorralServer, tmp_path: Path) -> Person:
    return Person(server=server.url, home=tmp_path, env={"CORRAL_TOKEN": server.token("ann"), "DISPLAY": ""})


def test_the_command_line_goes_the_whole_way(server: CorralServer, ann: Person, keys: Path) -> None:
    made = ann.run("workbench", "create", "by-hand", "--ssh", "--gpus", "1", "--idle-stop", "2h")
    assert made.code == 0, made.err
    opened = ann.run("workbench", "open", "by-hand")
    assert opened.code == 0, opened.err
    address = opened.out.strip()
    assert httpx.get(f"{address}api/status", headers=token(server, "ann")).status_code == 200
    listed = ann.run("workbench", "ls", "-o", "json").document["items"]
    mine = next(view for view in listed if view["name"] == "by-hand")
    assert mine["ssh"]["command"].startswith("ssh -p ")
    assert "by-hand" in ann.run("workbench", "ls").out
    done = ann.run("workbench", "ssh", "-i", str(keys), "by-hand", "--", "echo $CORRAL_JOB_ID; exit 3")
    assert (done.code, done.out.strip()) == (3, mine["id"])
    other = ann.run("workbench", "ssh", "-i", str(keys.with_name("other")), "by-hand", "--", "true")
    assert other.code == 255
    assert ann.run("workbench", "stop", "by-hand").code == 0
    until_state(server, "ann", "by-hand", "stopped")
    assert ann.run("workbench", "start", "by-hand").code == 0
    until_ready(server, "ann", "by-hand")
    assert ann.run("workbench", "stop", "by-hand").code == 0
    until_state(server, "ann", "by-hand", "stopped")
    refused = ann.run("workbench", "open", "by-hand")
    assert refused.code == 1
    assert "corral workbench start by-hand" in refused.err
    assert ann.run("workbench", "rm", "by-hand", "-y").code == 0
    assert ann.run("workbench", "open", "by-hand").code == 4
