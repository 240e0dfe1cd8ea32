"""Offers: the packages that would start now, how many, and when the next one would start."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.errors import Invalid, Refusal
from corral.control.fleet import catalog, pools
from corral.control.fleet import offers as offers_module
from corral.control.fleet.offers import MAX_TRIED, Offer, offers
from corral.control.jobs.admission import admit, settled
from corral.control.live.state import State
from corral.control.people.quotas import set_quota
from corral.control.people.user_accounts import create_user
from corral.control.ports import Store
from corral.control.records import FlavorRecord, PackageRecord
from corral.control.scheduling import queues
from corral.control.system.policies import Policies
from corral.core.jobs.lifecycle import Planned, StartRequested, advance
from corral.core.model import Job, JobKind, JobState, NodeState, Queue, Request
from corral.core.people.quota import Quota
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.snapshot.changes import Change, PutJob, PutLastNode, PutNode, PutRules
from corral.core.snapshot.journal import digest_of
from corral.core.snapshot.node_index import Slot
from tests.unit.control.copied_desks import once
from tests.unit.control.tenants import A100S, two_teams
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft
from tests.unit.core.builders import node
from tests.unit.core.strategies import clusters, jobs, requests
from tests.unit.searching import DEAR

TRAINING, WORKBENCH, DISTRIBUTED = JobKind.TRAINING, JobKind.WORKBENCH, JobKind.DISTRIBUTED


@pytest.fixture
@once
def teams(store: Store) -> Desk:
    """ann's team has the A10s, bob's the A100s; a package for each model, one for none."""
    desk = two_teams(store)
    for model in ("A10", "A100"):
        desk.do(catalog.create_flavor, ROOT, FlavorRecord(name=model.lower(), models=(model,)))
        package = PackageRecord(name=f"two-{model.lower()}", gpus=2, flavor=model.lower())
        desk.do(catalog.create_package, ROOT, package)
    desk.do(catalog.create_package, ROOT, PackageRecord(name="cpu-only", cpu_milli=16_000))
    return desk


def offered(desk: Desk, user: str, kind: JobKind = TRAINING, nodes: int = 1) -> dict[str, Offer]:
    with desk.store.read() as tx:
        known = catalog.load_catalog(tx)
    before = digest_of(desk.state.snapshot.contents()), sorted(desk.state.snapshot.jobs)
    found = offers(desk.state, known, user, kind, desk.now, nodes)
    assert (digest_of(desk.state.snapshot.contents()), sorted(desk.state.snapshot.jobs)) == before, (
        "asking changes nothing"
    )
    return {offer.package.name: offer for offer in found}


def test_only_what_is_in_reach_is_offered(teams: Desk) -> None:
    assert set(offered(teams, "ann")) == {"two-a10", "cpu-only"}
    assert set(offered(teams, "bob")) == {"two-a100", "cpu-only"}
    offer = offered(teams, "bob")["two-a100"]
    assert (offer.queue, offer.free_count, offer.queued, offer.expected_wait_seconds) == ("big", 4, 0, 0.0)


def test_a_model_that_the_kind_cannot_have_is_not_offered(teams: Desk) -> None:
    """The flaw of 004: a workbench could be made of A100s although workbenches have none, and waited for ever."""
    big = teams.state.snapshot.queues["big"]
    teams.do(queues.edit, ROOT, replace(big, kinds=(TRAINING,)))
    assert set(offered(teams, "bob", WORKBENCH)) == set()
    assert set(offered(teams, "bob", TRAINING)) == {"two-a100", "cpu-only"}


def test_a_package_is_offered_to_its_kinds_only(teams: Desk) -> None:
    bench = PackageRecord(name="bench", gpus=1, kinds=(WORKBENCH,))
    teams.do(catalog.create_package, ROOT, bench)
    assert "bench" in offered(teams, "ann", WORKBENCH)
    assert "bench" not in offered(teams, "ann", TRAINING)


def test_a_queue_shared_with_the_group_brings_its_pool_into_reach(teams: Desk) -> None:
    teams.do(queues.create, ROOT, Queue(name="guests", pool="big", groups=("team-a",), max_gpus=2))
    offer = offered(teams, "ann")["two-a100"]
    assert (offer.queue, offer.free_count) == ("guests", 1)


def test_unusable_packages_are_not_offered(teams: Desk) -> None:
    for name in ("n3", "n4"):
        out = replace(teams.state.snapshot.nodes[name], state=NodeState.CORDONED)
        with teams.store.write() as tx:
            tx.fleet.save_nodes([out])
    teams.state = teams.loaded()
    assert set(offered(teams, "bob")) == {"cpu-only"}


def test_nodes_with_equal_resources_are_counted_once(teams: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of free nodes each package took milliseconds on the controller's thread."""
    many = [node(f"m{number}", gpus=4, model="A100", pool="big") for number in range(30)]
    teams.do(lambda work: work.change(*(PutNode(node=each) for each in many)))
    asked: list[str] = []
    whole_gpus = Slot.whole_gpus

    def noted(slot: Slot, domain: tuple[str, str]) -> list[str]:
        asked.append(slot.node.id)
        return whole_gpus(slot, domain)

    monkeypatch.setattr(Slot, "whole_gpus", noted)
    monkeypatch.setattr(offers_module, "schedule", lambda *_: pytest.fail("no other job waits"))
    assert offered(teams, "bob")["two-a100"].free_count == 4 + 60
    assert len([name for name in asked if name.startswith("m")]) <= 2


def test_labels_and_rdma_count(teams: Desk) -> None:
    teams.do(catalog.create_package, ROOT, PackageRecord(name="rdma", gpus=1, rdma=True))
    assert "rdma" not in offered(teams, "ann")
    labelled = replace(teams.state.snapshot.nodes["n1"], labels=(("rdma", "true"),))
    with teams.store.write() as tx:
        tx.fleet.save_nodes([labelled])
    teams.state = teams.loaded()
    assert offered(teams, "ann")["rdma"].free_count == 4


def test_the_quota_leaves_out_and_limits(teams: Desk) -> None:
    teams.do(set_quota, ROOT, "ann", {TRAINING: Quota(gpu_milli=5000), WORKBENCH: Quota(gpu_milli=1000)})
    assert offered(teams, "ann")["two-a10"].free_count == 2
    assert "two-a10" not in offered(teams, "ann", WORKBENCH)
    teams.submit(draft("first", gpus=4), caller=ANN)
    assert "two-a10" not in offered(teams, "ann"), "what waits counts too, as for a submission"


def test_waiting_and_the_expected_wait(teams: Desk) -> None:
    fills = [draft(f"fill-{n}", gpus=4, time_limit_seconds=100.0 * n) for n in (1, 2)]
    teams.submit(*fills, caller=ANN)
    teams.cycle()
    offer = offered(teams, "ann")["two-a10"]
    assert (offer.free_count, offer.queued, offer.expected_wait_seconds) == (0, 0, 130.0)
    teams.submit(draft("waits", gpus=2), draft("in-the-other-line", request=Request(cpu_milli=64_000)), caller=ANN)
    teams.cycle()
    offer = offered(teams, "ann")["two-a10"]
    assert (offer.free_count, offer.queued) == (0, 1)
    teams.submit(draft("endless", gpus=4), caller=BOB)
    teams.submit(draft("endless-2", gpus=4), caller=BOB)
    teams.cycle()
    assert offered(teams, "bob")["two-a100"].expected_wait_seconds is None


def test_gangs_are_counted_whole(teams: Desk) -> None:
    assert offered(teams, "ann", DISTRIBUTED, 2)["two-a10"].free_count == 2
    assert "two-a10" not in offered(teams, "ann", DISTRIBUTED, 3), "there are two nodes"
    with pytest.raises(Invalid) as refusal:
        offered(teams, "ann", TRAINING, 2)
    assert refusal.value.field == "nodes"


def test_a_user_without_a_pool_is_offered_nothing(teams: Desk) -> None:
    assert offered(teams, "eve").keys() == {"cpu-only"}, "the pool of group default has no GPU left"
    teams.do(pools.move_gpus, ROOT, "default", A100S[:2])
    assert offered(teams, "eve")["two-a100"].free_count == 1


def test_many_are_counted_although_few_are_tried(store: Store) -> None:
    desk = Desk(store, nodes=[node(f"n{n}", gpus=8) for n in range(20)])
    desk.do(catalog.create_package, ROOT, PackageRecord(name="one", gpus=1))
    assert offered(desk, "ann")["one"].free_count == 160
    desk.do(create_user, ROOT, "bob")
    desk.submit(draft("held-by-quota"), caller=BOB)
    desk.do(set_quota, ROOT, "bob", {TRAINING: Quota(gpu_milli=0)})
    assert desk.cycle() == []
    assert offered(desk, "ann")["one"].free_count == 160 > MAX_TRIED


# ------------------------------------------------------------------------------------------------ the promise


def put_in_line(state: State, job: Job, now: float) -> None:
    state.apply([PutJob(job=advance(job, StartRequested(at=now)).job)])


def run_plans(state: State, now: float) -> set[str]:
    """Plan until nothing more starts."""
    started: set[str] = set()
    while starts := schedule(state.snapshot, now).starts:
        for start in starts:
            job = state.snapshot.jobs[start.job_id]
            state.apply([PutJob(job=advance(job, Planned(at=now, allocation=start.allocation)).job)])
            state.apply([PutLastNode(id=start.allocation.grants[-1].node)])
            started.add(start.job_id)
    return started


def busy_cluster(cluster: tuple[Change, ...], others: list[Job], now: float) -> State:
    (rules,) = (change for change in cluster if isinstance(change, PutRules))
    state = State(Policies(limits=rules.limits, max_queue_length=None))
    state.apply(cluster)
    for job in others:
        put_in_line(state, job, job.created_at)
    run_plans(state, now)
    return state


def how_many_start(state: State, job: Job, now: float, at_most: int) -> int:
    """Submitted one after the other, until one waits or is refused."""
    for count in range(at_most):
        one = replace(job, id=f"j-{1000 + count}", name=f"ours-{count}")
        try:
            one = settled(state, one)
            admit(state, [one])
        except Refusal:
            return count
        put_in_line(state, one, now)
        if one.id not in run_plans(state, now):
            return count
    return at_most


@DEAR
@given(
    cluster=clusters(),
    others=st.lists(st.integers(1, 99), unique=True, max_size=12).flatmap(
        lambda serials: st.tuples(*(jobs(serial, ("default", "default", "strict", "night")) for serial in serials))
    ),
    request=requests(),
    kind=st.sampled_from([TRAINING, WORKBENCH]),
)
def test_the_free_count_is_what_can_really_be_started(
    cluster: tuple[Change, ...], others: tuple[Job, ...], request: Request, kind: JobKind
) -> None:
    now = 100.0
    state = busy_cluster(cluster, list(others), now)
    kind = DISTRIBUTED if request.is_gang else kind
    flavor = FlavorRecord(name="f", models=request.models, labels=request.labels)
    package = PackageRecord(
        name="p",
        gpus=request.gpus,
        gpu_milli=request.gpu_milli,
        cpu_milli=request.cpu_milli,
        memory_bytes=request.memory_bytes,
        flavor="f",
    )
    known = catalog.Catalog(flavors={"f": flavor}, packages={"p": package})
    found = offers(state, known, "ann", kind, now, request.nodes)
    promised = found[0].free_count if found else 0
    job = Job(id="j-0", name="ours", user="ann", kind=kind, queue="", request=request, created_at=now)
    assert how_many_start(state, job, now, promised + 2) == promised
    if found:
        assert (found[0].expected_wait_seconds == 0.0) == (promised > 0)
        waiting = [one for one in others if state.snapshot.jobs[one.id].state is JobState.QUEUED]
        assert found[0].queued <= len(waiting)
