"""The fixture `attacked`, for `pytest_plugins`: a real Slurm, corral on it, and two people with accounts there.

It comes in three ways: a server of root's by Slurm's programs, the same by slurmrestd, and a server of an ordinary
account, whose jobs are all that account's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.slurm_machine import SlurmMachine
from tests.integration.slurm_server import server_on
from tests.servers.accounts import temporary_account
from tests.servers.slurm import SlurmCluster

PROGRAM = str(Path(__file__).with_name("attacked_server.py"))
WAYS = ("programs", "slurmrestd", "ordinary account")


@pytest.fixture(params=WAYS)
def attacked(request: pytest.FixtureRequest, slurm_cluster: SlurmCluster) -> Iterator[SlurmMachine]:
    # Tests beside each other make accounts of their own.
    number = os.getpid()
    first = 1_000_000 + 3 * number
    names = {who: f"corral-{who}-{number}" for who in ("ann", "eve", "own")}
    with ExitStack() as stack:
        for offset, name in enumerate(names.values()):
            stack.enter_context(temporary_account(name, first + offset))
        place = Path(tempfile.mkdtemp(prefix="corral-slurm-attack-", dir="/tmp"))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        place.chmod(0o755)
        made = _machine(request, slurm_cluster, place, names, first + 2)
        stack.callback(_clean_up, made)
        made.start()
        for user in ("ann", "eve"):
            made.server.add_user(user)
        yield made


def _machine(
    request: pytest.FixtureRequest, slurm: SlurmCluster, place: Path, names: Mapping[str, str], own_uid: int
) -> SlurmMachine:
    options: dict[str, Any] = {}
    if request.param == "slurmrestd":
        request.getfixturevalue("slurm_rest")
        token = place / "token"
        token.touch(mode=0o600)
        token.write_text(slurm.token())
        # Everything through slurmrestd: no program of Slurm's is there.
        options = {
            "programs": "/no/such/place",
            "rest": f"{{url: '{slurm.start_rest()}', token_file: {token}}}",
        }
    people = {"ann": names["ann"], "eve": names["eve"]}
    env, own_account, settings = {"CORRAL_ALLOW_ROOT": "false", "CRASH_FILE": str(place / "home" / "crash")}, "", ""
    if request.param == "ordinary account":
        env["ACCOUNT_UID"], own_account = str(own_uid), names["own"]
    else:
        users = ", ".join(f"{user}: {account}" for user, account in people.items())
        settings = f"local: {{run_as: {{users: {{{users}}}}}}}\n"
    server = server_on(slurm, place / "home", settings=settings, program=[PROGRAM], **options)
    if own_account:
        os.chown(place / "home", own_uid, own_uid)
    return SlurmMachine(server=server, slurm=slurm, accounts=people, own_account=own_account, env=env)


def _clean_up(machine: SlurmMachine) -> None:
    machine.server.kill()
    machine.slurm.cancel_all()
