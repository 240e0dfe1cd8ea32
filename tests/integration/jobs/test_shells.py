"""Shells in jobs of this machine through a real server: `corral shell` as people use it, and who is let in."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from corral.client.http.errors import ApiProblem
from tests.integration.shells import check_codes_and_input, check_terminal, check_who_is_let_in, corral, running_job
from tests.servers.corral_server import CorralServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    started = CorralServer(tmp_path_factory.mktemp("shells") / "corral", "--virtual-gpus", "8xA100-80G")
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def job(server: CorralServer) -> str:
    return running_job(server, gpus=2, env={"COLOUR": "it's $green"}, workdir="/tmp")


def test_a_command_has_the_place_the_variables_and_the_gpus_of_the_job(server: CorralServer, job: str) -> None:
    text = 'pwd; echo "$COLOUR"; echo "$CORRAL_ATTEMPT_ID"; echo "$CUDA_VISIBLE_DEVICES" >&2; exit 7'
    done = corral(server, "shell", job, "--", "sh", "-c", text)
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["/tmp", "it's $green", f"{job}.1"]
    assert done.stderr.count(",") == 1
    check_codes_and_input(server, job)


def test_a_terminal_has_a_shell_that_knows_its_size(server: CorralServer, job: str) -> None:
    check_terminal(server, job, b"$ " if os.geteuid() else b"# ")


def test_other_users_learn_nothing_and_the_audit_log_names_who_came(server: CorralServer, job: str) -> None:
    check_who_is_let_in(server, job)
    with server.client() as operator, pytest.raises(ApiProblem, match="has 1 instance,"):
        operator.jobs.open_shell(job, rank=1)
