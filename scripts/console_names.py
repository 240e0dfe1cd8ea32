#!/usr/bin/env python3
"""Write the rules for names, src/corral/core/names.py, as regular expressions for the console.

`make openapi` runs it; tests/unit/test_console_names.py proves that the written file is current.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "corral" / "core" / "names.py"
TARGET = ROOT / "console" / "src" / "api" / "names.ts"

HEAD = """\
/**
 * The server's rules for names, checked while a name is typed. The server has the final say.
 * Written by scripts/console_names.py from src/corral/core/names.py: do not edit.
 */
"""
_RULE = re.compile(r'^#: (?P<things>.+)\n(?P<name>[A-Z_]+) = re\.compile\(r"(?P<pattern>.+)"\)$', re.MULTILINE)


def written(source: str) -> str:
    """The TypeScript module for the rules of a Python module."""
    rules = [
        f"/** {found['things']} */\nexport const {found['name']} = /^{found['pattern']}$/;\n"
        for found in _RULE.finditer(source)
    ]
    if len(rules) != source.count("re.compile("):
        raise ValueError(f'{SOURCE.name}: write each rule as `#: things` and `NAME = re.compile(r"pattern")`')
    return HEAD + "\n" + "".join(rules)


def main() -> None:
    TARGET.write_text(written(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
