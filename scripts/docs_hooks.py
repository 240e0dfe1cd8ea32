"""Hooks of `make docs`: links to files of the repository that are no pages become their paths.

A link whose file does not exist stays, so that the strict build reports it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]+)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    return outside_links_as_paths(markdown, Path(page.file.abs_src_path).parent)


def outside_links_as_paths(markdown: str, folder: Path) -> str:
    """Links that leave docs/ name their file in the repository instead."""

    def shown(found: re.Match[str]) -> str:
        if "://" in found["target"]:
            return found[0]
        # Not resolved: a link of the file system keeps its own name.
        target = Path(os.path.normpath(folder / found["target"]))
        if not target.exists() or (target.is_relative_to(DOCS) and target.is_file()):
            return found[0]
        text = found["text"]
        name = str(target.relative_to(ROOT)) if target.is_relative_to(ROOT) else found["target"]
        return text if text.strip("`") == name else f"{text} (`{name}`)"

    return _LINK.sub(shown, markdown)
