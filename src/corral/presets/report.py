"""The report of a training: `report.json`, and `report.html` as one file without scripts."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 420, 160
COLOR = "#2563eb"
#: A larger confusion matrix is in report.json only.
MOST_SHOWN = 40

STYLE = """body{font:14px system-ui,sans-serif;margin:24px;color:#1f2937;background:#fff}h1{font-size:20px}
h2{font-size:16px;margin:20px 0 6px}table{border-collapse:collapse}td,th{border:1px solid #d1d5db;padding:3px 8px;
text-align:right}th{background:#f3f4f6}td:first-child,th:first-child{text-align:left}figure{display:inline-block;
margin:0 24px 12px 0}figcaption{font-size:12px;color:#4b5563}"""


def write_report(folder: Path, report: dict[str, Any]) -> None:
    write_text(folder / "report.json", json.dumps(report, indent=1))
    write_text(folder / "report.html", page(report))


def write_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def page(report: dict[str, Any]) -> str:
    """The report as HTML. Names of classes come from the data set, and are escaped."""
    facts = [(name, report[name]) for name in report["facts"]]
    parts = [
        f"<h1>{_text(report['title'])}</h1>",
        _table(facts),
        "<h2>Curves</h2>",
        *(_curve(name, report["history"]) for name in report["curves"]),
    ]
    if "confusion" in report:
        parts += ["<h2>Confusion matrix</h2>", _matrix(report["classes"], report["confusion"])]
    if "average_precision" in report:
        rows = [(name, f"{value:.3f}") for name, value in report["average_precision"].items()]
        parts += [
            "<h2>Average precision at an overlap of 0.5</h2>",
            _table([*rows, ("mean", f"{report['map50']:.3f}")]),
        ]
    body = "\n".join(parts)
    return f"<!doctype html><meta charset=utf-8><title>{_text(report['title'])}</title><style>{STYLE}</style>\n{body}\n"


def _text(value: Any) -> str:
    return html.escape(f"{value:.4f}" if isinstance(value, float) else str(value))


def _table(rows: Sequence[Sequence[Any]]) -> str:
    lines = ("".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _matrix(classes: Sequence[str], matrix: Sequence[Sequence[int]]) -> str:
    if len(classes) > MOST_SHOWN:
        return f"<p>{len(classes)} classes: see report.json.</p>"
    head = "".join(f"<th>{_text(name)}</th>" for name in classes)
    lines = []
    for name, row in zip(classes, matrix):
        most = max(1, sum(row))
        cells = "".join(f'<td style="background:rgba(37,99,235,{count / most / 2:.2f})">{count}</td>' for count in row)
        lines.append(f"<tr><th>{_text(name)}</th>{cells}</tr>")
    return f"<table><tr><th>right \\ found</th>{head}</tr>{''.join(lines)}</table>"


def _curve(name: str, history: Sequence[dict[str, Any]]) -> str:
    values = [float(entry[name]) for entry in history]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = WIDTH / max(1, len(values) - 1)
    points = " ".join(
        f"{place * step:.1f},{HEIGHT - (value - low) / span * HEIGHT:.1f}" for place, value in enumerate(values)
    )
    drawn = f'<polyline points="{points}" fill="none" stroke="{COLOR}" stroke-width="2"/>'
    caption = f"{_text(name)}: {values[0]:.4f} → {values[-1]:.4f} in {len(values)} epochs"
    return (
        f'<figure><svg viewBox="-4 -4 {WIDTH + 8} {HEIGHT + 8}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f"<title>{caption}</title>{drawn}</svg><figcaption>{caption}</figcaption></figure>"
    )
