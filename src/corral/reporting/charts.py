"""Small charts as SVG: a trend over time, lines of percentages, stacked bars and histograms.

Decides scales, ticks and which labels fit without overlapping; colours and the font come from the theme. A chart is a
value that describes its content; `draw` returns the SVG. The colours differ in lightness, so that a grey print can be
read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from html import escape

from corral.control.reports.report_data import DAY, HOUR

WIDTH, HEIGHT = 700.0, 200.0
FONT_SIZE = 11.0
#: The gap between two labels in a row.
LABEL_GAP = 9.0
_TOP, _BOTTOM, _RIGHT = 30.0, 24.0, 14.0


class Paint(StrEnum):
    AVAILABLE = "available"
    HELD = "held"
    BUSY = "busy"
    GOOD = "good"
    PLAIN = "plain"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True, slots=True)
class Theme:
    font: str
    ink: str
    grid: str
    paints: Mapping[Paint, str]


#: On white paper, with the font of typst.
PRINT = Theme(
    font="Libertinus Serif",
    ink="#4b5563",
    grid="#e2e5ea",
    paints={
        Paint.AVAILABLE: "#eceff3",
        Paint.HELD: "#7aaad8",
        Paint.BUSY: "#1f4e79",
        Paint.GOOD: "#a9cce3",
        Paint.PLAIN: "#6b7f93",
        Paint.BAD: "#a3261b",
    },
)
#: In a browser: the page's own colours, light or dark.
PAGE = Theme(
    font="inherit",
    ink="var(--soft)",
    grid="var(--line)",
    paints={paint: f"var(--{paint})" for paint in Paint},
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    name: str
    paint: Paint
    #: one per step or bar; None if unknown
    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trend:
    """Amounts per step of time, drawn over each other; the largest come first."""

    summary: str
    unit: str
    #: where each step begins, and finally where the last one ends
    borders: tuple[float, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """Shares of a whole per step of time."""

    summary: str
    unit: str
    borders: tuple[float, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """Counts per step of time, on top of each other."""

    summary: str
    unit: str
    borders: tuple[float, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Histogram:
    """Counts between borders: a label for each left edge, and one more if the last bar has a right edge."""

    summary: str
    unit: str
    borders: tuple[str, ...]
    counts: tuple[int, ...]
    #: the unit of the axis
    axis: str = ""


Chart = Trend | Lines | Bars | Histogram


def draw(chart: Chart, theme: Theme, *, width: float = WIDTH, height: float = HEIGHT) -> str:
    """The chart as a complete SVG element."""
    match chart:
        case Trend():
            body = _trend(chart, theme, width, height)
        case Lines():
            body = _lines(chart, theme, width, height)
        case Bars():
            body = _bars(chart, theme, width, height)
        case Histogram():
            body = _histogram(chart, theme, width, height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(chart.summary)}" font-family="{escape(theme.font)}" font-size="{FONT_SIZE:g}">'
        f"<title>{escape(chart.summary)}</title>{''.join(body)}</svg>"
    )


# ---------------------------------------------------------------- scales


def nice_ticks(most: float, count: int = 5) -> list[float]:
    """0 and round numbers up to at least `most`, about `count` of them above 0."""
    if not (most > 0 and math.isfinite(most)):
        return [0.0, 1.0]
    rough = most / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999999)
    return [number * step for number in range(math.ceil(most / step * 0.999999) + 1)]


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """An estimate of the width of a text, rather too large."""
    return sum(map(_char_width, text)) * size


def _char_width(char: str) -> float:
    if char in " \N{NO-BREAK SPACE}.,:;'|il":
        return 0.34
    return 1.0 if char in "%mMW@…" or ord(char) > 0x2E7F else 0.64


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plane:
    """The position of values within the chart."""

    left: float
    right: float
    top: float
    bottom: float
    most: float

    def x(self, part: float) -> float:
        return self.left + part * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - value / self.most * (self.bottom - self.top)


def _plane(theme: Theme, width: float, height: float, ticks: Sequence[float], labels: Sequence[str]) -> _Plane:
    left = max(text_width(label) for label in labels) + 10
    return _Plane(left=left, right=width - _RIGHT, top=_TOP, bottom=height - _BOTTOM, most=ticks[-1])


def _frame(
    plane: _Plane, theme: Theme, unit: str, ticks: Sequence[float], labels: Sequence[str], legend: Sequence[Series]
) -> list[str]:
    """Grid, the labels of the vertical axis, its unit, and the legend."""
    parts = []
    for tick, label in zip(ticks, labels, strict=True):
        y = plane.y(tick)
        parts.append(_line(plane.left, y, plane.right, y, theme.grid if tick else theme.ink, 1 if tick else 0.8))
        parts.append(_text(plane.left - 6, y + 3.6, label, theme, anchor="end"))
    parts.append(_text(0, 12, unit, theme))
    parts += _legend(plane.right, text_width(unit) + 2 * LABEL_GAP, theme, legend)
    return parts


def _legend(right: float, least_left: float, theme: Theme, series: Sequence[Series]) -> list[str]:
    if len(series) < 2:
        return []
    widths = [16 + text_width(line.name) for line in series]
    x = max(least_left, right - sum(widths) - 14 * (len(series) - 1))
    parts = []
    for line, width in zip(series, widths, strict=True):
        style = f"fill:{theme.paints[line.paint]};stroke:{theme.ink};stroke-width:0.5"
        parts.append(f'<rect x="{x:.1f}" y="3.5" width="10" height="10" rx="1.5" style="{style}"/>')
        parts.append(_text(x + 14, 12, line.name, theme))
        x += width + 14
    return parts


def _time_labels(plane: _Plane, theme: Theme, borders: Sequence[float], height: float) -> list[str]:
    """The labels of as many steps as fit: under the middle of a day or week, at the beginning of an hour."""
    begins, whole = borders[:-1], borders[-1] - borders[0]
    step = borders[-1] - borders[-2]
    is_hours = step <= HOUR
    texts = [_step_name(at, is_hours, whole > DAY) for at in begins]
    widest = max(text_width(text) for text in texts)
    step_width = (plane.right - plane.left) * step / whole
    stride = next(
        (s for s in (1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48, 56) if s * step_width >= widest + LABEL_GAP), len(texts)
    )
    parts, free_from = [], 0.0
    for place in range((len(begins) - 1) % stride if not is_hours else 0, len(begins), stride):
        at = begins[place] if is_hours else (begins[place] + borders[place + 1]) / 2
        half = text_width(texts[place]) / 2
        x = min(max(plane.x((at - borders[0]) / whole), half), plane.right + _RIGHT - half)
        if x - half >= free_from:
            parts.append(_text(x, height - 8, texts[place], theme, anchor="middle"))
            free_from = x + half + LABEL_GAP / 2
    return parts


def _step_name(at: float, is_hours: bool, is_long: bool) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    if not is_hours:
        return f"{moment.day} {moment:%b}"
    return f"{moment.day} {moment:%b} {moment:%H:%M}" if is_long else f"{moment:%H:%M}"


def amount_label(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.10g}"


# ---------------------------------------------------------------- charts


def _trend(chart: Trend, theme: Theme, width: float, height: float) -> list[str]:
    ticks = nice_ticks(max((value or 0.0 for series in chart.series for value in series.values), default=0.0))
    labels = [amount_label(tick) for tick in ticks]
    plane = _plane(theme, width, height, ticks, labels)
    parts = _frame(plane, theme, chart.unit, ticks, labels, chart.series)
    for series in chart.series:
        style = f"fill:{theme.paints[series.paint]}"
        if series.paint is Paint.AVAILABLE:
            style += f";stroke:{theme.ink};stroke-width:0.8;stroke-dasharray:3 2"
        parts += [f'<path d="{path}" style="{style}"/>' for path in _stairs(plane, chart.borders, series.values)]
    return [*parts, *_time_labels(plane, theme, chart.borders, height)]


def _stairs(plane: _Plane, borders: Sequence[float], values: Sequence[float | None]) -> list[str]:
    """One closed outline per run of known values."""
    paths, run = [], list[str]()
    whole = borders[-1] - borders[0]
    for place, value in enumerate((*values, None)):
        if value is None:
            if run:
                paths.append(f"{''.join(run)}V{plane.bottom:.1f}Z")
            run = []
            continue
        x, end, y = (
            plane.x((borders[place] - borders[0]) / whole),
            plane.x((borders[place + 1] - borders[0]) / whole),
            plane.y(value),
        )
        run += [f"V{y:.1f}H{end:.1f}"] if run else [f"M{x:.1f} {plane.bottom:.1f}V{y:.1f}H{end:.1f}"]
    return paths


def _lines(chart: Lines, theme: Theme, width: float, height: float) -> list[str]:
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    labels = [f"{tick * 100:g} %" for tick in ticks]
    plane = _plane(theme, width, height, ticks, labels)
    parts = _frame(plane, theme, chart.unit, ticks, labels, chart.series)
    whole = chart.borders[-1] - chart.borders[0]
    for series in chart.series:
        colour = theme.paints[series.paint]
        # The lighter line is also the dashed one: a grey print keeps them apart.
        dash = ";stroke-dasharray:5 2.5" if series.paint is Paint.HELD else ""
        for run in _runs(series.values):
            points = [
                (
                    plane.x(((chart.borders[place] + chart.borders[place + 1]) / 2 - chart.borders[0]) / whole),
                    plane.y(min(1.0, series.values[place] or 0.0)),
                )
                for place in run
            ]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            parts.append(
                f'<path d="{path}" style="fill:none;stroke:{colour};stroke-width:2;stroke-linejoin:round{dash}"/>'
            )
            if len(series.values) <= 31:
                parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" style="fill:{colour}"/>' for x, y in points]
    return [*parts, *_time_labels(plane, theme, chart.borders, height)]


def _runs(values: Sequence[float | None]) -> list[list[int]]:
    """Positions of consecutive known values."""
    runs: list[list[int]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(place)
    return [run for run in runs if run]


def _bars(chart: Bars, theme: Theme, width: float, height: float) -> list[str]:
    count = len(chart.borders) - 1
    sums = [sum(series.values[place] or 0.0 for series in chart.series) for place in range(count)]
    ticks = _whole_ticks(max(sums, default=0.0))
    labels = [amount_label(tick) for tick in ticks]
    plane = _plane(theme, width, height, ticks, labels)
    parts = _frame(plane, theme, chart.unit, ticks, labels, chart.series)
    whole = chart.borders[-1] - chart.borders[0]
    for place in range(count):
        x = plane.x((chart.borders[place] - chart.borders[0]) / whole)
        room = plane.x((chart.borders[place + 1] - chart.borders[0]) / whole) - x
        gap, base = room * 0.14, 0.0
        for series in chart.series:
            value = series.values[place] or 0.0
            if value:
                parts.append(_rect(x + gap, plane.y(base + value), room - 2 * gap, plane.y(base), theme, series.paint))
            base += value
    return [*parts, *_time_labels(plane, theme, chart.borders, height)]


def _histogram(chart: Histogram, theme: Theme, width: float, height: float) -> list[str]:
    ticks = _whole_ticks(max(chart.counts, default=0))
    labels = [amount_label(tick) for tick in ticks]
    plane = _plane(theme, width, height, ticks, labels)
    parts = _frame(plane, theme, chart.unit, ticks, labels, ())
    room = (plane.right - plane.left) / len(chart.counts)
    for place, count in enumerate(chart.counts):
        x, text = plane.left + place * room, f"{count:,}"
        if count:
            parts.append(_rect(x + 1.5, plane.y(count), room - 3, plane.bottom, theme, Paint.HELD))
        if text_width(text) <= room:
            parts.append(_text(x + room / 2, plane.y(count) - 4, text, theme, anchor="middle"))
    widest = max(text_width(label) for label in chart.borders)
    stride = max(1, math.ceil((widest + LABEL_GAP / 2) / room))
    for place in range(0, len(chart.borders), stride):
        half = text_width(chart.borders[place]) / 2
        x = min(plane.left + place * room, plane.right + _RIGHT - half)
        parts.append(_text(x, height - 8, chart.borders[place], theme, anchor="middle"))
    if chart.axis:
        parts.append(_text(plane.right, 12, chart.axis, theme, anchor="end"))
    return parts


def _whole_ticks(most: float) -> list[float]:
    """Ticks of counts: whole numbers only."""
    return [float(tick) for tick in range(math.ceil(most) + 1)] if 1 <= most <= 4 else nice_ticks(most)


# ---------------------------------------------------------------- elements


def _text(x: float, y: float, text: str, theme: Theme, *, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} style="fill:{theme.ink}">{escape(text, quote=False)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, thickness: float) -> str:
    style = f"stroke:{colour};stroke-width:{thickness:g}"
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="{style}"/>'


def _rect(x: float, top: float, width: float, bottom: float, theme: Theme, paint: Paint) -> str:
    # Never thinner than a hairline: one failure among a thousand must be visible.
    height = max(0.8, bottom - top)
    return (
        f'<rect x="{x:.1f}" y="{bottom - height:.1f}" width="{max(0.5, width):.1f}" height="{height:.1f}" '
        f'style="fill:{theme.paints[paint]}"/>'
    )
