"""The pages of reasons and events are those of the code, and the table of rules has every rule."""

from __future__ import annotations

import ast
from pathlib import Path

import corral.core.scheduling
from corral.core.scheduling.explain.rule_texts import RULE_TEXTS
from corral.core.scheduling.limits import hold_rules
from tests.unit.scripts import load_script

pages = load_script("reference_pages.py")
SCHEDULING = Path(corral.core.scheduling.__file__).parent


def test_the_pages_are_up_to_date() -> None:
    assert pages.REASONS.read_text(encoding="utf-8") == pages.reasons_page(), "run: python scripts/reference_pages.py"
    assert pages.EVENTS.read_text(encoding="utf-8") == pages.events_page(), "run: python scripts/reference_pages.py"


def test_every_rule_has_a_text() -> None:
    named: set[str] = set()
    for path in SCHEDULING.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if call.func.id == "Reason":
                named |= _words(next(keyword.value for keyword in call.keywords if keyword.arg == "rule"))
            elif call.func.id == "_over":
                named |= _words(call.args[0])
    assert named == set(RULE_TEXTS)


def _words(node: ast.expr) -> set[str]:
    if isinstance(node, ast.IfExp):
        return _words(node.body) | _words(node.orelse)
    if isinstance(node, ast.Name):
        # a constant of the module; a parameter is named by the calls
        return {getattr(hold_rules, node.id)} if node.id.isupper() else set()
    return {str(node.value)} if isinstance(node, ast.Constant) else set()


def test_events_of_every_kind_are_found() -> None:
    found = pages.events()
    assert {"queue.created", "job.dependencies-met", "gpu.suspect", "job.…", "dataset.…-requested"} <= found.keys()
    assert "gpus" in found["pool.gpus-moved"] or found["pool.gpus-moved"]
    assert not {"corral.control", "gpu.utilization", "queue.length"} & found.keys()
