"""Times in query parameters; others are refused with the name of the parameter."""

from __future__ import annotations

from corral.server.http.problems import invalid_field
from corral.server.schemas.base import parse_time


def time_of(field: str, text: str | None) -> float | None:
    """Seconds since the epoch, or None if the parameter is missing."""
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise invalid_field(field, str(error)) from None
