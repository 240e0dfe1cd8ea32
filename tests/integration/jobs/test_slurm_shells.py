"""Shells in jobs on a real Slurm through a real server: the same steps as on this machine and on Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.shells import check_codes_and_input, check_terminal, check_who_is_let_in, corral, running_job
from tests.integration.slurm_server import server_on
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, slurm_cluster: SlurmCluster) -> Iterator[CorralServer]:
    started = server_on(slurm_cluster, tmp_path_factory.mktemp("shells") / "corral")
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
    assert done.stderr.splitlines()[0].count(",") == 1
    check_codes_and_input(server, job)


def test_a_terminal_has_a_shell_that_knows_its_size(server: CorralServer, job: str) -> None:
    check_terminal(server, job, b"# ")


def test_other_users_learn_nothing_and_the_audit_log_names_who_came(server: CorralServer, job: str) -> None:
    check_who_is_let_in(server, job)
