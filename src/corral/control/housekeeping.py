"""What is dropped when it is old enough, so that the store does not grow for ever."""

from __future__ import annotations

from corral.control.work import Work

DAY = 86400.0
#: The journal answers "why did it do that?" for a week.
JOURNAL_SECONDS = 7 * DAY
SCORE_HISTORY_SECONDS = 30 * DAY
EVERY_SECONDS = 3600.0


def tidy(work: Work) -> int:
    """Drop what is too old; how many rows went."""
    return work.tx.cycles.prune(work.now - JOURNAL_SECONDS) + work.tx.scores.prune(work.now - SCORE_HISTORY_SECONDS)
