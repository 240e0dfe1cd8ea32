"""`job.yaml`: a submission in a file. The keys are named like the flags of `corral submit`.

The line of every key is kept, so that an error of the server can name the line. The server decides whether a value is
allowed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from corral.cli.jobs.job_options import FILE_KEYS
from corral.cli.terminal.failures import WrongUsage

#: Mappings of text to text: `BATCH: 08` must arrive as it stands, not as the number 8.
TEXT_MAPPINGS = frozenset({"env", "labels", "parameters"})


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFile:
    name: str
    #: as the API names the fields
    body: Mapping[str, Any] = field(default_factory=dict)
    #: the line of every key of the body
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def places(self) -> dict[str, str]:
        """The file and line of every key of the body, such as `job.yaml:3`."""
        return {key: f"{self.name}:{line}" for key, line in self.lines.items()}


def read_job_file(path: Path) -> JobFile:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise WrongUsage(f"cannot read {path}: {reason}") from error
    return parse_job_file(text, str(path), directory=path.absolute().parent)


def parse_job_file(text: str, name: str, *, directory: Path) -> JobFile:
    """A relative workdir or venv is relative to the directory of the file."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise WrongUsage(f"{name}{line}: not valid YAML: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(root, yaml.MappingNode):
        hint = f"It is a script: corral submit {name}" if text.startswith("#!") else ""
        raise WrongUsage(f"{name}:1: a job file holds keys and values, such as `gpus: 2`", hint=hint)
    body: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key_node, value_node in root.value:
        line = key_node.start_mark.line + 1
        key = _known_key(key_node, f"{name}:{line}")
        if key in body:
            raise WrongUsage(f"{name}:{line}: {key_node.value}: is given twice, first in line {lines[key]}")
        value = _value(key, value_node, f"{name}:{line}")
        lines[key] = line
        body[key] = value
    if isinstance(body.get("workdir"), str):
        body["workdir"] = str(directory / body["workdir"])
    if isinstance(body.get("venv"), str):
        body["venv"] = str(directory / body["venv"])
    if isinstance(body.get("command"), str):
        # a text is a line for the shell, a list is a program and its arguments
        body["command"] = ["/bin/sh", "-c", body["command"]]
    if isinstance(body.get("after"), str):
        body["after"] = [word.strip() for word in body["after"].split(",")]
    if isinstance(body.get("mounts"), str):
        body["mounts"] = [body["mounts"]]
    if isinstance(body.get("array"), int):
        body["array"] = str(body["array"])
    return JobFile(name=name, body=body, lines=lines)


def _known_key(node: yaml.Node, place: str) -> str:
    word = node.value if isinstance(node, yaml.ScalarNode) else ""
    if word in FILE_KEYS:
        return FILE_KEYS[word]
    close = difflib.get_close_matches(str(word), FILE_KEYS, n=1)
    raise WrongUsage(
        f"{place}: {word}: unknown key",
        hint=f"Did you mean {close[0]}?" if close else f"Known keys: {', '.join(sorted(FILE_KEYS))}.",
    )


def _value(key: str, node: yaml.Node, place: str) -> Any:
    if key not in TEXT_MAPPINGS:
        try:
            value = yaml.SafeLoader("").construct_document(node)
            json.dumps(value, allow_nan=False)
        except (yaml.YAMLError, ValueError, TypeError) as error:
            # TypeError: YAML has dates and sets, a submission has not
            raise WrongUsage(f"{place}: {key}: cannot be used: {getattr(error, 'problem', None) or error}") from error
        return value
    if not isinstance(node, yaml.MappingNode):
        raise WrongUsage(f"{place}: {key}: write names and values below it, such as `NAME: value`")
    texts: dict[str, str] = {}
    for name_node, text_node in node.value:
        if not isinstance(name_node, yaml.ScalarNode) or not isinstance(text_node, yaml.ScalarNode):
            raise WrongUsage(f"{place}: {key}: every value is a text")
        texts[name_node.value] = text_node.value
    return texts
