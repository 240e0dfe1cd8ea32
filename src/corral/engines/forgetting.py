"""Forgets several attempts, each by itself: an attempt whose files cannot be removed holds up no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from corral.control.ports import EngineUnavailable

log = logging.getLogger("corral.engines")


def forget_each(attempt_ids: Iterable[str], forget: Callable[[str], None]) -> None:
    """Raises EngineUnavailable once all were tried, with the attempts that must be forgotten again."""
    failures: list[str] = []
    cause: Exception | None = None
    for attempt_id in attempt_ids:
        try:
            forget(attempt_id)
        except OSError as error:
            failures.append(f"{attempt_id}: {error}")
            cause = error
        except Exception as error:
            log.exception("attempt %s cannot be forgotten", attempt_id)
            failures.append(f"{attempt_id}: {type(error).__name__}: {error}")
            cause = error
    if failures:
        more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        raise EngineUnavailable(f"attempts cannot be forgotten: {failures[0]}{more}") from cause
