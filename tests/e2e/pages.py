"""Every page of the console, for what is to be true of all of them: pictures, accessibility, no errors."""

from __future__ import annotations

import re
from pathlib import Path

REGISTRY = Path(__file__).parents[2] / "console" / "src" / "app" / "pages.ts"


def registered_paths() -> list[str]:
    """The addresses in the console's own registry; those with a placeholder end in `$…`."""
    return re.findall(r'(?:everyone|operator)\(\s*"([^"]+)"', REGISTRY.read_text(encoding="utf-8"))


def concrete(path: str, *, gpu: str, **places: str) -> str:
    """A registered address with something real in its place: `job`, `node`, `volume` … as the address calls it."""
    if path == "/gpus/$":
        return f"/gpus/{gpu}"
    return re.sub(r"\$(\w+)", lambda found: places[found[1]], path)
