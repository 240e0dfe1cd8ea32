"""The glossary: one row per term, in alphabetical order, with every engine and policy that exists."""

from __future__ import annotations

from pathlib import Path

from corral.core.scheduling.ordering import POLICIES as ORDERINGS
from corral.core.scheduling.placement import POLICIES as PLACEMENTS
from corral.engines.registry import ENGINES

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


def _rows() -> list[list[str]]:
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_terms_are_in_alphabetical_order_and_unique() -> None:
    terms = [row[0].casefold() for row in _rows()]
    assert terms == sorted(set(terms))


def test_every_term_has_a_meaning_and_a_word_of_each_other_system() -> None:
    for row in _rows():
        assert len([cell for cell in row if cell]) == 5, row


def test_enumerations_are_complete() -> None:
    meanings = {row[0]: row[1] for row in _rows()}
    for term, names in {"engine": ENGINES, "ordering policy": ORDERINGS, "placement policy": PLACEMENTS}.items():
        missing = [name for name in names if f"`{name}`" not in meanings[term]]
        assert not missing, f"{term}: name {missing} in docs/glossary.md"
