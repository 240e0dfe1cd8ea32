"""The location of the templates and trainings, and how jobs get them.

A job's Python is rarely the server's, so the trainings are copied beside the checkpoint helper, where every job finds
them.
"""

from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).parent


def templates() -> dict[str, str]:
    """The text of every template, by the name of its file."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(_HERE.glob("*.yaml"))}


def install_trainings(directory: str | os.PathLike[str]) -> None:
    """Copy them into `directory`, which has the checkpoint helper and is in `PYTHONPATH`; safe to repeat."""
    target = Path(directory) / "corral" / _HERE.name
    for source in _HERE.rglob("*.py"):
        copy = target / source.relative_to(_HERE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        _put(copy, source.read_bytes())


def _put(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    os.replace(draft, path)
