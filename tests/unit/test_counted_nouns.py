"""No message shows "1 GPUs": a number before a noun goes through `corral.core.counts`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent.parent / "src" / "corral"
#: Nouns for things that are counted, and of which there may be one.
NOUNS = (
    "CPUs|GPUs|allocations|alerts|attempts|backups|checks|datasets|entries|files|groups|images|instances|items|jobs|"
    "keys|links|mounts|nodes|packs|pieces|points|pools|queues|records|reservations|rows|servers|shares|tables|"
    "tokens|users|versions|volumes|workbenches"
)
_PLURAL = re.compile(rf" (?:{NOUNS})\b")
#: Values that are no number, or never 1, with the reason.
ALLOWED = {
    "allowed": "the kinds of jobs that a queue takes",
    "asked": "GPU models",
    "job.kind": "a kind of jobs",
    "job.user": "a user, before a verb",
    "job.id": "a job, before a verb",
    "job['nodes']": "the nodes of a gang",
    "now": "a GPU model",
    "offered": "the kinds of jobs that a package is for",
    "one.kind": "a kind of jobs",
    "order.owner": "a user, before a verb",
    "request.nodes": "the nodes of a gang",
    "volume_type.value": "a type of volumes",
}


def wrong(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every value of an f-string that stands before a plural."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, following in zip(node.values, node.values[1:], strict=False):
            text = following.value if isinstance(following, ast.Constant) else None
            if isinstance(value, ast.FormattedValue) and isinstance(text, str) and _PLURAL.match(text):
                shown = ast.unparse(value.value)
                # Limits that are constants are larger than 1.
                is_constant = re.fullmatch(r"[A-Z_]+", shown.rpartition(".")[2]) is not None
                if shown not in ALLOWED and not is_constant and not _is_text(value.value):
                    yield node.lineno, f"{{{shown}}}{text[:20]}"


def _is_text(value: ast.expr) -> bool:
    """A choice of words, or joined words."""
    if isinstance(value, ast.IfExp):
        return isinstance(value.body, ast.Constant) and isinstance(value.body.value, str)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "join"


@pytest.mark.parametrize(
    ("code", "is_wrong"),
    [
        ("f'{count} GPUs are free'", True),
        ("f'{len(jobs)} jobs'", True),
        ("f'at most {limit} GPUs: ' f'asked {asked}'", True),
        ("f'at most {MAX_JOBS} jobs'", False),
        ('f"{counted(count, noun)} free"', False),
        ("f'{name} has GPUs'", False),
    ],
)
def test_a_number_before_a_plural_is_found(code: str, is_wrong: bool) -> None:
    assert bool(list(wrong(ast.parse(code)))) is is_wrong


def test_every_number_is_counted_with_its_noun() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{line}: {text}"
        for path in sorted(SOURCES.rglob("*.py"))
        # Programs of jobs do not import the core.
        if path.relative_to(SOURCES).parts[0] not in ("checkpoint", "presets")
        for line, text in wrong(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "use corral.core.counts.counted:\n" + "\n".join(found)
