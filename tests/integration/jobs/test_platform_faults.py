"""A supervisor that is killed takes its job with it, and none of the user's retries."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from corral.engines.attempts.claims import read_claim
from corral.engines.local.rundir import Layout
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer


def test_killed_supervisors_use_up_no_retries(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus=2xA10")
    server.start()
    try:
        layout = Layout(str(server.home / "local"))
        body = {"command": ["sleep", "600"], "gpus": 1, "max_retries": 1, "grace": "0s"}
        with server.http() as http:
            job_id = http.post("/jobs", json=body).raise_for_status().json()["id"]
            for attempt in (1, 2, 3):

                def runs(wanted: int = attempt) -> bool:
                    job = http.get(f"/jobs/{job_id}").json()
                    return (job["state"], job["attempt"]) == ("running", wanted)

                wait_until(runs, f"attempt {attempt} runs", seconds=120)
                pid = int(read_claim(layout.rank_dir(f"{job_id}.{attempt}", 0)).supervisor["pid"])
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: http.get(f"/jobs/{job_id}").json()["state"] == "queued", "it waits for its next attempt")
            job = http.get(f"/jobs/{job_id}").json()
            assert (job["retries"], job["faults"], job["end_reason"]) == (0, 3, None)
            assert job["message"] == "its supervisor was killed, and its processes with it"
            why = http.get(f"/jobs/{job_id}/why").json()
            assert any("after platform failure 3 in a row" in one["detail"] for one in why["reasons"])
            http.post(f"/jobs/{job_id}/stop").raise_for_status()
    finally:
        server.kill()
