"""Permission groups: what their users may do, and every refusal."""

from __future__ import annotations

from typing import get_args

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, NotPermitted, Taken
from corral.control.jobs import jobs, tasks
from corral.control.live.unit_of_work import Caller
from corral.control.people import permissions
from corral.control.people.user_accounts import create_user, edit_user
from corral.control.ports import Store
from corral.control.records import EVERYONE, USUAL_FUNCTIONS, Function, PermissionGroupRecord, Role
from corral.core.model import JobKind
from corral.server.schemas.people.permissions import FunctionName
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


def group(desk: Desk, name: str) -> PermissionGroupRecord | None:
    with desk.store.read() as tx:
        return next((found for found in tx.people.permission_groups() if found.name == name), None)


def functions_of(desk: Desk, name: str) -> frozenset[Function]:
    with desk.store.read() as tx:
        user = tx.people.user(name)
        assert user is not None
        return permissions.functions_of(tx, user)


def without(function: Function) -> Caller:
    return Caller(name="ann", functions=frozenset(Function) - {function})


def test_on_a_fresh_install_everyone_may_do_all_but_see_others_jobs(staffed: Desk) -> None:
    assert functions_of(staffed, "ann") == USUAL_FUNCTIONS == frozenset(Function) - {Function.SEE_OTHERS_JOBS}
    assert functions_of(staffed, "root") == frozenset(Function), "operators may do everything"


def test_a_group_gives_its_users_its_functions(staffed: Desk) -> None:
    staffed.do(permissions.create, ROOT, "students", [Function.TRAIN, Function.TRAIN], "First year")
    staffed.do(permissions.assign, ROOT, "students", ["ann", "bob", "ann"])
    assert functions_of(staffed, "ann") == functions_of(staffed, "bob") == {Function.TRAIN}
    staffed.do(permissions.edit, ROOT, "students", functions=[Function.TOKENS, Function.TRAIN])
    assert group(staffed, "students") == PermissionGroupRecord(
        name="students", functions=(Function.TRAIN, Function.TOKENS), description="First year", created_at=1000.0
    )
    staffed.do(edit_user, ROOT, "ann", role=Role.OPERATOR)
    assert functions_of(staffed, "ann") == frozenset(Function)
    assert staffed.actions("bob") == ["user.created", "user.permission-group-set"]
    assert staffed.actions("students") == ["permission-group.created", "permission-group.edited"]


def test_assigning_is_all_or_nothing(staffed: Desk) -> None:
    staffed.do(permissions.create, ROOT, "students", [])
    with pytest.raises(Invalid, match="nobody") as refusal:
        staffed.do(permissions.assign, ROOT, "students", ["ann", "nobody"])
    assert refusal.value.numbers == {"unknown": ["nobody"]}
    assert functions_of(staffed, "ann") == USUAL_FUNCTIONS
    with pytest.raises(NotFound):
        staffed.do(permissions.assign, ROOT, "no-such-group", ["ann"])


def test_everyone_and_groups_with_users_stay(staffed: Desk) -> None:
    with pytest.raises(InUse, match="everyone"):
        staffed.do(permissions.delete, ROOT, EVERYONE)
    staffed.do(permissions.create, ROOT, "students", [])
    staffed.do(permissions.assign, ROOT, "students", ["ann"])
    with pytest.raises(InUse) as refusal:
        staffed.do(permissions.delete, ROOT, "students")
    assert refusal.value.numbers == {"users": ["ann"]}
    staffed.do(permissions.assign, ROOT, EVERYONE, ["ann"])
    staffed.do(permissions.delete, ROOT, "students")
    assert group(staffed, "students") is None
    with pytest.raises(NotFound):
        staffed.do(permissions.delete, ROOT, "students")


def test_names_are_checked_and_taken_once(staffed: Desk) -> None:
    with pytest.raises(Taken):
        staffed.do(permissions.create, ROOT, EVERYONE, [])
    for name in ("", "two words", "x" * 64):
        with pytest.raises(Invalid):
            staffed.do(permissions.create, ROOT, name, [])
    with pytest.raises(NotFound):
        staffed.do(permissions.edit, ROOT, "no-such-group", functions=[])


def test_only_operators_manage_them(staffed: Desk) -> None:
    for act in (
        lambda work: permissions.create(work, ANN, "mine", list(Function)),
        lambda work: permissions.edit(work, ANN, EVERYONE, functions=list(Function)),
        lambda work: permissions.assign(work, ANN, EVERYONE, ["ann"]),
        lambda work: permissions.delete(work, ANN, EVERYONE),
    ):
        with pytest.raises(Forbidden):
            staffed.do(act)


@pytest.mark.parametrize(
    ("kind", "nodes", "function"),
    [
        (None, 1, Function.TRAIN),
        (JobKind.TRAINING, 1, Function.TRAIN),
        (JobKind.PRESET, 1, Function.TRAIN),
        (None, 2, Function.DISTRIBUTE),
        (JobKind.DISTRIBUTED, 1, Function.DISTRIBUTE),
        (JobKind.WORKBENCH, 1, Function.WORKBENCH),
    ],
)
def test_every_kind_of_job_needs_its_function(
    staffed: Desk, kind: JobKind | None, nodes: int, function: Function
) -> None:
    asked = draft("trial", kind=kind, nodes=nodes)
    with pytest.raises(NotPermitted) as refusal:
        staffed.submit(asked, caller=without(function))
    assert refusal.value.numbers == {"function": function.value}
    assert function.value in refusal.value.detail
    only = Caller(name="ann", functions=frozenset({function}))
    (job,) = staffed.submit(asked, caller=only)
    assert job.state == "queued"


def test_a_lost_function_also_stops_starting_again(staffed: Desk) -> None:
    (held,) = staffed.submit(draft("held", hold=True))
    with pytest.raises(NotPermitted):
        staffed.do(jobs.start, without(Function.TRAIN), held.id)
    assert staffed.do(jobs.start, Caller(name="root", is_operator=True, functions=frozenset()), held.id)


def test_tasks_need_tasks_and_not_workbench(staffed: Desk) -> None:
    with pytest.raises(NotPermitted) as refusal:
        staffed.do(tasks.allocate, without(Function.TASKS), "mytask", 1, ("holder",))
    assert refusal.value.numbers == {"function": "tasks"}
    only = Caller(name="ann", functions=frozenset({Function.TASKS}))
    assert staffed.do(tasks.allocate, only, "mytask", 1, ("holder",)).record.job.kind is JobKind.WORKBENCH


def test_jobs_are_visible_by_role() -> None:
    assert permissions.may_see_job(ANN, "ann")
    assert not permissions.may_see_job(BOB, "ann")
    assert permissions.may_see_job(ROOT, "ann")
    assert permissions.may_see_job(Caller(name="bob", functions=frozenset({Function.SEE_OTHERS_JOBS})), "ann")


def test_the_api_knows_every_function() -> None:
    assert list(get_args(FunctionName)) == [function.value for function in Function]
