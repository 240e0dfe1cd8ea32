"""Answers for programs."""

from __future__ import annotations

import pytest

from corral.cli.terminal.output import as_csv


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ('=HYPERLINK("http://evil.example")', '"\'=HYPERLINK(""http://evil.example"")"'),
        ("@SUM(1)", "'@SUM(1)"),
        ("-cmd", "'-cmd"),
        ("-5", "-5"),
        ("+1.5e-3", "+1.5e-3"),
        (-5, "-5"),
        ("plain", "plain"),
        ({"a": 1}, '"{""a"": 1}"'),
    ],
)
def test_a_text_of_another_user_is_no_formula_of_a_spreadsheet(value: object, cell: str) -> None:
    assert as_csv(["description"], [[value]]) == f"description\n{cell}"
