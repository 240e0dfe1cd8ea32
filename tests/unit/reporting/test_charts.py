"""Charts: readable for all numbers."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.reporting.charts import (
    FONT_SIZE,
    HEIGHT,
    PAGE,
    PRINT,
    WIDTH,
    Bars,
    Chart,
    Histogram,
    Lines,
    Paint,
    Series,
    Theme,
    Trend,
    draw,
    nice_ticks,
    text_width,
)

DAY = 86400.0
SVG = "{http://www.w3.org/2000/svg}"
AMOUNTS = st.one_of(st.none(), st.just(0.0), st.floats(0, 1e9, allow_subnormal=False))


def boxes(svg: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """The place of each text: left, top, right, bottom."""
    found = []
    for text in svg.iter(f"{SVG}text"):
        x, y, width = float(text.attrib["x"]), float(text.attrib["y"]), text_width(text.text or "")
        left = {"start": x, "middle": x - width / 2, "end": x - width}[text.attrib["text-anchor"]]
        found.append((left, y - 0.75 * FONT_SIZE, left + width, y + 0.2 * FONT_SIZE))
    return found


def check(chart: Chart, theme: Theme) -> ElementTree.Element:
    drawn = draw(chart, theme)
    svg = ElementTree.fromstring(drawn)
    assert not re.search(r"\b(nan|inf|None)\b", drawn)
    for element in svg.iter():
        for name in ("x", "y", "width", "height", "x1", "x2", "y1", "y2", "cx", "cy"):
            value = float(element.attrib.get(name, 0))
            assert -1 <= value <= WIDTH + 1, (element.tag, name, value)
        for value in re.findall(r"-?\d+(?:\.\d+)?", element.attrib.get("d", "")):
            assert -1 <= float(value) <= WIDTH + 1
    for one, other in itertools.combinations(boxes(svg), 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, f"two texts touch: {one} {other}"
    for left, top, right, bottom in boxes(svg):
        assert left >= -1, "a text is cut"
        assert right <= WIDTH + 1, "a text is cut"
        assert top >= 0
        assert bottom <= HEIGHT
    return svg


@st.composite
def charts(draw_: st.DrawFn) -> Chart:
    count = draw_(st.integers(1, 75))
    step = draw_(st.sampled_from([3600.0, DAY, 7 * DAY]))
    since = draw_(st.integers(0, 100_000)) * 3600.0 + draw_(st.sampled_from([0.0, 1234.5]))
    borders = tuple(since + number * step for number in range(count + 1))
    if draw_(st.booleans()):
        # the first step may be cut
        borders = (borders[1] - step / 7, *borders[1:])

    def series(name: str, paint: Paint, values: st.SearchStrategy[float | None]) -> Series:
        found = tuple(draw_(st.lists(values, min_size=count, max_size=count)))
        return Series(name=name, paint=paint, values=found)

    kind = draw_(st.sampled_from(["trend", "lines", "bars", "histogram"]))
    if kind == "trend":
        parts = tuple(series(paint, paint, AMOUNTS) for paint in (Paint.AVAILABLE, Paint.HELD, Paint.BUSY))
        return Trend(summary="s", unit="GPU-hours per day", borders=borders, series=parts)
    if kind == "lines":
        shares = st.one_of(st.none(), st.floats(0, 1.5))
        parts = (series("allocation", Paint.HELD, shares), series("use of held GPUs", Paint.BUSY, shares))
        return Lines(summary="s", unit="percent", borders=borders, series=parts)
    if kind == "bars":
        counts = st.integers(0, 10**6).map(float)
        parts = tuple(series(paint, paint, counts) for paint in (Paint.GOOD, Paint.PLAIN, Paint.BAD))
        return Bars(summary="s", unit="jobs per day", borders=borders, series=parts)
    labels = tuple(f"{number * 10} %" for number in range(11))
    counts_of = tuple(draw_(st.lists(st.integers(0, 10**7), min_size=10, max_size=10)))
    return Histogram(summary="s", unit="attempts", borders=labels, counts=counts_of, axis="mean use")


@settings(max_examples=150)
@given(chart=charts(), theme=st.sampled_from([PRINT, PAGE]))
def test_every_chart_is_valid_within_its_frame_and_without_texts_that_touch(chart: Chart, theme: Theme) -> None:
    check(chart, theme)


def test_an_empty_chart_has_its_axes() -> None:
    borders = tuple(number * DAY for number in range(8))
    empty = Trend(
        summary="s", unit="u", borders=borders, series=(Series(name="held", paint=Paint.HELD, values=(None,) * 7),)
    )
    texts = [text.text for text in check(empty, PRINT).iter(f"{SVG}text")]
    assert texts[:3] == ["0", "1", "u"]
    assert "1 Jan" in texts


def test_unknown_values_are_gaps_and_not_zeros() -> None:
    borders = tuple(number * DAY for number in range(6))
    values = (1.0, 2.0, None, 3.0, 4.0)
    trend = Trend(
        summary="s", unit="u", borders=borders, series=(Series(name="held", paint=Paint.HELD, values=values),)
    )
    assert len(list(check(trend, PRINT).iter(f"{SVG}path"))) == 2
    lines = Lines(
        summary="s",
        unit="u",
        borders=borders,
        series=(Series(name="held", paint=Paint.HELD, values=(0.1, None, 0.2, None, None)),),
    )
    svg = check(lines, PRINT)
    assert len(list(svg.iter(f"{SVG}circle"))) == 2


def test_single_failure_among_a_million_is_visible() -> None:
    bars = Bars(
        summary="s",
        unit="u",
        borders=(0.0, DAY),
        series=(
            Series(name="completed", paint=Paint.GOOD, values=(1e6,)),
            Series(name="failed", paint=Paint.BAD, values=(1.0,)),
        ),
    )
    heights = [float(rect.attrib["height"]) for rect in check(bars, PRINT).iter(f"{SVG}rect")]
    assert min(heights) >= 0.8


def test_texts_are_escaped() -> None:
    hostile = '<script>alert("1")</script> & \' "'
    chart = Histogram(summary=hostile, unit=hostile, borders=("0",), counts=(1,))
    svg = ElementTree.fromstring(draw(chart, PRINT))
    assert svg.attrib["aria-label"] == hostile
    assert svg.find(f"{SVG}title") is not None
    assert svg.find(f".//{SVG}script") is None


def test_the_colours_of_one_chart_differ_in_a_grey_print() -> None:
    def lightness(paint: Paint) -> float:
        red, green, blue = (int(PRINT.paints[paint][at : at + 2], 16) for at in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for together in ((Paint.AVAILABLE, Paint.HELD, Paint.BUSY), (Paint.GOOD, Paint.PLAIN, Paint.BAD)):
        shades = sorted(lightness(paint) for paint in together)
        assert all(darker + 40 < lighter for darker, lighter in itertools.pairwise(shades)), together


@given(most=st.floats(1e-6, 1e12))
def test_ticks_are_round_and_reach_beyond_the_largest(most: float) -> None:
    ticks = nice_ticks(most)
    assert ticks[0] == 0
    assert ticks[-1] >= most * 0.999
    assert 2 <= len(ticks) <= 8
    step = ticks[1]
    first_digits = step / 10 ** math.floor(math.log10(step))
    assert any(first_digits == pytest.approx(round_one, rel=1e-6) for round_one in (1, 2, 2.5, 5, 10))
