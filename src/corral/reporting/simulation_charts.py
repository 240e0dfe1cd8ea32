"""Charts of simulated runs as SVG: utilisation over time, waiting times, and the jobs of each GPU (Gantt).

Traces begin at any time, so the axis counts from the first arrival. Runs are distinguished by colour and by dashes, so
that a grey print can be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from corral.reporting.charts import FONT_SIZE, LABEL_GAP, PRINT, amount_label, nice_ticks, text_width

WIDTH, HEIGHT = 900.0, 320.0
_TOP, _BOTTOM, _RIGHT = 34.0, 40.0, 20.0
#: dark to light, and the dashes of each
_STROKES = (
    ("#1f4e79", ""),
    ("#a3261b", "6 3"),
    ("#4a8a3f", "2 2"),
    ("#7aaad8", "9 3 2 3"),
    ("#8a5a9e", "4 1"),
    ("#6b7f93", "1 3"),
)
#: neighbours in a Gantt chart should differ
_FILLS = ("#1f4e79", "#7aaad8", "#6b7f93", "#a9cce3", "#4a8a3f", "#c9a24b", "#a3261b", "#8a5a9e")
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
#: round waiting times, up to a century
_MARKS = (
    1.0,
    10.0,
    60.0,
    600.0,
    3600.0,
    6 * 3600.0,
    86400.0,
    10 * 86400.0,
    100 * 86400.0,
    1e3 * 86400.0,
    36525 * 86400.0,
)
_ROW, _ROW_GAP = 11.0, 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A job on one GPU, with its begin and end."""

    gpu: str
    job: str
    user: str
    since: float
    until: float


def draw_utilization(curves: Sequence[Curve], gpus: int) -> str:
    """GPUs in use, as means within steps."""
    last = max((curve.points[-1][0] for curve in curves if curve.points), default=0.0)
    unit, name = _unit(last)
    across = nice_ticks(last / unit, 8)
    up = nice_ticks(float(max(1, gpus)))
    frame = _Frame(across=across, up=up, up_labels=[amount_label(tick) for tick in up])
    parts = frame.grid(
        f"GPUs in use, of {gpus:,}", f"{name} since the first arrival", [amount_label(t) for t in across]
    )
    for number, curve in enumerate(curves):
        parts.append(_path(frame, [(at / unit, used) for at, used in curve.points], number))
    parts += frame.legend([curve.name for curve in curves])
    return _svg("GPUs in use over time", parts, WIDTH, HEIGHT)


def draw_waiting(curves: Sequence[Curve]) -> str:
    """The part of the jobs that waited no longer than a time; the axis is logarithmic from a second on."""
    longest = max((curve.points[-1][0] for curve in curves if curve.points), default=1.0)
    marks = [
        *(mark for mark in _MARKS[1:-1] if mark < longest),
        min(m for m in _MARKS[1:] if m >= longest or m == _MARKS[-1]),
    ]
    across = [0.0, *(math.log10(mark) for mark in marks)]
    up = [0.0, 0.25, 0.5, 0.75, 1.0]
    frame = _Frame(across=across, up=up, up_labels=[f"{tick * 100:g} %" for tick in up])
    labels = [_seconds_label(mark) for mark in (1.0, *marks)]
    parts = frame.grid("jobs that waited for no longer", "waiting time (1s: at most a second)", labels)
    for number, curve in enumerate(curves):
        parts.append(_path(frame, _logarithmic(curve.points, across[-1]), number))
    parts += frame.legend([curve.name for curve in curves])
    return _svg("Waiting times", parts, WIDTH, HEIGHT)


def draw_gantt(bars: Sequence[Bar], title: str) -> str:
    """A row for every GPU that was used; jobs of one user have one colour."""
    gpus = sorted({bar.gpu for bar in bars}, key=_natural)
    users = {user: number for number, user in enumerate(sorted({bar.user for bar in bars}, key=_natural))}
    rows = {gpu: number for number, gpu in enumerate(gpus)}
    begin = min((bar.since for bar in bars), default=0.0)
    unit, name = _unit(max((bar.until for bar in bars), default=begin) - begin)
    across = nice_ticks((max((bar.until for bar in bars), default=begin) - begin) / unit, 8)
    height = _TOP + len(gpus) * (_ROW + _ROW_GAP) + _BOTTOM
    frame = _Frame(across=across, up=[0.0, 1.0], up_labels=gpus or [""], height=height)
    parts = [_text(0, 14, title)]
    for gpu, row in rows.items():
        parts.append(_text(frame.left - 6, _TOP + row * (_ROW + _ROW_GAP) + _ROW - 1.5, gpu, anchor="end"))
    after = f"{_seconds_label(begin)} after " if begin else ""
    parts += frame.across_labels(f"{name} since {after}the first arrival", across)
    for bar in bars:
        x, end = frame.x((bar.since - begin) / unit), frame.x((bar.until - begin) / unit)
        y = _TOP + rows[bar.gpu] * (_ROW + _ROW_GAP)
        # Jobs of one user differ a little in opacity, so that consecutive jobs can be distinguished.
        opacity = 1.0 if _number_in(bar.job) % 2 else 0.72
        style = f"fill:{_FILLS[users[bar.user] % len(_FILLS)]};fill-opacity:{opacity:g}"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.4, end - x):.1f}" height="{_ROW:g}" style="{style}">'
            f"<title>{escape(f'{bar.job} of {bar.user}', quote=False)}</title></rect>"
        )
    return _svg(title, parts, WIDTH, height)


# ---------------------------------------------------------------- the frame


@dataclass(frozen=True, kw_only=True, slots=True)
class _Frame:
    across: Sequence[float]
    up: Sequence[float]
    up_labels: Sequence[str]
    height: float = HEIGHT

    @property
    def left(self) -> float:
        return max(text_width(label) for label in self.up_labels) + 10

    def x(self, value: float) -> float:
        return self.left + value / self.across[-1] * (WIDTH - _RIGHT - self.left)

    def y(self, value: float) -> float:
        bottom = self.height - _BOTTOM
        return bottom - value / self.up[-1] * (bottom - _TOP)

    def grid(self, title: str, axis: str, across_labels: Sequence[str]) -> list[str]:
        parts = [_text(0, 14, title)]
        for tick, label in zip(self.up, self.up_labels, strict=True):
            parts.append(_line(self.left, self.y(tick), WIDTH - _RIGHT, self.y(tick)))
            parts.append(_text(self.left - 6, self.y(tick) + 3.6, label, anchor="end"))
        return [*parts, *self._labels(axis, across_labels)]

    def across_labels(self, axis: str, ticks: Sequence[float]) -> list[str]:
        return self._labels(axis, [amount_label(tick) for tick in ticks])

    def legend(self, names: Sequence[str]) -> list[str]:
        """Draws the legend at the right above the plot; a single run needs none."""
        if len(names) < 2:
            return []
        x = WIDTH - _RIGHT - sum(28 + text_width(name) + 14 for name in names)
        parts = []
        for number, name in enumerate(names):
            colour, dash = _STROKES[number % len(_STROKES)]
            style = f"stroke:{colour};stroke-width:2;stroke-dasharray:{dash or 'none'}"
            parts.append(f'<line x1="{x:.1f}" y1="10" x2="{x + 22:.1f}" y2="10" style="{style}"/>')
            parts.append(_text(x + 28, 14, name))
            x += 28 + text_width(name) + 14
        return parts

    def _labels(self, axis: str, labels: Sequence[str]) -> list[str]:
        bottom, parts, free_from = self.height - _BOTTOM, list[str](), 0.0
        for tick, label in zip(self.across, labels, strict=True):
            x, half = self.x(tick), text_width(label) / 2
            parts.append(_line(x, _TOP, x, bottom))
            if x - half >= free_from:
                parts.append(_text(x, bottom + 15, label, anchor="middle"))
                free_from = x + half + LABEL_GAP / 2
        parts.append(_text(WIDTH - _RIGHT, bottom + 31, axis, anchor="end"))
        return parts


def _path(frame: _Frame, points: Iterable[tuple[float, float]], number: int) -> str:
    colour, dash = _STROKES[number % len(_STROKES)]
    steps = [f"H{frame.x(x):.1f}V{frame.y(y):.1f}" for x, y in points]
    style = f"fill:none;stroke:{colour};stroke-width:1.6;stroke-dasharray:{dash or 'none'};stroke-linejoin:round"
    return f'<path d="M{frame.x(0):.1f} {frame.y(0):.1f}{"".join(steps)}" style="{style}"/>'


def _logarithmic(points: Sequence[tuple[float, float]], last: float) -> list[tuple[float, float]]:
    """Waiting times below a second are at the left edge; at the end the line continues to the right edge."""
    placed = [(max(0.0, math.log10(value)) if value > 0 else 0.0, part) for value, part in points]
    return [*placed, (last, placed[-1][1])] if placed else []


def _unit(seconds: float) -> tuple[float, str]:
    """The largest unit that is not longer than the span."""
    return next(((length, name) for length, name in _UNITS if seconds >= length), _UNITS[-1])


def _seconds_label(seconds: float) -> str:
    length, name = _unit(seconds)
    return f"{seconds / length:.3g}{name[0]}"


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """n2 before n10."""
    words, word = list[str](), ""
    for char in name:
        if word and char.isdecimal() != word[-1].isdecimal():
            words.append(word)
            word = ""
        word += char
    words.append(word)
    return tuple((0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words)


def _number_in(job: str) -> int:
    digits = job.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} style="fill:{PRINT.ink}">{escape(text, quote=False)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    style = f"stroke:{PRINT.grid};stroke-width:1"
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="{style}"/>'


def _svg(summary: str, parts: Sequence[str], width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(summary)}" font-family="sans-serif" font-size="{FONT_SIZE:g}">'
        f'<title>{escape(summary, quote=False)}</title><rect width="100%" height="100%" style="fill:#ffffff"/>'
        f"{''.join(parts)}</svg>\n"
    )
