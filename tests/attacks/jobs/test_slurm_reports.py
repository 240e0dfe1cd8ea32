"""The limits on what is read, stored and shown of a job's own reports on a Slurm cluster."""

from __future__ import annotations

import pytest

from tests.attacks.slurm_machine import SlurmMachine
from tests.integration.waiting import wait_until

pytest_plugins = ("tests.servers.fixtures", "tests.attacks.slurm_fixtures")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NOW = "$(date +%s.%N)"


@pytest.mark.parametrize("attacked", ["programs"], indirect=True)
def test_a_message_of_a_job_is_short_and_has_no_control_characters(attacked: SlurmMachine) -> None:
    escapes = r"\033]0;owned\007\033[31mred\r\302\233m\342\200\256"
    lines = (
        f"printf 'end %s launch_error - - {escapes}' \"{NOW}\" >>$CORRAL_RUN_DIR/told",
        "head -c 8000 /dev/zero | tr '\\0' x >>$CORRAL_RUN_DIR/told",
        "echo >>$CORRAL_RUN_DIR/told",
        "sleep 600",
    )
    job = attacked.submit("eve", "; ".join(lines), gpus=1, max_retries=0)
    ended = attacked.wait("eve", job)
    assert "red" in ended["message"]
    assert ended["message"].isprintable(), ended["message"]
    assert len(ended["message"]) <= 600
    with attacked.server.http("eve") as http:
        attempts = http.get(f"/jobs/{job}/attempts").text
    assert len(attempts) < 4000


@pytest.mark.parametrize("attacked", ["programs"], indirect=True)
def test_an_end_behind_a_flood_of_lines_or_with_an_impossible_code_is_none(attacked: SlurmMachine) -> None:
    lines = (
        # lines that the server knows, and an exit code that no database stores
        f'echo "end {NOW} exit_code 99999999999999999999999999 - {NOW}" >>$CORRAL_RUN_DIR/told',
        "yes 'up 1' | head -c 4000000 >>$CORRAL_RUN_DIR/told",
        f'echo "end {NOW} exit_code 0 - {NOW}" >>$CORRAL_RUN_DIR/told',
        'for n in 1 2 3 4 5 6 7 8; do echo "${CORRAL_RUN_DIR##*/}"; done >>$CORRAL_RUN_DIR/../../news',
        "echo flooded",
        "exec sleep 600",
    )
    job = attacked.submit("eve", "; ".join(lines), gpus=1)

    def is_flooded() -> bool:
        with attacked.server.http("eve") as http:
            return "flooded" in http.get(f"/jobs/{job}/logs").text

    wait_until(is_flooded, "it has written everything")
    attacked.wait_for_looks()
    assert attacked.job("eve", job)["state"] == "running"
    attacked.stop("eve", job)
    assert attacked.wait("eve", job)["state"] == "stopped"


def test_a_job_that_writes_its_own_end_and_runs_on_pays_for_its_gpus(attacked: SlurmMachine) -> None:
    forged = f'echo "end {NOW} exit_code 0 - {NOW}" >>$CORRAL_RUN_DIR/told'
    # The line goes to where all nodes say that something happened, so that the server looks at once.
    news = 'echo "${CORRAL_RUN_DIR##*/}" >>$CORRAL_RUN_DIR/../../news'
    job = attacked.submit("eve", f"{forged}; {news}; trap '' TERM; sleep 600", gpus=2)
    attacked.wait("eve", job, "completed")
    number, _ = attacked.slurm_job(job)
    wait_until(lambda: attacked.state_in_slurm(number) == "CANCELLED", "corral cancels what runs on")
    ran = int(attacked.slurm.run("squeue", "-h", "-t", "all", "-j", str(number), "-O", "TimeUsed:20").split(":")[-1])

    def charged_seconds() -> float:
        with attacked.server.http("eve") as http:
            return 3600 * float(http.get(f"/jobs/{job}/metrics").json()["totals"]["gpu_hours"])

    # Up to the last look at which it still ran; looks are seconds apart.
    wait_until(lambda: charged_seconds() >= 2 * (ran - 6), f"its {ran} s are charged")
