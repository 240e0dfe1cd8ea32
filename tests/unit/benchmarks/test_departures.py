"""The plain placement rules of the benchmark with departures, against cases computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from benchmarks.departures import FILLING, HOUR, Fgd, Live, Plain, PlainNode, Pod, best_fit, first_fit, run

from corral.core.model import Gpu, Node, Request

SHARE, TWO, FOUR = Request(gpu_milli=600), Request(gpus=2), Request(gpus=4)


def machine(name: str, gpus: int) -> Node:
    cards = tuple(Gpu(id=f"{name}/{index}", index=index, model="A") for index in range(gpus))
    return Node(id=name, cpu_milli=64_000, memory_bytes=2**36, gpus=cards)


def test_fragments_are_what_the_mix_cannot_use() -> None:
    """Half of the pods take 0.6 of a GPU, half take two GPUs."""
    rule = Fgd([SHARE, TWO])
    # 0.5 is too small for the share; two whole GPUs serve the other half, which cannot use the 0.5.
    assert rule.fragments("A", [500, 1000, 1000], 64_000, 2**36) == pytest.approx(0.5 * 500 + 0.5 * 500)
    # One whole GPU: too few for the pod of two, so that all of it is lost to that half.
    assert rule.fragments("A", [1000], 64_000, 2**36) == pytest.approx(0.5 * 1000)
    assert rule.fragments("A", [], 64_000, 2**36) == 0.0


def test_fgd_keeps_two_gpus_together() -> None:
    """A share on the node with one GPU costs 0 for pods of two GPUs, on the other node two GPUs."""
    small, large = PlainNode(machine("b", 1)), PlainNode(machine("a", 2))
    rule = Fgd([SHARE, TWO])
    assert rule(small, SHARE, (0,)) < rule(large, SHARE, (0,))


@pytest.mark.parametrize(("rule", "is_placed"), [(first_fit, False), (best_fit, True), (Fgd([SHARE, FOUR]), True)])
def test_only_first_fit_breaks_the_large_node(rule: object, is_placed: bool) -> None:
    placement = Plain([machine("a", 4), machine("b", 1)], rule)  # type: ignore[arg-type]
    assert placement.place(Request(gpus=1)) is not None
    assert (placement.place(FOUR) is not None) is is_placed


def test_a_gang_needs_another_node_for_each_instance_or_takes_none() -> None:
    placement = Plain([machine("a", 4), machine("b", 2)], first_fit)
    assert placement.place(Request(gpus=3, nodes=2)) is None
    release = placement.place(Request(gpus=2, nodes=2))
    assert release is not None
    assert placement.place(Request(gpus=3)) is None
    release()
    assert placement.place(FOUR) is not None


def pods(*rows: tuple[float, Request, float]) -> Sequence[Pod]:
    return [Pod(FILLING + hours * HOUR, request, length * HOUR) for hours, request, length in rows]


@pytest.mark.parametrize("rule", ["plain", "live"])
def test_idle_gpu_hours_of_a_week(rule: str) -> None:
    """Four GPUs: two for 10 h, then four are refused at 5 h and placed at 20 h, beyond the end of two that leave."""
    nodes = [machine("a", 4)]
    placement = Plain(nodes, first_fit) if rule == "plain" else Live(nodes, "fragmentation")
    week = run(nodes, pods((0, TWO, 10), (5, FOUR, 1), (20, FOUR, 1000)), placement)
    assert week.gpu_hours == 4 * 168
    assert week.idle_gpu_hours == pytest.approx(4 * 168 - 2 * 10 - 4 * (168 - 20))
    assert week.placed["2 to 4"] == pytest.approx((20 + 4000) / (20 + 4 + 4000))
