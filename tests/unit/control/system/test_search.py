"""Finding anything: what matches best first, some of everything, and nothing that the caller may not see."""

from __future__ import annotations

import pytest

from corral.control.jobs import images
from corral.control.live.unit_of_work import Caller
from corral.control.people import groups
from corral.control.people.user_accounts import create_user
from corral.control.ports import Store
from corral.control.records import Function, ImageRecord, JobSpec, Visibility
from corral.control.scheduling import queues
from corral.control.system.search import Found, Type, search, search_fleet
from corral.core.model import JobKind, Queue
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

CURIOUS = Caller(name="bob", functions=frozenset({Function.SEE_OTHERS_JOBS}))


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


def find(desk: Desk, caller: Caller, text: str, limit: int = 20) -> list[Found]:
    with desk.store.read() as tx:
        return search(tx, caller, text, search_fleet(desk.state, text), limit)


def ids(desk: Desk, caller: Caller, text: str, limit: int = 20) -> list[tuple[str, str]]:
    return [(item.type.value, item.id) for item in find(desk, caller, text, limit)]


def test_the_very_name_goes_first_then_beginnings_then_the_rest_and_of_those_the_newest(staffed: Desk) -> None:
    staffed.submit(draft("train-old"), draft("my-train"), draft("train-new"), draft("trai"), draft("Train-it"))
    found = [item.title for item in find(staffed, ANN, "train")]
    assert found == ["Train-it", "train-new", "train-old", "my-train"]
    assert find(staffed, ANN, "trai")[0].title == "trai"


def test_jobs_are_found_by_their_number(staffed: Desk) -> None:
    staffed.submit(*(draft() for _ in range(25)))
    assert ids(staffed, ANN, "j-2")[:2] == [("job", "j-2"), ("job", "j-25")]
    assert ("job", "j-21") in ids(staffed, ANN, "2")
    assert ids(staffed, ANN, "j-99") == []


def test_others_jobs_are_found_by_those_who_may_see_them_only(staffed: Desk) -> None:
    staffed.submit(draft("secret"))
    assert ids(staffed, BOB, "secret") == ids(staffed, BOB, "j-1") == []
    assert ids(staffed, CURIOUS, "secret") == ids(staffed, ROOT, "secret") == [("job", "j-1")]


def test_a_workbench_is_one_to_its_owner_and_to_operators(staffed: Desk) -> None:
    staffed.submit(draft("bench", kind=JobKind.WORKBENCH, spec=JobSpec(command=("sleep", "9"))))
    assert ids(staffed, ANN, "bench") == ids(staffed, ROOT, "bench") == [("workbench", "j-1")]
    assert ids(staffed, CURIOUS, "bench") == [("job", "j-1")]


def test_only_operators_find_users_and_groups(staffed: Desk) -> None:
    staffed.do(groups.create, ROOT, "annalists")
    assert set(ids(staffed, ROOT, "ann")) == {("user", "ann"), ("group", "annalists")}
    assert ids(staffed, ANN, "ann") == []


def test_images_are_found_as_their_visibility_says(staffed: Desk) -> None:
    staffed.do(images.create, ANN, ImageRecord(name="mine", address="docker.io/ann/mine:1"))
    public = ImageRecord(name="mine-too", address="docker.io/x/y:1", visibility=Visibility.PUBLIC)
    staffed.do(images.create, ROOT, public)
    assert ids(staffed, ANN, "mine") == [("image", "ann/mine"), ("image", "mine-too")]
    assert ids(staffed, BOB, "mine") == [("image", "mine-too")]


def test_nodes_and_gpus_are_found_by_everybody(staffed: Desk) -> None:
    assert ids(staffed, BOB, "n1") == [("node", "n1"), *(("gpu", f"n1/{index}") for index in range(4))]


def test_many_jobs_do_not_hide_the_one_queue(staffed: Desk) -> None:
    staffed.do(queues.create, ROOT, Queue(name="night-shift"))
    staffed.submit(*(draft(f"night-{number}") for number in range(30)))
    found = find(staffed, ANN, "night", limit=10)
    assert len(found) == 10
    assert Type.QUEUE in {item.type for item in found}
    assert [item.title for item in found if item.type is Type.JOB] == [
        f"night-{number}" for number in range(29, 20, -1)
    ]


def test_characters_that_mean_something_to_databases_mean_nothing(staffed: Desk) -> None:
    staffed.submit(draft("plain"))
    for text in ("%", "_____", "'", '"', "\\", "pl*", "模"):
        assert ids(staffed, ANN, text) == []
