"""Findings of `corral doctor`, and the settings of this machine's server that its checks read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.server.settings.settings import Settings


class Verdict(StrEnum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    check: str
    verdict: Verdict
    detail: str
    #: how to fix it
    fix: str = ""


def ok(check: str, detail: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, detail=detail)


def warn(check: str, detail: str, fix: str = "") -> Finding:
    return Finding(check=check, verdict=Verdict.WARN, detail=detail, fix=fix)


def fail(check: str, detail: str, fix: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAIL, detail=detail, fix=fix)


def local_settings() -> Settings | str:
    """The settings of a server on this machine, or the error in them."""
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import load_settings

    try:
        return load_settings()
    except ConfigError as error:
        return str(error.problems[0])


def local_home() -> Path:
    from corral.server.settings.settings_sources import default_home

    settings = local_settings()
    if not isinstance(settings, str):
        return settings.home
    return Path(os.environ["CORRAL_HOME"]) if os.environ.get("CORRAL_HOME") else default_home(os.environ)


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())
