"""The script that is the first process of each pod, `wrapper.sh`."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def wrapper_text() -> str:
    return (Path(__file__).parent / "wrapper.sh").read_text(encoding="utf-8")
