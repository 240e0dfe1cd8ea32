"""The files of a finished job on a real server's disk: few files, its log, and its outputs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow
pytest_plugins = ("tests.servers.fixtures",)

JOBS = 20
#: What may stay of a job that did nothing: directories and files.
INODES = 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CorralServer]:
    config = tmp_path / "corral.yaml"
    config.write_text("retention: {fold_seconds: 0.2}\n")
    made = CorralServer(tmp_path / "home", "--virtual-gpus", "8xA10", "--config", str(config))
    made.start()
    yield made
    made.kill()


def run(server: CorralServer, *scripts: str, wait: bool = True) -> list[str]:
    with server.http() as http:
        bodies = [{"command": ["/bin/sh", "-c", script], "gpus": 0} for script in scripts]
        ids = [
            item["id"] for item in http.post("/jobs:batch", json={"jobs": bodies}).raise_for_status().json()["items"]
        ]
    if wait:
        for job in ids:
            wait_until(partial(has_ended, server, job), f"the end of {job}")
    return ids


def state(server: CorralServer, job: str) -> str:
    with server.http() as http:
        return str(http.get(f"/jobs/{job}").raise_for_status().json()["state"])


def has_ended(server: CorralServer, job: str) -> bool:
    return state(server, job) in ("completed", "failed")


def has_second_attempt(http: httpx.Client, job: str) -> bool:
    return bool(http.get(f"/jobs/{job}").json()["attempt"] == 2)


def ask(server: CorralServer, path: str) -> Any:
    with server.http() as http:
        return http.get(path).raise_for_status()


def left(server: CorralServer, jobs: list[str]) -> list[Path]:
    """Everything on the disk that is about these jobs."""
    # os.walk, because directories may be removed meanwhile.
    found = [Path(place, name) for place, places, files in os.walk(server.home) for name in (*places, *files)]
    return sorted(path for path in found if any(part.partition(".")[0] in jobs for part in path.parts))


def wait_folded(server: CorralServer) -> None:
    wait_until(
        lambda: (
            not any((server.home / "local" / "ended").iterdir()) and not any((server.home / "local" / "live").iterdir())
        ),
        "ended attempts are folded",
    )


def test_a_finished_job_leaves_few_files(server: CorralServer) -> None:
    loud, silent = run(server, *["echo hello"] * JOBS), run(server, *["true"] * JOBS)
    wait_folded(server)
    for jobs in (loud, silent):
        paths = left(server, jobs)
        assert len(paths) <= INODES * JOBS, paths
    assert ask(server, f"/jobs/{loud[0]}/logs").text == "hello\n"
    assert ask(server, f"/jobs/{silent[0]}/logs").text == ""
    assert ask(server, f"/jobs/{loud[0]}/files").json()["items"] == []
    assert ask(server, f"/jobs/{loud[0]}/checkpoints").json()["items"] == []


def test_files_of_a_job_stay_and_the_job_can_be_started_again(server: CorralServer) -> None:
    write = "echo attempt >> $CORRAL_OUTPUT_DIR/result; echo mine > here; wc -l < $CORRAL_OUTPUT_DIR/result"
    (writer, empty) = run(server, write, "test -d $CORRAL_OUTPUT_DIR && test -d $CORRAL_CHECKPOINT_DIR")
    wait_folded(server)
    assert ask(server, f"/jobs/{writer}/files/content?path=result").text == "attempt\n"
    assert [path.read_text() for path in left(server, [writer]) if path.name == "here"] == ["mine\n"]
    with server.http() as http:
        for job in (writer, empty):
            http.post(f"/jobs/{job}/start").raise_for_status()
            wait_until(partial(has_second_attempt, http, job), f"{job} runs again")
            wait_until(partial(has_ended, server, job), f"the end of {job}")
            assert state(server, job) == "completed"
    wait_folded(server)
    assert ask(server, f"/jobs/{writer}/logs?attempt=1").text.strip() == "1"
    assert ask(server, f"/jobs/{writer}/logs?attempt=2").text.strip() == "2"


def test_folding_goes_on_after_a_crash_and_deletion_leaves_nothing(server: CorralServer) -> None:
    jobs = run(server, *["echo hello"] * 10)
    server.kill()
    server.start()
    more = run(server, "echo more")
    wait_folded(server)
    assert len(left(server, [*jobs, *more])) <= INODES * 11
    assert [ask(server, f"/jobs/{job}/logs").text for job in jobs] == ["hello\n"] * 10
    with server.http() as http:
        for job in jobs:
            http.delete(f"/jobs/{job}").raise_for_status()
    wait_until(lambda: left(server, jobs) == [], "nothing is left of them")


def test_keeping_a_job(server: CorralServer) -> None:
    (job,) = run(server, "true")
    with server.http() as http:
        assert http.get(f"/jobs/{job}").json()["kept"] is False
        assert http.post(f"/jobs/{job}/keep").raise_for_status().json()["kept"] is True
        clone = http.post(f"/jobs/{job}/clone", json={}).raise_for_status().json()
        assert clone["kept"] is False
        assert http.post(f"/jobs/{job}/let-go").raise_for_status().json()["kept"] is False
