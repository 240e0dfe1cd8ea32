"""Shells in pods through a real server: `corral shell` as people use it, and who is let in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral.client.http.errors import ApiProblem, ClientError
from corral.client.jobs.sessions import JobSession
from tests.integration.kubernetes_server import clean_up, server_on
from tests.integration.shells import check_codes_and_input, check_terminal, check_who_is_let_in, corral, running_job
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


@pytest.fixture(scope="module")
def job(server: CorralServer) -> str:
    return running_job(server, gpus=1, env={"COLOUR": "it's $green"}, workdir="/tmp")


def test_a_command_has_the_place_the_variables_and_the_gpu_of_the_job(server: CorralServer, job: str) -> None:
    done = corral(server, "shell", job, "--", "sh", "-c", 'pwd; echo "$COLOUR"; echo "$CORRAL_ATTEMPT_ID"; id -u >&2')

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["/tmp", "it's $green", f"{job}.1"]
    assert done.stderr.strip() != "0"


def test_exit_code_and_input_are_those_of_the_command(server: CorralServer, job: str) -> None:
    check_codes_and_input(server, job)


def test_a_terminal_has_a_shell_that_knows_its_size(server: CorralServer, job: str) -> None:
    check_terminal(server, job, b"$")


def test_other_users_learn_nothing_and_the_audit_log_names_who_came(server: CorralServer, job: str) -> None:
    check_who_is_let_in(server, job)


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
