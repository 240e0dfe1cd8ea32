"""What only a Slurm cluster can do to an attempt, on a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.core.model import EndReason
from tests.contract.engine_harness import order, script
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)


@pytest.fixture
def harness(tmp_path: Path, slurm_cluster: SlurmCluster) -> Iterator[SlurmHarness]:
    made = SlurmHarness(tmp_path / "slurm", slurm_cluster)
    yield made
    made.clean_up()


def test_an_attempt_whose_node_does_not_see_corrals_files_was_not_the_programs_failure(harness: SlurmHarness) -> None:
    (program,) = harness.root.glob("attempt-*.sh")
    program.rename(program.with_name("away"))
    harness.launch(order("/bin/true"))
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.LOST, None)
    assert "does the node see corral's files?" in ended.message
    program.with_name("away").rename(program)
    harness.launch(order("/bin/true", attempt_id="j-1.2"))
    assert harness.listener.ended("j-1.2").exit_code == 0


def test_a_job_has_no_language_and_no_time_zone_of_the_servers(
    harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    harness.launch(order(*script('echo "$LANG ${TZ-none}"')))
    harness.listener.ended()
    assert harness.output().strip() == "C.UTF-8 none"
