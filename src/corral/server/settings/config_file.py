"""`corral.yaml` as plain values, with the line of every key, so that an error can name it.

Reads a safe subset of YAML: mappings, lists and scalars; no aliases, tags or merge keys. The settings decide what the
keys mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from corral.server.http.validation import Location, dotted

MAX_FILE_BYTES = 1_048_576


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigProblem:
    """One error in the configuration: its source, and the allowed values."""

    #: such as "corral.yaml:12" or "environment CORRAL_PORT"
    origin: str
    #: dotted path of the key; "" for the whole file
    key: str
    message: str

    @property
    def line(self) -> int:
        """The line in the file, or 0 if the value has another source."""
        number = self.origin.rpartition(":")[2]
        return int(number) if number.isdecimal() else 0

    def __str__(self) -> str:
        return f"{self.origin}: {self.key}: {self.message}" if self.key else f"{self.origin}: {self.message}"


class ConfigError(Exception):
    """The configuration cannot be used."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigTree:
    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Location, int] = field(default_factory=dict)
    #: what the operator should know about the file, although it is valid
    notes: tuple[str, ...] = ()

    def origin(self, location: Location) -> str:
        """The file and the line of a key, or of the nearest key above it."""
        for length in range(len(location), 0, -1):
            line = self.lines.get(location[:length])
            if line is not None:
                return f"{self.name}:{line}"
        return f"{self.name}:1"


def read_text(path: Path) -> str:
    """The file's text. Raises ConfigError if the file cannot be read."""
    name = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _error(name, f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise _error(name, f"is larger than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _error(f"{name}:{line}", "is not UTF-8 text") from error


def parse_config(text: str, name: str, *, like: str = "sections such as `cluster:` and `policies:`") -> ConfigTree:
    """The values of a YAML text. `name` precedes line numbers in errors; `like` describes the expected content."""
    try:
        _refuse_aliases(text, name)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _error(f"{name}:{line}", f"is not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise _error(name, f"is not valid YAML: {error}") from error
    if root is None:
        return ConfigTree(name=name)
    reader = _Reader(name)
    values = reader.value(root, ())
    if not isinstance(values, dict):
        raise _error(f"{name}:1", f"must be a mapping of {like}")
    if reader.problems:
        raise ConfigError(reader.problems)
    return ConfigTree(name=name, values=values, lines=reader.lines)


def scalar(text: str) -> Any:
    """A single value, parsed like one in a file, for environment variables: "8470" is a number."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, str | int | float | bool) else text


def _refuse_aliases(text: str, name: str) -> None:
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise _error(f"{name}:{line}", "aliases (*name) are not supported: write the value out")


class _Reader:
    """Walks YAML's node tree; plain construction would lose the lines and let the last duplicate win."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Location, int] = {}
        self.problems: list[ConfigProblem] = []
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, location: Location) -> Any:
        self.lines.setdefault(location, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*location, index)) for index, item in enumerate(node.value)]
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self._complain(node, location, f"{node.value!r} cannot be read as {node.tag.rpartition(':')[2]}")
            return None

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            place = (*location, str(key))
            if not isinstance(key_node, yaml.ScalarNode) or not isinstance(key, str) or key == "<<":
                self._complain(key_node, location, "keys must be plain text")
                continue
            if key in values:
                self._complain(key_node, place, f"is given twice; the first one is on line {self.lines[place]}")
                continue
            self.lines[place] = key_node.start_mark.line + 1
            values[key] = self.value(value_node, place)
        return values

    def _complain(self, node: yaml.Node, location: Location, message: str) -> None:
        origin = f"{self.name}:{node.start_mark.line + 1}"
        self.problems.append(ConfigProblem(origin=origin, key=dotted(location), message=message))


def _error(origin: str, message: str) -> ConfigError:
    return ConfigError([ConfigProblem(origin=origin, key="", message=message)])
