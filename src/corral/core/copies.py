"""Changed copies of frozen values, for the code that runs several times for each job.

`dataclasses.replace` reads every field by name and passes all of them as keywords to `__init__`, which takes longer
than most decisions about a job. Here a value with slots and without checks of its own is copied slot by slot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

Value = TypeVar("Value")


def replace(value: Value, /, **changes: Any) -> Value:
    """A copy with these fields changed, as by `dataclasses.replace`. Raises TypeError for an unknown field."""
    kind: Any = value.__class__
    slots = _slots(kind)
    if slots is None:
        return dataclasses.replace(value, **changes)  # type: ignore[type-var]
    read, setters, setter_of = slots
    copied: Value = object.__new__(kind)
    for put, item in zip(setters, read(value), strict=True):
        put(copied, item)
    for name, item in changes.items():
        if name not in setter_of:
            raise TypeError(f"{kind.__name__} has no field {name!r}")
        setter_of[name](copied, item)
    return copied


_Setter = Callable[[Any, Any], None]


@cache
def _slots(kind: type[Any]) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[_Setter, ...], dict[str, _Setter]] | None:
    """How to read all fields of a class, and to set each; None if its copies must be made by its own `__init__`."""
    names = [field.name for field in dataclasses.fields(kind)]
    if hasattr(kind, "__post_init__") or len(names) < 2 or not all(_is_slot(kind, name) for name in names):
        return None
    setters = {name: getattr(kind, name).__set__ for name in names}
    return attrgetter(*names), tuple(setters.values()), setters


def _is_slot(kind: type[Any], name: str) -> bool:
    return hasattr(getattr(kind, name, None), "__set__")
