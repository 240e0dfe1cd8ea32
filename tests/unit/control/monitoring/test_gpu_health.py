"""Consequences of a GPU's health: the snapshot, its jobs, and its return."""

from __future__ import annotations

from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, WrongState
from corral.control.jobs import jobs
from corral.control.monitoring import gpu_health
from corral.control.monitoring.gpu_health import HealthChange, XidNote
from corral.control.ports import AttemptPhase
from corral.core.jobs.lifecycle import Stop
from corral.core.model import EndReason, GpuHealth, JobState, NodeState, Request
from corral.core.monitoring.health.judgement import put
from corral.core.monitoring.health.model import DAY, Condition, Evidence, Sign
from tests.unit.control.tenants import assert_state_is_stored
from tests.unit.control.world import ANN, ROOT, TWO_NODES, Desk, draft
from tests.unit.core.builders import node

HEALTHY, SUSPECT, FAILED = GpuHealth.HEALTHY, GpuHealth.SUSPECT, GpuHealth.FAILED


def condition(desk: Desk, gpu: str) -> Condition:
    """The condition in the store, which equals the one in memory."""
    with desk.store.read() as tx:
        stored = tx.health.conditions()
    assert stored == desk.state.conditions
    return stored.get(gpu) or Condition(gpu_id=gpu)


def judged(desk: Desk, gpu: str, to: GpuHealth, text: str = "91 °C") -> HealthChange:
    before = gpu_health.condition_of(desk.state, gpu)
    hot = Evidence(sign=Sign.HOT, at=desk.now, text=text, advice="Look at the fans.", value=91.0)
    return HealthChange(before=before, after=put(before, to, [hot], desk.now))


def become(desk: Desk, to: GpuHealth, *gpus: str) -> None:
    desk.do(gpu_health.apply, [judged(desk, gpu, to) for gpu in gpus])


def health_of(desk: Desk, gpu: str) -> GpuHealth:
    return {gpu.id: gpu.health for node in desk.state.snapshot.nodes.values() for gpu in node.gpus}[gpu]


# -------------------------------------------------------------------------------------------- judgements


def test_a_suspect_gpu_takes_nothing_new_and_keeps_what_runs(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=4))
    become(desk, SUSPECT, "n1/0", "n2/0")
    assert desk.instructions == []
    assert desk.job(job.id).state is JobState.RUNNING
    (waiting,) = desk.submit(draft("waiting", gpus=4))
    assert desk.cycle() == [], "three healthy ones are left on n2"
    (event,) = [event for event in desk.events() if event.subject == "n1/0"]
    assert event.action == "gpu.suspect"
    assert event.detail == {
        "node": "n1",
        "was": "healthy",
        "evidence": [{"sign": "hot", "text": "91 °C", "advice": "Look at the fans."}],
        "jobs": [job.id],
    }
    before = gpu_health.condition_of(desk.state, "n2/0")
    desk.do(gpu_health.apply, [HealthChange(before=before, after=Condition(gpu_id="n2/0", episodes=before.episodes))])
    assert desk.cycle() == [waiting.id]
    assert desk.actions("n2/0") == ["gpu.suspect", "gpu.healthy"]
    assert_state_is_stored(desk)


def test_a_failed_gpu_sends_its_job_elsewhere_away_from_that_gpu_alone(desk: Desk) -> None:
    job, other = desk.started(draft("training", gpus=2), draft("other", gpus=2))
    become(desk, FAILED, "n1/1")
    assert desk.instructions == [Stop(attempt_id=job.attempt_id, grace_seconds=30.0)]
    stopping = desk.job(job.id)
    assert (stopping.state, stopping.stopping_for) == (JobState.STOPPING, EndReason.GPU_FAILED)
    desk.hear(stopping, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143, message="terminated")
    back = desk.job(job.id)
    assert (back.state, back.retries, back.faults, back.avoid_gpus) == (JobState.QUEUED, 0, 1, ("n1/1",))
    assert back.message == "GPU n1/1 failed: 91 °C"
    desk.now = back.not_before
    assert desk.cycle() == [job.id]
    again = desk.job(job.id)
    assert again.allocation is not None
    assert again.allocation.gpus == ("n2/0", "n2/1")
    assert desk.job(other.id).state is JobState.RUNNING
    with desk.store.read() as tx:
        first = tx.attempts.of_job(job.id)[0]
    assert (first.end_reason, first.message) == (EndReason.GPU_FAILED, "GPU n1/1 failed: 91 °C")
    assert_state_is_stored(desk)


def test_gpus_that_fail_together_stop_a_job_once_and_one_more_is_avoided_too(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=4))
    become(desk, FAILED, "n1/0", "n1/2")
    assert len(desk.instructions) == 1
    assert desk.job(job.id).avoid_gpus == ("n1/0", "n1/2")
    become(desk, FAILED, "n1/3")
    assert desk.instructions == []
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    assert desk.job(job.id).avoid_gpus == ("n1/0", "n1/2", "n1/3")


def test_every_job_on_a_shared_gpu_is_moved(desk: Desk) -> None:
    shares = desk.started(*(draft(name, request=Request(gpu_milli=400)) for name in ("half-a", "half-b")))
    become(desk, FAILED, "n1/0")
    assert [job.state for job in map(desk.job, (job.id for job in shares))] == [JobState.STOPPING] * 2


def test_a_job_that_is_stopped_already_is_left_to_its_end(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.do(jobs.stop, ANN, job.id)
    become(desk, FAILED, "n1/0")
    assert desk.instructions == []
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.job(job.id).state is JobState.STOPPED


def test_a_judgement_of_what_is_not_so_any_more_is_dropped(desk: Desk) -> None:
    late = judged(desk, "n1/0", SUSPECT)
    become(desk, FAILED, "n1/0")
    gone = HealthChange(before=Condition(gpu_id="n9/0"), after=Condition(gpu_id="n9/0", health=FAILED))
    desk.do(gpu_health.apply, [late, gone])
    assert condition(desk, "n1/0").health is FAILED
    desk.do(gpu_health.reset, ROOT, "n1/0")
    assert desk.do(gpu_health.apply, [HealthChange(before=late.after, after=Condition(gpu_id="n1/0"))]) is None
    assert desk.actions("n1/0") == ["gpu.failed", "gpu.health-reset"]


def test_more_evidence_is_kept_without_an_event(desk: Desk) -> None:
    become(desk, FAILED, "n1/0")
    desk.now += 5.0
    desk.do(gpu_health.apply, [judged(desk, "n1/0", FAILED, "95 °C")])
    assert [item.text for item in condition(desk, "n1/0").evidence] == ["91 °C", "95 °C"]
    assert desk.actions("n1/0") == ["gpu.failed"]


def test_errors_of_the_driver_are_explained_in_plain_words(desk: Desk) -> None:
    desk.do(gpu_health.note_xids, [XidNote(gpu_id="n1/0", code=31, at=1.0, job_ids=("j-1",))])
    event = desk.events()[-1]
    assert (event.action, event.subject, event.detail["fault"]) == ("gpu.xid", "n1/0", "program")
    assert "memory" in event.detail["words"]


# -------------------------------------------------------------------------------------------- an operator's word


def test_a_reset_gpu_is_as_new_and_who_waits_may_use_it_again(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=4))
    become(desk, FAILED, "n1/0")
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    assert desk.do(gpu_health.reset, ROOT, "n1/0").health is HEALTHY
    assert condition(desk, "n1/0") == Condition(gpu_id="n1/0")
    assert desk.job(job.id).avoid_gpus == ()
    events = len(desk.events())
    desk.do(gpu_health.reset, ROOT, "n1/0")
    assert len(desk.events()) == events, "a second word changes nothing"
    assert_state_is_stored(desk)


def test_an_operator_marks_a_gpu(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    assert desk.do(gpu_health.mark, ROOT, "n1/0", SUSPECT, "odd noise").health is SUSPECT
    assert condition(desk, "n1/0").evidence[-1].text == "odd noise (root)"
    assert desk.do(gpu_health.mark, ROOT, "n1/0", FAILED, "it smokes").health is FAILED
    assert desk.job(job.id).stopping_for is EndReason.GPU_FAILED
    assert desk.actions("n1/0") == ["gpu.suspect", "gpu.failed"]
    with pytest.raises(WrongState, match="failed already"):
        desk.do(gpu_health.mark, ROOT, "n1/0", SUSPECT, "better now")
    for wrong, reason in ((HEALTHY, "fine"), (FAILED, "  "), (FAILED, "x" * 501)):
        with pytest.raises(Invalid):
            desk.do(gpu_health.mark, ROOT, "n1/1", wrong, reason)


def test_only_operators_judge_and_only_gpus_that_are_there(desk: Desk) -> None:
    cases: list[tuple[Any, tuple[Any, ...]]] = [
        (gpu_health.reset, ()),
        (gpu_health.mark, (FAILED, "why not")),
        (gpu_health.begin_self_test, ()),
    ]
    for use_case, args in cases:
        with pytest.raises(Forbidden):
            desk.do(use_case, ANN, "n1/0", *args)
        with pytest.raises(NotFound):
            desk.do(use_case, ROOT, "n9/0", *args)


# -------------------------------------------------------------------------------------------- self-test


def test_a_gpu_under_test_takes_no_work_and_returns_when_it_passes(desk: Desk) -> None:
    for name in ("n1/0", "n2/0"):
        desk.do(gpu_health.begin_self_test, ROOT, name)
        assert health_of(desk, name) is SUSPECT
    with pytest.raises(WrongState, match="being tested"):
        desk.do(gpu_health.begin_self_test, ROOT, "n1/0")
    desk.submit(draft("training", gpus=4))
    assert desk.cycle() == []
    assert desk.do(gpu_health.end_self_test, ROOT, "n1/0", None).health is HEALTHY
    assert desk.cycle() == ["j-1"]
    assert desk.actions("n1/0") == ["gpu.self-test-started", "gpu.self-test-passed"]


def test_a_failed_gpu_returns_by_a_passed_test_and_a_healthy_one_fails_by_a_failed_test(desk: Desk) -> None:
    become(desk, FAILED, "n1/0")
    desk.do(gpu_health.begin_self_test, ROOT, "n1/0")
    assert desk.do(gpu_health.end_self_test, ROOT, "n1/0", "wrong sums in 3 of 64 blocks").health is FAILED
    last = condition(desk, "n1/0").evidence[-1]
    assert (last.sign, last.text) == (Sign.SELF_TEST, "wrong sums in 3 of 64 blocks")
    desk.do(gpu_health.begin_self_test, ROOT, "n1/0")
    assert desk.do(gpu_health.end_self_test, ROOT, "n1/0", None).health is HEALTHY
    desk.do(gpu_health.begin_self_test, ROOT, "n1/1")
    assert desk.do(gpu_health.end_self_test, ROOT, "n1/1", "no answer").health is FAILED
    assert desk.actions("n1/1") == ["gpu.self-test-started", "gpu.failed"]


def test_a_test_that_could_not_be_run_leaves_everything_as_it_was(desk: Desk) -> None:
    become(desk, SUSPECT, "n1/1")
    suspect = condition(desk, "n1/1")
    for name in ("n1/0", "n1/1"):
        desk.do(gpu_health.begin_self_test, ROOT, name)
        desk.do(gpu_health.abandon_self_test, ROOT, name)
    assert condition(desk, "n1/0") == Condition(gpu_id="n1/0")
    assert condition(desk, "n1/1") == suspect
    assert (health_of(desk, "n1/0"), health_of(desk, "n1/1")) == (HEALTHY, SUSPECT)
    desk.do(gpu_health.abandon_self_test, ROOT, "n1/0")


def test_a_gpu_that_is_held_or_out_of_reach_is_not_tested(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    with pytest.raises(InUse, match=f"job {job.id} \\(training\\) of ann"):
        desk.do(gpu_health.begin_self_test, ROOT, "n1/0")
    desk.observe(TWO_NODES[0], node("n2", gpus=4, state=NodeState.DOWN))
    with pytest.raises(WrongState, match="n2 is down"):
        desk.do(gpu_health.begin_self_test, ROOT, "n2/0")


# -------------------------------------------------------------------------------------------- over time


def test_a_restart_and_an_observation_keep_everything(desk: Desk) -> None:
    become(desk, FAILED, "n1/0")
    desk.state = desk.loaded()
    desk.observe(*TWO_NODES)
    assert health_of(desk, "n1/0") is FAILED
    assert condition(desk, "n1/0").evidence


def test_another_device_in_its_place_begins_anew(desk: Desk) -> None:
    become(desk, FAILED, "n2/0")
    desk.observe(TWO_NODES[0], node("n2", gpus=4, model="A100"))
    assert health_of(desk, "n2/0") is HEALTHY
    assert condition(desk, "n2/0") == Condition(gpu_id="n2/0")


def test_healthy_gpus_are_forgotten_a_day_after_they_were_last_suspected(desk: Desk) -> None:
    for gpu in ("n1/0", "n1/1"):
        become(desk, SUSPECT, gpu)
    before = condition(desk, "n1/0")
    after = Condition(gpu_id="n1/0", since=desk.now, evidence=before.evidence, episodes=before.episodes)
    desk.do(gpu_health.apply, [HealthChange(before=before, after=after)])
    desk.now += DAY - 1
    desk.do(gpu_health.forget_old)
    assert condition(desk, "n1/0") == after
    desk.now += 1
    desk.do(gpu_health.forget_old)
    assert condition(desk, "n1/0") == Condition(gpu_id="n1/0")
    assert condition(desk, "n1/1").health is SUSPECT
