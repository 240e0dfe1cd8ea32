"""Live views always equal a count of everything, and an update costs only what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.fleet.live_fleet import LiveFleet
from corral.control.fleet.live_views import MAX_UNREAD
from corral.control.live.state import State
from corral.control.system.policies import Policies
from corral.core.fleet.free_gpus import free_gpus
from corral.core.model import WHOLE, GpuHealth, Job, JobKind, JobState, Node, NodeState, Queue, Taken
from corral.core.monitoring.health.model import Condition
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import (
    Change,
    DropJob,
    DropNode,
    DropReservation,
    PutJob,
    PutNode,
    PutQueue,
    PutReservation,
    PutRules,
)
from corral.core.snapshot.installation import AllocationRules, Strategy
from tests.unit.core.builders import node, running, waiting

MODELS = ("A10", "H100")
POOLS = ("default", "vision")
NAMES = tuple(f"n{number}" for number in (1, 2, 3, 10, 11))


class History:
    """A state that random changes are made to, and the time."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = 1000.0
        self.serial = 0
        self.state = State(Policies())
        self.state.apply([PutQueue(queue=Queue(name=name)) for name in ("default", "night")])
        for name in NAMES[:3]:
            self.state.apply([PutNode(node=self.new_node(name))])

    def new_node(self, name: str) -> Node:
        cluster = self.rng.choice(("here", "there"))
        model = self.rng.choice(MODELS)
        return node(name, gpus=self.rng.randint(0, 4), model=model, pool=self.rng.choice(POOLS), cluster=cluster)

    def step(self) -> None:
        act = self.rng.choice(
            (
                self.start,
                self.start,
                self.queue,
                self.end,
                self.up,
                self.alter,
                self.fleet,
                self.reserve,
                self.judge,
                self.wait,
            )
        )
        act()

    def start(self) -> None:
        free = [
            (slot.node, index)
            for slot in self.state.snapshot.fleet.slots
            for index, left in enumerate(slot.free_milli.values())
            if left == WHOLE
        ]
        if not free:
            return
        self.serial += 1
        at, index = self.rng.choice(free)
        share = self.rng.choice((0, 250))
        model = at.gpus[index].model
        job = running(
            self.serial,
            on={at.id: (index,)},
            user=self.user(),
            model=model,
            gpu_milli=share,
            queue=self.queue_name(),
            state=self.rng.choice((JobState.STARTING, JobState.RUNNING)),
        )
        self.state.apply([PutJob(job=job)])

    def queue(self) -> None:
        self.serial += 1
        models = self.rng.choice(((), ("A10",), ("H100",)))
        gpus = self.rng.choice((0, 1, 2))
        job = waiting(
            self.serial,
            user=self.user(),
            gpus=gpus,
            models=models if gpus else (),
            at=self.now - self.rng.randint(0, 3),
            queue=self.queue_name(),
            kind=self.rng.choice(list(JobKind)),
        )
        self.state.apply([PutJob(job=job)])

    def end(self) -> None:
        if self.state.snapshot.jobs:
            self.state.apply([DropJob(id=self.rng.choice(list(self.state.snapshot.jobs)))])

    def up(self) -> None:
        """A job changes and stays where it is."""
        jobs = list(self.state.snapshot.jobs.values())
        if jobs:
            job = self.rng.choice(jobs)
            state = JobState.RUNNING if job.allocation is not None else job.state
            self.state.apply([PutJob(job=replace(job, state=state, queue=self.queue_name(), version=job.version + 1))])

    def alter(self) -> None:
        nodes = list(self.state.snapshot.nodes.values())
        if not nodes:
            return
        known = self.rng.choice(nodes)
        changed = replace(known, state=self.rng.choice(list(NodeState)))
        if known.gpus:
            gpus = list(known.gpus)
            place = self.rng.randrange(len(gpus))
            health, pool = self.rng.choice(list(GpuHealth)), self.rng.choice(POOLS)
            gpus[place] = replace(gpus[place], health=health, pool=pool)
            taken = Taken(gpus=(self.rng.choice(gpus).id,)) if self.rng.random() < 0.3 else Taken()
            changed = replace(changed, gpus=tuple(gpus), taken=taken)
        self.state.apply([PutNode(node=changed)])

    def fleet(self) -> None:
        name = self.rng.choice(NAMES)
        is_used = any(
            grant.node == name
            for job in self.state.snapshot.jobs.values()
            for grant in (job.allocation.grants if job.allocation else ())
        )
        if name not in self.state.snapshot.nodes:
            self.state.apply([PutNode(node=self.new_node(name))])
        elif not is_used:
            self.state.apply([DropNode(id=name)])

    def reserve(self) -> None:
        if self.state.snapshot.reservations and self.rng.random() < 0.4:
            self.state.apply([DropReservation(name=self.rng.choice(list(self.state.snapshot.reservations)))])
            return
        gpus = [gpu for one in self.state.snapshot.nodes.values() for gpu in one.gpus]
        if gpus:
            gpu = self.rng.choice(gpus)
            since = self.now + self.rng.choice((-5.0, 5.0))
            until = self.rng.choice((None, since + 8.0))
            self.serial += 1
            one = Reservation(
                name=f"r{self.serial}", pool=gpu.pool, gpus=(gpu.id,), users=("ann",), since=since, until=until
            )
            self.state.apply([PutReservation(reservation=one)])
        if self.rng.random() < 0.2:
            rules = next(change for change in self.state.snapshot.settings() if isinstance(change, PutRules))
            strategy = self.rng.choice(list(Strategy))
            self.state.apply([replace(rules, allocation=AllocationRules(strategy=strategy))])

    def judge(self) -> None:
        gpus = [gpu for one in self.state.snapshot.nodes.values() for gpu in one.gpus]
        if not gpus:
            return
        gpu = self.rng.choice(gpus)
        if gpu.id in self.state.conditions and self.rng.random() < 0.5:
            del self.state.conditions[gpu.id]
        else:
            self.state.conditions[gpu.id] = Condition(gpu_id=gpu.id, health=self.rng.choice(list(GpuHealth)))

    def wait(self) -> None:
        self.now += self.rng.choice((0.0, 1.0, 6.0))

    def user(self) -> str:
        return self.rng.choice(("ann", "bob"))

    def queue_name(self) -> str:
        return self.rng.choice(("default", "night", "deleted"))


def check_fleet(history: History) -> None:
    state, now = history.state, history.now
    fleet, made = state.fleet(now), LiveFleet(state.snapshot)
    made.update(state.conditions, 0, now)
    assert fleet.views() == made.views()
    assert list(fleet.after(None)) == sorted(made.views(), key=lambda view: view.node.id)
    assert list(fleet.behind(None)) == made.views()
    assert fleet.groups == made.groups
    assert +fleet.nodes == +made.nodes
    assert +fleet.kinds == +made.kinds
    assert fleet.reserved == made.reserved
    assert fleet.held_gpus() == made.held_gpus()

    idle = free_gpus(state.snapshot, now)
    gpus = [gpu for view in fleet.views() for gpu in view.gpus]
    assert {gpu.gpu.id for gpu in gpus if gpu.is_free} == idle.free
    assert {gpu.gpu.id for gpu in gpus if gpu.is_reserved} == idle.reserved
    assert fleet.total().free == len(idle.free)
    held: Counter[str] = Counter()
    for job in state.snapshot.jobs.values():
        for grant in job.allocation.grants if job.allocation else ():
            held.update(dict.fromkeys(grant.gpus, grant.gpu_milli))
    assert {gpu.gpu.id: gpu.held_milli for gpu in gpus if gpu.held_milli} == held
    for user in ("ann", "bob"):
        assert fleet.total().free + len(fleet.freed_for(user, now)) == len(free_gpus(state.snapshot, now, user).free)


def check_jobs(history: History) -> None:
    state = history.state
    jobs, sums = list(state.snapshot.jobs.values()), state.job_sums()
    assert sums.asked_milli == sum(job.request.total_gpu_milli for job in jobs)
    assert +sums.states == Counter((job.user, job.state) for job in jobs)
    queued = [job for job in jobs if job.state is JobState.QUEUED]
    assert list(sums.queued_since()) == sorted(job.queued_at or 0.0 for job in queued)
    for name in ("default", "night", "deleted"):
        mine = [job for job in jobs if job.queue == name]
        facts = sums.queue(name)
        assert facts.length == sum(job.allocation is None for job in mine)
        assert facts.running == sum(job.allocation is not None for job in mine)
        assert facts.held_milli == sum(job.allocation.total_gpu_milli for job in mine if job.allocation)
        assert sums.oldest_wait(name) == min(
            (job.queued_at or 0.0 for job in queued if job.queue == name), default=None
        )
    for users in (None, ["ann"], ["ann", "bob"]):
        found = sums.sums(users, MODELS)
        mine = [job for job in jobs if users is None or job.user in users]
        assert sum(each.queued for each in found.values()) == sum(job.state is JobState.QUEUED for job in mine)
        assert {key: each.running_milli for key, each in found.items() if each.running_milli} == _running_milli(mine)


def _running_milli(jobs: Iterable[Job]) -> Counter[tuple[JobKind, str]]:
    found: Counter[tuple[JobKind, str]] = Counter()
    for job in jobs:
        if job.allocation is not None and job.request.total_gpu_milli:
            found[job.kind, job.allocation.model] += job.request.total_gpu_milli
    return found


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=1, max_size=60))
@settings(max_examples=150)
def test_incremental_sums_equal_a_new_count(seed: int, reads: list[bool]) -> None:
    history = History(Random(seed))
    for is_read in reads:
        history.step()
        if is_read:
            check_fleet(history)
            check_jobs(history)
    check_fleet(history)
    check_jobs(history)
    # The first read has made everything, and later ones have followed.
    assert history.state._views.made == 1


def large(nodes: int) -> State:
    state = State(Policies())
    state.apply(PutNode(node=node(f"n{number}", gpus=8)) for number in range(nodes))
    state.apply(PutJob(job=running(number, on={f"n{number}": (0, 1)})) for number in range(1, nodes))
    return state


def viewed(state: State, *changes: Change) -> int:
    """How many nodes are viewed again after these changes."""
    before = state.fleet(1000.0).viewed
    state.apply(changes)
    return state.fleet(1000.0).viewed - before


def test_a_change_costs_the_nodes_that_it_concerns_in_a_fleet_of_any_size() -> None:
    for size in (20, 400):
        state = large(size)
        assert viewed(state) == 0
        assert viewed(state, PutJob(job=running(9000, on={"n3": (4,), "n5": (4,)}))) == 2
        assert viewed(state, DropJob(id="j-9000")) == 2
        assert viewed(state, PutJob(job=waiting(9001, gpus=1))) == 0
        assert viewed(state, PutNode(node=replace(state.snapshot.nodes["n7"], state=NodeState.CORDONED))) == 1
        reservation = Reservation(
            name="r", pool="default", gpus=("n2/3", "n2/4"), users=("ann",), since=0.0, until=None
        )
        assert viewed(state, PutReservation(reservation=reservation)) == 1
        before = state.fleet(1000.0).viewed
        state.conditions["n9/0"] = Condition(gpu_id="n9/0", health=GpuHealth.SUSPECT)
        assert state.fleet(1000.0).viewed - before == 1
        assert viewed(state) == 0


def test_after_very_many_changes_without_a_read_everything_is_counted_anew() -> None:
    state = large(20)
    state.fleet(1000.0)
    job = running(9000, on={"n3": (4,)})
    for _ in range(MAX_UNREAD // 2 + 1):
        state.apply([PutJob(job=job), DropJob(id=job.id)])
    state.apply([PutJob(job=job)])
    assert len(state.snapshot.unread or ()) == MAX_UNREAD
    view = state.fleet(1000.0).view("n3")
    assert view is not None
    assert [one.id for one in view.jobs] == ["j-3", "j-9000"]
    assert state._views.made == 2
