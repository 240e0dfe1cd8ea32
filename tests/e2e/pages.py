"""Every page of the console, for what is to be true of all of them: pictures, accessibility, no errors."""

from __future__ import annotations

import re
from pathlib import Path

REGISTRY = Path(__file__).parents[2] / "console" / "src" / "app" / "pages.ts"


def registered_paths() -> list[str]:
    """The addresses in the console's own registry; those with a placeholder end in `$…`."""
    return re.findall(r'(?:everyone|operator)\(\s*"([^"]+)"', REGISTRY.read_text(encoding="utf-8"))


def concrete(path: str, *, job: str, node: str, gpu: str, simulation: str) -> str:
    """A registered address with something real in its place."""
    if path == "/gpus/$":
        return f"/gpus/{gpu}"
    return path.replace("$job", job).replace("$node", node).replace("$simulation", simulation)
