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


@pytest.mark.parametrize(("gpus", "expected"), [((), "|"), (("n1-gpu0",), "2|GPU-de8287300da37c72")])
def test_slurms_choice_of_gpus_counts_for_both_vendors(gpus: tuple[str, ...], expected: str) -> None:
    instance = Instance(rank=0, node="n1", gpu_ids=gpus, gpu_indexes=tuple(range(len(gpus))))
    order = LaunchOrder(attempt_id="j-1.1", job_id="j-1", user="ann", command=("true",), instances=(instance,))
    env = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "0,1,2,3,4"}
    script = instance_text(order, instance, env) + 'environment; echo "$CUDA_VISIBLE_DEVICES|$ROCR_VISIBLE_DEVICES"'
    by_slurm = {"CUDA_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "GPU-de8287300da37c72"}
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=True, env=by_slurm)
    assert done.stdout.strip() == expected
