"""Suggestions were tried out: each one helps, and no other one is made."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from corral.control.errors import Refusal
from corral.control.fleet import catalog
from corral.control.jobs import job_edit, jobs
from corral.control.ports import Store
from corral.control.records import FlavorRecord, PackageRecord
from corral.control.scheduling import queues, views
from corral.control.scheduling.suggestions import MOST_TRIED, Outcome, Suggestion, change_for, suggestions
from corral.control.system.policies import Policies, ScalingPolicy
from corral.core.model import Blocking, JobState, Queue, Request
from corral.core.scheduling.explain.advice import Operation
from corral.core.snapshot.installation import BackfillRules, Limits, ScalingRules
from tests.unit.control.fresh_stores import FreshStores
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft
from tests.unit.core.builders import node

HOUR = 3600.0


def advice(desk: Desk, job_id: str, trials: int = MOST_TRIED) -> list[Suggestion]:
    left = [True] * trials
    with desk.store.read() as tx:
        record = tx.jobs.get(job_id)
        known = catalog.load_catalog(tx)
    assert record is not None
    before = dict(desk.state.snapshot.jobs)
    job, spec = record.job, record.spec
    found = suggestions(desk.state, desk.now, job, spec, known, may_go_on=lambda: bool(left and left.pop()))
    assert desk.state.snapshot.jobs == before, "looking changes nothing"
    return found


def changes(found: list[Suggestion]) -> list[tuple[str, dict[str, Any]]]:
    return [(item.outcome.value, dict(item.proposal.change)) for item in found]


def test_half_of_it_would_start_now(desk: Desk) -> None:
    desk.started(draft("first", gpus=3), draft("other", gpus=2))
    [job] = desk.submit(draft("large", gpus=4))
    assert desk.cycle() == []
    elastic, *smaller = changes(advice(desk, job.id))
    assert elastic == ("start", {"min_gpus": 2, "max_gpus": 4})
    assert smaller == [("start", {"gpus": 2}), ("start", {"gpus": 1})]


def test_a_job_that_starts_by_itself_needs_no_advice(desk: Desk) -> None:
    [job] = desk.submit(draft("soon", gpus=4))
    assert advice(desk, job.id) == []


def test_changes_that_the_rules_refuse_are_not_suggested(desk: Desk) -> None:
    """Half of the request has room, but the queue takes only whole nodes."""
    desk.do(queues.create, ROOT, Queue(name="whole", min_job_gpus=4))
    desk.started(draft("first", gpus=3, queue="default"), draft("other", gpus=2, queue="default"))
    [job] = desk.submit(draft("large", gpus=4, queue="whole"))
    assert advice(desk, job.id) == []


def test_changes_that_do_not_help_are_not_suggested(desk: Desk) -> None:
    """Half of it would find room, but an earlier job of the line has a right to that."""
    desk.do(queues.edit, ROOT, Queue(name="default", policy="fcfs", blocking=Blocking.STRICT))
    desk.started(draft("first", gpus=4), draft("other", gpus=2))
    desk.submit(draft("ahead", gpus=4))
    [job] = desk.submit(draft("behind", gpus=4))
    assert advice(desk, job.id) == []


def test_a_limit_that_half_of_it_respects(store: Store) -> None:
    desk = Desk(store, Policies(limits=Limits(max_gpus_per_user=4)))
    desk.started(draft("first", gpus=2))
    [job] = desk.submit(draft("large", gpus=4))
    assert ("start", {"gpus": 2}) in changes(advice(desk, job.id))


def test_another_package_of_the_same_size(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", 2, model="A100"), node("n2", 2, model="A10")))
    for model in ("A100", "A10"):
        desk.do(catalog.create_flavor, ROOT, FlavorRecord(name=model, models=(model,)))
        desk.do(catalog.create_package, ROOT, PackageRecord(name=f"two-{model}", gpus=2, flavor=model))
    desk.started(draft("first", gpus=0, package="two-A100"))
    [job] = desk.submit(draft("second", gpus=0, package="two-A100"))
    found = advice(desk, job.id)
    assert ("start", {"package": "two-A10"}) in changes(found)
    [take] = [item for item in found if "package" in item.proposal.change]
    desk.do(job_edit.edit, ANN, job.id, change_for(take.proposal))
    assert desk.cycle() == [job.id]
    assert desk.record(job.id).spec.labels["corral/package"] == "two-A10"


def test_a_promised_start_can_come_earlier(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", 4), node("n2", 4, model="A100")))
    for gpus, model, hours in ((4, "A10", 10), (4, "A100", 1)):
        request = Request(gpus=gpus, models=(model,))
        desk.started(draft(f"on-{model}", request=request, time_limit_seconds=hours * HOUR))
    [job] = desk.submit(draft("waits", request=Request(gpus=4, models=("A10",)), time_limit_seconds=HOUR))
    desk.cycle()
    [other] = [item for item in advice(desk, job.id) if "model" in item.proposal.change]
    assert (other.outcome, dict(other.proposal.change)) == (Outcome.EARLIER, {"model": ["A10", "A100"]})
    assert other.start_at <= desk.now + 3 * HOUR, "at the latest, as jobs behind may pass it until then"
    desk.do(job_edit.edit, ANN, job.id, change_for(other.proposal))
    desk.cycle()
    promised = desk.state.plan.planned_start(job.id)
    assert promised is not None
    assert promised.at == other.start_at


def test_why_has_the_soonest_and_the_latest_start(store: Store) -> None:
    desk = Desk(store, Policies(backfill=BackfillRules(protected=1, slack=3.0)), nodes=(node("n1", 4),))
    desk.started(draft("running", gpus=3, time_limit_seconds=HOUR))
    [job] = desk.submit(draft("waits", gpus=4, time_limit_seconds=HOUR))
    desk.cycle()
    explained = views.why(desk.state, desk.now, desk.job(job.id))
    assert "in 1h at the latest" not in explained.summary
    assert "ended, in 1h" in explained.summary
    assert (
        "and in 3h at the latest: until it has waited for 3 times as long as its time limit, jobs that end by then may "
        "pass it; 1 free GPU is held for it"
    ) in explained.summary
    assert explained.planned is not None
    assert explained.planned.at == desk.now + 3 * HOUR


def test_half_of_it_would_be_promised_earlier(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", 4),))
    for number, hours in ((1, 1), (2, 1), (3, 10), (4, 10)):
        desk.started(draft(f"running-{number}", gpus=1, time_limit_seconds=hours * HOUR))
    [job] = desk.submit(draft("waits", gpus=4, time_limit_seconds=HOUR))
    desk.cycle()
    assert changes(advice(desk, job.id)) == [("earlier", {"gpus": 2})]


def test_fewer_nodes_would_be_promised_earlier(store: Store) -> None:
    desk = Desk(store, nodes=tuple(node(f"n{number}", 2) for number in range(4)))
    for number, hours in ((1, 1), (2, 1), (3, 10), (4, 10)):
        desk.started(draft(f"running-{number}", gpus=2, time_limit_seconds=hours * HOUR))
    [job] = desk.submit(draft("waits", gpus=2, nodes=4, time_limit_seconds=HOUR))
    desk.cycle()
    assert ("earlier", {"nodes": 2}) in changes(advice(desk, job.id))


def test_a_shorter_time_fits_before_what_is_promised_to_another(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", 4),))
    desk.do(queues.edit, ROOT, Queue(name="default", policy="fcfs"))
    desk.started(draft("running", gpus=2, time_limit_seconds=2 * HOUR))
    desk.submit(draft("first", gpus=4, time_limit_seconds=HOUR))
    [job] = desk.submit(draft("behind", gpus=2, time_limit_seconds=4 * HOUR))
    assert desk.cycle() == []
    [shorter] = [item for item in advice(desk, job.id) if "time" in item.proposal.change]
    assert shorter.outcome is Outcome.START
    desk.do(job_edit.edit, ANN, job.id, change_for(shorter.proposal))
    assert desk.cycle() == [job.id]


def test_another_queue_lets_it_pass(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", 4),))
    desk.do(queues.edit, ROOT, Queue(name="default", policy="fcfs", blocking=Blocking.STRICT))
    desk.do(queues.create, ROOT, Queue(name="second"))
    desk.started(draft("running", gpus=2, queue="default", time_limit_seconds=2 * HOUR))
    desk.submit(draft("first", gpus=4, queue="default", time_limit_seconds=HOUR))
    [job] = desk.submit(draft("behind", gpus=1, queue="default", time_limit_seconds=HOUR / 2))
    assert desk.cycle() == []
    assert changes(advice(desk, job.id)) == [("start", {"queue": "second"})]


def test_another_model_of_the_same_pool_has_room(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", 2, model="A100"), node("n2", 2, model="A10")))
    desk.started(draft("first", request=Request(gpus=2, models=("A100",))))
    [job] = desk.submit(draft("second", request=Request(gpus=2, models=("A100",))))
    assert ("start", {"model": ["A10", "A100"]}) in changes(advice(desk, job.id))


def test_starting_a_held_job_is_suggested_if_it_would_start(desk: Desk) -> None:
    [job] = desk.submit(draft("held", gpus=2, hold=True))
    [only] = advice(desk, job.id)
    assert (only.proposal.operation, only.outcome) == (Operation.START, Outcome.START)
    desk.do(jobs.start, ANN, job.id)
    assert desk.cycle() == [job.id]


def test_elastic_jobs_begin_small_where_the_installation_has_them(store: Store) -> None:
    desk = Desk(store, Policies(scaling=ScalingPolicy(rules=ScalingRules(enabled=True), min_gpus=1, max_gpus=8)))
    desk.started(draft("first", gpus=3), draft("other", gpus=2))
    [job] = desk.submit(draft("large", gpus=4))
    assert changes(advice(desk, job.id))[0] == ("start", {"min_gpus": 2, "max_gpus": 4})


def test_trials_end_when_time_is_up(desk: Desk) -> None:
    desk.started(draft("first", gpus=3), draft("other", gpus=2))
    [job] = desk.submit(draft("large", gpus=4))
    assert advice(desk, job.id, trials=0) == []
    assert len(advice(desk, job.id, trials=1)) == 1


def test_every_suggested_change_does_start_the_job(fresh_stores: FreshStores) -> None:
    """In worlds made by chance, with limits, queues and promises in the way, advice is followed at once."""
    followed = 0
    for seed in range(12):
        with fresh_stores.new() as store:
            followed += _follow_advice(_world(store, random.Random(seed)), random.Random(seed))
    assert followed >= 6, "the worlds would prove nothing if there was never any advice"


def _world(store: Store, chance: random.Random) -> Desk:
    fleet = tuple(node(f"n{n}", chance.choice([2, 4, 8]), model=chance.choice(["A10", "A100"])) for n in range(4))
    scaling = ScalingPolicy(rules=ScalingRules(enabled=chance.random() < 0.5), min_gpus=1, max_gpus=8)
    limits = Limits(max_gpus_per_user=chance.choice([None, 6]))
    desk = Desk(store, Policies(scaling=scaling, limits=limits), nodes=fleet)
    desk.do(queues.create, ROOT, Queue(name="short", max_seconds=2 * HOUR, blocking=chance.choice([*Blocking])))
    for number in range(14):
        models = (chance.choice(["A10", "A100"]),) if chance.random() < 0.6 else ()
        gpus = chance.choice([1, 2] if number < 6 else [2, 4, 8])
        wanted = draft(
            f"job-of-{number}",
            request=Request(gpus=gpus, models=models, nodes=2 if chance.random() < 0.15 else 1),
            queue=chance.choice(["default", "short"]),
            time_limit_seconds=chance.choice([0.5, 1, 2]) * HOUR,
        )
        with suppress(Refusal):
            desk.submit(wanted, caller=chance.choice([ANN, BOB]))
        if number % 5 == 0:
            desk.cycle()
    desk.cycle()
    return desk


def _follow_advice(desk: Desk, chance: random.Random) -> int:
    """How often there was any."""
    followed = 0
    for job_id in [job.id for job in desk.state.snapshot.jobs.values() if job.state is JobState.QUEUED]:
        if desk.job(job_id).state is not JobState.QUEUED:
            continue
        found = [item for item in advice(desk, job_id) if item.outcome is Outcome.START]
        if found:
            chosen = chance.choice(found)
            desk.do(job_edit.edit, ROOT, job_id, change_for(chosen.proposal))
            assert job_id in desk.cycle(), chosen
            followed += 1
    return followed
