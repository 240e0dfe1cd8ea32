"""Tests for the requirements of a workbench, and for the probe that checks them beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.ports import Tool
from corral.engines.workbenches.program import requirements
from corral.engines.workbenches.program.requirements import environment
from corral.engines.workbenches.tool_probe import LocalTools


def program(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_environment_puts_programs_of_the_virtual_environment_first() -> None:
    env = environment({"PATH": "/usr/bin:/opt/venv/bin:/bin", "HOME": "/h"}, "/opt/venv")
    assert env == {"PATH": "/opt/venv/bin:/usr/bin:/bin", "HOME": "/h", "VIRTUAL_ENV": "/opt/venv"}
    assert environment({"PATH": "/bin"}, None) == {"PATH": "/bin"}


def test_probe_searches_the_same_directories_as_the_workbench(tmp_path: Path) -> None:
    tools = LocalTools({"PATH": str(tmp_path / "bin")}, has_accounts=False)
    both = [Tool.JUPYTER, Tool.SSHD]
    nowhere = {"PATH": str(tmp_path / "nowhere")}
    assert Tool.JUPYTER in tools.missing(both, venv=None, env=nowhere)
    program(tmp_path / "venv" / "bin", "jupyter-lab")
    assert Tool.JUPYTER not in tools.missing(both, venv=str(tmp_path / "venv"), env=nowhere)
    program(tmp_path / "old" / "bin", "jupyter-notebook")
    assert Tool.JUPYTER not in tools.missing(both, venv=None, env={"PATH": str(tmp_path / "old" / "bin")})


def test_probe_as_root_does_not_search_directories_of_users(tmp_path: Path) -> None:
    """Whether a file is there could be another's secret: the workbench itself looks, with its account's rights."""
    tools = LocalTools({"PATH": str(tmp_path / "bin")}, has_accounts=True)
    program(tmp_path / "venv" / "bin", "jupyter-lab")
    for venv in (str(tmp_path / "venv"), str(tmp_path / "nowhere")):
        assert tools.missing([Tool.JUPYTER], venv=venv, env={}) == []


def test_find_sshd_requires_ssh_keygen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_SBIN", (str(tmp_path / "sbin"),))
    env = {"PATH": str(tmp_path / "bin")}
    program(tmp_path / "sbin", "sshd")
    assert requirements.find_sshd(env) is None
    program(tmp_path / "bin", "ssh-keygen")
    assert requirements.find_sshd(env) == str(tmp_path / "sbin" / "sshd")
