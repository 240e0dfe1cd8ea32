"""The keys of a GPU manager's `gpu_manager_config.json`, and their counterparts in `corral.yaml`.

Decides which old key maps to which new one. Nothing is dropped silently: keys without a counterpart are reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from corral.server.http.validation import Location
from corral.server.settings.config_file import ConfigError, ConfigProblem, ConfigTree, parse_config

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
    "program_template": ("command", "args", "env_vars", "task_prefix", "notify", "restart_unsaved"),
    "scaling": (
        "enabled",
        "min_gpus",
        "max_gpus",
        "scale_up_threshold",
        "scale_down_threshold",
        "window_minutes",
        "interval_minutes",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MappedConfig:
    """The values of an old file under their new keys."""

    values: Mapping[str, Mapping[str, Any]]
    #: one line per mapped key: "monitor_interval -> monitoring.interval_seconds"
    mapped: tuple[str, ...]
    #: keys that have no counterpart
    unknown: tuple[str, ...]
    #: keys whose meaning differs slightly, or that need something more
    remarks: tuple[str, ...]
    #: new key to old key, so that an error can name the old key
    origins: Mapping[tuple[str, str], str]


def mapped_config(text: str, name: str) -> MappedConfig:
    """Read the JSON, which may have `//` comments. Raises ConfigError if it is not JSON."""
    old = _load(text, name)
    mapping = _Mapping()
    for key, value in old.items():
        mapping.take(key, value)
    if "auto_scale" in old and isinstance(old.get("scaling"), dict) and "enabled" in old["scaling"]:
        switches = {bool(old["auto_scale"]), bool(old["scaling"]["enabled"])}
        mapping.new["scaling"]["enabled"] = all(switches)
        if len(switches) > 1:
            mapping.remarks.append("auto_scale and scaling.enabled differ: scaling is off; both must be true for it")
    return MappedConfig(
        values=mapping.new,
        mapped=tuple(mapping.mapped),
        unknown=tuple(mapping.unknown),
        remarks=tuple(mapping.remarks),
        origins=mapping.origins,
    )


def is_gpu_manager_config(text: str, name: str, sections: Collection[str]) -> bool:
    """Whether a JSON file has keys that `corral.yaml` does not have; with `sections` only, it is read as YAML."""
    old = _load(text, name)
    notification = old.get("notification")
    return any(key not in sections for key in old) or (isinstance(notification, dict) and "email" in notification)


def gpu_manager_tree(text: str, name: str) -> ConfigTree:
    """An old file read in place of a `corral.yaml`. Raises ConfigError for keys without a counterpart."""
    found = mapped_config(text, name)
    # JSON is YAML, except for tabs between the values; its reader knows the lines.
    lines = parse_config(strip_comments(text).replace("\t", " "), name).lines
    if found.unknown:
        hint = f"corral has no such setting: remove it, or convert the file with `corral config import {name}`"
        problems = [_problem(name, lines.get((*key.split("."),), 1), key, hint) for key in found.unknown]
        raise ConfigError(problems)
    places: dict[Location, int] = {new: lines.get((*old.split("."),), 1) for new, old in found.origins.items()}
    return ConfigTree(name=name, values=found.values, lines=places, notes=found.remarks)


def strip_comments(text: str) -> str:
    """JSON without `//` comments. A `//` inside a string, as in a URL, is not one."""
    return _STRING_OR_COMMENT.sub(lambda match: "" if match[0].startswith("//") else match[0], text)


def _load(text: str, name: str) -> dict[str, Any]:
    try:
        old = json.loads(strip_comments(text))
    except json.JSONDecodeError as error:
        raise ConfigError([_problem(name, error.lineno, "", f"is not valid JSON: {error.msg}")]) from error
    if not isinstance(old, dict):
        raise ConfigError([_problem(name, 1, "", "must be a JSON object with keys such as monitor_interval")])
    return old


class _Mapping:
    """Collects the new values."""

    def __init__(self) -> None:
        self.new: dict[str, dict[str, Any]] = {}
        self.mapped: list[str] = []
        self.unknown: list[str] = []
        self.remarks: list[str] = []
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
            mapping.remarks.append(
                f"notification.email: the address names no mail server, and mail to {inner} is delivered only if the "
                "server of its domain takes mail without signing in. Otherwise set notification.channels to "
                f"mailto://USER:PASSWORD@MAIL-SERVER?to={inner}; `corral channel test config-1` sends a test message"
            )
        elif key == "email":
            mapping.remarks.append("notification was switched off: its address was left out")
        elif key == "gpu_available_threshold":
            mapping.put("notification.gpu_available_threshold", ("notification", "gpu_available_threshold"), inner)
        elif key != "enabled":
            mapping.unknown.append(f"notification.{key}")


_SPECIAL: Mapping[str, Callable[[_Mapping, dict[str, Any]], None]] = {"notification": _notification}


def _problem(name: str, line: int, key: str, message: str) -> ConfigProblem:
    return ConfigProblem(origin=f"{name}:{line}", key=key, message=message)
