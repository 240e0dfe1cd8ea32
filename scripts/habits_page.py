"""Writes docs/reference/habits.md from docs/reference/habits.yaml: words of other tools, and what corral runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
DATA = REFERENCE / "habits.yaml"
PAGE = REFERENCE / "habits.md"

INTRODUCTION = """\
# Words that you know from other tools

This page is written by `make openapi` from [habits.yaml](habits.yaml); tests run every line of it. Each word on the
left runs the command on the right, with the same options. `corral COMMAND --help` shows the command's own name.

- `-q` prints only ids, `-o json|yaml|csv|name|wide` chooses the format, `--columns id,name` the columns or fields.
- `-w` keeps a list on the screen up to date. `--mine` and `--user me` list your own jobs, `-A` those of all users.
- What deletes something asks at a terminal; without a terminal it needs `-y`, and exits with 2 otherwise.
- A mistyped command is answered with a suggestion, never with a command that ends or deletes something.
- [The command line](cli.md) has every command.
"""


def page(tables: list[dict[str, Any]]) -> str:
    parts = [INTRODUCTION]
    for table in tables:
        title = table["tool"][0].upper() + table["tool"][1:]
        parts.append(f"\n## {title}\n\n| you type | corral runs | effect |\n|---|---|---|\n")
        for row in table["rows"]:
            cells = [f"`corral {row['typed']}`", f"`corral {row['runs']}`", row["does"]]
            parts.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n")
    return "".join(parts)


def main() -> int:
    PAGE.write_text(page(yaml.safe_load(DATA.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
