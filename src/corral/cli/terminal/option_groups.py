"""Options that several commands share, or that are many: declared once, outside of the signatures of the commands.

A command that is declared as `(terminal, …, **typed)` receives their values in `typed`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Group = TypeVar("Group", bound=DataclassInstance)

Function = Callable[..., None]


def with_parameters(parameters: Sequence[inspect.Parameter]) -> Callable[[Function], Function]:
    """Add parameters to a command. Help lists them after the command's positional parameters and before its
    keyword-only ones."""

    def declare(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        first = [parameter for parameter in own if parameter.kind is not parameter.KEYWORD_ONLY]
        declared = signature.replace(parameters=[*first, *parameters, *own[len(first) :]])
        function.__signature__ = declared  # type: ignore[attr-defined]
        return function

    return declare


def with_options(*groups: type[DataclassInstance]) -> Callable[[Function], Function]:
    """Add the fields of dataclasses to a command. The type of a field is `Annotated[…, typer.Option(…)]`."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for group in groups:
        types = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(field.name, keyword, default=field.default, annotation=types[field.name])
            for field in fields(group)
        ]
    return with_parameters(parameters)


def group_of(group: type[Group], typed: Mapping[str, Any]) -> Group:
    """The dataclass with the values that were typed."""
    return group(**{field.name: typed[field.name] for field in fields(group)})
