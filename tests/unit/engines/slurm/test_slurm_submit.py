"""The arguments of sbatch, and what jobs inherit of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.engines.slurm.cluster.partitions import UNLIMITED
from corral.engines.slurm.slurm_api.commands import SlurmCommands, Submission

JOB = Submission(
    name="corral-1-j-1.1",
    comment="corral-1-j-1.1",
    script="#!/bin/sh\n",
    nodes=("node1", "node2"),
    gpus={"V100": 1, "a100": 2},
    minutes=UNLIMITED,
    partition="gpu",
    env={"PATH": "/jobs/bin:/bin", "HOME": "/"},
    extra=("--reservation=corral",),
)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with an sbatch that only records its calls."""
    place = tmp_path / "slurm"
    place.mkdir()
    (place / "sbatch").write_text(
        '#!/bin/sh\nenv >"$0.env"\nfor word; do echo "$word"; done >"$0.words"\necho "7;local"\n'
    )
    (place / "sbatch").chmod(0o755)
    return place


def test_a_job_is_given_as_options_and_those_of_the_settings_come_last(programs: Path) -> None:
    assert SlurmCommands(programs=str(programs)).submit(JOB) == 7
    words = (programs / "sbatch.words").read_text().splitlines()
    assert {"--nodelist=node1,node2", "--nodes=2", "--gres=gpu:V100:1,gpu:a100:2", "--time=0"} <= set(words)
    assert words[-2:] == ["--partition=gpu", "--reservation=corral"]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_job_has_a_path_of_its_own_and_slurms_programs_behind_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    monkeypatch.setenv("PATH", f"{programs}:/server/bin:/usr/bin:/bin")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    commands = SlurmCommands(conf="/etc/other.conf", programs=str(programs) if is_named else None)
    assert commands.has("sbatch")
    assert not commands.has("no-such-program")
    commands.submit(JOB)
    env = dict(line.split("=", 1) for line in (programs / "sbatch.env").read_text().splitlines())
    assert env["PATH"] == f"/jobs/bin:/bin:{programs}"
    assert (env["HOME"], env["SLURM_CONF"]) == ("/", "/etc/other.conf")
    assert "TZ" not in env
