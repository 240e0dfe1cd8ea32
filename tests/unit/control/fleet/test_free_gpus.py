"""Every count of free GPUs is the same one, and never has a GPU that no job could start on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from corral.control.alerts.facts import facts_of, look
from corral.control.fleet import catalog, panel, pools
from corral.control.fleet.offers import offers
from corral.control.live.state import State
from corral.control.people.user_accounts import create_user
from corral.control.ports import Store
from corral.control.records import PackageRecord, PoolRecord
from corral.control.scheduling import reservations
from corral.control.scheduling.reserved_gpus import ReservationDraft
from corral.control.system.policies import Policies
from corral.core.alerts.recent import Recent
from corral.core.fleet.free_gpus import free_gpus
from corral.core.jobs.lifecycle import Planned, StartRequested, advance
from corral.core.model import GpuHealth, Job, JobKind, Node, NodeState, Request, Taken
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import Change, PutJob, PutLastNode, PutReservation, PutRules
from corral.core.snapshot.installation import AllocationRules, Strategy
from corral.server.fleet.gpu_map import map_page
from corral.server.fleet.summary import installation_now, overview_of
from corral.server.monitoring.fleet_metrics import Seen, families_of, read_fleet
from corral.telemetry.reading_sums import GpuSums, HostSums
from tests.unit.control.world import ANN, ROOT, Desk, draft
from tests.unit.core.builders import node
from tests.unit.core.strategies import clusters

NOW = 1000.0


@st.composite
def states(draw: st.DrawFn) -> State:
    """A cluster of all sorts of nodes, with reservations of some GPUs and a job that runs."""
    state = State(Policies())
    state.apply(draw(clusters()))
    gpus = [gpu for one in state.snapshot.nodes.values() for gpu in one.gpus]
    changes: list[Change] = []
    for number, gpu in enumerate(gpus):
        if draw(st.integers(0, 3)) == 0:
            since = draw(st.sampled_from((NOW - 100, NOW - 100, NOW + 100)))
            until = draw(st.sampled_from((None, NOW + 200, NOW - 50)))
            changes.append(
                PutReservation(
                    reservation=Reservation(
                        name=f"r{number}",
                        pool=gpu.pool,
                        gpus=(gpu.id,),
                        users=draw(st.sampled_from((("eve",), ("ann",)))),
                        since=since,
                        until=None if until is None else max(until, since + 10),
                        lends=draw(st.booleans()),
                    )
                )
            )
    rules = next(change for change in state.snapshot.settings() if isinstance(change, PutRules))
    strategy = draw(st.sampled_from(tuple(Strategy)))
    changes.append(replace(rules, allocation=AllocationRules(strategy=strategy)))
    state.apply(changes)
    job = Job(id="j-1", name="some", user="ann", queue="default", request=Request(gpus=1), created_at=NOW)
    queued = advance(job, StartRequested(at=NOW)).job
    state.apply([PutJob(job=queued)])
    for start in schedule(state.snapshot, NOW).starts:
        begun = advance(queued, Planned(at=NOW, allocation=start.allocation)).job
        state.apply([PutJob(job=begun), PutLastNode(id=start.allocation.grants[0].node)])
    return state


def usable(state: State, one: Node) -> set[str]:
    """Counted in the simplest way."""
    held = {gpu for job in state.snapshot.jobs.values() for gpu in (job.allocation.gpus if job.allocation else ())}
    healthy = {gpu.id for gpu in one.gpus if gpu.health is GpuHealth.HEALTHY}
    return healthy - held - set(one.taken.gpus) if one.state is NodeState.READY else set()


@given(states())
def test_every_count_is_the_same(state: State) -> None:
    idle = free_gpus(state.snapshot, NOW)
    expected = {gpu for one in state.snapshot.nodes.values() for gpu in usable(state, one)}
    assert idle.free | idle.reserved == expected
    assert not idle.free & idle.reserved
    reserved = {
        gpu
        for one in state.snapshot.reservations.values()
        if one.since <= NOW and (one.until is None or one.until > NOW)
        if not (one.until is None and state.snapshot.allocation.strategy is Strategy.DYNAMIC)
        for gpu in one.gpus
    }
    if state.snapshot.allocation.strategy is Strategy.STATIC:
        assert not idle.free
    else:
        assert idle.free == expected - reserved

    shown = state.fleet(NOW).views()
    assert {gpu.gpu.id for one in shown for gpu in one.gpus if gpu.is_free} == idle.free
    assert sum(one.free_gpus for one in shown) == len(idle.free)
    mapped = map_page(state, NOW).nodes
    assert {gpu.gpu.id for one in mapped for gpu in one.gpus if gpu.is_free} == idle.free
    overview = overview_of(installation_now(state, NOW), {}, (), GpuSums(), HostSums())
    assert (overview.gpus_free, overview.gpus_reserved) == (len(idle.free), len(idle.reserved))

    pool_of = {gpu.id: gpu.pool for one in state.snapshot.nodes.values() for gpu in one.gpus}
    per_pool = Counter(pool_of[gpu] for gpu in idle.free)
    owned = [(PoolRecord(name=name), None) for name in sorted({"default", *pool_of.values()})]
    assert {one.record.name: one.free_gpus for one in pools.pool_views(state, owned, NOW)} == {
        record.name: per_pool[record.name] for record, _ in owned
    }
    facts = facts_of(look(state, NOW), {}, Recent(since=NOW), (), (), NOW)
    assert {one.id: one.free for one in facts.pools} == {pool: per_pool[pool] for pool in set(pool_of.values())}
    in_reach = {queue.pool for queue in state.snapshot.queues.values()}
    rows = panel.panel(state, NOW, kind=JobKind.TRAINING).kinds
    assert rows[0].free == sum(count for pool, count in per_pool.items() if pool in in_reach)
    seen = Seen(now=NOW, fleet=read_fleet(state, NOW), job_counts={}, measured={}, hosts={}, read=GpuSums(), alerts=())
    family = next(family for family in families_of(seen) if family.name == "corral_gpus_free")
    assert sum(value for _, value in family.rows) == len(idle.free)


@given(states())
def test_own_reserved_gpus_are_free_for_their_owner(state: State) -> None:
    general, owner = free_gpus(state.snapshot, NOW), free_gpus(state.snapshot, NOW, "eve")
    assert owner.free >= general.free
    assert owner.free | owner.reserved == general.free | general.reserved


def test_packages_and_panel_of_a_user_leave_out_what_is_reserved_for_others(store: Store) -> None:
    """40 GPUs on 5 nodes: one node is down, one cordoned, and GPUs are failed, taken and reserved."""
    desk = Desk(store, nodes=())
    for name in ("root", "ann", "eve"):
        desk.do(create_user, ROOT, name)
    broken = node("n2", gpus=8)
    desk.observe(
        node("n1", gpus=8),
        replace(broken, gpus=(replace(broken.gpus[0], health=GpuHealth.FAILED), *broken.gpus[1:])),
        replace(node("n3", gpus=8), state=NodeState.DOWN),
        replace(node("n4", gpus=8), state=NodeState.CORDONED),
        replace(node("n5", gpus=8), taken=Taken(gpus=("n5/0",))),
    )
    wanted = ReservationDraft(gpu_ids=("n1/0", "n1/1"), users=("eve",), groups=(), since=desk.now)
    desk.do(reservations.create, ROOT, "demo", "default", wanted)
    desk.do(catalog.create_package, ROOT, PackageRecord(name="single", gpus=1))
    desk.submit(draft("runs", gpus=4), caller=ANN)
    desk.cycle()
    with desk.store.read() as tx:
        known = catalog.load_catalog(tx)
    for user, expected in (("ann", 8 + 7 + 7 - 2 - 4), ("eve", 8 + 7 + 7 - 4)):
        (offer,) = offers(desk.state, known, user, JobKind.TRAINING, desk.now)
        (row,) = panel.panel(desk.state, desk.now, user=user, kind=JobKind.TRAINING).kinds
        assert (user, offer.free_count, row.free) == (user, expected, expected)
