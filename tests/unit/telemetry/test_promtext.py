"""Prometheus' text format, against the official parser as the judge."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from corral.telemetry.promtext import BadLine, Family, Sample, number, parse, parse_line, render

LETTERS = f"{string.ascii_letters}_"
metric_names = st.builds(
    str.__add__, st.sampled_from(LETTERS + ":"), st.text(f"{LETTERS}{string.digits}:", max_size=12)
)
label_names = st.builds(str.__add__, st.sampled_from(LETTERS), st.text(LETTERS + string.digits, max_size=8))
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=12)
values = st.floats(allow_nan=True, allow_infinity=True)
samples = st.tuples(st.dictionaries(label_names, texts, max_size=4), values)


def theirs(text: str) -> list[Sample]:
    return [
        Sample(sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def same(ours: list[Sample], others: list[Sample]) -> bool:
    def key(sample: Sample) -> tuple[object, ...]:
        value = "NaN" if math.isnan(sample.value) else sample.value
        return sample.name, sorted(sample.labels.items()), value

    return [key(sample) for sample in ours] == [key(sample) for sample in others]


@given(metric_names, st.lists(samples, min_size=1, max_size=5))
def test_printed_metrics_are_read_the_same_by_both_parsers(
    name: str, found: list[tuple[dict[str, str], float]]
) -> None:
    text = render([Family(name, "untyped", "Some \\ help\nin two lines.", found)])
    ours, bad = parse(text)
    assert bad == 0
    assert same(ours, [Sample(name, labels, value) for labels, value in found])
    assert same(ours, theirs(text))


@pytest.mark.parametrize(
    "line",
    [
        "a 1",
        "a{} 1",
        'a{b="c"} 1',
        'a{b="c",} 1',
        'a { b = "c" , d = "e" } 1',
        'a{b="}"} 1',
        'a{b="x, y=\\"z\\""} 1',
        'a{b="back\\\\slash\\nline"} 1',
        'a{b=""} +Inf',
        "a -Inf",
        "a NaN",
        "a 1.5e-07 1700000000000",
        "a\t1",
        "  a 1  ",
        'DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52",container="",pod=""} 139',
    ],
)
def test_every_spelling_is_read_as_the_official_parser_reads_it(line: str) -> None:
    ours, bad = parse(line + "\n")
    assert bad == 0
    assert same(ours, theirs(line + "\n"))


@pytest.mark.parametrize(
    "line", ["a", "a{", 'a{b="c" 1', 'a{b="c} 1', "a{b=c} 1", 'a{b="c"} one', 'a{="c"} 1', "1a 1", "<html>", "a 1_0"]
)
def test_invalid_lines_are_left_out_and_counted(line: str) -> None:
    with pytest.raises(BadLine):
        parse_line(line)
    assert parse(f"good 1\n{line}\ngood 2\n") == ([Sample("good", {}, 1.0), Sample("good", {}, 2.0)], 1)


@given(st.text(max_size=200))
def test_no_text_does_harm(text: str) -> None:
    found, bad = parse(text)
    assert len(found) + bad <= text.count("\n") + 1


def test_only_wanted_names_are_read() -> None:
    text = '# HELP a x\na{b="c"} 1\nab{b="c"} 2\na 3\nc 4\n broken\n'
    assert [sample.value for sample in parse(text, {"a"})[0]] == [1.0, 3.0]


def test_numbers_are_printed_as_dcgm_prints_them_and_nothing_is_lost() -> None:
    assert [number(value) for value in (0.0, 81559.0, 0.5, 1e25, math.inf, -math.inf, math.nan)] == [
        "0", "81559", "0.5", "1e+25", "+Inf", "-Inf", "NaN",
    ]  # fmt: skip
