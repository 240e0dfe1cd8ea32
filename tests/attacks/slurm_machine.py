"""A real Slurm under attack: corral on it, and two people with accounts there, who may also run sbatch themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.slurm import SlurmCluster


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmMachine:
    server: CorralServer
    slurm: SlurmCluster
    #: accounts of the machine by the name of their person
    accounts: Mapping[str, str]
    #: the account of a server that is not root
    own_account: str = ""
    env: Mapping[str, str]

    @property
    def is_root(self) -> bool:
        return not self.own_account

    def start(self) -> None:
        self.server.start(self.env)

    def submit(self, user: str, script: str, **fields: Any) -> str:
        body = {"command": ["/bin/bash", "-c", script], **fields}
        with self.server.http(user) as http:
            return str(http.post("/jobs", json=body).raise_for_status().json()["id"])

    def job(self, user: str, job_id: str) -> dict[str, Any]:
        with self.server.http(user) as http:
            found: dict[str, Any] = http.get(f"/jobs/{job_id}").raise_for_status().json()
        return found

    def wait(self, user: str, job_id: str, *states: str) -> dict[str, Any]:
        wanted = states or ("completed", "failed", "stopped")
        wait_until(lambda: self.job(user, job_id)["state"] in wanted, f"job {job_id} is {' or '.join(wanted)}")
        return self.job(user, job_id)

    def stop(self, user: str, job_id: str) -> None:
        with self.server.http(user) as http:
            http.post(f"/jobs/{job_id}/stop").raise_for_status()

    def taken(self, node: str) -> int:
        """How many GPUs of a node others hold, as corral says."""
        with self.server.http() as http:
            found = {one["id"]: one for one in http.get("/nodes").raise_for_status().json()["items"]}
        return int(found[node]["taken"]["gpus"])

    def run_as(self, user: str, *words: str) -> str:
        """The output of a program that a user runs under the own account."""
        account = self.accounts[user]
        who = ["setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups"]
        done = subprocess.run([*who, *words], env=self.slurm.env, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def sbatch(self, user: str, *options: str, script: str = "sleep 600") -> int:
        """A job that a person gives to Slurm without corral."""
        return int(self.run_as(user, "sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}"))

    def state_in_slurm(self, job_id: int) -> str:
        return self.slurm.run("squeue", "-h", "-t", "all", "-j", str(job_id), "-o", "%T").strip()

    def slurm_job(self, job_id: str) -> tuple[int, str]:
        """The id and the name of the Slurm job of a job, as everybody sees them."""
        for line in self.slurm.run("squeue", "-h", "-o", "%i %j").splitlines():
            number, _, name = line.partition(" ")
            if f"-{job_id}." in name and name.startswith("corral-") and number.isdigit():
                return int(number), name
        raise AssertionError(f"Slurm has no job of {job_id}")

    def wait_for_looks(self) -> None:
        """Waits until the server has queried Slurm twice."""
        for _ in range(2):
            more = self.taken("node4") + 1
            self.sbatch("eve", "--gres=gpu:1", "--nodelist=node4")
            wait_until(partial(self._has_taken, "node4", more), "a stranger's job is seen")

    def _has_taken(self, node: str, gpus: int) -> bool:
        return self.taken(node) >= gpus
