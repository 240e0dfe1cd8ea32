"""A report as one self-contained HTML file: no script, nothing fetched, light or dark as the reader's system is."""

from __future__ import annotations

from html import escape

from corral.reporting.charts import PAGE, draw
from corral.reporting.document import Document, Figure, Row, Section, Table

STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --soft: #5b6673; --line: #e1e5ea; --page: #fff; --card: #f6f8fa;
  --available: #eceff3; --held: #7aaad8; --busy: #1f4e79; --good: #a9cce3; --plain: #6b7f93; --bad: #a3261b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #a3adb8; --line: #333b45; --page: #14181d;
  --card: #1d232a; --available: #232a32; --held: #3d6d9c; --busy: #a8d1f5; --good: #3f78a8; --plain: #8796a5;
  --bad: #e8695c; } }
@media print { :root { color-scheme: light; } section { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
header { border-bottom: 3px solid var(--busy); padding-bottom: 1rem; }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .5rem; font-size: 1.3rem; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
header p, figcaption, .note { color: var(--soft); margin: 0; }
h1, td, li, th { overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(12.5rem, 1fr)); gap: .75rem; margin: 1.5rem 0;
  padding: 0; list-style: none; }
.tiles li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; }
.tiles b { display: block; font-size: 1.5rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: .85rem; display: block; }
.findings { padding: 0; list-style: none; }
.findings li { border-left: 4px solid var(--plain); padding: .1rem 0 .1rem .8rem; margin: .6rem 0; }
.findings .good { border-color: var(--good); } .findings .bad { border-color: var(--bad); }
figure { margin: 1rem 0; overflow-x: auto; } figure svg { width: 100%; min-width: 36rem; height: auto; display: block; }
figcaption { font-weight: 600; color: var(--ink); margin-bottom: .25rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .75rem 0 .25rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; overflow-wrap: normal; }
tbody th { font-weight: 400; } thead th:first-child { width: 32%; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.total th, .total td { font-weight: 600; border-top: 2px solid var(--soft); border-bottom: 0; }
.bar { display: block; height: 4px; margin-top: 2px; background: var(--held); border-radius: 2px; min-width: 1px; }
"""


def render(document: Document) -> bytes:
    title = escape(f"{document.title} – {document.cluster}")
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>",
        f"<header><h1>{escape(document.title)}</h1><p>{escape(document.cluster)} · {escape(document.span)}</p>",
        f"<p>Made on {escape(document.made)}</p></header>",
        *_tiles(document),
        *_findings(document),
        *(part for section in document.sections for part in _section(section)),
        "</main></body></html>\n",
    ]
    # Text that cannot be encoded, such as half a surrogate pair, becomes a question mark.
    return "".join(parts).encode("utf-8", "replace")


def _tiles(document: Document) -> list[str]:
    items = [
        f"<li><span>{escape(tile.label)}</span><b>{escape(tile.value)}</b><span>{escape(tile.note)}</span></li>"
        for tile in document.tiles
    ]
    return ['<ul class="tiles">', *items, "</ul>"]


def _findings(document: Document) -> list[str]:
    items = [f'<li class="{finding.tone}">{escape(finding.text)}</li>' for finding in document.findings]
    return ["<section><h2>What stands out</h2>", '<ul class="findings">', *items, "</ul></section>"]


def _section(section: Section) -> list[str]:
    blocks = [_figure(block) if isinstance(block, Figure) else _table(block) for block in section.blocks]
    return [f"<section><h2>{escape(section.title)}</h2><p>{escape(section.text)}</p>", *blocks, "</section>"]


def _figure(figure: Figure) -> str:
    return f"<figure><figcaption>{escape(figure.title)}</figcaption>{draw(figure.chart, PAGE)}</figure>"


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col"{_class(table, place)}>{escape(column)}</th>' for place, column in enumerate(table.columns)
    )
    rows = "".join(_row(table, row) for row in table.rows)
    return (
        f'<div class="wide"><table><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(table: Table, row: Row) -> str:
    bar = "" if row.part is None else f'<span class="bar" style="width:{row.part * 100:.1f}%"></span>'
    first, *rest = row.cells
    cells = [f'<th scope="row">{escape(first)}{bar}</th>']
    cells += [f"<td{_class(table, place)}>{escape(cell)}</td>" for place, cell in enumerate(rest, 1)]
    opening = '<tr class="total">' if row.is_total else "<tr>"
    return f"{opening}{''.join(cells)}</tr>"


def _class(table: Table, place: int) -> str:
    return "" if place < table.text_columns else ' class="number"'
