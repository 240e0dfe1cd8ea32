"""Core values as plain JSON data and back, for the journal, the store and the files of the simulator.

Fields that have their default are left out, so that stored data stay small and old entries stay readable when a field
is added.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from json.encoder import encode_basestring
from operator import attrgetter
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
    """Compact JSON with sorted keys: equal values give equal text. The text is that of `to_plain`, made without it: the
    digest and the journal need the text of every change of a job."""
    return _texter(value.__class__)(value)


_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

#: Texts of values inside other values, by identity, with the value itself, so that the identity stays its own. Request,
#: prediction and allocation of a job are the same objects in most of its changes.
_KNOWN_TEXTS: dict[int, tuple[Any, str]] = {}
_MOST_KNOWN_TEXTS = 4096


@cache
def _texter(kind: type) -> Callable[[Any], str]:
    """The function that writes a value of this type as text."""
    if is_dataclass(kind):
        return _text_of_fields
    if kind is str:
        return encode_basestring
    if kind is float:
        return _text_of_float
    if kind is int:
        return int.__repr__
    if issubclass(kind, tuple | list | frozenset):
        return lambda value: f"[{','.join([_texter(item.__class__)(item) for item in value])}]"
    if issubclass(kind, Enum):
        return lambda value: _texter(value.value.__class__)(value.value)
    return lambda value: _SORTED(to_plain(value))


@cache
def _inner_texter(kind: type) -> Callable[[Any], str]:
    """The same for a field of another value."""
    return _known_text if is_dataclass(kind) and kind.__dataclass_params__.frozen else _texter(kind)  # type: ignore[attr-defined]


def _text_of_float(value: float) -> str:
    text = float.__repr__(value)
    if text.endswith(".0"):
        # As `_plain_float`: a whole number without its fraction, and zero without its sign.
        return (text[:-2] if value else "0") if abs(value) < 2**53 else text
    return text if math.isfinite(value) else _SORTED(value)


def _text_of_fields(value: Any) -> str:
    prefixes, defaults, read = _text_layout(value.__class__)
    parts = [
        prefix + _inner_texter(item.__class__)(item)
        for prefix, default, item in zip(prefixes, defaults, read(value), strict=True)
        if item is not default and item != default
    ]
    return f"{{{','.join(parts)}}}"


def _known_text(value: Any) -> str:
    known = _KNOWN_TEXTS.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    if len(_KNOWN_TEXTS) >= _MOST_KNOWN_TEXTS:
        _KNOWN_TEXTS.clear()
    text = _text_of_fields(value)
    _KNOWN_TEXTS[id(value)] = (value, text)
    return text


@cache
def _text_layout(kind: type) -> tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]]]:
    """Like `_layout`, sorted by name, with the start of each field's text."""
    names, defaults, _ = _layout(kind)
    ordered = sorted(zip(names, defaults, strict=True), key=lambda pair: pair[0])
    return (
        tuple(f'"{name}":' for name, _ in ordered),
        tuple(default for _, default in ordered),
        _reader(tuple(name for name, _ in ordered)),
    )


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    read: Any = attrgetter(*names)  # which answers with a bare value for a single name
    return read if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


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
    names, defaults, read = _layout(value.__class__)
    # Most fields are their default itself, and need no comparison.
    return {
        name: to_plain(item)
        for name, default, item in zip(names, defaults, read(value), strict=True)
        if item is not default and item != default
    }


@cache
def _layout(kind: type) -> tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]]]:
    """Names and defaults of the fields, and a function that reads all of them."""
    names = tuple(field.name for field in fields(kind))
    return names, tuple(_default(field) for field in fields(kind)), _reader(names)


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
