"""Numbers, times and sizes as text for people: pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from corral.core.counts import counted

NOTHING = "-"
#: 1 GPU, 2 GPUs.
count = counted


def number(value: float | None) -> str:
    """2, not 2.0; 0.5; at most two decimals."""
    if value is None:
        return NOTHING
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value * 100:.0f}%"


def size(count: int | None) -> str:
    from corral.core.quantities import format_bytes

    return NOTHING if count is None else format_bytes(count)


def duration(seconds: float | None) -> str:
    """The two largest parts: 45s, 3m20s, 2h5m, 1d12h."""
    if seconds is None:
        return NOTHING
    rest = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for letter, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, rest = divmod(rest, length)
        if amount or parts:
            parts.append((amount, letter))
    shown = [f"{amount}{letter}" for amount, letter in parts[:2] if amount]
    return "".join(shown) or "0s"


def moment(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()


def ago(text: str | None, now: float) -> str:
    """The time since or until then: `3m20s ago`, `in 2h5m`."""
    if text is None:
        return NOTHING
    seconds = now - moment(text)
    if abs(seconds) < 1:
        return "now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def between(start: str | None, end: str | None, now: float) -> str:
    """How long something ran, or has run so far."""
    if start is None:
        return NOTHING
    return duration((moment(end) if end is not None else now) - moment(start))


def local_time(text: str | None) -> str:
    """The local time of this machine, with its zone."""
    if text is None:
        return NOTHING
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def clock(seconds: float) -> str:
    """The local time of day."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")


def at_and_ago(text: str | None, now: float) -> str:
    return NOTHING if text is None else f"{local_time(text)} ({ago(text, now)})"


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def listed(parts: Sequence[str]) -> str:
    return ", ".join(parts) if parts else NOTHING


def quantity(value: float) -> str:
    """Small values with as many digits as they need: 12.34, 0.0042."""
    return number(value) if value == 0 or abs(value) >= 1 else f"{value:.2g}"
