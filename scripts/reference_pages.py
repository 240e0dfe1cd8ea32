#!/usr/bin/env python3
"""Write docs/reference/reasons.md and docs/reference/events.md from the code.

Reasons are the tables of ends and rules and the classes of refusals. Events are found in the source: each call that
adds a line to the audit log names the event. `make openapi` runs this script; tests/unit/test_reference_pages.py proves
that both pages are current and that the tables have every reason.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from corral.control import errors
from corral.core.jobs.end_texts import END_TEXTS
from corral.core.scheduling.explain.rule_texts import RULE_TEXTS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "corral"
REASONS = ROOT / "docs" / "reference" / "reasons.md"
EVENTS = ROOT / "docs" / "reference" / "events.md"

#: Functions that add a line to the audit log; the second argument is the event.
RECORDING = frozenset({"record", "_record", "recorded"})
_EVENT = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*")
#: Names of loggers and of series look like events.
_NO_EVENTS = frozenset({"corral"})
_SERIES = PACKAGE / "control" / "ports" / "history.py"

REASONS_HEAD = """\
# Reasons: why jobs wait and end, and why requests are refused

This page is written from the code by `make openapi`. How to read a wait:
[understand the wait](../how-to/scheduling/understand-the-wait.md); how ends are retried:
[ends and retries](../how-to/jobs/ends-and-retries.md).

## Why a job waits

`rule` in `reasons` of `GET /jobs/{job}/why`, in `corral why` and on the job's page. Each comes with its numbers and
the jobs that it names.

| rule | meaning | what helps |
|---|---|---|
"""
ENDS_HEAD = """
## How a job or an attempt ended

`end_reason` of a job and of each attempt; `message` says more.

| reason | meaning | what the owner can do |
|---|---|---|
"""
REFUSALS_HEAD = """
## Why a request is refused

The last part of `type` in problem details, with the status. Nothing has changed after a refusal.

| type | status | meaning |
|---|---|---|
"""
EVENTS_HEAD = """\
# Events

Every event of the audit log, by the kind of its subject. `corral events`, `GET /events` and the console's page Events
list them; `GET /stream` sends them as they happen. An event has an id, a time, the user who caused it (or `corral`),
the subject, and details. Who sees which: [permissions](permissions.md).
`…` stands for a word that the event is made with, such as the job's new state.
"""


def reasons_page() -> str:
    rules = [f"| `{rule}` | {text.meaning} | {text.help} |\n" for rule, text in RULE_TEXTS.items()]
    ends = [
        f"| `{reason}` | {text.meaning} | {text.advice.replace('{job}', 'JOB') or '–'} |\n"
        for reason, text in END_TEXTS.items()
    ]
    refused = [f"| `{kind.slug}` | {kind.status} | {_first_line(kind)} |\n" for kind in _refusals()]
    return "".join((REASONS_HEAD, *rules, ENDS_HEAD, *ends, REFUSALS_HEAD, *refused))


def _refusals() -> list[type[errors.Refusal]]:
    found = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.Refusal) and kind is not errors.Refusal
    ]
    return sorted(found, key=lambda kind: (kind.status, kind.slug))


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def events_page() -> str:
    found = events()
    parts = [EVENTS_HEAD]
    subjects = sorted({event.partition(".")[0] for event in found})
    for subject in subjects:
        parts.append(f"\n## {subject}\n\n| event | details |\n|---|---|\n")
        for event, details in sorted(found.items()):
            if event.partition(".")[0] == subject:
                shown = ", ".join(f"`{name}`" for name in sorted(details)) or "–"
                parts.append(f"| `{event}` | {shown} |\n")
    return "".join(parts)


def events() -> dict[str, set[str]]:
    """Every event with the names of its details, as far as the call spells them."""
    found: dict[str, set[str]] = {}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((PACKAGE / "control").rglob("*.py"))}
    for tree in trees.values():
        for event, details in _recorded(tree):
            found.setdefault(event, set()).update(details)
    # Where the event is a variable, its words are in the tables and branches of the package.
    subjects = {event.partition(".")[0] for event in found} - _NO_EVENTS
    for path, tree in trees.items():
        if path == _SERIES:
            continue
        literals = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        for text in literals:
            if isinstance(text, str) and _EVENT.fullmatch(text) and text.partition(".")[0] in subjects:
                found.setdefault(text, set())
    return found


def _recorded(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or len(call.args) < 2 or not _is_recording(call.func):
            continue
        for event in _texts(call.args[1]):
            yield event, _details(call)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "action" for to in node.targets):
            for event in _texts(node.value):
                yield event, set()


def _is_recording(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        is_audit = isinstance(function.value, ast.Attribute) and function.value.attr == "_audit"
        return function.attr in RECORDING or (function.attr == "add" and is_audit)
    return isinstance(function, ast.Name) and function.id in RECORDING


def _texts(node: ast.expr) -> list[str]:
    """The events that an expression can be, with `…` for a part that is known only when it runs."""
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body), *_texts(node.orelse)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _EVENT.fullmatch(node.value):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        return [text] if "." in text and not text.startswith("…") else []
    return []


def _details(call: ast.Call) -> set[str]:
    detail = next((keyword.value for keyword in call.keywords if keyword.arg == "detail"), None)
    keys = detail.keys if isinstance(detail, ast.Dict) else []
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def main() -> None:
    REASONS.write_text(reasons_page(), encoding="utf-8")
    EVENTS.write_text(events_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
