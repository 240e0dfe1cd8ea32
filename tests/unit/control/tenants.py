"""Two kinds of GPUs, some users, and what the tests of pools, groups and routing ask again and again."""

from __future__ import annotations

from corral.control.fleet import pools
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.people import groups
from corral.control.people.user_accounts import create_user
from corral.control.ports import Store
from corral.control.scheduling import views
from corral.core.people.membership import Membership
from corral.core.snapshot.changes import Change, PutLastNode
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ROOT, Desk
from tests.unit.core.builders import node

EVE = Caller(name="eve")
#: two nodes with A10s and two with A100s
MIXED_NODES = (
    node("n1", gpus=4),
    node("n2", gpus=4),
    node("n3", gpus=4, model="A100"),
    node("n4", gpus=4, model="A100"),
)
A10S = tuple(f"{name}/{index}" for name in ("n1", "n2") for index in range(4))
A100S = tuple(f"{name}/{index}" for name in ("n3", "n4") for index in range(4))


@once
def tenants(store: Store) -> Desk:
    """An operator in group default; ann and bob in no group; eve in group default."""
    desk = Desk(store, nodes=MIXED_NODES)
    desk.do(create_user, ROOT, "root")
    for name in ("ann", "bob"):
        desk.do(create_user, ROOT, name, group=None)
    desk.do(create_user, ROOT, "eve")
    return desk


@once
def two_teams(store: Store) -> Desk:
    """The state `tenants`, with ann in team-a on the A10s of pool small, and bob in team-b on the A100s of pool big."""
    desk = tenants(store)
    desk.do(pools.create, ROOT, "small", gpus=A10S)
    desk.do(pools.create, ROOT, "big", gpus=A100S)
    desk.do(groups.create, ROOT, "team-a", users=["ann"], pool="small")
    desk.do(groups.create, ROOT, "team-b", users=["bob"], pool="big")
    return desk


def pool_of_gpus(desk: Desk) -> dict[str, str]:
    """The pool of each GPU in the store."""
    with desk.store.read() as tx:
        return {gpu.id: gpu.pool for node in tx.fleet.nodes() for gpu in node.gpus}


def gpus_of(desk: Desk, pool: str) -> set[str]:
    return {gpu for gpu, name in pool_of_gpus(desk).items() if name == pool}


def membership(desk: Desk, user: str) -> Membership:
    return desk.state.snapshot.memberships[user]


def reasons(desk: Desk, job_id: str) -> list[str]:
    """The rules that hold a waiting job."""
    return [reason.rule for reason in views.why(desk.state, desk.now, desk.job(job_id)).reasons]


def values(state: State) -> set[Change]:
    """The content of a snapshot, except for the node that was used last, which is not stored."""
    return {change for change in state.snapshot.contents() if not isinstance(change, PutLastNode)}


def contents(state: State) -> set[str]:
    """The contents like `values`, which also distinguish 1 from 1.0."""
    return {repr(change) for change in values(state)}


def assert_state_is_stored(desk: Desk) -> None:
    """Asserts that the state in memory equals the one after a restart."""
    assert contents(desk.state) == contents(desk.loaded())
