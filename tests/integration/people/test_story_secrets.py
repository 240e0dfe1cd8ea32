"""Secrets through a real server: jobs get them as variables and files, nothing shows or stores their values, and the
files are gone when the job has ended."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api import API, dump
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

VALUE, KEY, SHARED = "hush-3f9a", "-----BEGIN KEY-----\nhush-77c1\n-----END KEY-----\n", "hush-of-the-group"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("secrets"), "--virtual-gpus", "2xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def nora(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "nora")


@pytest.fixture(scope="module")
def otto(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "otto")


def test_a_job_gets_secrets_and_no_answer_has_them(
    server: CorralServer, operator: Person, nora: Person, otto: Person, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(KEY)
    nora.ok("secret", "set", "wandb", stdin=f"{VALUE}\n")
    nora.ok("secret", "set", "deploy", "--file", str(tmp_path / "key"))
    operator.ok("secret", "set", "hub", "--group", "default", stdin=SHARED)
    assert nora.run("secret", "set", "hub", "--group", "default", stdin="x").code == 3
    assert [one["name"] for one in nora.read("secret", "ls")["items"]] == ["deploy", "hub", "wandb"]
    assert [one["name"] for one in otto.read("secret", "ls")["items"]] == ["hub"]
    assert "there is no secret 'wandb'" in otto.run("submit", "--secret", "wandb", "--", "true").err

    go = tmp_path / "go"
    program = (
        'echo "$WANDB_API_KEY:$HUB" | tr a-z A-Z; tr a-z A-Z <"$DEPLOY_FILE"; echo "at=$DEPLOY_FILE"; '
        f"while [ ! -e {go} ]; do sleep 0.1; done"
    )
    asked = ("--secret", "wandb=WANDB_API_KEY", "--secret", "hub", "--secret", "deploy:file")
    job = nora.submit(*asked, "--", "sh", "-c", program)
    wait_until(lambda: "at=" in nora.ok("logs", job), "the job has printed")
    printed = nora.ok("logs", job)
    assert f"{VALUE}:{SHARED}".upper() in printed
    assert KEY.upper() in printed
    path = Path(printed.rpartition("at=")[2].strip())
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.read_text() == KEY

    # The job's own page names the secrets; no page, no row and no log of the server has a value.
    assert nora.read("show", job)["secrets"] == ["wandb=WANDB_API_KEY", "hub", "deploy:file"]
    stored = dump(server) + (server.home / "server.log").read_text(errors="replace")
    events = str(operator.read("events", "--limit", "200"))
    assert "secret.created" in events
    for value in (VALUE, "hush-77c1", SHARED):
        assert value not in stored + events
        assert value not in str(nora.read("show", job)) + str(operator.read("secret", "ls"))
    assert server.process is not None
    answer = server.http().get(f"{API}/secrets/wandb")
    assert answer.status_code in (404, 405)

    go.touch()
    nora.wait_for(job, "completed")
    wait_until(lambda: not path.parent.exists(), "the files of secrets are removed")
    assert os.listdir(server.home / "secret-files") == []


def test_files_of_a_job_that_ended_while_the_server_was_down_are_removed(server: CorralServer, nora: Person) -> None:
    nora.ok("secret", "set", "late", stdin=VALUE)
    job = nora.submit("--secret", "late:file", "--", "sh", "-c", 'echo "at=$LATE_FILE"; sleep 600')
    wait_until(lambda: "at=" in nora.ok("logs", job), "the job has printed")
    path = Path(nora.ok("logs", job).rpartition("at=")[2].strip())
    server.kill()
    server.start()
    assert path.read_text() == VALUE, "a job that runs keeps its files"
    nora.ok("stop", job)
    wait_until(lambda: not path.exists(), "the file is removed")


def test_a_deleted_secret_ends_the_next_launch_with_a_clear_message(nora: Person) -> None:
    nora.ok("secret", "set", "gone", stdin=VALUE)
    job = nora.submit("--hold", "--secret", "gone", "--", "true")
    nora.ok("secret", "rm", "-y", "gone")
    nora.run("start", job)
    shown = nora.wait_for(job, "failed")
    assert shown["end_reason"] == "launch_error"
    assert "there is no secret 'gone'" in shown["message"]
    assert nora.run("secret", "rm", "-y", "gone").code == 4
