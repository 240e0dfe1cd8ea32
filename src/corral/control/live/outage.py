"""A period in which the store cannot be used: since when, how often it was tried, and the turn whose outcome is
unknown."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from corral.control.live.turn import Turn
from corral.control.ports import OutcomeUnknown

log = logging.getLogger("corral.control")

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
#: How long callers wait for the outcome of a commit that the outage interrupted.
PATIENCE_SECONDS = 10.0
#: The reason is logged again that often.
_LOG_EVERY = 12


@dataclass(slots=True, kw_only=True)
class Outage:
    #: why the store cannot be used
    message: str
    #: by the steady clock
    since: float
    #: the turn that was being committed when the store went away
    uncertain: Turn | None = None
    tries: int = 0

    @property
    def pause_seconds(self) -> float:
        return float(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(self.tries, 16)))

    def failed(self, error: Exception, *, is_known: bool) -> None:
        if not is_known or self.tries % _LOG_EVERY == 0:
            log.warning("the store still cannot be used: %s", error, exc_info=None if is_known else error)
        self.message = str(error) or type(error).__name__
        self.tries += 1

    def give_up_waiting(self, now: float) -> None:
        """Answer callers that the outcome of their request is unknown, if they have waited for long enough."""
        if self.uncertain is not None and now >= self.since + PATIENCE_SECONDS:
            self.uncertain.fail(OutcomeUnknown(self.message))
