"""A shared machine under attack: a real server as root, and two scientists with real accounts of their own.

`ann` is the victim and `eve` the attacker. What either may do goes through the API and through jobs, as for everybody.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.fork_server import ENTRY_POINT

pytest_plugins = ["tests.servers.fixtures"]

_ENDED = ("completed", "failed", "stopped")


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedMachine:
    """`accounts` maps corral's users to the accounts of the machine that their jobs run as."""

    server: CorralServer
    accounts: Mapping[str, str]
    #: a directory that every account can pass through, outside of the server's home
    place: Path

    def start(self, **env: str) -> None:
        self.server.start(env, CORRAL_ALLOW_ROOT="false")

    def submit(self, user: str, script: str, **fields: Any) -> str:
        """The id of a job of the user that runs a shell script."""
        body = {"command": ["/bin/sh", "-c", script], **fields}
        with self.server.http(user) as http:
            return str(http.post("/jobs", json=body).raise_for_status().json()["id"])

    def job(self, user: str, job_id: str) -> dict[str, Any]:
        with self.server.http(user) as http:
            found: dict[str, Any] = http.get(f"/jobs/{job_id}").raise_for_status().json()
        return found

    def log(self, user: str, job_id: str) -> str:
        with self.server.http(user) as http:
            return http.get(f"/jobs/{job_id}/logs").raise_for_status().text

    def wait(self, user: str, job_id: str, *states: str, seconds: float = 60.0) -> dict[str, Any]:
        """The job once it is in one of the states; by default once it has ended."""
        wanted = states or _ENDED
        wait_until(
            lambda: self.job(user, job_id)["state"] in wanted, f"job {job_id} is {' or '.join(wanted)}", seconds=seconds
        )
        return self.job(user, job_id)

    def run(self, user: str, script: str, **fields: Any) -> tuple[dict[str, Any], str]:
        """The ended job and its log."""
        job_id = self.submit(user, script, **fields)
        return self.wait(user, job_id), self.log(user, job_id)


@contextmanager
def shared_machine(
    worker_id: str, *, program: Sequence[str] = ENTRY_POINT, settings: str = ""
) -> Iterator[SharedMachine]:
    """Skips without root: only a server that runs as root gives jobs other accounts. `settings` are more lines of the
    configuration below `local.run_as`, and `program` is what is run instead of the ordinary entry point."""
    if os.geteuid() != 0:
        pytest.skip("only a server that runs as root gives jobs other accounts: run as root")
    # Tests beside each other make accounts of their own.
    number = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 90
    names = {"ann": f"corral-ann{number}", "eve": f"corral-eve{number}"}
    with (
        temporary_account(names["ann"], 48000 + 2 * number),
        temporary_account(names["eve"], 48001 + 2 * number),
        tempfile.TemporaryDirectory() as directory,
    ):
        # pytest's own directories are for root only.
        place = Path(directory)
        place.chmod(0o755)
        config = place / "corral.yaml"
        users = ", ".join(f"{user}: {account}" for user, account in names.items())
        config.write_text(f"local: {{run_as: {{users: {{{users}}}{settings}}}}}\n")
        server = CorralServer(place / "home", "--virtual-gpus", "8xA10", "--config", str(config), program=program)
        shared = SharedMachine(server=server, accounts=names, place=place)
        shared.start()
        try:
            for user in names:
                server.add_user(user)
            yield shared
        finally:
            server.kill()


@pytest.fixture
def machine(worker_id: str) -> Iterator[SharedMachine]:
    with shared_machine(worker_id) as shared:
        yield shared
