"""A report as a PDF, set by typst from the template beside this module.

The template reads the document as JSON: no text of it is interpreted as markup. The fonts of typst are sufficient;
system fonts are used only for letters that they lack, such as Chinese ones.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.reporting.charts import PRINT, draw
from corral.reporting.document import Document, Figure, Section, Table

if TYPE_CHECKING:
    import typst

TEMPLATE = Path(__file__).with_name("report.typ")


def is_installed() -> bool:
    """The extra `reports` brings typst."""
    return find_spec("typst") is not None


def render(document: Document, *, made_at: float) -> bytes:
    # Loaded when the first report is made: a server without reports should not use memory for it.
    import typst

    pdf = typst.compile(
        TEMPLATE.read_bytes(),
        format="pdf",
        font_paths=_fonts(),
        sys_inputs={"document": json.dumps(_plain(document))},
        timestamp=int(made_at),
    )
    assert isinstance(pdf, bytes)
    return pdf


@cache
def _fonts() -> typst.Fonts:
    """System fonts are searched once: that takes longer than setting a report."""
    import typst

    return typst.Fonts(include_system_fonts=True, include_embedded_fonts=True)


def _plain(document: Document) -> dict[str, Any]:
    return {
        "title": _printable(document.title),
        "cluster": _printable(document.cluster),
        "span": document.span,
        "made": document.made,
        "tiles": [{"label": tile.label, "value": tile.value, "note": tile.note} for tile in document.tiles],
        "findings": [{"tone": finding.tone, "text": _printable(finding.text)} for finding in document.findings],
        "sections": [_section(section) for section in document.sections],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "text": _printable(section.text),
        "blocks": [_figure(block) if isinstance(block, Figure) else _table(block) for block in section.blocks],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "kind": "figure",
        "title": figure.title,
        "summary": figure.chart.summary,
        "svg": draw(figure.chart, PRINT),
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "kind": "table",
        "title": table.title,
        "columns": table.columns,
        "text_columns": table.text_columns,
        "rows": [
            {"cells": [_printable(cell) for cell in row.cells], "part": row.part, "total": row.is_total}
            for row in table.rows
        ],
    }


def _printable(text: str) -> str:
    """The text without characters that cannot be set: control characters and halves of surrogate pairs. Long words may
    be broken anywhere."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return (
        "\N{ZERO WIDTH SPACE}".join(clean[at : at + 24] for at in range(0, len(clean), 24))
        if _is_long(clean)
        else clean
    )


def _is_long(text: str) -> bool:
    return any(len(word) > 32 for word in text.split())
