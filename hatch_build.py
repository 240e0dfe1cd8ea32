"""Puts the built console into wheels and source archives. Editable installs go without: `make console` builds theirs.

A source archive carries the built console, so that installing from it needs no Node.js. What is built, and with which
Node.js, is decided in `scripts/console_build.py`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Asked before it is known whether the install is an editable one; `make setup` therefore says `never`."""
        steps = _steps(self.root)
        wanted = steps.Console(root=Path(self.root)).is_wanted(os.environ)
        return [steps.NODE_PACKAGE] if wanted and steps.system_node() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        steps = _steps(self.root)
        console = steps.Console(root=Path(self.root))
        if version == "editable" or not console.is_wanted(os.environ):
            return
        try:
            steps.make(console)
        except steps.BuildFailed as failure:
            sys.exit(f"{failure}\nthe console could not be built; {steps.WHEN}=never builds without it")


def _steps(root: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("console_build", Path(root, "scripts", "console_build.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
