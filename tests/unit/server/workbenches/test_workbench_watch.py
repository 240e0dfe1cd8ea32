"""The files of a starting workbench, here and on another machine; and the checks before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from corral.control.errors import Missing
from corral.control.jobs.job_kinds import HOST_COMMAND
from corral.control.live.controller import Controller
from corral.control.ports import Clock, EngineUnavailable, Instance, LaunchOrder, LaunchRefused, Store, Tool
from corral.control.records import JobRecord, JobSpec, Role, UserRecord
from corral.core.model import Job, Request
from corral.engines.attempts.accounts import Account, AccountRules
from corral.server.workbenches.workbench_watch import WorkbenchWatch
from corral.stores.workbenches.workbench_directories import DirectoryWorkbenches
from corral.stores.workbenches.workbench_keys import WorkbenchKeys
from tests.unit.server.far_nodes import Desk

SPEC = JobSpec(command=HOST_COMMAND, jupyter=True)
ORDER = LaunchOrder(
    attempt_id="j-1.2", job_id="j-1", user="ann", command=HOST_COMMAND, instances=(Instance(rank=0, node="node7"),)
)


class NothingInstalled:
    def missing(self, needed: Sequence[Tool], *, venv: str | None, env: Mapping[str, str]) -> list[Tool]:
        return list(needed)


class OneWorkbench:
    """Ann's. `users` are all that there are."""

    def __init__(self) -> None:
        self.users: list[UserRecord] = []

    @contextmanager
    def read(self) -> Iterator[Any]:
        record = JobRecord(job=Job(id="j-1", user="ann", name="bench", request=Request()), spec=SPEC)
        by_name = {user.name: user for user in self.users}
        people = SimpleNamespace(user=by_name.get, users=lambda: self.users)
        yield SimpleNamespace(jobs=SimpleNamespace(get=lambda job_id: record), people=people)


class World:
    def __init__(self, directory: Path, accounts: AccountRules | None = None) -> None:
        self.store = OneWorkbench()
        self.desk = Desk("hpc")
        self.home = directory / "j-1" / "workbench"
        self.watch = WorkbenchWatch(
            controller=cast("Controller", self.desk),
            store=cast("Store", self.store),
            files=DirectoryWorkbenches(lambda job_id: directory / job_id, {}),
            keys=WorkbenchKeys(lambda job_id: directory / f"{job_id}.key"),
            tools=NothingInstalled(),
            accounts=accounts,
            clock=cast("Clock", None),
            ssh_listen="192.0.2.9",
            ssh_ports=(40_000, 49_999),
        )

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "settings.json").read_text())
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_on_this_machine_nothing_listens_but_ssh(world: World) -> None:
    world.watch.prepare("local", ORDER)
    assert (world.settings()["relay"], world.settings()["ssh_listen"]) == (None, "192.0.2.9")
    assert not (world.home / "relay.pem").exists()


def test_on_another_machine_it_listens_there_and_has_a_key(world: World, tmp_path: Path) -> None:
    world.watch.prepare("hpc", ORDER)
    assert world.settings()["relay"] == {"listen": "127.0.0.1", "ports": [40_000, 49_999]}
    assert world.settings()["ssh_listen"] == "127.0.0.1"
    key = world.home / "relay.pem"
    assert key.stat().st_mode & 0o777 == 0o600
    # Prepared once more, as after a launch with an unknown outcome: it may be running already.
    before = key.read_bytes()
    world.watch.prepare("hpc", ORDER)
    assert key.read_bytes() == before == (tmp_path / "j-1.key").read_bytes()


def test_where_its_node_is_must_be_known_before_it_starts(world: World) -> None:
    world.desk.far.is_there = False
    with pytest.raises(EngineUnavailable):
        world.watch.prepare("hpc", ORDER)
    assert not world.home.exists()


@pytest.mark.parametrize(
    ("clusters", "label", "missing"),
    [
        (["local"], None, [Tool.JUPYTER]),
        (["local", "hpc"], None, []),
        (["local", "hpc"], "local", [Tool.JUPYTER]),
        (["local", "hpc"], "hpc", []),
        (["hpc"], None, []),
    ],
)
def test_missing_programs_are_searched_only_on_this_machine(
    world: World, clusters: list[str], label: str | None, missing: list[Tool]
) -> None:
    world.desk.engines = {name: world.desk.engines[name] for name in clusters}
    request = Request(labels=(("corral.cluster", label),) if label else ())
    assert world.watch.missing("ann", SPEC, request) == missing


ACCOUNTS = {
    "ann": Account(name="ann", uid=2001, gid=2001),
    "alias": Account(name="alias", uid=2001, gid=2001),
    "nobody": Account(name="nobody", uid=65534, gid=65534),
}


@pytest.mark.parametrize(
    ("role", "owners", "others", "shared_with"),
    [
        (Role.OPERATOR, None, {"bob": "nobody"}, "bob"),
        (Role.OPERATOR, "ann", {"bob": "nobody"}, None),
        (Role.OPERATOR, "ann", {"bob": "alias"}, "bob"),
        (Role.OPERATOR, None, {}, "users without one of their own"),
        (Role.SCIENTIST, None, {"bob": "nobody"}, None),
    ],
)
def test_an_operators_workbench_runs_as_no_account_that_others_have(
    tmp_path: Path, role: Role, owners: str | None, others: dict[str, str], shared_with: str | None
) -> None:
    users = {**others, **({"ann": owners} if owners else {})}
    rules = AccountRules(pattern="u-{user}", users=users, default="nobody", share_default=True, lookup=ACCOUNTS.get)
    world = World(tmp_path, rules)
    world.store.users = [UserRecord(name="ann", role=role, created_at=0.0)]
    world.store.users += [UserRecord(name=name, role=Role.SCIENTIST, created_at=0.0) for name in others]
    if shared_with is None:
        world.watch.missing("ann", SPEC, Request())
        world.watch.prepare("local", ORDER)
        return
    with pytest.raises(Missing, match=f"the account of {shared_with}, too"):
        world.watch.missing("ann", SPEC, Request())
    # Also for one who has become an operator while it waited.
    with pytest.raises(LaunchRefused, match=r"local\.run_as\.users"):
        world.watch.prepare("local", ORDER)
