"""Commands whose usual values need no validation library.

Typer checks the value of every option by pydantic, also of an option that was not typed. Loading pydantic takes half as
long as a command itself. So values that cannot be wrong are passed on as they are: an option that was left out, a text
where a text is expected, a number that is the default. Everything else is checked by Typer as always.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: Types of which a value is valid as it is, if it is the default.
_PLAIN = (str, int, float, bool)


class _QuickCoercion:
    """Stands before Typer's own coercion of one option or argument."""

    def __init__(self, own: Callable[[], Any]) -> None:
        self._own = own

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        annotation = param.type_descriptor.annotation
        is_default = type(value) is annotation and annotation in _PLAIN and value == param.default
        if is_default or (annotation is str and type(value) is str and param.nargs == 1):
            return value
        if _is_choice(annotation, value):
            return annotation(value)
        return self._own().coerce(value, param=param, ctx=ctx)


def _is_choice(annotation: Any, value: Any) -> bool:
    """Whether the value is exactly one of the choices."""
    is_enum = isinstance(annotation, type) and issubclass(annotation, StrEnum)
    return is_enum and isinstance(value, str) and value in [str(choice) for choice in annotation]


def _made_quick(params: list[Any]) -> list[Any]:
    """The options and arguments, the help option among them, with the quick coercion before their own."""
    for param in params:
        if "get_runtime_param" not in vars(param):
            param.get_runtime_param = _constant(_QuickCoercion(param.get_runtime_param))
            _name_values(param)
    return params


def _name_values(param: Any) -> None:
    """Name the value of an option in the help, as in `--queue QUEUE`, and an argument without its type in Python."""
    if param.param_type_name == "argument":
        param.display_type_rich = _constant(None)
        name = param.display_name_raw
        name = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        shown = name + ("..." if param.nargs != 1 and "..." not in name else "")
        param.get_usage_pieces = _constant([shown if param.required else f"[{shown}]"])
    elif param.metavar is None and param.type_descriptor.annotation is str:
        param.metavar = str(param.name).upper().replace("_", "-")


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


class QuickCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _made_quick(super().get_params(ctx))


class QuickGroup(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _made_quick(super().get_params(ctx))
