"""Every end of a job has a meaning, and advice for its owner."""

from __future__ import annotations

import pytest

from corral.core.jobs.end_texts import END_TEXTS, advice_for
from corral.core.model import EndReason


def test_every_reason_has_a_text() -> None:
    assert set(END_TEXTS) == set(EndReason)
    assert all(text.meaning.endswith(".") for text in END_TEXTS.values())


@pytest.mark.parametrize(
    "reason", [reason for reason in EndReason if reason not in (EndReason.RESIZED, EndReason.MOVED)]
)
def test_advice_names_the_job_or_an_option(reason: EndReason) -> None:
    advice = advice_for("j-7", reason, None)
    assert advice.endswith((".", "`."))
    assert "{" not in advice
    assert "j-7" in advice or "corral image ls" in advice or "--" in advice


def test_usual_causes_of_exit_codes_come_first() -> None:
    assert advice_for("j-7", "exit_code", 127).startswith("127 means")
    assert advice_for("j-7", "exit_code", 3).startswith("Its last lines")
    assert advice_for("j-7", "of-a-newer-server", 3) == ""
