"""A GPU manager's `gpu_manager_config.json`, turned into the text of a `corral.yaml`.

Decides which old key maps to which new one. Nothing is dropped silently: keys without a counterpart are reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from corral.server.http.validation import Finding, findings
from corral.server.settings.config_file import ConfigError, ConfigProblem
from corral.server.settings.settings import SettingsFile

_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')

#: Old key to new key, where the value keeps its form.
_SAME_FORM: Mapping[str, tuple[str, str]] = {
    "monitor_interval": ("monitoring", "interval_seconds"),
    "max_gpus_per_task": ("policies", "max_gpus_per_task"),
    "max_total_gpus": ("policies", "max_total_gpus"),
    "max_auto_gpus": ("policies", "max_auto_gpus"),
    "max_manual_gpus": ("policies", "max_manual_gpus"),
    "auto_scale": ("scaling", "enabled"),
    "task_prefix": ("program_template", "task_prefix"),
}
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "program_template": ("command", "args", "env_vars", "task_prefix"),
    "scaling": ("enabled", "min_gpus", "max_gpus", "scale_up_threshold", "scale_down_threshold"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedConfig:
    """The new file's text, and notes for the user about the conversion."""

    yaml_text: str
    #: one line per mapped key: "monitor_interval -> monitoring.interval_seconds"
    mapped: tuple[str, ...]
    #: keys that have no counterpart and were left out
    unknown: tuple[str, ...]
    #: keys whose meaning differs slightly
    remarks: tuple[str, ...]


def import_config(text: str, name: str) -> ImportedConfig:
    """Read the JSON, which may have `//` comments. Raises ConfigError if it is not JSON or a value is not valid."""
    old = _load(text, name)
    mapping = _Mapping()
    for key, value in old.items():
        mapping.take(key, value)
    if "auto_scale" in old and isinstance(old.get("scaling"), dict) and "enabled" in old["scaling"]:
        both = bool(old["auto_scale"]) and bool(old["scaling"]["enabled"])
        mapping.new["scaling"]["enabled"] = both
        mapping.remarks.append("auto_scale and scaling.enabled were both given: scaling is on only if both were true")
    _check(mapping, name)
    return ImportedConfig(
        yaml_text=yaml.safe_dump(mapping.new, sort_keys=False, allow_unicode=True),
        mapped=tuple(mapping.mapped),
        unknown=tuple(mapping.unknown),
        remarks=tuple(mapping.remarks),
    )


def strip_comments(text: str) -> str:
    """JSON without `//` comments. A `//` inside a string, as in a URL, is not one."""
    return _STRING_OR_COMMENT.sub(lambda match: "" if match[0].startswith("//") else match[0], text)


def _load(text: str, name: str) -> dict[str, Any]:
    try:
        old = json.loads(strip_comments(text))
    except json.JSONDecodeError as error:
        raise _error(f"{name}:{error.lineno}", f"is not valid JSON: {error.msg}") from error
    if not isinstance(old, dict):
        raise _error(f"{name}:1", "must be a JSON object with keys such as monitor_interval")
    return old


class _Mapping:
    """Collects the new values."""

    def __init__(self) -> None:
        self.new: dict[str, dict[str, Any]] = {}
        self.mapped: list[str] = []
        self.unknown: list[str] = []
        self.remarks: list[str] = []
        #: new key to old key, so that an error can name the old key
        self.origins: dict[tuple[str, str], str] = {}

    def take(self, key: str, value: Any) -> None:
        handler = _SPECIAL.get(key)
        if key in _SAME_FORM:
            self.put(key, _SAME_FORM[key], value)
        elif key in _SECTIONS and isinstance(value, dict):
            for inner, inner_value in value.items():
                if inner in _SECTIONS[key]:
                    self.put(f"{key}.{inner}", (key, inner), inner_value)
                else:
                    self.unknown.append(f"{key}.{inner}")
        elif handler is not None and isinstance(value, dict):
            handler(self, value)
        else:
            self.unknown.append(key)

    def put(self, old_key: str, new_key: tuple[str, str], value: Any) -> None:
        section, name = new_key
        self.new.setdefault(section, {})[name] = value
        self.origins[new_key] = old_key
        self.mapped.append(f"{old_key} -> {section}.{name}")


def _notification(mapping: _Mapping, value: dict[str, Any]) -> None:
    """The old file has one e-mail address and a switch; here, a listed channel is switched on."""
    enabled = value.get("enabled", True)
    for key, inner in value.items():
        if key == "email" and enabled:
            mapping.put("notification.email", ("notification", "channels"), [f"mailto://{inner}"])
        elif key == "email":
            mapping.remarks.append("notification was switched off: its address was left out")
        elif key == "gpu_available_threshold":
            mapping.put("notification.gpu_available_threshold", ("notification", "gpu_available_threshold"), inner)
        elif key != "enabled":
            mapping.unknown.append(f"notification.{key}")


_SPECIAL: Mapping[str, Callable[[_Mapping, dict[str, Any]], None]] = {"notification": _notification}


def _check(mapping: _Mapping, name: str) -> None:
    try:
        SettingsFile.model_validate(mapping.new)
    except ValidationError as error:
        raise ConfigError(
            [
                ConfigProblem(origin=name, key=_old_key(mapping, found), message=found.message)
                for found in findings(error.errors(), SettingsFile)
            ]
        ) from None


def _old_key(mapping: _Mapping, found: Finding) -> str:
    place = tuple(str(part) for part in found.location[:2])
    return mapping.origins.get((place[0], place[1]), found.field) if len(place) == 2 else found.field


def _error(origin: str, message: str) -> ConfigError:
    return ConfigError([ConfigProblem(origin=origin, key="", message=message)])
