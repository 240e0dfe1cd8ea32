"""Groups: free users only, one pool each, and what happens to waiting jobs when a user changes the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Refusal, Taken, WrongState
from corral.control.fleet import pools
from corral.control.jobs import job_edit, jobs
from corral.control.live.unit_of_work import Caller
from corral.control.people import groups
from corral.control.people.groups import GroupChange
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import AttemptPhase, Store
from corral.control.records import ProviderKind, ProviderRecord
from corral.control.scheduling import queues
from corral.core.model import EndReason, JobState, Queue
from corral.core.people.membership import Membership
from corral.core.snapshot.journal import digest_of
from tests.unit.control.tenants import EVE, assert_state_is_stored, membership, reasons, tenants, two_teams
from tests.unit.control.world import ANN, BOB, ROOT, Desk, changed, draft


@pytest.fixture
def desk(store: Store) -> Desk:
    return tenants(store)


@pytest.fixture
def teams(store: Store) -> Desk:
    return two_teams(store)


def users_of(desk: Desk, group: str) -> tuple[str, ...]:
    with desk.store.read() as tx:
        return next(view.users for view in groups.group_views(tx) if view.record.name == group)


def refused(desk: Desk, kind: type[Refusal], use_case: Callable[..., Any], *args: Any, **values: Any) -> Refusal:
    """The refusal; nothing is different after it."""
    with desk.store.read() as tx:
        before = groups.group_views(tx)
    digest = digest_of(desk.state.snapshot.contents())
    with pytest.raises(kind) as found:
        desk.do(use_case, *args, **values)
    with desk.store.read() as tx:
        assert groups.group_views(tx) == before
    assert digest_of(desk.state.snapshot.contents()) == digest
    return found.value


def detach(desk: Desk, group: str) -> None:
    desk.do(groups.edit, ROOT, group, GroupChange(sets_pool=True, pool=None))


def attach(desk: Desk, group: str, pool: str) -> None:
    desk.do(groups.edit, ROOT, group, GroupChange(sets_pool=True, pool=pool))


def add(desk: Desk, group: str, *users: str) -> None:
    desk.do(groups.edit, ROOT, group, GroupChange(add_users=users))


def remove(desk: Desk, group: str, *users: str) -> None:
    desk.do(groups.edit, ROOT, group, GroupChange(remove_users=users))


# -------------------------------------------------------------------------------------------- what can be done


def test_a_group_of_free_users_gets_a_pool(desk: Desk) -> None:
    desk.do(pools.create, ROOT, "big")
    desk.do(groups.create, ROOT, "team", description="ours", users=["bob", "ann"], pool="big")
    assert users_of(desk, "team") == ("ann", "bob")
    assert membership(desk, "ann") == Membership(group="team", pool="big")
    assert desk.actions("team") == ["group.created"]
    assert desk.actions("ann")[-1] == "user.group-changed"
    assert_state_is_stored(desk)


def test_moving_a_user_is_remove_then_add(teams: Desk) -> None:
    refusal = refused(teams, InUse, groups.edit, ROOT, "team-b", GroupChange(add_users=("ann",)))
    assert "ann is in group team-a" in refusal.detail
    remove(teams, "team-a", "ann")
    assert membership(teams, "ann") == Membership()
    add(teams, "team-b", "ann")
    assert membership(teams, "ann") == Membership(group="team-b", pool="big")
    assert users_of(teams, "team-b") == ("ann", "bob")
    assert_state_is_stored(teams)


def test_a_pool_changes_hands_by_detaching_it_first(teams: Desk) -> None:
    detach(teams, "team-a")
    assert membership(teams, "ann") == Membership(group="team-a", pool=None)
    refusal = refused(teams, InUse, groups.edit, ROOT, "team-a", GroupChange(sets_pool=True, pool="big"))
    assert refusal.numbers == {"group": "team-b"}
    detach(teams, "team-b")
    attach(teams, "team-a", "big")
    assert membership(teams, "ann") == Membership(group="team-a", pool="big")
    assert_state_is_stored(teams)


def test_an_emptied_group_is_deleted(teams: Desk) -> None:
    remove(teams, "team-a", "ann")
    detach(teams, "team-a")
    teams.do(groups.delete, ROOT, "team-a")
    with teams.store.read() as tx:
        assert [view.record.name for view in groups.group_views(tx)] == ["default", "team-b"]


def test_users_come_and_go_with_their_membership(desk: Desk) -> None:
    desk.do(create_user, ROOT, "zoe")
    assert membership(desk, "zoe") == Membership(group="default", pool="default")
    desk.do(delete_user, ROOT, "zoe")
    assert "zoe" not in desk.state.snapshot.memberships
    assert_state_is_stored(desk)


# -------------------------------------------------------------------------------------------- what is refused


def test_only_operators_manage_groups(teams: Desk) -> None:
    for use_case, args in (
        (groups.create, ("other",)),
        (groups.edit, ("team-a", GroupChange(description="mine"))),
        (groups.delete, ("team-a",)),
    ):
        refused(teams, Forbidden, use_case, ANN, *args)


def test_bad_and_taken_names_are_refused(teams: Desk) -> None:
    assert refused(teams, Invalid, groups.create, ROOT, "two words").field == "name"
    refused(teams, Taken, groups.create, ROOT, "team-a")
    refused(teams, Taken, groups.create, ROOT, "default")


def test_only_free_users_can_be_added_also_not_from_default(teams: Desk) -> None:
    for names, reported in ((["eve"], "eve is in group default"), (["ann", "bob"], "bob is in group team-b")):
        refusal = refused(teams, InUse, groups.create, ROOT, "third", users=names)
        assert reported in refusal.detail
        assert refusal.numbers["users"] == names


def test_unknown_users_pools_and_groups_are_refused(teams: Desk) -> None:
    assert refused(teams, Invalid, groups.create, ROOT, "third", users=["nobody"]).field == "users"
    assert refused(teams, Invalid, groups.create, ROOT, "third", pool="nowhere").field == "pool"
    refused(teams, NotFound, groups.edit, ROOT, "third", GroupChange())
    refused(teams, Invalid, groups.edit, ROOT, "team-a", GroupChange(add_users=("nobody",)))
    refused(teams, NotFound, groups.delete, ROOT, "third")


def test_a_user_outside_a_group_cannot_be_removed_from_it(teams: Desk) -> None:
    refusal = refused(teams, Invalid, groups.edit, ROOT, "team-a", GroupChange(remove_users=("ann", "bob")))
    assert refusal.numbers == {"users": ["bob"]}
    refused(teams, Invalid, groups.edit, ROOT, "team-a", GroupChange(add_users=("ann",), remove_users=("ann",)))


def test_a_pool_belongs_to_at_most_one_group(teams: Desk) -> None:
    for pool, owner in (("big", "team-b"), ("default", "default")):
        assert refused(teams, InUse, groups.create, ROOT, "third", pool=pool).numbers == {"group": owner}


def test_a_group_with_users_or_a_pool_cannot_be_deleted_nor_default(teams: Desk) -> None:
    assert refused(teams, InUse, groups.delete, ROOT, "team-a").numbers == {"users": ["ann"]}
    remove(teams, "team-a", "ann")
    assert refused(teams, InUse, groups.delete, ROOT, "team-a").numbers == {"pool": "small"}
    remove(teams, "default", "eve", "root")
    detach(teams, "default")
    assert "default" in refused(teams, InUse, groups.delete, ROOT, "default").detail


def test_a_group_that_a_queue_names_cannot_be_deleted(teams: Desk) -> None:
    teams.do(groups.create, ROOT, "guests")
    teams.do(queues.create, ROOT, Queue(name="big-guests", pool="big", groups=("guests",)))
    assert refused(teams, InUse, groups.delete, ROOT, "guests").numbers == {"queues": ["big-guests"]}
    with pytest.raises(Invalid) as refusal:
        teams.do(queues.create, ROOT, Queue(name="big-others", pool="big", groups=("others",)))
    assert refusal.value.field == "groups"


def test_a_group_that_newcomers_are_put_into_cannot_be_deleted(teams: Desk) -> None:
    teams.do(groups.create, ROOT, "guests")
    with teams.store.write() as tx:
        tx.providers.save(ProviderRecord(id="git", kind=ProviderKind.GITHUB, group="guests"))
    assert refused(teams, InUse, groups.delete, ROOT, "guests").numbers == {"providers": ["git"]}


# -------------------------------------------------------------------------------------------- jobs over changes


def test_a_user_without_a_group_or_a_pool_cannot_submit(teams: Desk) -> None:
    remove(teams, "team-a", "ann")
    for queue in (None, "small"):
        with pytest.raises(WrongState, match="ann is in no group"):
            teams.submit(draft("lonely", queue=queue))
    add(teams, "team-a", "ann")
    detach(teams, "team-a")
    with pytest.raises(WrongState, match="group team-a has no pool"):
        teams.submit(draft("lonely"))


def test_a_job_waits_while_its_group_has_no_pool(teams: Desk) -> None:
    (job,) = teams.submit(draft("training"))
    assert job.queue == "small"
    detach(teams, "team-a")
    assert teams.cycle() == []
    assert reasons(teams, job.id) == ["membership"]
    assert_state_is_stored(teams)
    attach(teams, "team-a", "small")
    assert teams.cycle() == [job.id]


def test_a_job_waits_while_its_user_is_in_no_group_or_in_another(teams: Desk) -> None:
    (job,) = teams.submit(draft("training"))
    remove(teams, "team-a", "ann")
    assert teams.cycle() == []
    assert reasons(teams, job.id) == ["membership"]
    add(teams, "team-b", "ann")
    assert teams.cycle() == []
    assert reasons(teams, job.id) == ["membership"]
    remove(teams, "team-b", "ann")
    add(teams, "team-a", "ann")
    assert teams.cycle() == [job.id]


def test_a_job_blocks_no_other_while_its_user_has_left(teams: Desk) -> None:
    teams.do(create_user, ROOT, "zoe", group=None)
    add(teams, "team-a", "zoe")
    (mine,) = teams.submit(draft("training", gpus=4))
    (theirs,) = teams.submit(draft("training", gpus=4), caller=Caller(name="zoe"))
    remove(teams, "team-a", "ann")
    assert teams.cycle() == [theirs.id]
    assert teams.job(mine.id).state is JobState.QUEUED


def test_the_user_can_take_a_waiting_job_along_to_the_new_pool(teams: Desk) -> None:
    (job,) = teams.submit(draft("training"))
    remove(teams, "team-a", "ann")
    add(teams, "team-b", "ann")
    with pytest.raises(Invalid) as refusal:
        teams.do(job_edit.edit, ANN, job.id, changed(queue="small"))
    assert refusal.value.numbers == {"known": ["big"]}
    moved = teams.do(job_edit.edit, ANN, job.id, changed(queue="big"))
    assert (moved.queue, moved.queued_at) == ("big", job.queued_at)
    assert teams.cycle() == [job.id]
    assert teams.job(job.id).allocation.model == "A100"  # type: ignore[union-attr]


def test_running_jobs_go_on_when_their_user_leaves_the_group(teams: Desk) -> None:
    (job,) = teams.started(draft("training", max_retries=3))
    remove(teams, "team-a", "ann")
    assert teams.cycle() == []
    assert teams.job(job.id).state is JobState.RUNNING
    teams.hear(teams.job(job.id), AttemptPhase.ENDED, EndReason.NODE_LOST)
    teams.now += 3600.0
    assert teams.cycle() == [], "the next attempt is a new start, and the user has no pool"
    assert reasons(teams, job.id) == ["membership"]


def test_a_stopped_job_starts_again_where_its_user_belongs_now(teams: Desk) -> None:
    (job,) = teams.submit(draft("training"))
    teams.do(jobs.stop, ANN, job.id)
    remove(teams, "team-a", "ann")
    with pytest.raises(WrongState, match="no group"):
        teams.do(jobs.start, ANN, job.id)
    add(teams, "team-b", "ann")
    assert teams.do(jobs.start, ANN, job.id).queue == "big"
    assert teams.cycle() == [job.id]


def test_a_shared_queue_lets_another_group_in_until_it_is_taken_back(teams: Desk) -> None:
    teams.do(queues.create, ROOT, Queue(name="lent", pool="big", groups=("team-a",)))
    (job,) = teams.submit(draft("training", queue="lent"))
    with pytest.raises(Invalid, match="lent"):
        teams.submit(draft("other", queue="big"))
    with pytest.raises(Invalid, match="may not use"):
        teams.submit(draft("stranger", queue="lent"), caller=EVE)
    teams.submit(draft("owner", queue="lent"), caller=BOB)
    teams.do(queues.edit, ROOT, Queue(name="lent", pool="big"))
    assert job.id not in teams.cycle()
    assert reasons(teams, job.id) == ["membership"]
    teams.do(queues.edit, ROOT, Queue(name="lent", pool="big", groups=("team-a",)))
    assert teams.cycle() == [job.id]


def test_a_user_with_a_waiting_job_is_not_deleted_whatever_holds_the_job(teams: Desk) -> None:
    (job,) = teams.submit(draft("training"))
    remove(teams, "team-a", "ann")
    with pytest.raises(InUse, match=job.id):
        teams.do(delete_user, ROOT, "ann")


def test_moving_is_leaving_and_joining_at_once(teams: Desk) -> None:
    teams.do(groups.edit, ROOT, "team-b", GroupChange(move_users=("ann",)))
    assert "ann" in users_of(teams, "team-b")
    assert "ann" not in users_of(teams, "team-a")
    assert membership(teams, "ann").group == "team-b"
    assert_state_is_stored(teams)
    refused(teams, Invalid, groups.edit, ROOT, "team-a", GroupChange(move_users=("ann", "nobody")))
    assert "ann" in users_of(teams, "team-b")
