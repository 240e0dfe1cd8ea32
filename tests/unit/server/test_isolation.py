"""Whose account jobs get from a server that runs as root, by what was said about it and what others can reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.ports import LaunchRefused
from corral.server import isolation
from corral.server.settings import Settings, load_settings


def settings(tmp_path: Path, **overrides: object) -> Settings:
    return load_settings(overrides={"home": tmp_path / "home", **overrides}, environ={})


@pytest.fixture
def everything_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "barrier", lambda path: None)
    monkeypatch.setattr(isolation.sys, "executable", "/usr/bin/env")


def test_where_nothing_is_said_the_first_operator_has_the_servers_account(
    tmp_path: Path, everything_is_open: None
) -> None:
    rules = isolation.account_rules(settings(tmp_path))
    assert rules is not None
    assert rules.account_of("operator").name == isolation.own_account().name
    assert rules.account_of("somebody-else").name == "nobody"


def test_what_nobody_else_can_reach_makes_all_jobs_the_servers_own_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    assert isolation.account_rules(settings(tmp_path)) is None
    (told,) = caplog.messages
    assert "jobs run as root, because other accounts cannot reach" in told
    assert "local.allow_root: false" in told


def test_no_means_no(tmp_path: Path) -> None:
    rules = isolation.account_rules(settings(tmp_path, **{"local.allow_root": False}))
    assert rules is not None
    assert rules.account_of("operator").name == "nobody"
    forced = settings(tmp_path, **{"local.allow_root": False, "local.run_as": {"users": {"operator": "root"}}})
    rules = isolation.account_rules(forced)
    assert rules is not None
    with pytest.raises(LaunchRefused, match="would run as root"):
        rules.account_of("operator")


def test_a_map_alone_allows_nobody_to_be_root(tmp_path: Path, everything_is_open: None) -> None:
    rules = isolation.account_rules(settings(tmp_path, **{"local.run_as": {"default": "root"}}))
    assert rules is not None
    with pytest.raises(LaunchRefused, match="would run as root"):
        rules.account_of("operator")


def test_yes_without_a_map_is_for_all(tmp_path: Path) -> None:
    assert isolation.account_rules(settings(tmp_path, **{"local.allow_root": True})) is None
