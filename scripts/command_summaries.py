"""Writes src/corral/cli/command_summaries.py: a line for each command, so that `corral --help` loads no command."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import typer

from corral.cli.habits.habit_group import WHOLE, summary_of
from corral.cli.main import application

TARGET = Path(__file__).parents[1] / "src" / "corral" / "cli" / "command_summaries.py"
#: of a piece of a text in the file
WIDTH = 90
HEAD = '''"""Summaries of the commands of the first level, for `corral --help`. Written by `make openapi`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Summary(NamedTuple):
    name: str
    section: str
    text: str


SUMMARIES: Sequence[Summary] = (
'''


def written() -> str:
    group: Any = typer.main.get_command(application())
    lines = [HEAD]
    for name in group.list_commands(None):
        entry = group.commands[name]
        if not entry.hidden:
            section = str(getattr(entry, "rich_help_panel", None) or "Commands")
            lines.append(f"    Summary({name!r}, {section!r}, {_literal(summary_of(entry, WHOLE))}),\n")
    lines.append(")\n")
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input="".join(lines), capture_output=True, text=True, check=True).stdout


def _literal(text: str) -> str:
    """The text as strings of a length that fits into lines of the file."""
    pieces = textwrap.wrap(text, WIDTH, drop_whitespace=False, break_on_hyphens=False)
    return "\n".join(repr(piece) for piece in pieces)


def main() -> int:
    TARGET.write_text(written(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
