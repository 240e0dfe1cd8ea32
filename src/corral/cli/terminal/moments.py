"""Moments that people type: absolute, or as how long ago."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage


def moment_option(flag: str, text: str | None, now: float) -> str | None:
    """An absolute time as it is; a duration means that long ago."""
    if text is None:
        return None
    from corral.core.quantities import parse_duration

    if re.fullmatch(r"\d{4}-.*", text):
        try:
            formats.moment(text)
        except ValueError:
            raise WrongUsage(f"{flag}: {text!r} is not a time such as 2026-01-03T10:00:00Z") from None
        return formats.rfc3339(formats.moment(text))
    try:
        return formats.rfc3339(now - parse_duration(text))
    except ValueError as error:
        raise WrongUsage(f"{flag}: {error}") from error


def coming_moment(flag: str, text: str, after: float) -> str:
    """An absolute time; the next time that the clock here shows 18:00 after that moment; or that long after it."""
    from corral.core.quantities import parse_duration

    try:
        if re.fullmatch(r"\d{4}-.*", text):
            # Without a zone it is the time of this machine's clock, as 18:00 is.
            return formats.rfc3339(formats.moment(text))
        clock = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text)
        if clock is not None:
            return formats.rfc3339(_next_time(int(clock[1]), int(clock[2]), after))
        return formats.rfc3339(after + parse_duration(text))
    except (ValueError, OverflowError):
        raise WrongUsage(
            f"{flag}: {text!r} is not a time", hint="Write 18:00, 2h, 2026-01-03T18:00 or 2026-01-03T18:00:00Z."
        ) from None


def coming_window(since: str | None, until: str | None, now: float, begins: float | None = None) -> dict[str, str]:
    """The window of --from and --until, without the one that is not given. A duration as --until counts from the
    beginning: from `since`, else from `begins`, else from now."""
    window = {}
    after = now if begins is None else begins
    if since is not None:
        window["since"] = coming_moment("--from", since, now)
        after = formats.moment(window["since"])
    if until is not None:
        window["until"] = coming_moment("--until", until, after)
    return window


def _next_time(hour: int, minute: int, after: float) -> float:
    day = datetime.fromtimestamp(after)
    then = day.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if then.timestamp() <= after:
        then += timedelta(days=1)
    return then.timestamp()
