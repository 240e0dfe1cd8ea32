"""The users whose jobs run as root on the nodes of a Slurm cluster, and the settings of Slurm that are used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from corral.engines.attempts.accounts import Account, AccountRules
from corral.engines.slurm.factory import slurm_access
from corral.engines.slurm.root_users import root_on_nodes
from corral.engines.slurm.slurm_api.commands import SlurmCommands
from corral.server.settings.sections.cluster_sections import SlurmSettings

ACCOUNTS = {"root": Account(name="root", uid=0, gid=0), "ada": Account(name="ada", uid=1001, gid=1001)}


def rules(users: Mapping[str, str], *, allow_root: bool) -> AccountRules:
    return AccountRules(users=users, allow_root=allow_root, lookup=ACCOUNTS.get)


def test_jobs_that_are_root_on_every_node_are_named() -> None:
    mapped = {"operator": "root", "ann": "ada", "gone": "no-such-account"}
    assert root_on_nodes(rules(mapped, allow_root=True), is_root=True) == "jobs of operator run as root on its nodes"
    assert root_on_nodes(rules({"ann": "ada"}, allow_root=True), is_root=True) == ""
    assert root_on_nodes(rules(mapped, allow_root=False), is_root=True) == "", "they are refused"
    assert root_on_nodes(None, is_root=True) == "jobs of all users run as root on its nodes"
    assert root_on_nodes(None, is_root=False) == "", "a server that is not root submits as itself"


@pytest.mark.parametrize(
    ("named", "around", "used"),
    [
        (None, "/etc/other/slurm.conf", "/etc/other/slurm.conf"),
        ("/etc/corral/slurm.conf", "/etc/other/slurm.conf", "/etc/corral/slurm.conf"),
        (None, "", "unset"),
    ],
)
def test_slurms_settings_of_the_environment_are_used_unless_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None, around: str, used: str
) -> None:
    (tmp_path / "scontrol").write_text('#!/bin/sh\nprintf %s "${SLURM_CONF-unset}" >"$0.conf"\n')
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("SLURM_CONF", around)
    access = slurm_access(SlurmSettings(conf=named, programs=str(tmp_path)))
    assert isinstance(access, SlurmCommands)
    access.partitions()
    assert (tmp_path / "scontrol.conf").read_text() == used
