"""The queue of a job that names none, and how a waiting job is changed."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.errors import Invalid, NotFound, OverLimit, Refusal, WrongState
from corral.control.fleet import pools
from corral.control.jobs import job_edit, jobs
from corral.control.jobs.tasks import allocate
from corral.control.ports import Store
from corral.control.scheduling import queues, views
from corral.control.system.policies import Policies
from corral.core.model import JobKind, JobState, Queue, Request
from corral.core.snapshot.installation import Limits
from tests.unit.control.copied_desks import once
from tests.unit.control.tenants import two_teams
from tests.unit.control.world import ANN, BOB, ROOT, Desk, changed, draft

HOUR = 3600.0
#: beside the queue `small` of its pool, which takes everything
RULES = (
    Queue(name="quick", pool="small", max_seconds=HOUR, max_job_gpus=2),
    Queue(name="day", pool="small", max_seconds=24 * HOUR),
    Queue(name="heavy", pool="small", min_job_gpus=4),
    Queue(name="heavy-day", pool="small", min_job_gpus=4, max_seconds=24 * HOUR),
    Queue(name="benches", pool="small", kinds=(JobKind.WORKBENCH,)),
    Queue(name="by-name", pool="small", policy="priority"),
)


@pytest.fixture
@once
def teams(store: Store) -> Desk:
    desk = two_teams(store)
    for queue in RULES:
        desk.do(queues.create, ROOT, queue)
    return desk


@pytest.mark.parametrize(
    ("asked", "queue"),
    [
        ({"gpus": 1, "time_limit_seconds": 600.0}, "quick"),
        ({"gpus": 1, "time_limit_seconds": HOUR}, "quick"),
        ({"gpus": 1, "time_limit_seconds": HOUR + 1}, "day"),
        ({"gpus": 3, "time_limit_seconds": 600.0}, "day"),
        ({"gpus": 0, "time_limit_seconds": 600.0}, "quick"),
        ({"gpus": 4, "time_limit_seconds": 600.0}, "heavy-day"),
        ({"gpus": 4, "nodes": 2, "time_limit_seconds": 24 * HOUR}, "heavy-day"),
        ({"gpus": 4, "time_limit_seconds": 25 * HOUR}, "heavy"),
        ({"gpus": 1, "time_limit_seconds": 25 * HOUR}, "small"),
        ({"gpus": 1}, "small"),
        ({"gpus": 4}, "heavy"),
        ({"gpus": 1, "kind": JobKind.WORKBENCH}, "benches"),
        ({"gpus": 1, "kind": JobKind.WORKBENCH, "time_limit_seconds": 600.0}, "quick"),
        ({"gpus": 1, "queue": "by-name"}, "by-name"),
    ],
)
def test_short_long_and_heavy_work_finds_its_queue(teams: Desk, asked: dict[str, Any], queue: str) -> None:
    (job,) = teams.submit(draft("routed", **asked))
    assert job.queue == queue
    assert job.time_limit_seconds == asked.get("time_limit_seconds"), "the right queue takes nothing away"
    assert teams.cycle() == [job.id]


def test_without_an_unlimited_queue_a_job_without_a_time_gets_the_longest(teams: Desk) -> None:
    teams.do(queues.edit, ROOT, Queue(name="small", pool="small", kinds=(JobKind.WORKBENCH,)))
    teams.do(queues.edit, ROOT, Queue(name="by-name", pool="small", max_seconds=2 * HOUR))
    (job,) = teams.submit(draft("routed"))
    assert (job.queue, job.time_limit_seconds) == ("day", 24 * HOUR)


def test_a_shared_queue_is_chosen_where_the_own_pool_has_not_what_is_asked(teams: Desk) -> None:
    teams.do(queues.create, ROOT, Queue(name="lent", pool="big", groups=("team-a",)))
    (plain, special) = teams.submit(draft("plain"), draft("special", request=Request(gpus=1, models=("A100",))))
    assert (plain.queue, special.queue) == ("small", "lent")
    (theirs,) = teams.submit(draft("plain"), caller=BOB)
    assert theirs.queue == "big"


def test_a_shared_queue_that_says_what_it_is_for_is_chosen_before_the_own_default(teams: Desk) -> None:
    teams.do(queues.create, ROOT, Queue(name="huge", pool="big", groups=("team-a",), min_job_gpus=8))
    (job,) = teams.submit(draft("gang", gpus=4, nodes=2))
    assert job.queue == "huge"


def test_a_queue_out_of_reach_is_refused_naming_those_within(teams: Desk) -> None:
    for queue, words in (("big", "may not use the queue 'big'"), ("nowhere", "there is no queue 'nowhere'")):
        with pytest.raises(Invalid) as refusal:
            teams.submit(draft("wrong", queue=queue))
        assert words in refusal.value.detail
        assert refusal.value.field == "queue"
        known = refusal.value.numbers["known"]
        assert isinstance(known, list)
        assert set(known) == {"small", *(rule.name for rule in RULES)}


def test_where_no_queue_takes_a_job_the_last_one_says_why(store: Store) -> None:
    desk = two_teams(store)
    desk.do(queues.edit, ROOT, Queue(name="small", pool="small", max_seconds=HOUR, max_job_gpus=2))
    with pytest.raises(OverLimit) as refusal:
        desk.submit(draft("too-long", time_limit_seconds=2 * HOUR))
    assert (refusal.value.field, refusal.value.numbers) == ("time", {"asked": 2 * HOUR, "limit": HOUR})
    with pytest.raises(OverLimit):
        desk.submit(draft("too-large", gpus=3))


def test_a_plan_shows_the_same(teams: Desk) -> None:
    for asked, starts in ((draft("fits", gpus=4), True), (draft("never", queue="big"), False)):
        made = teams.do(jobs.make_job, ANN, asked)
        trial = views.try_out(teams.state, teams.now, made)
        assert (trial.start is not None, trial.refusal is None) == (starts, starts)


def test_an_automatic_task_counts_the_free_gpus_of_the_own_pool(store: Store) -> None:
    desk = two_teams(store)
    desk.do(pools.move_gpus, ROOT, "default", [f"n{n}/{i}" for n in (1, 2) for i in range(1, 4)])
    allocated = desk.do(allocate, ANN, "mine", None, ("hold",))
    assert (allocated.record.job.queue, allocated.record.job.request.gpus) == ("small", 1)


# -------------------------------------------------------------------------------------------- editing


def test_a_waiting_job_is_moved_and_changed(teams: Desk) -> None:
    teams.submit(draft("fills-1", gpus=4, nodes=2))
    teams.cycle()
    (job,) = teams.submit(draft("waits", time_limit_seconds=600.0))
    teams.do(jobs.pin, ROOT, job.id)
    edited = teams.do(job_edit.edit, ANN, "waits", changed(priority=1, time_limit_seconds=2 * HOUR, queue="day"))
    assert (edited.queue, edited.priority, edited.time_limit_seconds) == ("day", 1, 2 * HOUR)
    assert (edited.pinned_at, edited.queued_at) == (None, job.queued_at)
    assert teams.job(job.id) == edited
    assert teams.do(job_edit.edit, ANN, job.id, changed(time_limit_seconds=600.0, queue=None)).queue == "quick"
    back = teams.do(job_edit.edit, ROOT, job.id, changed(time_limit_seconds=None, queue="day"))
    assert back.time_limit_seconds == 24 * HOUR
    assert teams.actions(job.id).count("job.edited") == 3
    assert teams.do(job_edit.edit, ANN, job.id, changed(priority=1)) == back, "nothing to change, nothing recorded"
    assert teams.actions(job.id).count("job.edited") == 3


def test_a_created_job_is_changed_before_it_starts(teams: Desk) -> None:
    (job,) = teams.submit(draft("held", hold=True))
    edited = teams.do(job_edit.edit, ANN, job.id, changed(queue="day", time_limit_seconds=HOUR))
    assert (edited.state, edited.queue) == (JobState.CREATED, "day")
    assert teams.do(jobs.start, ANN, job.id).queue == "day"


def test_queue_of_running_and_ended_jobs_is_not_changed(teams: Desk) -> None:
    (job,) = teams.started(draft("runs"))
    for _ in range(2):
        with pytest.raises(WrongState):
            teams.do(job_edit.edit, ANN, job.id, changed(priority=1))
        teams.do(jobs.stop, ANN, job.id)


@pytest.mark.parametrize(
    ("values", "kind", "field"),
    [
        ({"queue": "big"}, Invalid, "queue"),
        ({"queue": "nowhere"}, Invalid, "queue"),
        ({"queue": "heavy"}, Invalid, "gpus"),
        ({"queue": "benches"}, Invalid, "kind"),
        ({"queue": "quick", "time_limit_seconds": 2 * HOUR}, OverLimit, "time"),
        ({"time_limit_seconds": 48 * HOUR}, OverLimit, "time"),
        ({"queue": "full"}, OverLimit, "queue"),
    ],
)
def test_a_change_that_its_queue_does_not_allow_is_refused(
    teams: Desk, values: dict[str, Any], kind: type[Refusal], field: str
) -> None:
    teams.do(queues.create, ROOT, Queue(name="full", pool="small", max_length=0))
    (job,) = teams.submit(draft("waits", queue="day", time_limit_seconds=HOUR))
    with pytest.raises(kind) as refusal:
        teams.do(job_edit.edit, ANN, job.id, changed(**values))
    assert refusal.value.field == field
    assert teams.job(job.id) == job


def test_only_the_owner_and_operators_change_a_job(teams: Desk) -> None:
    (job,) = teams.submit(draft("waits"))
    with pytest.raises(NotFound):
        teams.do(job_edit.edit, BOB, job.id, changed(priority=0))


def test_a_full_installation_does_not_keep_a_waiting_job_from_moving(store: Store) -> None:
    desk = Desk(store, Policies(max_queue_length=1, limits=Limits(max_seconds=HOUR)))
    desk.do(queues.create, ROOT, Queue(name="nights"))
    (job,) = desk.submit(draft("waits"))
    assert desk.do(job_edit.edit, ANN, job.id, changed(queue="nights")).queue == "nights"
