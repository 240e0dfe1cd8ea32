"""A search in names finds what a look at every name finds, and looks at few of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.control.fleet.fleet_names import NameText
from corral.control.live.state import State
from corral.control.system import search
from corral.control.system.policies import Policies
from corral.core.snapshot.changes import DropNode, PutNode
from tests.unit.core.builders import node

TEXTS = st.text(alphabet="aBb1\n", max_size=4)


def looked_at(names: list[str], text: str) -> list[tuple[int, str]]:
    wanted, found = text.casefold(), []
    for name in names:
        folded = name.casefold()
        if wanted and wanted in folded:
            found.append((0 if folded == wanted else 1 if folded.startswith(wanted) else 2, name))
    return sorted(found, key=lambda each: each[0])


@given(st.lists(st.text(alphabet="aBb1", max_size=5), max_size=12), TEXTS, st.integers(1, 15))
def test_the_best_names_are_found(names: list[str], text: str, limit: int) -> None:
    assert NameText(names).best(text, limit) == looked_at(names, text)[:limit]


def test_a_search_names_only_what_it_shows_and_the_names_are_joined_once() -> None:
    state = State(Policies())
    state.apply([PutNode(node=node(f"gpu-{number:03d}", gpus=8)) for number in range(300)])
    nodes, gpus = search.search_fleet(state, "gpu-0")
    assert (len(nodes), len(gpus)) == (search.MAX_FOUND, search.MAX_FOUND)
    joined = state.fleet().searched_names()
    search.search_fleet(state, "29")
    assert state.fleet().searched_names() is joined


def test_names_follow_nodes_that_come_and_go() -> None:
    state = State(Policies())
    state.apply([PutNode(node=node("first", gpus=2))])
    assert [match.found.id for match in search.search_fleet(state, "fi")[0]] == ["first"]
    state.apply([DropNode(id="first"), PutNode(node=node("figure", gpus=1))])
    nodes, gpus = search.search_fleet(state, "fi")
    assert [match.found.id for match in nodes] == ["figure"]
    assert [match.found.id for match in gpus] == [gpu.id for gpu in state.snapshot.nodes["figure"].gpus]
    state.apply([PutNode(node=node("figure", gpus=3))])
    assert len(search.search_fleet(state, "figure")[1]) == 3
