"""Links within a node, racks for gangs, and slices: what is taken together is close together, and no job is refused for
it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.core.fleet.gpu_links import free_in_groups, linked, linked_to
from corral.core.model import DEFAULT_POOL, WHOLE, Allocation, Gpu, Grant, Job, Node, Request, is_slice
from corral.core.scheduling.placement.search import find_place
from corral.core.snapshot.node_index import Fleet
from tests.unit.core.strategies import PLACEMENTS
from tests.unit.searching import between, pick

groups_of_gpus = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), min_size=1, max_size=8)


def named(groups: list[str]) -> tuple[list[str], dict[str, str]]:
    gpus = [f"g{index}" for index in range(len(groups))]
    return gpus, {gpu: group for gpu, group in zip(gpus, groups, strict=True) if group}


def count_groups(gpus: tuple[str, ...], links: dict[str, str]) -> int:
    return len({links.get(gpu, gpu) for gpu in gpus})


@settings(max_examples=200)
@given(groups=groups_of_gpus, data=st.data())
def test_no_choice_of_gpus_takes_fewer_groups(groups: list[str], data: st.DataObject) -> None:
    free, links = named(groups)
    count = data.draw(between(0, len(free)))
    chosen = linked(free, links, count)
    assert len(chosen) == count
    assert [*chosen] == [gpu for gpu in free if gpu in chosen], "in the order of their index"
    if links:
        assert count_groups(chosen, links) == min(count_groups(some, links) for some in combinations(free, count))
    else:
        assert [*chosen] == free[:count]


@settings(max_examples=150)
@given(groups=groups_of_gpus, data=st.data())
def test_fullest_group_that_holds_a_job_is_chosen(groups: list[str], data: st.DataObject) -> None:
    free, links = named(groups)
    count = data.draw(between(1, len(free)))
    sizes = Counter(links.get(gpu, gpu) for gpu in free)
    holding = [size for size in sizes.values() if size >= count]
    chosen = linked(free, links, count)
    if links and holding:
        assert {sizes[links.get(gpu, gpu)] for gpu in chosen} == {min(holding)}


@settings(max_examples=150)
@given(groups=groups_of_gpus, data=st.data())
def test_a_growing_job_prefers_linked_gpus(groups: list[str], data: st.DataObject) -> None:
    gpus, links = named(groups)
    held = data.draw(st.lists(st.sampled_from(gpus), unique=True))
    idle = [gpu for gpu in gpus if gpu not in held]
    count = data.draw(between(-1, len(gpus)))
    more = linked_to(held, idle, links, count)
    assert len(more) == len({*more}) == min(max(0, count), len(idle))
    assert {*more} <= {*idle}
    own = {links[gpu] for gpu in held if gpu in links}
    near = {gpu for gpu in idle if links.get(gpu) in own}
    assert len({*more} & near) == min(len(near), len(more))


def test_free_gpus_of_groups_are_counted_only_where_links_are_known() -> None:
    assert free_in_groups(["g0", "g1", "g2", "g3"], {"g0": "a", "g1": "a", "g2": "b"}) == (1, 2)
    assert free_in_groups(["g0", "g1"], {}) == ()


@st.composite
def fleets(draw: st.DrawFn) -> list[Node]:
    """Nodes with and without racks, their GPUs with and without links; some are slices."""
    nodes = []
    for number in range(draw(between(1, 6))):
        groups = draw(st.lists(st.sampled_from(["a", "b", ""]), max_size=5))
        models = [draw(pick("H200", "H200", "H200-MIG-1g.18gb")) for _ in groups]
        gpus = tuple(
            Gpu(id=f"n{number}/{index}", index=index, model=model, link_group=group)
            for index, (group, model) in enumerate(zip(groups, models, strict=True))
        )
        rack = draw(pick("", "r1", "r2"))
        nodes.append(
            Node(
                id=f"n{number}",
                cpu_milli=draw(pick(1000, 64_000)),
                memory_bytes=1 << 30,
                gpus=gpus,
                labels=(("rack", rack),) if rack else (),
            )
        )
    return nodes


@st.composite
def asked(draw: st.DrawFn) -> Job:
    shape = draw(pick("whole", "whole", "share"))
    request = Request(
        nodes=draw(pick(1, 1, 2, 3)),
        gpus=draw(between(1, 4)) if shape == "whole" else 0,
        gpu_milli=500 if shape == "share" else 0,
        cpu_milli=draw(pick(0, 2000)),
        models=draw(pick((), (), ("H200",), ("H200-MIG-1g.18gb",), ("H200", "H200-MIG-1g.18gb"))),
    )
    return Job(id="j-1", name="job", user="ann", request=request)


def plain(node: Node) -> Node:
    """The node, without anything known of links and racks."""
    return Node(
        id=node.id,
        cpu_milli=node.cpu_milli,
        memory_bytes=node.memory_bytes,
        gpus=tuple(Gpu(id=gpu.id, index=gpu.index, model=gpu.model) for gpu in node.gpus),
    )


@settings(max_examples=120)
@given(nodes=fleets(), wanted=st.lists(asked(), max_size=6), placement=st.sampled_from(PLACEMENTS))
def test_links_and_racks_refuse_no_job_and_slices_are_never_cut_or_mixed(
    nodes: list[Node], wanted: list[Job], placement: str
) -> None:
    fleet = Fleet(nodes)
    model_of = {gpu.id: gpu.model for node in nodes for gpu in node.gpus}
    has_whole = any(not is_slice(model) for model in model_of.values())
    for job in wanted:
        place = find_place(fleet, job, DEFAULT_POOL, placement)
        assert (place is None) == (find_place(beside(fleet, nodes), job, DEFAULT_POOL, placement) is None)
        if place is None:
            continue
        models = {model_of[gpu] for gpu in place.gpus}
        assert len(models) == 1
        if is_slice(place.model):
            assert job.request.gpu_milli == 0
            assert place.model in job.request.models or not (job.request.models or has_whole)
        fleet.take(place)


def beside(fleet: Fleet, nodes: list[Node]) -> Fleet:
    """A node with as many free GPUs, without known links and racks."""
    other = Fleet(plain(node) for node in nodes)
    for slot, twin in zip(fleet.slots, other.slots, strict=True):
        twin.free_milli = dict(slot.free_milli)
        twin.free_cpu_milli = slot.free_cpu_milli
        other._refresh(twin)
    return other


@settings(max_examples=150)
@given(
    racks=st.lists(st.sampled_from(["r1", "r2", "r3", ""]), min_size=2, max_size=8),
    busy=st.sets(st.integers(0, 7)),
    count=st.integers(2, 5),
    placement=st.sampled_from(PLACEMENTS),
)
def test_no_choice_of_nodes_takes_fewer_racks(racks: list[str], busy: set[int], count: int, placement: str) -> None:
    nodes = [
        Node(id=f"n{n}", gpus=(Gpu(id=f"n{n}/0", index=0, model="A10"),), labels=(("rack", rack),) if rack else ())
        for n, rack in enumerate(racks)
    ]
    fleet = Fleet(nodes)
    for number in sorted(busy & {*range(len(nodes))}):
        grant = Grant(node=f"n{number}", gpus=(f"n{number}/0",))
        fleet.take(Allocation(grants=(grant,), model="A10"))
    free = [node for n, node in enumerate(nodes) if n not in busy]
    gang = Job(id="j-2", name="gang", user="ann", request=Request(nodes=count, gpus=1))
    found = find_place(fleet, gang, DEFAULT_POOL, placement)
    if len(free) < count:
        assert found is None
        return
    assert found is not None
    rack_of = {node.id: dict(node.labels).get("rack", node.id) for node in nodes}

    def racks_of(some: tuple[Node, ...]) -> int:
        return len({rack_of[node.id] for node in some})

    assert len({rack_of[grant.node] for grant in found.grants}) == min(map(racks_of, combinations(free, count)))


def test_equal_content_gives_equal_answers_after_links_and_racks_changed() -> None:
    before = Node(id="n1", gpus=tuple(Gpu(id=f"n1/{n}", index=n, model="A10") for n in range(4)))
    after = Node(
        id="n1",
        gpus=tuple(Gpu(id=f"n1/{n}", index=n, model="A10", link_group="ab"[n % 2]) for n in range(4)),
        labels=(("rack", "r1"),),
    )
    changed = Fleet([before])
    changed.replace_node(after)
    two = Job(id="j-1", name="two", user="ann", request=Request(gpus=2))
    place = find_place(changed, two, DEFAULT_POOL, "pack")
    assert place == find_place(Fleet([after]), two, DEFAULT_POOL, "pack")
    assert isinstance(place, Allocation)
    assert place.gpus == ("n1/0", "n1/2")
    assert changed.racks() == Fleet([after]).racks() == [1]
    changed.take(place)
    assert changed.domains[DEFAULT_POOL, "A10"].linked == {2: 1}
    assert sum(changed.slots[0].free_milli.values()) == 2 * WHOLE
