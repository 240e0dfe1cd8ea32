"""Server-sent events arrive whole, however the network cuts them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.client.http.sse import ServerEvent, parse

STREAM = (
    ": ping\n\n"
    'id: 7\nevent: log\ndata: {"text": "a\\n"}\n\n'
    "data: two\ndata: lines\n\n"
    "retry: 100\n"
    "event: end\ndata:done\n\n"
    "event: log\ndata: cut off"
)
EVENTS = [
    ServerEvent(id="7", event="log", data='{"text": "a\\n"}'),
    ServerEvent(id="7", event="message", data="two\nlines"),
    ServerEvent(id="7", event="end", data="done"),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_line_end_of_the_standard_is_understood(line_end: str) -> None:
    assert list(parse([STREAM.replace("\n", line_end)])) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_where_the_stream_is_cut_does_not_matter(cuts: list[int], line_end: str) -> None:
    text = STREAM.replace("\n", line_end)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in itertools.pairwise(places)]
    assert list(parse(chunks)) == EVENTS


def test_a_form_feed_and_a_line_separator_are_part_of_the_data() -> None:
    assert [event.data for event in parse(["data: a\x0cb\u2028c\x85d\n\n"])] == ["a\x0cb\u2028c\x85d"]


def test_an_event_without_data_is_none_and_its_name_is_forgotten() -> None:
    assert list(parse(["event: log\n\ndata: x\n\n"])) == [ServerEvent(event="message", data="x")]
