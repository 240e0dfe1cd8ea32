"""Numbers of a report as text: pure functions, the same in every format."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from corral.control.reports.report_data import DAY, HOUR, Span
from corral.core.counts import noun_for

#: Stands where nothing is known.
UNKNOWN = "–"
#: Between a number and its unit: they stay in one line.
GAP = "\N{NO-BREAK SPACE}"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def hours(value: float, *, of: float | None = None) -> str:
    """GPU-hours or kWh with as many digits as are useful; parts of a whole have as many decimals as the whole."""
    size = abs(value if of is None else of)
    decimals = next((count for count, least in enumerate((1000, 10, 1, 0.1)) if size >= least), 4)
    return f"{value:,.{decimals if size else 0}f}"


def percent(part: float | None) -> str:
    if part is None:
        return UNKNOWN
    if 0 < part < 0.01:
        return f"<{GAP}1{GAP}%"
    return f"{part * 100:.0f}{GAP}%"


def duration(seconds: float) -> str:
    """The two largest parts that matter: 8 s, 3 min, 2 h 5 min, 1 d 12 h."""
    if seconds < 60:
        return f"{seconds:.0f}{GAP}s"
    units = ((DAY, "d"), (HOUR, "h"), (60.0, "min"))
    for (size, name), (smaller, smaller_name) in pairwise(units):
        # Rounded to the smaller unit first: 59.7 min must not become "0 h 60 min".
        parts = round(seconds / smaller)
        if parts * smaller >= size:
            count, rest = divmod(parts, round(size / smaller))
            first = f"{count}{GAP}{name}"
            return f"{first}{GAP}{rest}{GAP}{smaller_name}" if rest else first
    return f"{seconds / 60:.0f}{GAP}min"


def count(amount: float, noun: str, plural: str = "") -> str:
    return f"{whole(amount)} {noun_for(amount, noun, plural)}"


def listed(names: list[str]) -> str:
    """a; a and b; a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def moment(at: float) -> str:
    found = datetime.fromtimestamp(at, UTC)
    return f"{found.day} {found:%B %Y, %H:%M} UTC"


def day(at: float) -> str:
    found = datetime.fromtimestamp(at, UTC)
    return f"{found.day} {found:%B %Y}"


def span_text(span: Span) -> str:
    """Whole days as days: 1 – 30 September 2026; anything else with its times."""
    if span.since % DAY or span.until % DAY:
        return f"{moment(span.since)} – {moment(span.until)}"
    first, last = (datetime.fromtimestamp(at, UTC) for at in (span.since, span.until - 1))
    if first.date() == last.date():
        return day(span.since)
    if first.year != last.year:
        return f"{day(span.since)} – {day(span.until - 1)}"
    if first.month != last.month:
        return f"{first.day} {first:%B} – {day(span.until - 1)}"
    return f"{first.day} – {day(span.until - 1)}"


def step_name(seconds: float) -> str:
    return {HOUR: "hour", DAY: "day"}.get(seconds, "week")
