"""After any change of pools, groups and queues, a job starts only on GPUs that its user may use at that time.

What a user may use is worked out here from the stored records alone, without the snapshot that the scheduler uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.errors import Refusal
from corral.control.fleet import pools
from corral.control.jobs import job_edit
from corral.control.live.cycle import run_cycle
from corral.control.live.unit_of_work import Caller
from corral.control.people import groups
from corral.control.people.groups import GroupChange
from corral.control.ports import AttemptPhase, Transaction
from corral.control.scheduling import queues
from corral.core.model import EndReason, JobState, Queue, Request
from tests.unit.control.fresh_stores import FreshStores
from tests.unit.control.tenants import A10S, A100S, assert_state_is_stored, two_teams, values
from tests.unit.control.world import ROOT, Desk, changed, draft
from tests.unit.searching import DEAR

USERS = ("ann", "bob", "eve")
POOLS = ("default", "small", "big")
GROUPS = ("default", "team-a", "team-b")
QUEUES = ("default", "small", "big", "lent")
Act = Callable[[Desk], Any]


def submit(user: str, gpus: int, queue: str | None) -> Act:
    asked = draft(request=Request(gpus=gpus), queue=queue, max_retries=5)
    return lambda desk: desk.submit(asked, caller=Caller(name=user))


def attempt(desk: Desk, act: Act) -> None:
    """Done, or refused without a trace."""
    before = values(desk.state)
    try:
        act(desk)
    except Refusal:
        # The desk loads its state anew.
        assert values(desk.state) == before, "refused, and yet something changed"


def edit_job(place: int, queue: str | None) -> Act:
    change = changed(queue=queue)

    def act(desk: Desk) -> None:
        waiting = [job for job in desk.state.snapshot.jobs.values() if job.state is JobState.QUEUED]
        if waiting:
            desk.do(job_edit.edit, ROOT, waiting[place % len(waiting)].id, change)

    return act


def end_one(place: int, is_lost: bool) -> Act:
    def act(desk: Desk) -> None:
        held = [job for job in desk.state.snapshot.jobs.values() if job.state.holds_resources]
        if held:
            reason = EndReason.NODE_LOST if is_lost else EndReason.EXIT_CODE
            desk.hear(held[place % len(held)], AttemptPhase.ENDED, reason, exit_code=None if is_lost else 0)

    return act


def change_group(name: str, change: GroupChange) -> Act:
    return lambda desk: desk.do(groups.edit, ROOT, name, change)


users, some_pools, some_groups = st.sampled_from(USERS), st.sampled_from(POOLS), st.sampled_from(GROUPS)
some_queue = st.sampled_from((None, *QUEUES))
some_gpus = st.lists(st.sampled_from((*A10S, *A100S)), max_size=4, unique=True)
submissions = st.builds(submit, users, st.integers(0, 4), some_queue)
changes = st.one_of(
    st.builds(edit_job, st.integers(0, 20), some_queue),
    st.builds(end_one, st.integers(0, 20), st.booleans()),
    st.builds(lambda pool, gpus: lambda desk: desk.do(pools.move_gpus, ROOT, pool, gpus), some_pools, some_gpus),
    st.builds(lambda pool, gpus: lambda desk: desk.do(pools.create, ROOT, pool, gpus=gpus), some_pools, some_gpus),
    st.builds(lambda pool, gpus: lambda desk: desk.do(pools.edit, ROOT, pool, gpus=gpus), some_pools, some_gpus),
    st.builds(lambda pool: lambda desk: desk.do(pools.delete, ROOT, pool), some_pools),
    st.builds(
        lambda pool, shared: (
            lambda desk: desk.do(
                queues.create if "lent" not in desk.state.snapshot.queues else queues.edit,
                ROOT,
                Queue(name="lent", pool=pool, groups=tuple(sorted(shared))),
            )
        ),
        some_pools,
        st.sets(some_groups),
    ),
    st.builds(lambda name: lambda desk: desk.do(groups.create, ROOT, name), some_groups),
    st.builds(lambda name: lambda desk: desk.do(groups.delete, ROOT, name), some_groups),
    st.builds(lambda name, user: change_group(name, GroupChange(add_users=(user,))), some_groups, users),
    st.builds(lambda name, user: change_group(name, GroupChange(remove_users=(user,))), some_groups, users),
    st.builds(
        lambda name, pool: change_group(name, GroupChange(sets_pool=True, pool=pool)),
        some_groups,
        st.one_of(st.none(), some_pools),
    ),
)


#: several submissions and changes between two plans, so that much waits when things change
stories = st.lists(st.lists(submissions | changes, min_size=1, max_size=6), min_size=3, max_size=6)


def may_run_on(tx: Transaction, user: str, queue_name: str) -> set[str]:
    """The GPUs that a job of this user in this queue may have, from the records."""
    record = tx.people.user(user)
    assert record is not None
    group = next((item for item in tx.people.groups() if item.name == record.group), None)
    queue = next((item for item in tx.fleet.queues() if item.name == queue_name), None)
    if group is None or queue is None or not (group.pool == queue.pool or group.name in queue.groups):
        return set()
    return {gpu.id for node in tx.fleet.nodes() for gpu in node.gpus if gpu.pool == queue.pool}


def plan_and_check(desk: Desk) -> None:
    plan = desk.do(run_cycle, desk.journal)
    with desk.store.read() as tx:
        for start in plan.starts:
            job = desk.state.snapshot.jobs[start.job_id]
            allowed = may_run_on(tx, job.user, job.queue)
            assert allowed or not start.allocation.gpus, f"{job.id} of {job.user} started in {job.queue}"
            assert set(start.allocation.gpus) <= allowed
        for pool in tx.fleet.pools():
            models = {gpu.model for node in tx.fleet.nodes() for gpu in node.gpus if gpu.pool == pool.name}
            assert len(models) <= 1 or pool.name == "default", f"pool {pool.name} has {models}"
        owners = [group.pool for group in tx.people.groups() if group.pool is not None]
        assert len(owners) == len(set(owners)), f"a pool has two groups: {owners}"


@settings(DEAR, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stories)
def test_jobs_only_ever_start_within_their_users_reach(fresh_stores: FreshStores, story: list[list[Act]]) -> None:
    with fresh_stores.new() as store:
        desk = two_teams(store)
        for between_plans in story:
            for act in (*(submit(user, 1, None) for user in USERS), *between_plans):
                attempt(desk, act)
            desk.now += 3600.0
            plan_and_check(desk)
        assert_state_is_stored(desk)
