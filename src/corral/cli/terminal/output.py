"""Output formats: the same answer as a table, JSON, YAML, CSV or names. Commands do not know which one was chosen."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from corral.cli.terminal.failures import WrongUsage
from corral.core.visible_text import visible, visible_json

#: The fields that name an object, best first: what `-o name` prints.
_NAMES = ("id", "name", "job", "task", "user", "index", "key", "queue")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)


class Output(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"

    @property
    def is_for_people(self) -> bool:
        return self in (Output.TABLE, Output.WIDE)


def document(value: Any, output: Output, columns: Sequence[str] = ()) -> str:
    """An object, or a list in `items`, in a format for programs."""
    if output is Output.NAME:
        return "\n".join(name_of(item) for item in items_of(value))
    if output is Output.CSV:
        items = items_of(value)
        titles = list(columns) or _fields(items)
        # a field that only some of the items have is empty in the others
        cells = [[field(item, key) if columns else item.get(key) for key in titles] for item in items]
        return as_csv(titles, cells) if titles else ""
    if columns and isinstance(value, Mapping) and "items" in value:
        value = {**value, "items": [{key: field(item, key) for key in columns} for item in value["items"]]}
    if output is Output.YAML:
        import yaml

        return visible(yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True, width=1000)).rstrip("\n")
    return visible_json(json.dumps(value, indent=2, ensure_ascii=False))


def items_of(value: Any) -> list[Any]:
    if isinstance(value, Mapping) and isinstance(value.get("items"), list):
        return list(value["items"])
    return list(value) if isinstance(value, list) else [value]


def name_of(item: Any) -> str:
    """The id or the name of an object."""
    if isinstance(item, Mapping):
        for key in _NAMES:
            if isinstance(item.get(key), str | int):
                return visible(str(item[key]))
        raise WrongUsage("-o name: this answer has no names", hint="Use -o json.")
    return visible(str(item))


def field(item: Any, key: str) -> Any:
    """A field of an object; dots lead into objects inside it."""
    found = item
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            known = ", ".join(item) if isinstance(item, Mapping) else "none"
            raise WrongUsage(f"--columns: there is no column {key!r}", hint=f"The columns are {known}.")
        found = found[part]
    return found


def as_csv(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """One line for each row; objects and lists inside it are JSON. A text that a spreadsheet would take for a formula
    has an apostrophe in front: names and descriptions are those of other users."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(titles)
    lines.writerows([_harmless(_cell(value)) for value in row] for row in rows)
    return visible(written.getvalue()).rstrip("\n")


def chosen_cells(
    columns: Sequence[str], titles: Sequence[str], items: Sequence[Any], row: Callable[[Any], Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """The chosen columns of a table: by their titles, or by the names of fields."""
    places = {title.rstrip(">~!?").lower(): place for place, title in enumerate(titles)}
    heads, cells = list[str](), list[list[str]]()
    for name in columns:
        place = places.get(name.lower())
        heads.append(titles[place] if place is not None else f"{name.upper()}~")
    for item in items:
        shown = row(item)
        line = []
        for name in columns:
            place = places.get(name.lower())
            line.append(shown[place] if place is not None else _text(_table_field(item, name, places)))
        cells.append(line)
    return heads, cells


def _table_field(item: Any, name: str, titles: Iterable[str]) -> Any:
    try:
        return field(item, name)
    except WrongUsage as error:
        fields = ", ".join(item) if isinstance(item, Mapping) else ""
        raise WrongUsage(error.message, hint=f"The columns are {', '.join(titles)}; fields are {fields}.") from error


def _fields(items: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(key for item in items if isinstance(item, Mapping) for key in item))


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else value


def _harmless(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def _text(value: Any) -> str:
    return str(_cell(value))


def _plain(value: Any) -> Any:
    """Converts views to plain dictionaries and lists, as YAML has no tuples."""
    return json.loads(json.dumps(value))
