"""Plain messages for pydantic's errors, for configuration files and for request bodies.

Decides the text of an error; the models decide what is valid.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import BaseModel

Location = tuple[str | int, ...]

#: Errors that one answer describes: a body can have hundreds of thousands, and each one takes time.
MOST_ERRORS = 50
#: Longer names are similar to none.
_MOST_LETTERS = 100

#: Only errors whose pydantic message is written for programmers.
_MESSAGES: Mapping[str, str] = {
    "missing": "is required",
    "string_type": "must be a text",
    "string_unicode": "must be valid Unicode text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is far too large",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of names to values",
    "model_attributes_type": "must be a JSON object",
    "none_required": "must be empty",
    "json_invalid": "is not valid JSON: {error}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} item(s)",
    "too_long": "must have at most {max_length} items",
    "string_pattern_mismatch": "has characters that are not allowed: it must match {pattern}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One error: the field, and the allowed values."""

    location: Location
    message: str

    @property
    def field(self) -> str:
        return dotted(self.location)


def dotted(location: Sequence[str | int]) -> str:
    """`("jobs", 0, "gpus")` as `jobs[0].gpus`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def findings(errors: Iterable[Any], model: type[BaseModel] | None = None) -> list[Finding]:
    """The beginning of pydantic's error list, one error per field. `model` has the allowed names."""
    found: dict[Location, Finding] = {}
    for error in islice(errors, MOST_ERRORS):
        location = _location(error["loc"])
        if error["type"] == "extra_forbidden":
            # The unknown name is chosen by the client, and may look like a branch of a union.
            location = (*_location(error["loc"][:-1]), error["loc"][-1])
        message = _message(error, location, model)
        before = found.get(location)
        if before is not None and message != before.message:
            # Each branch of a union has an error; together they list what is allowed.
            message = f"{before.message}, or {message}"
        found[location] = Finding(location=location, message=message)
    # A list that seems too short because its only item is wrong: only the item's error is shown.
    inside = {place[:length] for place in found for length in range(len(place))}
    return [finding for place, finding in found.items() if place not in inside]


def unknown_name(name: str, allowed: Iterable[str], *, what: str = "key") -> str:
    """The message for an unknown name."""
    options = sorted(allowed)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.6) if len(name) <= _MOST_LETTERS else []
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {what}; {hint}allowed: {', '.join(options) or 'none'}"


def model_at(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    """The model of a field inside another model."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            current = next(iter(typing.get_args(current)), None)
        else:
            found = _model_of(current)
            if found is None or part not in found.model_fields:
                return None
            current = found.model_fields[part].annotation
    return _model_of(current)


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, typing.Annotated):
        for option in typing.get_args(annotation):
            found = _model_of(option)
            if found is not None:
                return found
    return None


def _location(loc: Sequence[str | int]) -> Location:
    """The location without the names that pydantic gives to the branches of a union and to keys of mappings."""
    return tuple(
        part for part in loc if isinstance(part, int) or not (part == "[key]" or "[" in part or part in _BRANCHES)
    )


_BRANCHES = frozenset({"int", "float", "str", "bool", "MountBody"})


def _plain_number(value: Any) -> Any:
    """A bound without the decimal point of a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _message(error: Any, location: Location, model: type[BaseModel] | None) -> str:
    kind = error["type"]
    context = {name: _plain_number(value) for name, value in (error.get("ctx") or {}).items()}
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "must not be empty"
    if kind == "extra_forbidden":
        parent = model_at(model, location[:-1]) if model is not None else None
        if parent is None:
            return "unknown field"
        return unknown_name(str(location[-1]), parent.model_fields, what="key")
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    message = _MESSAGES.get(kind)
    if message is None:
        return str(error["msg"])
    text = message.format(**context) if "{" in message else message
    value = error.get("input")
    if kind != "missing" and isinstance(value, str | int | float | bool) and len(str(value)) <= 60:
        text += f", got {value!r}"
    return text
