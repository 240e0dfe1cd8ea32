"""Writes src/corral/cli/command_summaries.py: a line for each command, so that `corral --help` loads no command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from corral.cli.main import application

TARGET = Path(__file__).parents[1] / "src" / "corral" / "cli" / "command_summaries.py"
#: help is never wider (`max_content_width`)
WIDTH = 100
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
            lines.append(f"    Summary({name!r}, {section!r}, {entry.get_short_help_str(WIDTH)!r}),\n")
    lines.append(")\n")
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input="".join(lines), capture_output=True, text=True, check=True).stdout


def main() -> int:
    TARGET.write_text(written(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
