"""API schemas: the effective settings read-only. They are changed in `corral.yaml` and by a restart."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from corral.server.schemas.base import View
from corral.server.settings.settings import Settings
from corral.server.settings.shown_settings import SettingLine, show_settings, without_password

MASK = "***"
#: Names of variables whose values are secret.
_SECRET = re.compile(r"key|token|secret|pass|credential|auth", re.IGNORECASE)


class SettingView(View):
    key: str = Field(description="Key within the section, such as interval_seconds.")
    value: Any = Field(description="Null if there is none. Secrets are masked.")
    source: str = Field(description="Source of the value: default, a line of the file, a variable, the command line.")
    is_default: bool


class SettingsSectionView(View):
    name: str
    settings: list[SettingView]


class SettingsView(View):
    config_file: str | None
    sections: list[SettingsSectionView] = Field(description="The sections of corral.yaml, in its order.")


def settings_view(settings: Settings) -> SettingsView:
    sections: dict[str, list[SettingView]] = {}
    for line in show_settings(settings):
        name, _, key = line.key.replace("[", ".[", 1).partition(".")
        if key:
            sections.setdefault(name, []).append(_setting(key, line))
    return SettingsView(
        config_file=str(settings.config_file) if settings.config_file is not None else None,
        sections=[SettingsSectionView(name=name, settings=lines) for name, lines in sections.items()],
    )


def _setting(key: str, line: SettingLine) -> SettingView:
    value = MASK if ".env_vars." in line.key and _SECRET.search(key) else _without_passwords(line.value)
    return SettingView(key=key, value=value, source=line.source, is_default=line.source == "default")


def _without_passwords(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_passwords(item) for item in value]
    return without_password(value) if isinstance(value, str) and "://" in value else value
