"""Deletes old rows, so that the store does not grow for ever."""

from __future__ import annotations

from corral.control.fleet.draining import maintenance
from corral.control.live.unit_of_work import Work
from corral.control.monitoring import gpu_health
from corral.control.scheduling import reservations

DAY = 86400.0
#: The journal answers "why did it do that?" for a week.
JOURNAL_SECONDS = 7 * DAY
SCORE_HISTORY_SECONDS = 30 * DAY
#: Usage is kept for a year, and a month more so that a year's report can still be made after its end.
USAGE_SECONDS = 400 * DAY
#: Receipts of preemptions.
RECEIPT_SECONDS = 400 * DAY
#: Alerts that are over, and silences.
ALERT_SECONDS = 400 * DAY
#: Notices that were sent or given up.
DELIVERY_SECONDS = 90 * DAY
#: What became of estimates: long ago says little of today.
ESTIMATE_SECONDS = 60 * DAY
EVERY_SECONDS = 3600.0


def tidy(work: Work) -> int:
    """Drop what is too old; how many rows went."""
    gpu_health.forget_old(work)
    return (
        work.tx.cycles.prune(work.now - JOURNAL_SECONDS)
        + work.tx.scores.prune(work.now - SCORE_HISTORY_SECONDS)
        + work.tx.usage.prune(work.now - USAGE_SECONDS)
        + work.tx.receipts.prune(work.now - RECEIPT_SECONDS)
        + work.tx.alerts.prune(work.now - ALERT_SECONDS)
        + work.tx.channels.prune(work.now - DELIVERY_SECONDS)
        + work.tx.estimates.prune(work.now - ESTIMATE_SECONDS)
        + reservations.tidy(work)
        + maintenance.tidy(work)
    )
