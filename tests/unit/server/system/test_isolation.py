"""The accounts of jobs if the server runs as root, by its settings and the reach of other accounts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from corral.control.ports import LaunchRefused
from corral.engines.attempts.accounts import Account, AccountRules
from corral.server.demo.sample_setup import PEOPLE
from corral.server.settings.settings import Settings
from corral.server.settings.settings_sources import load_settings
from corral.server.system import isolation
from corral.server.system.isolation import Separation
from corral.server.wiring.run import DEMO_NODES, for_demo


def settings(tmp_path: Path, **overrides: object) -> Settings:
    return load_settings(overrides={"home": tmp_path / "home", **overrides}, environ={})


@pytest.fixture(autouse=True)
def started_by_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "own_account", lambda: Account(name="root", uid=0, gid=0))


@pytest.fixture
def everything_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "barrier", lambda path: None)
    monkeypatch.setattr(sys, "executable", "/usr/bin/env")


def test_where_nothing_is_said_the_first_operator_has_the_servers_account(
    tmp_path: Path, everything_is_open: None
) -> None:
    rules = isolation.account_rules(settings(tmp_path))
    assert rules is not None
    assert rules.account_of("operator").name == "root"
    with pytest.raises(LaunchRefused, match="eve has no account on this machine"):
        rules.account_of("eve")


def test_where_only_root_can_reach_the_home_others_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    rules = isolation.isolation_of(settings(tmp_path), is_root=True).accounts
    assert rules is not None
    assert rules.account_of("operator").name == "root"
    with pytest.raises(LaunchRefused, match=r"local\.allow_root: true"):
        rules.account_of("eve")
    (logged,) = caplog.messages
    assert "jobs of all users but operator are refused" in logged
    assert "local.allow_root: true" in logged
    assert isolation.separated(rules).detail.endswith(f"cannot reach {rules.barrier}")


@pytest.mark.parametrize(
    ("pattern", "accounts"),
    [("{user}", "of their user's name"), ("lab-{user}", "lab-NAME (NAME is their user's name)")],
)
def test_the_detail_has_no_word_of_the_configuration(pattern: str, accounts: str) -> None:
    detail = isolation.separated(AccountRules(pattern=pattern)).detail
    assert detail.startswith(f"jobs run as the account {accounts} on this machine")
    assert "{" not in detail


def test_no_means_no(tmp_path: Path) -> None:
    rules = isolation.account_rules(settings(tmp_path, **{"local.allow_root": False}))
    assert rules is not None
    with pytest.raises(LaunchRefused, match="operator has no account on this machine"):
        rules.account_of("operator")
    forced = settings(tmp_path, **{"local.allow_root": False, "local.run_as": {"users": {"operator": "root"}}})
    rules = isolation.account_rules(forced)
    assert rules is not None
    with pytest.raises(LaunchRefused, match="would run as root"):
        rules.account_of("operator")


def test_an_account_is_shared_only_if_the_operator_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    named = settings(tmp_path, **{"local.allow_root": False, "local.run_as.default": "nobody"})
    rules = isolation.isolation_of(named, is_root=True).accounts
    assert rules is not None
    with pytest.raises(LaunchRefused, match="share_default: true"):
        rules.account_of("eve")
    assert caplog.messages == ["local.run_as.default has no effect without local.run_as.share_default: true"]
    assert isolation.separated(rules).separation is Separation.ACCOUNTS
    rules = isolation.account_rules(settings(tmp_path, **{"local.run_as.share_default": True}))
    assert rules is not None
    assert rules.account_of("eve").name == "nobody"
    assert isolation.separated(rules).separation is Separation.SHARED_ACCOUNTS


def test_the_demos_people_have_an_account_that_is_not_theirs(tmp_path: Path, everything_is_open: None) -> None:
    rules = isolation.account_rules(for_demo(settings(tmp_path)))
    assert rules is not None
    assert {rules.account_of(name).name for name, _ in PEOPLE} == {"nobody"}
    assert isolation.separated(rules).separation is Separation.SHARED_ACCOUNTS
    with pytest.raises(LaunchRefused, match="eve has no account"):
        rules.account_of("eve")


def test_the_demo_runs_where_only_root_can_reach_its_home(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o700)
    rules = isolation.isolation_of(for_demo(settings(tmp_path)), is_root=True).accounts
    assert rules is not None
    assert {rules.account_of(name).name for name, _ in PEOPLE} == {"root"}
    with pytest.raises(LaunchRefused, match="jobs of eve cannot run here"):
        rules.account_of("eve")
    assert "give none of these users a password" in caplog.text


def test_the_demo_keeps_what_the_operator_said(tmp_path: Path) -> None:
    demo = for_demo(settings(tmp_path, **{"local.allow_root": False, "local.max_processes": 99}))
    assert (demo.local.allow_root, demo.local.max_processes, demo.local.virtual_nodes) == (False, 99, DEMO_NODES)


def test_a_map_alone_allows_no_user_to_be_root(tmp_path: Path, everything_is_open: None) -> None:
    rules = isolation.account_rules(settings(tmp_path, **{"local.run_as": {"default": "root", "share_default": True}}))
    assert rules is not None
    with pytest.raises(LaunchRefused, match="would run as root"):
        rules.account_of("operator")


def test_yes_without_a_map_is_for_all(tmp_path: Path) -> None:
    assert isolation.account_rules(settings(tmp_path, **{"local.allow_root": True})) is None
    assert isolation.separated(None).separation is Separation.SINGLE_USER
