"""The only reader of the configuration file and of the environment.

Decides which source wins (command line, environment, file, default) and records the source of every value for errors
and `corral config show`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from corral.core.people.password_rules import refusal_of
from corral.server.http.validation import Location, dotted, findings
from corral.server.settings.config_file import ConfigError, ConfigProblem, ConfigTree, parse_config, read_text, scalar
from corral.server.settings.gpu_manager_keys import gpu_manager_tree, is_gpu_manager_config
from corral.server.settings.settings import Settings, SettingsFile

#: Environment variables that set one key each.
ENVIRONMENT_KEYS: Mapping[str, tuple[str, str]] = {
    "CORRAL_HOST": ("server", "host"),
    "CORRAL_PORT": ("server", "port"),
    "CORRAL_LOG_FORMAT": ("server", "log_format"),
    "CORRAL_LOG_LEVEL": ("server", "log_level"),
    "CORRAL_DATABASE": ("storage", "database"),
    "CORRAL_HIGH_AVAILABILITY": ("high_availability", "enabled"),
    "CORRAL_ALLOW_ROOT": ("local", "allow_root"),
    "CORRAL_VIRTUAL_GPUS": ("local", "virtual_gpus"),
    "CORRAL_VIRTUAL_NODES": ("local", "virtual_nodes"),
}


def load_settings(
    *,
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The effective settings. `overrides` are dotted keys from the command line, including `home`.

    Raises ConfigError with all errors at once.
    """
    env = os.environ if environ is None else environ
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    home, home_source = _home(given.pop("home", None), env)
    path = config or (Path(env["CORRAL_CONFIG"]) if env.get("CORRAL_CONFIG") else None)
    if path is None and (home / "corral.yaml").is_file():
        path = home / "corral.yaml"
    merged = _Merged(read_settings(path) if path is not None else ConfigTree(name="defaults"))
    for variable, key in ENVIRONMENT_KEYS.items():
        if env.get(variable):
            merged.put(key, scalar(env[variable]), f"environment {variable}")
    for dotted_key, value in given.items():
        merged.put(tuple(dotted_key.split(".")), value, "command line")
    sections = merged.checked()
    return Settings(
        **{name: getattr(sections, name) for name in SettingsFile.model_fields},
        home=home,
        config_file=path,
        bootstrap_password=_bootstrap_password(env),
        sources={"home": home_source, **merged.sources()},
        notes=merged.notes,
    )


def read_settings(path: Path) -> ConfigTree:
    """The values of a `corral.yaml`, or of a GPU manager's JSON file under their new keys."""
    text, name = read_text(path), str(path)
    if path.suffix == ".json" and is_gpu_manager_config(text, name, SettingsFile.model_fields):
        return gpu_manager_tree(text, name)
    return parse_config(text, name)


def check_config(path: Path) -> list[ConfigProblem]:
    """The errors in a file; an empty list means that a server would start with it."""
    try:
        _Merged(read_settings(path)).checked()
    except ConfigError as error:
        return list(error.problems)
    return []


def default_home(environ: Mapping[str, str]) -> Path:
    """The user's data directory."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "corral"
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "corral"


def _home(given: Any, env: Mapping[str, str]) -> tuple[Path, str]:
    if given is not None:
        return Path(given).absolute(), "command line"
    if env.get("CORRAL_HOME"):
        return Path(env["CORRAL_HOME"]).absolute(), "environment CORRAL_HOME"
    return default_home(env), "default"


def _bootstrap_password(env: Mapping[str, str]) -> SecretStr | None:
    password = env.get("CORRAL_BOOTSTRAP_PASSWORD")
    if not password:
        return None
    if (refused := refusal_of(password)) is not None:
        raise ConfigError([ConfigProblem(origin="environment CORRAL_BOOTSTRAP_PASSWORD", key="", message=refused)])
    return SecretStr(password)


class _Merged:
    """The file's values with those of the environment and the command line on top."""

    def __init__(self, tree: ConfigTree) -> None:
        self._tree = tree
        self._values: dict[str, Any] = dict(tree.values)
        self._origins: dict[Location, str] = {}
        self.notes = tree.notes
        # A file with one cluster needs no list; the settings always have a list.
        self._single_cluster = isinstance(self._values.get("cluster"), dict)
        if self._single_cluster:
            self._values["cluster"] = [self._values["cluster"]]

    def put(self, key: tuple[str, ...], value: Any, origin: str) -> None:
        *parents, last = key
        place = self._values
        for parent in parents:
            inner = place.get(parent)
            place[parent] = place = dict(inner) if isinstance(inner, dict) else {}
        place[last] = value
        self._origins[key] = origin
        if key[0] == "local" and last.startswith("virtual_"):
            # A source with precedence also replaces the alternative key.
            other = "virtual_nodes" if last == "virtual_gpus" else "virtual_gpus"
            if ("local", other) not in self._origins:
                place.pop(other, None)

    def checked(self) -> SettingsFile:
        try:
            settings = SettingsFile.model_validate(self._values)
        except ValidationError as error:
            problems = [
                ConfigProblem(origin=self._origin(found.location), key=self._key(found.location), message=found.message)
                for found in findings(error.errors(), SettingsFile)
            ]
            # in the order of the file; errors of other sources first
            raise ConfigError(sorted(problems, key=lambda problem: problem.line)) from None
        self._check_clusters(settings)
        return settings

    def sources(self) -> dict[str, str]:
        named = {dotted(place): f"{self._tree.name}:{line}" for place, line in self._tree.lines.items() if place}
        named.update({dotted(place): origin for place, origin in self._origins.items()})
        return named

    def _check_clusters(self, settings: SettingsFile) -> None:
        local = [cluster for cluster in settings.cluster if cluster.engine == "local"]
        if len(local) > 1:
            message = f"only one cluster can be local to this machine, got {len(local)}"
            raise ConfigError([ConfigProblem(origin=self._origin(("cluster",)), key="cluster", message=message)])

    def _file_place(self, location: Location) -> Location:
        """The key as in the file, where a single cluster is no list."""
        if self._single_cluster and location[:2] == ("cluster", 0):
            return ("cluster", *location[2:])
        return location

    def _origin(self, location: Location) -> str:
        for length in range(len(location), 0, -1):
            if location[:length] in self._origins:
                return self._origins[location[:length]]
        nested = next((origin for place, origin in self._origins.items() if place[: len(location)] == location), None)
        file_place = self._file_place(location)
        return nested if nested and file_place not in self._tree.lines else self._tree.origin(file_place)

    def _key(self, location: Location) -> str:
        return dotted(self._file_place(location))
