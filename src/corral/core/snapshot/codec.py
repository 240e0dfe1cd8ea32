"""Core values as plain JSON data and back, for the journal, the store and the files of the simulator.

Fields that have their default are left out, so that stored data stay small and old entries stay readable when a field
is added.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")


def to_plain(value: Any) -> Any:
    """Dicts, lists, strings and numbers only."""
    encode = _encoder(value.__class__)
    return value if encode is None else encode(value)


def from_plain(kind: type[Value], plain: Any) -> Value:
    """The inverse of `to_plain`. Raises KeyError, TypeError or ValueError for data that it did not write."""
    decoded = _decoder(kind)(plain)  # type: ignore[arg-type]
    assert isinstance(decoded, kind)
    return decoded


def dumps(value: Any) -> str:
    """Compact JSON with sorted keys: equal values give equal text."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@cache
def _encoder(kind: type) -> Callable[[Any], Any] | None:
    """The function that turns a value of this type into plain data; None if the value is plain already."""
    if kind is float:
        return _plain_float
    if is_dataclass(kind):
        return _plain_fields
    if issubclass(kind, tuple | list | frozenset):
        return lambda value: [to_plain(item) for item in value]
    if issubclass(kind, Enum):
        return lambda value: value.value
    return None


def _plain_float(value: float) -> float:
    # 60 and 60.0 are equal, so they must be written alike; the decoder restores the type by the field.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _plain_fields(value: Any) -> dict[str, Any]:
    return {
        name: to_plain(item)
        for name, default in _defaults(value.__class__)
        if (item := getattr(value, name)) != default
    }


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, _default(field)) for field in fields(kind))


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default  # MISSING equals nothing, so that a required field is always written


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """The function that turns plain data into a value of this type."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        (inner,) = [arg for arg in get_args(kind) if arg is not type(None)]
        decode = _decoder(inner)
        return lambda plain: None if plain is None else decode(plain)
    if origin is tuple:
        return _tuple_decoder(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if is_dataclass(kind):
        return _dataclass_decoder(kind)
    if kind is float:
        return float
    if kind in (int, str, bool):
        return lambda plain: plain
    raise TypeError(f"no decoder for {kind}")


def _tuple_decoder(args: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(args) == 2 and args[1] is Ellipsis:
        decode = _decoder(args[0])
        return lambda plain: tuple([decode(item) for item in plain])
    parts = [_decoder(arg) for arg in args]
    return lambda plain: tuple([decode(item) for decode, item in zip(parts, plain, strict=True)])


def _dataclass_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(kind)}
    return lambda plain: kind(**{name: decoders[name](item) for name, item in plain.items()})
