"""The actions of users on jobs, and refusals that change nothing."""

from __future__ import annotations

import pytest

from corral.control.errors import Forbidden, InsufficientQuota, Invalid, NotFound, OverLimit, Refusal, Taken, WrongState
from corral.control.jobs import job_edit, jobs
from corral.control.live.unit_of_work import Work
from corral.control.people.quotas import set_quota
from corral.control.people.user_accounts import create_user
from corral.control.ports import AttemptPhase, Store
from corral.control.records import JobFilter, JobSpec
from corral.control.scheduling import queues
from corral.control.system.policies import Policies
from corral.core.jobs.lifecycle import Launch, Stop
from corral.core.model import EndReason, JobKind, JobState, Queue, Request
from corral.core.people.quota import Quota
from corral.core.scheduling.explain.reasons import line_order
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.journal import digest_of
from corral.core.snapshot.waiting_lines import line_of
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft


def stored(desk: Desk) -> dict[str, JobState]:
    with desk.store.read() as tx:
        page = tx.jobs.page(JobFilter(), sort="id", cursor=None, limit=500)
    return {record.job.name: record.job.state for record in page.items}


def order(desk: Desk, job_id: str) -> list[str]:
    key = line_of(desk.state.snapshot.jobs[job_id])
    return [job.name for job in line_order(desk.state.snapshot, key, desk.now)]


# -------------------------------------------------------------------------------------------- submitting


def test_a_share_has_a_smallest_size(store: Store) -> None:
    desk = Desk(store, Policies(smallest_share_milli=50))
    with pytest.raises(Invalid, match=r"the smallest share of a GPU is 0\.05: asked 0\.049") as refused:
        desk.submit(draft("tiny", request=Request(gpu_milli=49)))
    assert refused.value.field == "gpus"
    assert [job.request.gpu_milli for job in desk.submit(draft("small", request=Request(gpu_milli=50)))] == [50]
    assert Policies().smallest_share_milli == 10


def test_submitted_jobs_wait_and_are_known_by_id_and_name(desk: Desk) -> None:
    first, second = desk.submit(draft("first"), draft(gpus=2))
    assert (first.id, first.state, first.queued_at) == ("j-1", JobState.QUEUED, desk.now)
    assert second.name.startswith("job-")
    assert desk.do(jobs.own_job, ANN, "first").id == first.id
    assert desk.record(first.id).spec.command == ("python", "train.py")
    assert desk.actions(first.id) == ["job.submitted"]


@pytest.mark.parametrize(
    "bad",
    [
        draft("abc"),
        draft("has space"),
        draft("x" * 64),
        draft("good-name", queue="nowhere"),
        draft("good-name", gpus=9),
        draft("good-name", request=Request(gpus=1, models=("B200",))),
        draft("good-name", spec=JobSpec(command=())),
        draft("good-name", nodes=2, kind=JobKind.WORKBENCH),
        draft("same-name"),
    ],
    ids=["short", "space", "long", "queue", "too-large", "model", "no-command", "gang-workbench", "twice"],
)
def test_a_batch_is_all_or_nothing(desk: Desk, bad: jobs.JobDraft) -> None:
    before = list(desk.state.snapshot.contents())
    with pytest.raises(Refusal) as refusal:
        desk.submit(draft("same-name"), draft("other-name"), bad)
    assert refusal.value.detail
    assert stored(desk) == {}
    assert list(desk.state.snapshot.contents()) == before
    assert desk.submit(draft("same-name"))[0].state is JobState.QUEUED


def test_a_name_is_unique_per_user_and_ended_jobs_leave_it_to_a_number(desk: Desk) -> None:
    (job,) = desk.submit(draft("training-1"))
    desk.submit(draft("training-1"), caller=BOB)
    with pytest.raises(Taken, match="training-1"):
        desk.submit(draft("training-1"))
    desk.do(jobs.stop, ANN, job.id)
    with pytest.raises(Taken, match="training-1"):
        desk.submit(draft("training-1", kind=JobKind.WORKBENCH))
    again, other = desk.submit(draft("training-1"), draft("training-2"))
    assert (again.name, other.name) == ("training-1-2", "training-2")
    desk.do(jobs.stop, ANN, again.id)
    assert [found.name for found in desk.submit(draft("training-1"))] == ["training-1-3"]
    desk.do(jobs.delete, ANN, job.id)
    assert [found.name for found in desk.submit(draft("training-1"))] == ["training-1"]


def test_two_jobs_of_one_request_do_not_get_the_same_number(desk: Desk) -> None:
    (job,) = desk.submit(draft("training-1"))
    desk.do(jobs.stop, ANN, job.id)
    with pytest.raises(Taken, match="training-1-2"):
        desk.submit(draft("training-1"), draft("training-1-2"))
    assert [found.name for found in desk.submit(draft("training-1-2"), draft("training-1"))] == [
        "training-1-2",
        "training-1-3",
    ]


def test_over_quota_the_refusal_has_the_numbers_and_nothing_changes(desk: Desk) -> None:
    desk.do(create_user, ROOT, "root")
    desk.do(create_user, ROOT, "ann")
    desk.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota(gpu_milli=3000)})
    desk.submit(draft("first", gpus=2))
    with pytest.raises(InsufficientQuota) as refusal:
        desk.submit(draft("second", gpus=1), draft("third", gpus=1))
    assert refusal.value.numbers == {"resource": "gpus", "asked": 2.0, "held": 2.0, "limit": 3.0}
    assert stored(desk) == {"first": JobState.QUEUED}
    desk.submit(draft("bench", gpus=4, kind=JobKind.WORKBENCH), draft("second", gpus=1))
    desk.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota(gpu_milli=0)})
    assert desk.job("j-1").state is JobState.QUEUED, "a lower quota touches nothing that is there"


def test_the_job_of_a_preset_counts_in_the_quota_of_trainings(desk: Desk) -> None:
    desk.do(create_user, ROOT, "root")
    desk.do(create_user, ROOT, "ann")
    desk.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota(gpu_milli=3000), JobKind.PRESET: Quota(gpu_milli=2000)})
    desk.submit(draft("first", gpus=1))
    with pytest.raises(InsufficientQuota, match="for preset gpus: asked 3, held 0, limit 2"):
        desk.submit(draft("preset-1", gpus=3, kind=JobKind.PRESET))
    desk.submit(draft("preset-1", gpus=2, kind=JobKind.PRESET))
    with pytest.raises(InsufficientQuota, match="for training gpus: asked 1, held 3, limit 3"):
        desk.submit(draft("second", gpus=1))
    desk.do(set_quota, ROOT, "ann", {JobKind.PRESET: Quota()})
    with pytest.raises(InsufficientQuota, match="for training gpus: asked 1, held 3, limit 3"):
        desk.submit(draft("preset-2", gpus=1, kind=JobKind.PRESET))


def test_limits_of_size_length_and_time(store: Store) -> None:
    policies = Policies(limits=Limits(max_gpus_per_job=4, max_seconds=3600.0), max_queue_length=2)
    desk = Desk(store, policies)
    with pytest.raises(OverLimit) as refusal:
        desk.submit(draft("large", gpus=4, nodes=2))
    assert refusal.value.numbers == {"asked": 8.0, "limit": 4}
    with pytest.raises(OverLimit, match="allows 1h at most: asked 2h"):
        desk.submit(draft("long-one", time_limit_seconds=7200.0))
    first, bench = desk.submit(draft("first"), draft("bench", kind=JobKind.WORKBENCH))
    assert first.time_limit_seconds == 3600.0, "without a word of its own a job gets the longest time"
    assert bench.time_limit_seconds is None, "a workbench runs until it is stopped"
    with pytest.raises(OverLimit, match="2 do already"):
        desk.submit(draft("third"))
    desk.submit(draft("held", hold=True))
    with pytest.raises(OverLimit):
        desk.do(jobs.start, ANN, "held")


def test_a_job_that_no_end_of_another_lets_start_is_refused_with_the_limit(desk: Desk) -> None:
    desk.do(queues.create, ROOT, Queue(name="small", max_gpus=1))
    with pytest.raises(OverLimit) as refusal:
        desk.submit(draft("large", gpus=2, queue="small"))
    detail = "queue small may hold 1 GPU: asks 2, holds 0; it can never start under this limit"
    assert refusal.value.detail == detail
    assert refusal.value.numbers == {"rule": "queue-gpus", "asked": 2.0, "held": 0.0, "limit": 1}
    (waits,) = desk.submit(draft("fits", gpus=1, queue="small"))
    larger = jobs.JobChange(given=frozenset({"gpus"}), draft=draft("fits", gpus=2, queue="small"))
    with pytest.raises(OverLimit, match="it can never start"):
        desk.do(job_edit.edit, ANN, waits.id, larger)


@pytest.mark.parametrize(("rule", "limit"), [("gpus-per-user", "max_gpus_per_user"), ("total-gpus", "max_total_gpus")])
def test_a_job_beyond_a_limit_of_the_installation_is_refused(store: Store, rule: str, limit: str) -> None:
    desk = Desk(store, Policies(limits=Limits(**{limit: 3})))
    desk.started(draft("first", gpus=3))
    with pytest.raises(OverLimit) as refusal:
        desk.submit(draft("large", gpus=4))
    assert refusal.value.numbers["rule"] == rule
    desk.submit(draft("later", gpus=3))


def test_request_larger_than_the_fleet_is_refused_with_the_largest_node(desk: Desk) -> None:
    with pytest.raises(Invalid) as refusal:
        desk.submit(draft("huge", gpus=5))
    assert refusal.value.numbers["largest_node"] == 4
    with pytest.raises(Invalid, match="A10"):
        desk.submit(draft("other", request=Request(gpus=1, models=("H100",))))


# -------------------------------------------------------------------------------------------- start and stop


def test_a_held_job_waits_for_its_owners_word(desk: Desk) -> None:
    (job,) = desk.submit(draft("held", hold=True))
    assert (job.state, desk.cycle()) == (JobState.CREATED, [])
    desk.do(jobs.start, ANN, "held")
    assert desk.cycle() == [job.id]
    with pytest.raises(WrongState, match="starting already"):
        desk.do(jobs.start, ANN, "held")


def test_a_waiting_job_stops_at_once_and_a_running_one_with_grace(desk: Desk) -> None:
    (running,) = desk.started(draft("running", grace_seconds=7.0))
    (waiting,) = desk.submit(draft("waiting"))
    stopped = desk.do(jobs.stop, ANN, waiting.id)
    assert (stopped.state, stopped.end_reason) == (JobState.STOPPED, EndReason.STOPPED_BY_USER)
    assert desk.do(jobs.stop, ROOT, running.id).state is JobState.STOPPING
    assert desk.instructions == [Stop(attempt_id=running.attempt_id, grace_seconds=7.0)]
    assert desk.do(jobs.stop, ANN, running.id).state is JobState.STOPPING, "a second stop changes nothing"
    assert desk.instructions == []
    desk.hear(running, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143)
    over = desk.job(running.id)
    assert (over.state, over.end_reason, over.exit_code) == (JobState.STOPPED, EndReason.STOPPED_BY_OPERATOR, 143)
    with pytest.raises(WrongState, match="ended already"):
        desk.do(jobs.stop, ANN, running.id)


def test_an_ended_job_can_run_again_as_the_next_attempt(desk: Desk) -> None:
    (job,) = desk.started(draft("again"))
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1, message="ValueError")
    assert desk.job(job.id).state is JobState.FAILED
    desk.do(jobs.start, ANN, job.id)
    assert desk.cycle() == [job.id]
    assert desk.instructions == [Launch(attempt_id=f"{job.id}.2")]
    with desk.store.read() as tx:
        first, second = tx.attempts.of_job(job.id)
    assert (first.end_reason, first.exit_code, first.message) == (EndReason.EXIT_CODE, 1, "ValueError")
    assert second.ended_at is None


def test_a_start_is_admitted_like_a_submission(desk: Desk) -> None:
    desk.do(create_user, ROOT, "root")
    desk.do(create_user, ROOT, "ann")
    desk.do(set_quota, ROOT, "ann", {JobKind.TRAINING: Quota(gpu_milli=1000)})
    desk.submit(draft("held", hold=True), draft("first"))
    with pytest.raises(InsufficientQuota):
        desk.do(jobs.start, ANN, "held")
    assert desk.job("j-1").state is JobState.CREATED


# -------------------------------------------------------------------------------------------- order


def test_only_operators_pin_and_only_what_waits(desk: Desk) -> None:
    first, second = desk.submit(draft("first"), draft("second"))
    with pytest.raises(Forbidden):
        desk.do(jobs.pin, ANN, first.id)
    desk.do(jobs.pin, ROOT, second.id)
    assert order(desk, first.id) == ["second", "first"]
    desk.do(jobs.unpin, ROOT, second.id)
    assert order(desk, first.id) == ["first", "second"]
    desk.cycle()
    with pytest.raises(WrongState, match="starting, not queued"):
        desk.do(jobs.pin, ROOT, first.id)


def test_moving_changes_the_order_of_ones_own_jobs(desk: Desk) -> None:
    desk.submit(draft("one-1"), draft("two-2"), draft("three-3"))
    desk.do(jobs.move, ANN, "three-3", before="one-1")
    assert order(desk, "j-1") == ["three-3", "one-1", "two-2"]
    desk.do(jobs.move, ANN, "three-3", after="one-1")
    assert order(desk, "j-1") == ["one-1", "three-3", "two-2"]
    desk.submit(draft("four-4"))
    assert order(desk, "j-1") == ["one-1", "three-3", "two-2", "four-4"], "later jobs stay behind"
    reloaded = desk.loaded()
    assert digest_of(reloaded.snapshot.contents()) == digest_of(desk.state.snapshot.contents()), "the order is stored"


def test_moves_that_make_no_sense_are_refused(desk: Desk) -> None:
    desk.submit(draft("one-1"), draft("two-2"), draft("gang", nodes=2), draft("held", hold=True))
    desk.submit(draft("bobs"), caller=BOB)
    for target, error in (
        ({"before": "one-1"}, Invalid),
        ({"before": "two-2", "after": "two-2"}, Invalid),
        ({}, Invalid),
        ({"before": "gang"}, Invalid),
        ({"before": "held"}, WrongState),
        ({"before": "nobody"}, NotFound),
        ({"before": "bobs"}, NotFound),
    ):
        with pytest.raises(error):
            desk.do(jobs.move, ANN, "one-1", **target)
    with pytest.raises(Invalid, match="different users"):
        desk.do(jobs.move, ROOT, "j-1", before="j-5")
    assert order(desk, "j-1") == ["one-1", "two-2", "bobs"]


def test_where_the_policy_knows_no_own_order_a_move_is_refused(desk: Desk) -> None:
    desk.do(queues.edit, ROOT, Queue(name="default", policy="fcfs"))
    desk.submit(draft("one-1"), draft("two-2"))
    with pytest.raises(WrongState, match="first come, first served"):
        desk.do(jobs.move, ANN, "two-2", before="one-1")


# -------------------------------------------------------------------------------------------- others and the end


def test_other_peoples_jobs_do_not_exist(desk: Desk) -> None:
    (job,) = desk.submit(draft("private"))
    for act in (jobs.stop, jobs.delete, jobs.start):
        with pytest.raises(NotFound):
            desk.do(act, BOB, job.id)
    assert desk.do(jobs.stop, ROOT, job.id).end_reason is EndReason.STOPPED_BY_OPERATOR


def test_deleting_needs_an_end_and_takes_everything(desk: Desk) -> None:
    (job,) = desk.started(draft("short"))
    with pytest.raises(WrongState, match="stop it first"):
        desk.do(jobs.delete, ANN, job.id)
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(jobs.delete, ANN, job.id)
    with desk.store.read() as tx:
        assert tx.jobs.get(job.id) is None
        assert tx.attempts.of_job(job.id) == []


def test_job_created_and_deleted_in_one_turn_leaves_no_trace(desk: Desk) -> None:
    def make_and_delete(work: Work) -> None:
        (record,) = jobs.submit(work, ANN, [draft("short-lived", hold=True)])
        jobs.delete(work, ANN, record.job.id)

    desk.do(make_and_delete)
    assert stored(desk) == {}
    (job,) = desk.submit(draft("stopped"))

    def stop_and_delete(work: Work) -> None:
        jobs.stop(work, ANN, job.id)
        jobs.delete(work, ANN, job.id)

    desk.do(stop_and_delete)
    assert stored(desk) == {}


# -------------------------------------------------------------------------------------------- back to the queue


def test_a_running_job_goes_back_to_its_queue_and_spends_no_retry(desk: Desk) -> None:
    (job,) = desk.started(draft("first", grace_seconds=20.0))
    stopping = desk.do(jobs.requeue, ANN, "first")
    assert (stopping.state, stopping.stopping_for) == (JobState.STOPPING, EndReason.PREEMPTED)
    assert desk.instructions == [Stop(attempt_id="j-1.1", grace_seconds=20.0)]
    assert desk.do(jobs.requeue, ANN, "first") == stopping, "twice is once"
    desk.hear(stopping, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    back = desk.job(job.id)
    assert (back.state, back.retries, back.not_before) == (JobState.QUEUED, 0, 0.0)
    assert back.message == "sent back to its queue by its owner"
    assert desk.cycle() == [job.id]
    with desk.store.read() as tx:
        assert [attempt.end_reason for attempt in tx.attempts.of_job(job.id)] == [EndReason.PREEMPTED, None]
    assert desk.do(jobs.requeue, ROOT, job.id).message == "sent back to its queue by an operator"


def test_only_what_runs_goes_back_to_its_queue(desk: Desk) -> None:
    desk.submit(draft("first"))
    with pytest.raises(WrongState, match="is queued: only one that runs"):
        desk.do(jobs.requeue, ANN, "first")
    with pytest.raises(NotFound):
        desk.do(jobs.requeue, BOB, "j-1")
    desk.cycle()
    desk.do(jobs.stop, ANN, "first")
    with pytest.raises(WrongState, match="is stopping"):
        desk.do(jobs.requeue, ANN, "first")


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (draft("abc"), "jobs[2].name"),
        (draft("one-name"), "jobs[2].name"),
        (draft("good-name", queue="nowhere"), "jobs[2].queue"),
        (draft("good-name", gpus=9), "jobs[2].gpus"),
        (draft("good-name", spec=JobSpec(command=())), "jobs[2].command"),
        (draft("good-name", nodes=2, kind=JobKind.WORKBENCH), "jobs[2].nodes"),
    ],
)
def test_a_refused_batch_says_which_of_them(desk: Desk, bad: jobs.JobDraft, field: str) -> None:
    """Held ones are counted too, although they are not admitted yet."""
    with pytest.raises(Refusal) as refusal:
        desk.do(jobs.submit_batch, ANN, [draft("one-name", hold=True), draft("two-name"), bad])
    assert refusal.value.field == field


def test_an_app_may_leave_its_gpu_unused_unless_its_owner_says_otherwise(desk: Desk) -> None:
    with_app = JobSpec(command=("serve",), app_port=8080)
    first, second, third = desk.submit(draft(spec=with_app), draft(spec=with_app, idles=False), draft())
    assert (first.idles, second.idles, third.idles) == (True, False, False)
