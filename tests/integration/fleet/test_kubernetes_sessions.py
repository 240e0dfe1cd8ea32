"""Shells in pods through a real server: `corral shell` as people use it, and who is let in."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.client.http.errors import ApiProblem, ClientError, NotFound
from corral.client.jobs.sessions import JobSession
from tests.integration.kubernetes_server import clean_up, server_on
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(kubernetes_access: KubernetesAccess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    started = server_on(kubernetes_access, tmp_path_factory.mktemp("sessions") / "corral")
    started.start()
    yield started
    if started.is_running:
        started.stop()
    clean_up(kubernetes_access, started)


def running_job(server: CorralServer, user: str = "operator", **body: Any) -> str:
    with server.http(user) as http:
        answer = http.post("/jobs", json={"command": ["sleep", "600"], "time": "10m", "grace": "1s", **body})
        assert answer.status_code == 201, answer.text
        job = str(answer.json()["id"])
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "running", "it runs", seconds=120)
    return job


@pytest.fixture(scope="module")
def job(server: CorralServer) -> str:
    return running_job(server, gpus=1, env={"COLOUR": "it's $green"}, workdir="/tmp")


CORRAL = str(Path(sys.executable).parent / "corral")


def environment(server: CorralServer, **more: str) -> dict[str, str]:
    return {**os.environ, "CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token(), **more}


def corral(server: CorralServer, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CORRAL, *words],
        env=environment(server),
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_command_has_the_place_the_variables_and_the_gpu_of_the_job(server: CorralServer, job: str) -> None:
    done = corral(server, "shell", job, "--", "sh", "-c", 'pwd; echo "$COLOUR"; echo "$CORRAL_ATTEMPT_ID"; id -u >&2')

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["/tmp", "it's $green", f"{job}.1"]
    assert done.stderr.strip() != "0"


def test_exit_code_and_input_are_those_of_the_command(server: CorralServer, job: str) -> None:
    assert corral(server, "shell", job, "--", "sh", "-c", "exit 7").returncode == 7
    assert corral(server, "shell", job, "--", "wc", "-c", given="x" * 200_000).stdout.strip() == "200000"
    assert corral(server, "shell", job, given="echo from a shell; exit 3\n").returncode == 3


def test_a_terminal_has_a_shell_that_knows_its_size(server: CorralServer, job: str) -> None:
    parent, child = pty.openpty()
    os.set_blocking(parent, False)
    environ = environment(server, COLUMNS="91", LINES="33")
    process = subprocess.Popen(
        [CORRAL, "shell", job], env=environ, stdin=child, stdout=child, stderr=child, start_new_session=True
    )
    os.close(child)
    try:
        shown = read_until(parent, b"$", "")
        os.write(parent, b"stty size; test -t 0 && echo is-a-''terminal\n")
        shown = read_until(parent, b"is-a-terminal", shown)
        os.write(parent, b"exit 5\n")
        assert process.wait(60) == 5
        assert "33 91" in shown
    finally:
        process.kill()
        os.close(parent)


def read_until(descriptor: int, word: bytes, before: str, seconds: float = 60.0) -> str:
    found, until = before.encode(), time.monotonic() + seconds
    while word not in found[len(before) :]:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"no {word!r} in {found!r}"
        found += os.read(descriptor, 65536)
    return found.decode(errors="replace")


def test_other_users_learn_nothing_and_the_log_of_events_names_who_came(server: CorralServer, job: str) -> None:
    server.add_user("ann")
    with server.client("ann") as client, pytest.raises(NotFound, match=f"there is no job '{job}'"):
        client.jobs.open_shell(job, ["true"])
    mine = running_job(server, "ann")
    with server.client() as operator:
        session = operator.jobs.open_shell(mine, ["echo", "hello"])
        heard: list[bytes] = []
        assert session.run(lambda _, data: heard.append(data)) == 0
    assert b"".join(heard) == b"hello\n"
    with server.http() as http:
        items = http.get("/events", params={"action": "job.shell-opened", "limit": 5}).json()["items"]
        assert [(one["actor"], one["subject"]) for one in items][:1] == [("operator", mine)]
        http.post(f"/jobs/{mine}/stop")


def test_refusals_are_words(server: CorralServer, job: str) -> None:
    with server.client() as client:
        with pytest.raises(ApiProblem, match="has 1 instance,"):
            client.jobs.open_shell(job, rank=1)
        session = client.jobs.open_shell(job, ["no-such-program"])
        assert session.run(lambda *_: None) == 127
        ended = client.jobs.submit({"command": ["true"], "time": "1m"})["id"]
        wait_until(lambda: client.jobs.get(ended)["state"] == "completed", "it ends", seconds=120)
        with pytest.raises(ApiProblem, match="a shell needs a running job"):
            client.jobs.open_shell(ended)


def ended_by(session: JobSession) -> int | None:
    """The end of the session; None if the node has cut the connection with the pod."""
    try:
        return session.run(lambda *_: None)
    except ClientError:
        return None


def test_a_shell_ends_with_its_job(server: CorralServer) -> None:
    other = running_job(server)
    with server.client() as client:
        session = client.jobs.open_shell(other, ["sleep", "600"])
        client.jobs.stop(other)
        assert ended_by(session) != 0
        wait_until(lambda: client.jobs.get(other)["state"] == "stopped", "it is stopped", seconds=60)
