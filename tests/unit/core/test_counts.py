"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from corral.core.counts import counted


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 GPUs"),
        (1, "1 GPU"),
        (1.0, "1 GPU"),
        (2, "2 GPUs"),
        (0.5, "0.5 GPUs"),
        (10.0, "10 GPUs"),
        (1.25, "1.25 GPUs"),
    ],
)
def test_number_one_is_singular_and_all_others_are_plural(amount: float, text: str) -> None:
    assert counted(amount, "GPU") == text


def test_a_plural_may_be_given() -> None:
    assert counted(1, "job was", "jobs were") == "1 job was"
    assert counted(3, "job was", "jobs were") == "3 jobs were"
