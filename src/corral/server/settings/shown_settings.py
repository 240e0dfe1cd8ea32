"""The effective settings as lines with their sources, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corral.server.http.validation import Location, dotted
from corral.server.settings.settings import Settings, SettingsFile


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingLine:
    """One line of `corral config show`."""

    key: str
    value: Any
    source: str


def show_settings(settings: Settings) -> list[SettingLine]:
    """Every effective value with its source. Secrets are not shown."""
    lines = [SettingLine(key="home", value=str(settings.home), source=settings.sources.get("home", "default"))]
    for key, value in _leaves(settings.model_dump(mode="json", include=set(SettingsFile.model_fields)), ()):
        shown = without_password(value) if key[-1] in ("database", "metrics") else value
        if "channels" in key or "personal_mail" in key:
            # Any part of such an address may be the secret: only its kind is shown.
            shown = _kind_of_address(value)
        lines.append(SettingLine(key=dotted(key), value=shown, source=_source(settings.sources, key)))
    return lines


def _kind_of_address(value: Any) -> Any:
    if isinstance(value, list):
        return [_kind_of_address(item) for item in value]
    return f"{value.partition('://')[0]}://***" if isinstance(value, str) and "://" in value else value


def without_password(url: Any) -> Any:
    """A URL as it may be shown or logged."""
    if isinstance(url, str) and "://" in url:
        scheme, _, rest = url.partition("://")
        login, at, place = rest.rpartition("@")
        if at:
            return f"{scheme}://{login.partition(':')[0]}:***@{place}" if ":" in login else f"{scheme}://***@{place}"
    return url


def _leaves(value: Any, key: Location) -> list[tuple[Location, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for name, inner in value.items() for leaf in _leaves(inner, (*key, name))]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        inner_key = key if len(value) == 1 else None
        return [leaf for index, inner in enumerate(value) for leaf in _leaves(inner, inner_key or (*key, index))]
    return [(key, value)]


def _source(sources: Mapping[str, str], key: Location) -> str:
    """The source of a value; the source of a list or mapping applies to its items."""
    return sources.get(dotted(key), "default")
