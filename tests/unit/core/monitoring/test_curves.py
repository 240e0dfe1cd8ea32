"""Lines and event files that programs write, read as curves."""

from __future__ import annotations

import contextlib
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.monitoring.curves import CurvePoint, parse_line, thinned
from corral.core.monitoring.tensorboard import Malformed, scalars
from tests.servers.event_files import event, tensor_event


def test_a_line_has_one_number_for_each_name() -> None:
    line = b'{"step":3,"at":10.5,"attempt":1,"values":{"loss":0.5,"lr":null}}'
    found = list(parse_line(line))
    assert [(one.name, one.point) for one in found] == [
        ("loss", CurvePoint(3, 10.5, 0.5)),
        ("lr", CurvePoint(3, 10.5, None)),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"plain text",
        b"[1]",
        b'{"step":-1,"at":1,"values":{"a":1}}',
        b'{"step":1.5,"at":1,"values":{"a":1}}',
        b'{"step":1,"at":"now","values":{"a":1}}',
        b'{"step":1,"at":1,"values":[1]}',
        b'{"step":1,"at":1,"values":{"a":"high","":1,"b":true}}',
        b"[" * 100_000,
    ],
)
def test_other_lines_have_none(line: bytes) -> None:
    assert list(parse_line(line)) == []


def test_a_time_that_no_calendar_has_is_dropped() -> None:
    (found,) = parse_line(b'{"step":1,"at":1e200,"values":{"a":1}}')
    assert found.point.at == 0.0


def test_scalars_of_both_kinds_are_read() -> None:
    (simple,) = scalars(event(7, 12.0, "train/loss", 0.25))
    assert (simple.name, simple.point) == ("train/loss", CurvePoint(7, 12.0, 0.25))
    (tensor,) = scalars(tensor_event(8, 13.0, "lr", 0.5))
    assert (tensor.name, tensor.point) == ("lr", CurvePoint(8, 13.0, 0.5))
    (nothing,) = scalars(event(9, 14.0, "loss", math.nan))
    assert nothing.point.value is None


def test_records_without_scalars_have_none() -> None:
    version = b"\x1a\x0dbrain.Event:2"
    assert list(scalars(struct.pack("<Bd", 9, 1.0) + version)) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(record: bytes) -> None:
    with contextlib.suppress(Malformed):
        list(scalars(record))


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=400), st.integers(4, 100))
def test_thinning_keeps_ends_and_extremes_in_order(values: list[float], most: int) -> None:
    points = [CurvePoint(step, 0.0, value) for step, value in enumerate(values)]
    kept = thinned(points, most)
    assert len(kept) <= most
    assert [point.step for point in kept] == sorted({point.step for point in kept})
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert max(point.value or 0 for point in kept) == max(point.value or 0 for point in points)
