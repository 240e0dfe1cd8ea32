"""Presets: templates with parameters that become jobs.

Decides what a template may say, which values its parameters take, and what they make of it. A value fills its place as
it is: it is never split, and no shell ever sees it. How a template is written down is for the server to read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from corral.control.errors import Invalid, NotFound, Taken
from corral.control.jobs.preset_assets import PLACES, PickedAsset, pick
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.records import AssetKind, PresetAssetRecord, PresetRecord
from corral.core.names import SETTING_NAME

PARAMETER_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
#: Known only when a job starts, so a command keeps them as they are until then.
LATER = frozenset({"gpu_list", "gpu_count"})
MAX_TEXT = 4096
#: Far more than anything that is counted, and exact also as a float.
MAX_NUMBER = 2**53

#: `{name}` is a place to fill, `{{` and `}}` are braces.
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Place = tuple[str | int, ...]


class ParameterType(StrEnum):
    CHOICE = "choice"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    #: the path of a file or directory on the nodes
    PATH = "path"
    #: registered by operators; a model can also be dataset:NAME@VERSION
    MODEL = "model"
    DATASET = "dataset"


#: The types whose values are assets.
ASSETS = {ParameterType.MODEL: AssetKind.MODEL, ParameterType.DATASET: AssetKind.DATASET}

#: As a person, a file or a request gives it.
Given = str | int | float | bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    name: str
    type: ParameterType
    #: None means that it must be given
    default: Given | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    help: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    #: templates, one for each argument
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: what its jobs ask for unless they say otherwise
    gpus: float = 0
    cpus: float = 0
    memory_bytes: int = 0
    time_limit_seconds: float | None = None
    image: str | None = None
    venv: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A template with every place filled."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    #: every parameter, with the value that it had
    parameters: Mapping[str, str]
    #: by parameter
    assets: Mapping[str, PickedAsset] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------ templates


def problems_of(preset: Preset) -> Iterator[tuple[Place, str]]:
    """The problems of a template, each with its place."""
    if SETTING_NAME.fullmatch(preset.name) is None:
        yield ("name",), f"the name {preset.name!r} is not allowed: up to 63 letters, digits, - and _"
    if preset.image is not None and preset.venv is not None:
        yield ("request", "venv"), "an image brings its own environment: give one of the two"
    names: set[str] = set()
    for number, parameter in enumerate(preset.parameters):
        for place, message in _parameter_problems(parameter):
            yield ("parameters", number, *place), message
        if parameter.name in names:
            yield ("parameters", number, "name"), f"there are two parameters named {parameter.name!r}"
        names.add(parameter.name)
        if parameter.type in ASSETS:
            names |= {f"{parameter.name}.{place}" for place in PLACES}
    if not preset.command or not preset.command[0]:
        yield ("command",), "a program is needed"
    for number, text in enumerate(preset.command):
        for message in _place_problems(text, names | LATER):
            yield ("command", number), message
    for variable, text in preset.env.items():
        for message in _place_problems(text, names):
            yield ("env", variable), message
    used = {name for text in (*preset.command, *preset.env.values()) for name in _places(text)}
    for number, parameter in enumerate(preset.parameters):
        if parameter.name not in used:
            yield ("parameters", number, "name"), f"neither the command nor the env uses {{{parameter.name}}}"


def _parameter_problems(parameter: Parameter) -> Iterator[tuple[Place, str]]:
    if PARAMETER_NAME.fullmatch(parameter.name) is None:
        yield ("name",), f"{parameter.name!r} is not allowed: small letters, digits and _, beginning with a letter"
    elif parameter.name in LATER:
        yield ("name",), f"{parameter.name} is filled when a job starts: choose another name"
    is_choice = parameter.type is ParameterType.CHOICE
    is_number = parameter.type in (ParameterType.INT, ParameterType.FLOAT)
    if is_choice and not parameter.choices:
        yield ("choices",), "a choice needs some"
    if not is_choice and parameter.choices:
        yield ("choices",), f"only a choice has them, and this is of type {parameter.type}"
    if len(set(parameter.choices)) != len(parameter.choices):
        yield ("choices",), "one is there twice"
    for name, bound in (("min", parameter.minimum), ("max", parameter.maximum)):
        if bound is not None and not is_number:
            yield (name,), f"only int and float have it, and this is of type {parameter.type}"
        elif bound is not None and abs(bound) > MAX_NUMBER:
            yield (name,), "is far too large"
    if parameter.minimum is not None and parameter.maximum is not None and parameter.minimum > parameter.maximum:
        yield ("min",), f"is above max: {parameter.minimum} > {parameter.maximum}"
    elif parameter.default is not None:
        try:
            value_of(parameter, parameter.default)
        except ValueError as error:
            yield ("default",), str(error)


def _place_problems(text: str, names: Collection[str]) -> Iterator[str]:
    for match in _PLACE.finditer(text):
        if match.group() in ("{", "}"):
            yield f"a single {match.group()!r}: write it twice where a brace is meant"
        name = match.group(1)
        if name is not None and name not in names:
            known = ", ".join(sorted(names)) or "none"
            yield f"there is no parameter {name!r}; there are: {known}. Write {{{{ and }}}} for braces"


def _places(text: str) -> set[str]:
    return {match.group(1) for match in _PLACE.finditer(text) if match.group(1) is not None}


# ------------------------------------------------------------------------------------------------ values


def value_of(parameter: Parameter, given: Given) -> str:
    """The text that fills a parameter's places. Raises ValueError with what would have been right."""
    match parameter.type:
        case ParameterType.BOOL:
            return _bool(given)
        case ParameterType.INT | ParameterType.FLOAT:
            return _number(parameter, given)
        case ParameterType.CHOICE:
            text = _text(given)
            if text not in parameter.choices:
                raise ValueError(f"must be one of {', '.join(parameter.choices)}, got {text!r}")
            return text
        case ParameterType.PATH:
            path = _text(given)
            # Only a default can be empty: then there is nothing to be read, and the program knows that.
            if not path.startswith("/") and not (path == "" and parameter.default == ""):
                raise ValueError(f"must be an absolute path, got {path!r}")
            return path
        case ParameterType.TEXT | ParameterType.MODEL | ParameterType.DATASET:
            return _text(given)


def _bool(given: Given) -> str:
    text = str(given).lower()
    if isinstance(given, bool | str) and text in ("true", "false"):
        return text
    raise ValueError(f"must be true or false, got {given!r}")


def _number(parameter: Parameter, given: Given) -> str:
    is_whole = parameter.type is ParameterType.INT
    expected = "a whole number" if is_whole else "a number"
    if isinstance(given, bool):
        raise ValueError(f"must be {expected}, got {str(given).lower()}")
    try:
        value: float = int(given) if is_whole and isinstance(given, str) else float(given)
    except (ValueError, OverflowError):
        raise ValueError(f"must be {expected}, got {given!r}") from None
    # `not <=` and not `>`: what is no number at all is on neither side
    if not abs(value) <= MAX_NUMBER:
        raise ValueError(f"must be a finite number, and not so large, got {given!r}")
    if is_whole and value != int(value):
        raise ValueError(f"must be a whole number, got {given!r}")
    if parameter.minimum is not None and value < parameter.minimum:
        raise ValueError(f"must be at least {_plain(parameter.minimum)}, got {given!r}")
    if parameter.maximum is not None and value > parameter.maximum:
        raise ValueError(f"must be at most {_plain(parameter.maximum)}, got {given!r}")
    return str(int(value)) if is_whole else _plain(value)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _text(given: Given) -> str:
    if isinstance(given, bool):
        return str(given).lower()
    text = given if isinstance(given, str) else _plain(given)
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("must be valid text")
    if len(text) > MAX_TEXT:
        raise ValueError(f"must have at most {MAX_TEXT} characters")
    return text


# ------------------------------------------------------------------------------------------------ rendering


def render(preset: Preset, given: Mapping[str, Given], assets: Sequence[PresetAssetRecord] = ()) -> Rendered:
    """The template filled; `assets` are the registered models and data sets. Refused with the name of the wrong
    parameter."""
    known = {parameter.name: parameter for parameter in preset.parameters}
    for name in given:
        if name not in known:
            there = ", ".join(known) or "none"
            raise Invalid(
                f"preset {preset.name} has no parameter {name!r}; it has: {there}", field=f"parameters.{name}"
            )
    values: dict[str, str] = {}
    picked: dict[str, PickedAsset] = {}
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        if value is None:
            raise Invalid(f"preset {preset.name} needs the parameter {name!r}", field=f"parameters.{name}")
        try:
            values[name] = value_of(parameter, value)
            if parameter.type in ASSETS:
                picked[name] = _picked(parameter, values[name], assets)
        except ValueError as error:
            raise Invalid(f"{name} {error}", field=f"parameters.{name}") from None
    filling = dict(values)
    for name, asset in picked.items():
        filling |= asset.places(name)
    return Rendered(
        command=tuple(_filled(text, filling) for text in preset.command),
        env={variable: _filled(text, filling) for variable, text in preset.env.items()},
        parameters=values,
        assets=picked,
    )


def _picked(parameter: Parameter, value: str, assets: Sequence[PresetAssetRecord]) -> PickedAsset:
    if not value and parameter.default != "":
        raise ValueError(f"must be a registered {parameter.type}")
    return pick(assets, ASSETS[parameter.type], value)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replaces all places by their values in one pass, so that a value is not replaced again."""

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()[0]
        return match.group() if name in LATER else values[name]

    return _PLACE.sub(fill, text)


# ------------------------------------------------------------------------------------------------ keeping


def add(
    work: Work, caller: Caller, preset: Preset, yaml: str, *, shipped: Collection[str], replace: bool = False
) -> PresetRecord:
    """Keep a template that was checked. Jobs that were made from an earlier one of this name are not touched."""
    require_operator(caller, "manage presets")
    if preset.name in shipped:
        raise Taken(f"preset {preset.name!r} comes with corral: choose another name", field="name", name=preset.name)
    there = find(work.tx.images.presets(), preset.name)
    if there is not None and not replace:
        raise Taken(f"there is a preset {preset.name!r} already", field="name", name=preset.name)
    record = PresetRecord(name=preset.name, yaml=yaml, created_at=work.now, created_by=caller.name)
    work.tx.images.save_preset(record)
    work.record(caller, "preset.replaced" if there is not None else "preset.added", preset.name)
    return record


def remove(work: Work, caller: Caller, name: str, *, shipped: Collection[str]) -> None:
    """Jobs that were made from it are not touched."""
    require_operator(caller, "manage presets")
    if name in shipped:
        raise Invalid(f"preset {name!r} comes with corral: it cannot be removed", field="name")
    if find(work.tx.images.presets(), name) is None:
        raise NotFound(f"there is no preset {name!r}", field="name")
    work.tx.images.delete_preset(name)
    work.record(caller, "preset.removed", name)


def find(records: Sequence[PresetRecord], name: str) -> PresetRecord | None:
    return next((record for record in records if record.name == name), None)
