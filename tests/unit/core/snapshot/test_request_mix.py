"""The mix: what it counts, when it is renewed, and that it stays small."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Request
from corral.core.snapshot.changes import PutMix
from corral.core.snapshot.codec import dumps, from_plain
from corral.core.snapshot.journal import Digest, decode_changes, encode_changes
from corral.core.snapshot.request_mix import MOST_KINDS, WINDOW, Mix, MixCounter, Portion, mix_of
from tests.unit.core.builders import snapshot_of
from tests.unit.core.strategies import requests


def test_instances_of_a_gang_count_one_by_one_and_without_their_labels() -> None:
    counter = MixCounter()
    mix = counter.count(Request(nodes=3, gpus=4, labels=(("rack", "a"),)))
    assert mix == Mix(portions=(Portion(request=Request(gpus=4), count=3),))


def test_work_without_gpus_is_no_part_of_it() -> None:
    assert MixCounter().count(Request(cpu_milli=4000)) is None


def test_mix_is_renewed_when_half_as_much_was_added() -> None:
    counter = MixCounter(mix_of([(Request(gpus=1), 100)]))
    reported = [counter.count(Request(gpus=2)) for _ in range(50)]
    assert reported[:49] == [None] * 49
    assert reported[49] == mix_of([(Request(gpus=1), 100), (Request(gpus=2), 50)])


def test_the_past_fades() -> None:
    counter = MixCounter()
    for _ in range(2 * WINDOW):
        counter.count(Request(gpus=1))
    for _ in range(4 * WINDOW):
        counter.count(Request(gpus=8))
    shares = {portion.request.gpus: portion.count / counter.mix.total for portion in counter.mix.portions}
    assert shares[8] > 0.9
    assert counter.mix.total < 2 * WINDOW


def test_ends_are_counted_by_instance_and_fade_with_the_rest() -> None:
    counter = MixCounter()
    counter.count(Request(gpus=1))
    assert counter.mix.ended_part == 0
    counter.count_ended(Request(gpus=4, nodes=3))
    counter.count_ended(Request(cpu_milli=4000))
    for _ in range(5):
        counter.count(Request(gpus=1))
    assert counter.mix.ended == 3
    assert counter.mix.ended_part == 3 / counter.mix.total
    for _ in range(4 * WINDOW):
        counter.count(Request(gpus=1))
        counter.count_ended(Request(gpus=1))
    assert 0.9 < counter.mix.ended_part <= 1.0
    assert counter.mix.ended < 2 * WINDOW


def test_a_mix_of_an_earlier_version_has_no_ends() -> None:
    assert from_plain(Mix, {"portions": []}) == Mix(ended=0)


def test_mix_stays_bounded_for_any_requests() -> None:
    counter = MixCounter()
    for number in range(5 * WINDOW):
        counter.count(Request(gpus=1, cpu_milli=number))
    assert len(counter.mix.portions) <= MOST_KINDS
    assert len(dumps(counter.mix)) < 20_000


@given(st.lists(requests(), max_size=60))
def test_equal_counts_are_equal_mixes_and_can_be_written_down(asked: list[Request]) -> None:
    first, second = MixCounter(), MixCounter()
    for request in asked:
        first.count(request)
        second.count(request)
    assert first.mix == second.mix
    assert from_plain(Mix, json.loads(dumps(first.mix))) == first.mix
    assert mix_of((portion.request, portion.count) for portion in reversed(first.mix.portions)) == first.mix


def test_mix_is_content_of_the_snapshot() -> None:
    put = PutMix(pool="default", mix=mix_of([(Request(gpus=2, models=("A10",)), 7)], ended=3))
    snapshot = snapshot_of(put)
    assert put in list(snapshot.contents())
    assert decode_changes(encode_changes([put])) == [put]
    with_it, without = Digest(), Digest()
    with_it.add([put])
    assert with_it.hex() != without.hex()
    gone = PutMix(pool="default", mix=Mix())
    with_it.add([gone])
    snapshot.apply([gone])
    assert with_it.hex() == without.hex()
    assert not snapshot.mixes
