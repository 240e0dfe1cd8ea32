"""Pages of the documentation as blocks. Comments right before a block say how it is run.

    <!-- not run: needs Slurm -->            the block is not run, for this reason
    <!-- given: COMMANDS -->                 what the page takes for granted; run before the block
    <!-- fails: corral jobs -->              the command that begins like this must fail
    <!-- ctrl-c after: step 2 -->            Ctrl-C is pressed when the output has this text

Comments that concern a whole page, anywhere in it:

    <!-- server: --virtual-nodes 2x4xA10 --> options of the server; `none` for pages that start their own
    <!-- settings: YAML -->                  the server's corral.yaml
    <!-- placeholders: gpu-03=a10-003 … --> words of the page that stand for others

A block is run by its language: `sh` (commands), `console` (commands after `$ `, with their output), `python` (all
blocks of a page in one interpreter). A block with a title (```yaml title="job.yaml") is written as that file first;
corral.yaml is checked by `corral config check`. `text` is output; any other language needs a title or a reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

COMMANDS = ("sh", "console")
OUTPUT = "text"
#: What a block's comments may begin with, and a page's.
BLOCK_WORDS = ("not run", "given", "fails", "ctrl-c after")
PAGE_WORDS = ("server", "settings", "placeholders")

_FENCE = re.compile(r"^( *)(?:\d+\. +|- +)?```(?P<language>[\w+-]*)(?: title=\"(?P<title>[^\"]+)\")?\s*$")
_COMMENT = re.compile(r"<!-- *(?P<word>[a-z -]+?): *(?P<text>.*?) *-->", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    page: str
    line: int
    language: str
    title: str | None
    text: str
    given: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    not_run: str | None = None
    ctrl_c_after: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        return self.not_run is None and (self.language in (*COMMANDS, "python") or self.title is not None)

    @property
    def commands(self) -> str:
        """The shell script of the block, without output."""
        if self.language != "console":
            return self.text
        return "".join(line[2:] for line in self.text.splitlines(keepends=True) if line.startswith("$ "))


@dataclass(frozen=True, kw_only=True)
class Page:
    name: str
    blocks: Sequence[Block]
    server: str | None = None
    settings: str | None = None
    placeholders: dict[str, str] = field(default_factory=dict)

    def filled(self, text: str) -> str:
        """The text with real names for placeholders."""
        for word, stands_for in self.placeholders.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w])", stands_for.replace("\\", "\\\\"), text)
        return text


def pages_with_blocks(area: str | None = None) -> list[str]:
    """README, tutorial, how-tos and the page of the API, or the how-tos of one area."""
    if area is not None:
        return [str(path.relative_to(ROOT)) for path in sorted((DOCS / "how-to" / area).glob("*.md"))]
    places = [
        ROOT / "README.md",
        DOCS / "reference" / "api.md",
        *DOCS.glob("tutorial/**/*.md"),
        *DOCS.glob("how-to/**/*.md"),
    ]
    return [str(path.relative_to(ROOT)) for path in sorted(places)]


def read_page(name: str) -> Page:
    text = (ROOT / name).read_text(encoding="utf-8")
    words = {found["word"]: found["text"] for found in _COMMENT.finditer(text) if found["word"] in PAGE_WORDS}
    pairs = (pair.partition("=") for pair in shlex.split(words.get("placeholders", "")))
    return Page(
        name=name,
        blocks=_blocks(name, text),
        server=words.get("server"),
        settings=words.get("settings"),
        placeholders={word: stands_for for word, _, stands_for in pairs},
    )


def _blocks(page: str, text: str) -> list[Block]:
    found: list[Block] = []
    lines = text.splitlines()
    at = 0
    comments_from = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None:
            at += 1
            continue
        end = next(row for row in range(at + 1, len(lines)) if lines[row].strip() == "```")
        indent = len(lines[end]) - len(lines[end].lstrip())
        body = "".join(f"{line[indent:]}\n" for line in lines[at + 1 : end])
        comments = _comments_before(lines, comments_from, at)
        found.append(_block(page, at + 1, opening, body, comments))
        at = comments_from = end + 1
    return found


def _comments_before(lines: list[str], first: int, fence: int) -> list[tuple[str, str]]:
    """The comments between the last text and the fence."""
    between = "\n".join(lines[first:fence]).rstrip()
    found: list[tuple[str, str]] = []
    while between.endswith("-->"):
        start = between.rindex("<!--")
        comment = _COMMENT.fullmatch(between[start:].strip())
        if comment is not None:
            found.append((comment["word"], comment["text"]))
        between = between[:start].rstrip()
    return found[::-1]


def _block(page: str, line: int, opening: re.Match[str], body: str, comments: list[tuple[str, str]]) -> Block:
    def texts(word: str) -> tuple[str, ...]:
        return tuple(text for name, text in comments if name == word)

    unknown = {word for word, _ in comments} - {*BLOCK_WORDS, *PAGE_WORDS}
    assert not unknown, f"{page}:{line}: unknown comment {unknown}"
    return Block(
        page=page,
        line=line,
        language=opening["language"],
        title=opening["title"],
        text=body,
        given=texts("given"),
        fails=texts("fails"),
        not_run=next(iter(texts("not run")), None),
        ctrl_c_after=next(iter(texts("ctrl-c after")), None),
    )
