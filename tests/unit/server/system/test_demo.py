"""The demo's people and catalog: there from the start, left alone at the next one, and its jobs are all welcome."""

from __future__ import annotations

import random

import pytest

from corral.control.jobs.jobs import submit
from corral.control.live.unit_of_work import SYSTEM, Caller
from corral.control.people import user_accounts
from corral.control.ports import Store
from corral.server.demo.arrivals import USERS, draft
from corral.server.demo.sample_setup import PACKAGES, TEAM, TEAM_MEMBERS, TEAM_NODE, set_up
from tests.unit.control.world import Desk
from tests.unit.core.builders import node


@pytest.fixture
def desk(store: Store) -> Desk:
    fleet = [node(f"a10-00{n}", gpus=4, model="A10") for n in range(1, 7)]
    fleet += [node(f"a100-00{n}", gpus=4, model="A100-80G") for n in range(1, 6)]
    desk = Desk(store, nodes=fleet)
    desk.do(user_accounts.create_user, SYSTEM, "operator")
    return desk


def test_the_team_has_its_node_and_no_other_user_has_it(desk: Desk) -> None:
    desk.do(set_up)
    with desk.store.read() as tx:
        users = {user.name: user.group for user in tx.people.users()}
        packages = [package.name for package in tx.catalog.packages()]
    assert {name for name, group in users.items() if group == TEAM} == set(TEAM_MEMBERS)
    assert {gpu.pool for gpu in desk.state.snapshot.nodes[TEAM_NODE].gpus} == {TEAM}
    assert sorted(packages) == sorted(name for name, *_ in PACKAGES)


def test_a_second_start_changes_nothing(desk: Desk) -> None:
    desk.do(set_up)
    events = len(desk.events())
    desk.do(set_up)
    assert len(desk.events()) == events


def test_demo_jobs_are_all_accepted(desk: Desk) -> None:
    desk.do(set_up)
    rng = random.Random(7)
    for _ in range(60):
        user = rng.choice(USERS)
        desk.do(submit, Caller(name=user), [draft(rng, user)])
    assert len(desk.state.snapshot.jobs) == 60
