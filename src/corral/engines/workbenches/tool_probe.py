"""Searches for the programs that a workbench offers, on the machine of the local engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from corral.control.ports import Tool
from corral.engines.attempts.environment import base_environment
from corral.engines.workbenches.program.requirements import environment, find_jupyter, find_sshd

_FINDERS = {Tool.JUPYTER: find_jupyter, Tool.SSHD: find_sshd}


class LocalTools:
    """Implements `corral.control.ports.ToolProbe`: searches the same directories as the program in the workbench."""

    def __init__(self, server_env: Mapping[str, str] | None = None, *, has_accounts: bool = False) -> None:
        """Probes tools of this machine. With `has_accounts`, workbenches run as other accounts than the server."""
        self._has_accounts = has_accounts
        given = os.environ if server_env is None else server_env
        self._base = base_environment(given, python_dir=os.path.dirname(sys.executable))

    def missing(self, needed: Sequence[Tool], *, venv: str | None, env: Mapping[str, str]) -> list[Tool]:
        if self._has_accounts and (venv or "PATH" in env):
            # The server may see programs that the job's account cannot. The workbench itself checks at its start, as
            # that account.
            return []
        found_in = environment({**self._base, **env}, venv)
        return [tool for tool in needed if _FINDERS[tool](found_in) is None]
