"""Moments that people type: absolute, or as how long ago."""

from __future__ import annotations

import re

from corral.cli import words
from corral.cli.failures import WrongUsage


def moment_option(flag: str, text: str | None, now: float) -> str | None:
    """An absolute time as it is; a duration means that long ago."""
    if text is None:
        return None
    from corral.core.quantities import parse_duration

    if re.fullmatch(r"\d{4}-.*", text):
        try:
            words.moment(text)
        except ValueError:
            raise WrongUsage(f"{flag}: {text!r} is not a time such as 2026-01-03T10:00:00Z") from None
        return words.rfc3339(words.moment(text))
    try:
        return words.rfc3339(now - parse_duration(text))
    except ValueError as error:
        raise WrongUsage(f"{flag}: {error}") from error
