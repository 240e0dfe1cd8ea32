"""Values of options, from the text that was typed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.cli.terminal.failures import WrongUsage


def pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise WrongUsage(f"{flag}: expected NAME=VALUE, got {text!r}")
        found[key] = value
    return found


def seconds(flag: str, text: str) -> float:
    """A duration such as 90m."""
    from corral.core.quantities import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise WrongUsage(f"{flag}: {error}") from error


def amount(flag: str, value: float) -> float | int:
    """A finite number; a whole number becomes an int, so that messages say 4 and not 4.0."""
    if not math.isfinite(value):
        raise WrongUsage(f"{flag}: {value} is not an amount")
    return int(value) if value.is_integer() else value
