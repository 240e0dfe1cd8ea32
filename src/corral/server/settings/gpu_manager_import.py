"""A GPU manager's `gpu_manager_config.json`, turned into the text of a `corral.yaml`."""

from __future__ import annotations

from dataclasses import dataclass

import yaml
from pydantic import ValidationError

from corral.server.http.validation import Finding, findings
from corral.server.settings.config_file import ConfigError, ConfigProblem
from corral.server.settings.gpu_manager_keys import MappedConfig, mapped_config
from corral.server.settings.settings import SettingsFile


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedConfig:
    """The new file's text, and notes for the user about the conversion."""

    yaml_text: str
    #: one line per mapped key: "monitor_interval -> monitoring.interval_seconds"
    mapped: tuple[str, ...]
    #: keys that have no counterpart and were left out
    unknown: tuple[str, ...]
    #: keys whose meaning differs slightly, or that need something more
    remarks: tuple[str, ...]


def import_config(text: str, name: str) -> ImportedConfig:
    """Read the JSON, which may have `//` comments. Raises ConfigError if it is not JSON or a value is not valid."""
    found = mapped_config(text, name)
    _check(found, name)
    return ImportedConfig(
        yaml_text=yaml.safe_dump(dict(found.values), sort_keys=False, allow_unicode=True),
        mapped=found.mapped,
        unknown=found.unknown,
        remarks=found.remarks,
    )


def _check(mapped: MappedConfig, name: str) -> None:
    try:
        SettingsFile.model_validate(mapped.values)
    except ValidationError as error:
        raise ConfigError(
            [
                ConfigProblem(origin=name, key=_old_key(mapped, found), message=found.message)
                for found in findings(error.errors(), SettingsFile)
            ]
        ) from None


def _old_key(mapped: MappedConfig, found: Finding) -> str:
    place = tuple(str(part) for part in found.location[:2])
    return mapped.origins.get((place[0], place[1]), found.field) if len(place) == 2 else found.field
