"""Jobs of Slurm with names that are rows of squeue's table: what they can make corral believe, and do as root."""

from __future__ import annotations

import pytest

from tests.attacks.slurm_machine import SlurmMachine
from tests.integration.waiting import wait_until

pytest_plugins = ("tests.servers.fixtures", "tests.attacks.slurm_fixtures")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GAP = "\x1f"
#: waits for ever, and runs: whatever squeue sorts first
EVERYWHERE = (("--hold",), ())


def forge(machine: SlurmMachine, *, job_id: int, state: str, name: str, gpus: str = "", nodes: str = "") -> None:
    """Eve's jobs are rows of their own up to the name, and then a row of another user's: the columns that corral once
    asked squeue for, in their order."""
    asked = ["", gpus, "", "", ""]
    row = [str(job_id), state, "", "", "", "1", *asked, nodes, name]
    for where in EVERYWHERE:
        machine.sbatch("eve", *where, f"--job-name=x{GAP}{GAP}\n{GAP.join(row)}", f"--comment={name}")


def test_a_forged_row_does_not_end_anothers_job(attacked: SlurmMachine) -> None:
    job = attacked.submit("ann", "trap 'exit 7' TERM; sleep 600 & wait", gpus=1)
    attacked.wait("ann", job, "running")
    number, name = attacked.slurm_job(job)
    for state in ("COMPLETED", "FAILED", "NODE_FAIL"):
        forge(attacked, job_id=number, state=state, name=name)
    attacked.wait_for_looks()
    assert attacked.job("ann", job)["state"] == "running"
    attacked.stop("ann", job)
    assert attacked.wait("ann", job)["exit_code"] == 7


def test_a_forged_row_makes_corral_cancel_no_job_of_another_user(attacked: SlurmMachine) -> None:
    victim = attacked.sbatch("ann")
    wait_until(lambda: attacked.state_in_slurm(victim) == "RUNNING", "the victim runs")
    # Eve's job says that the victim's is the one that runs it.
    claims = f'echo "claimed {victim}" >>"$CORRAL_RUN_DIR/told"; echo ready; sleep 600'
    job = attacked.submit("eve", claims, gpus=1)
    attacked.wait("eve", job, "running")
    _, name = attacked.slurm_job(job)
    forge(attacked, job_id=victim, state="RUNNING", name=name)
    attacked.wait_for_looks()
    attacked.stop("eve", job)
    assert attacked.wait("eve", job)["state"] == "stopped"
    attacked.wait_for_looks()
    assert attacked.state_in_slurm(victim) == "RUNNING"


def test_a_forged_row_takes_no_gpus(attacked: SlurmMachine) -> None:
    forge(attacked, job_id=4_000_001, state="RUNNING", name="x", gpus="gres:gpu:8", nodes="node3")
    attacked.wait_for_looks()
    assert attacked.taken("node3") == 0
