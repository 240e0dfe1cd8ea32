"""Shells in jobs of this machine through a real server: `corral shell` as people use it, and who is let in."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.client.http.errors import ApiProblem, NotFound
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

CORRAL = str(Path(sys.executable).parent / "corral")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    started = CorralServer(tmp_path_factory.mktemp("shells") / "corral", "--virtual-gpus", "8xA100-80G")
    started.start()
    yield started
    started.stop()


def running_job(server: CorralServer, user: str = "operator", **body: object) -> str:
    with server.http(user) as http:
        answer = http.post("/jobs", json={"command": ["sleep", "600"], "grace": "1s", **body})
        assert answer.status_code == 201, answer.text
        job = str(answer.json()["id"])
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "it runs", seconds=60)
    return job


@pytest.fixture(scope="module")
def job(server: CorralServer) -> str:
    return running_job(server, gpus=2, env={"COLOUR": "it's $green"}, workdir="/tmp")


def environment(server: CorralServer, **more: str) -> dict[str, str]:
    return {**os.environ, "CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token(), **more}


def corral(server: CorralServer, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [CORRAL, *words]
    env = environment(server)
    return subprocess.run(command, env=env, input=given, capture_output=True, text=True, timeout=60, check=False)


def test_a_command_has_the_place_the_variables_and_the_gpus_of_the_job(server: CorralServer, job: str) -> None:
    text = 'pwd; echo "$COLOUR"; echo "$CORRAL_ATTEMPT_ID"; echo "$CUDA_VISIBLE_DEVICES" >&2; exit 7'
    done = corral(server, "shell", job, "--", "sh", "-c", text)
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["/tmp", "it's $green", f"{job}.1"]
    assert done.stderr.count(",") == 1
    assert corral(server, "shell", job, "--", "wc", "-c", given="x" * 200_000).stdout.strip() == "200000"
    assert corral(server, "shell", job, given="echo from a shell; exit 3\n").returncode == 3


def test_a_terminal_has_a_shell_that_knows_its_size(server: CorralServer, job: str) -> None:
    parent, child = pty.openpty()
    os.set_blocking(parent, False)
    env = environment(server, COLUMNS="91", LINES="33")
    command = [CORRAL, "shell", job]
    process = subprocess.Popen(command, env=env, stdin=child, stdout=child, stderr=child, start_new_session=True)
    os.close(child)
    try:
        shown = read_until(parent, b"$ ") if os.geteuid() else read_until(parent, b"# ")
        os.write(parent, b"stty size; test -t 0 && echo is-a-''terminal\n")
        shown += read_until(parent, b"is-a-terminal")
        os.write(parent, b"exit 5\n")
        assert process.wait(60) == 5
        assert "33 91" in shown
    finally:
        process.kill()
        process.wait()
        os.close(parent)


def read_until(descriptor: int, word: bytes, seconds: float = 60.0) -> str:
    found, until = b"", time.monotonic() + seconds
    while word not in found:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"no {word!r} in {found!r}"
        found += os.read(descriptor, 65536)
    return found.decode(errors="replace")


def test_other_users_learn_nothing_and_the_audit_log_names_who_came(server: CorralServer, job: str) -> None:
    server.add_user("ann")
    with server.client("ann") as client, pytest.raises(NotFound, match=f"there is no job '{job}'"):
        client.jobs.open_shell(job, ["true"])
    mine = running_job(server, "ann")
    with server.client() as operator:
        heard: list[bytes] = []
        assert operator.jobs.open_shell(mine, ["echo", "hello"]).run(lambda _, data: heard.append(data)) == 0
        with pytest.raises(ApiProblem, match="has 1 instance,"):
            operator.jobs.open_shell(mine, rank=1)
    assert b"".join(heard) == b"hello\n"
    with server.http() as http:
        items = http.get("/events", params={"action": "job.shell-opened", "limit": 5}).json()["items"]
        assert (items[0]["actor"], items[0]["subject"]) == ("operator", mine)
        assert items[0]["detail"]["command"] == "echo hello"
        http.post(f"/jobs/{mine}/stop")
