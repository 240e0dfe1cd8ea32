"""Rows of values that are stored field by field: nodes, GPUs and queues.

A column holds the field of the same name. So a new plain field of such a value needs its column and nothing here; a
field that a column has in another form, or under another name, is declared where the table's `ValueRows` is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from sqlalchemy import Table

T = TypeVar("T")

#: How a field is written into its column, and how it is read again.
Form = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class ValueRows(Generic[T]):
    def __init__(
        self, kind: type[T], table: Table, *, forms: Mapping[str, Form], fields: Mapping[str, str] | None = None
    ) -> None:
        """`forms` is by field; `fields` has the field of each column that has another name."""
        names = [(column.name, (fields or {}).get(column.name, column.name)) for column in table.columns]
        self._kind = kind
        self._columns = tuple((column, field, forms.get(field)) for column, field in names)

    def row(self, value: T, **others: Any) -> tuple[Any, ...]:
        """The row of a value, in the order of the columns; `others` are columns that are no field of it."""
        return tuple(
            others[column] if column in others else _written(getattr(value, field), form)
            for column, field, form in self._columns
        )

    def value(self, row: Any, *, without: tuple[str, ...] = (), **others: Any) -> T:
        """The value of a row; `without` are columns that are no field of it, `others` fields that have no column."""
        columns = row._mapping
        found = {
            field: columns[column] if form is None else form[1](columns[column])
            for column, field, form in self._columns
            if column not in without
        }
        return self._kind(**found, **others)


def _written(value: Any, form: Form | None) -> Any:
    return value if form is None else form[0](value)
