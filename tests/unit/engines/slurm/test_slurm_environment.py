"""Virtual environments on Slurm's nodes: what they are is seen there, by the job's own account."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from corral.control.ports import Instance, LaunchOrder
from corral.engines.attempts.processes import with_venv
from corral.engines.slurm.attempts.scripts import instance_text


@pytest.mark.parametrize("is_conda", [False, True])
def test_the_node_sees_whether_an_environment_is_condas(tmp_path: Path, is_conda: bool) -> None:
    venv = tmp_path / "it's an env"
    (venv / ("conda-meta" if is_conda else "bin")).mkdir(parents=True)
    instance = Instance(rank=0, node="n1")
    order = LaunchOrder(
        attempt_id="j-1.1", job_id="j-1", user="ann", command=("true",), instances=(instance,), venv=str(venv)
    )
    text = instance_text(order, instance, with_venv({"PATH": "/bin"}, str(venv), is_conda=False))
    script = text + 'environment; echo "${VIRTUAL_ENV-none}|${CONDA_PREFIX-none}|$PATH"'
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=True, env={})
    both = ("none", str(venv)) if is_conda else (str(venv), "none")
    assert done.stdout.strip().split("|") == [*both, f"{venv}/bin:/bin"]
