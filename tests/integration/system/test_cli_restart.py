"""Commands that wait or follow outlive a crash of the server, like the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import cli_server, operator_of
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CorralServer]:
    with cli_server(tmp_path, "--virtual-gpus", "8xA100-80G") as started:
        yield started


def test_waiting_and_following_continue_over_a_crash_of_the_server(server: CorralServer, tmp_path: Path) -> None:
    operator = operator_of(server)
    gate = tmp_path / "gate"
    script = f"echo one; while [ ! -e {gate} ]; do sleep 0.05; done; echo two; exit 5"
    waiting = operator.start("submit", "--name", "survivor", "--gpus", "1", "--wait", "--", "sh", "-c", script)
    assert waiting.stderr is not None
    while "running" not in (line := waiting.stderr.readline()):
        assert line, "the wait ended before the job ran"
    following = operator.start("logs", "-f", "survivor")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"

    server.kill()
    gate.touch()
    server.start()
    out, err = following.communicate(timeout=90)
    assert following.returncode == 5, err
    assert out == "two\n"
    assert "Still trying" in err
    _, err = waiting.communicate(timeout=90)
    assert waiting.returncode == 5, err
