"""Workbenches as use cases: what is refused before anything waits, and when an idle one is stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Missing, NotFound
from corral.control.jobs import jobs
from corral.control.jobs.job_kinds import HOST_COMMAND
from corral.control.jobs.jobs import JobDraft
from corral.control.live.unit_of_work import Work
from corral.control.people import user_accounts
from corral.control.ports import AttemptPhase, AttemptStatus, Store, Tool, WorkbenchStatus
from corral.control.records import JobRecord, JobSpec, SshKeyRecord
from corral.control.workbenches import workbenches
from corral.control.workbenches.workbenches import LAUNCH_PROBLEMS, Idle, explained, idle_seconds
from corral.core.jobs.lifecycle import Stop
from corral.core.model import EndReason, Job, JobKind, JobState, Request
from corral.engines.workbenches import workbench_start
from corral.engines.workbenches.program import files
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk


@pytest.fixture
@once
def desk(store: Store) -> Desk:
    found = Desk(store)
    found.do(user_accounts.create_user, ROOT, "ann")
    return found


def draft(name: str = "bench", **spec: Any) -> JobDraft:
    offers = {"jupyter": True, **spec}
    return JobDraft(name=name, request=Request(gpus=1), spec=JobSpec(command=("ignored",), **offers))


def add_key(work: Work, user: str) -> None:
    work.tx.ssh_keys.add(
        SshKeyRecord(
            id=f"k-{user}", user=user, name="laptop", public_key="ssh-ed25519 AAAA", fingerprint=user, created_at=1.0
        )
    )


def started(desk: Desk, **spec: Any) -> Job:
    record = desk.do(workbenches.create, ANN, draft(**spec), [])
    desk.cycle()
    desk.hear(desk.job(record.job.id), AttemptPhase.RUNNING)
    return desk.job(record.job.id)


def test_jupyter_and_ssh_are_switches_and_both_may_be_off(desk: Desk) -> None:
    record = desk.do(workbenches.create, ANN, draft(jupyter=False, ssh=False), [])
    assert (record.job.kind, workbenches.is_workbench(record)) == (JobKind.WORKBENCH, True)


def test_without_a_word_ssh_is_on_where_it_can_be_offered(desk: Desk) -> None:
    def made(name: str, missing: list[Tool], **spec: Any) -> bool:
        asked = replace(draft(ssh=True, **spec), name=name)
        record: JobRecord = desk.do(workbenches.create, ANN, asked, missing, ssh_if_possible=True)
        return record.spec.ssh

    assert made("no-key", []) is False
    desk.do(add_key, "ann")
    assert made("a-key", []) is True
    assert made("no-sshd", [Tool.SSHD]) is False
    assert made("an-image", [], image="docker.io/library/python:3") is False


def test_workbench_is_a_job_that_runs_the_program_of_corral(desk: Desk) -> None:
    record = desk.do(workbenches.create, ANN, draft(idle_stop_seconds=60.0), [])
    assert record.job.kind is JobKind.WORKBENCH
    assert record.spec.command == HOST_COMMAND
    assert record.spec.idle_stop_seconds == 60.0
    assert workbenches.is_workbench(record)


@pytest.mark.parametrize(
    ("spec", "missing", "refusal", "field"),
    [
        ({"ssh": True}, [], Missing, "ssh"),
        ({}, [Tool.JUPYTER], Missing, "jupyter"),
        ({"jupyter": False, "ssh": True}, [Tool.SSHD], Missing, "ssh"),
    ],
)
def test_missing_programs_are_refused_with_advice(
    desk: Desk, spec: dict[str, Any], missing: list[Tool], refusal: type[Exception], field: str
) -> None:
    with pytest.raises(refusal) as refused:
        desk.do(workbenches.create, ANN, draft(**spec), missing)
    assert refused.value.field == field  # type: ignore[attr-defined]
    assert desk.state.snapshot.jobs == {}


def test_a_stopped_one_starts_again_with_its_settings_unless_something_is_gone(desk: Desk) -> None:
    desk.do(add_key, "ann")
    job = started(desk, ssh=True, venv="/opt/venv")
    desk.do(jobs.stop, ANN, job.id)
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    with pytest.raises(Missing):
        desk.do(workbenches.start, ANN, "bench", [Tool.JUPYTER])
    again = desk.do(workbenches.start, ANN, "bench", [])
    assert again.state is JobState.QUEUED
    assert desk.record(job.id).spec == replace(draft(ssh=True, venv="/opt/venv").spec, command=HOST_COMMAND)


def test_others_and_other_jobs_are_not_found(desk: Desk) -> None:
    job = started(desk)
    with pytest.raises(NotFound):
        desk.do(workbenches.own_workbench, BOB, job.id)
    (training,) = desk.submit(JobDraft(spec=JobSpec(command=("true",)), name="training"))
    with pytest.raises(NotFound):
        desk.do(workbenches.own_workbench, ANN, training.id)
    assert desk.do(workbenches.own_workbench, ROOT, job.id) == job


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({}, [Tool.JUPYTER]),
        ({"ssh": True}, [Tool.JUPYTER, Tool.SSHD]),
        ({"ssh": True, "jupyter": False}, [Tool.SSHD]),
        ({"ssh": True, "image": "pytorch"}, []),
    ],
)
def test_needed_programs_follow_the_services(spec: dict[str, Any], needed: list[Tool]) -> None:
    assert workbenches.needed_tools(draft(**spec).spec) == needed


def test_keys_let_in_while_their_owner_is_let_in(desk: Desk) -> None:
    desk.do(add_key, "ann")
    job = started(desk, ssh=True)

    def keys() -> list[str]:
        with desk.store.read() as tx:
            record = tx.jobs.get(job.id)
            assert record is not None
            return workbenches.allowed_keys(tx, record)

    assert keys() == ["ssh-ed25519 AAAA"]
    desk.do(user_accounts.edit_user, ROOT, "ann", disabled=True)
    assert keys() == []
    with desk.store.read() as tx:
        without = JobRecord(job=job, spec=draft(ssh=False).spec)
        assert workbenches.allowed_keys(tx, without) == []


# ---------------------------------------------------------------- idleness


def status(**values: Any) -> WorkbenchStatus:
    return WorkbenchStatus(**{"attempt": 1, "at": 1000.0, "account": "ann", "used_at": 900.0, **values})


@pytest.mark.parametrize(
    ("reported", "now", "idle"),
    [
        ({}, 1000.0, 100.0),
        ({}, 1010.0, 110.0),
        ({"is_busy": True}, 1005.0, 0.0),
        # One that hangs is not in use for ever.
        ({"is_busy": True}, 2000.0, 1000.0),
        # One that claims to be used in the future is believed up to when it said so.
        ({"used_at": 9e9}, 1100.0, 100.0),
        ({"at": 9e9, "used_at": 9e9}, 1100.0, 0.0),
    ],
)
def test_idle_time_counts_from_the_last_use(reported: dict[str, Any], now: float, idle: float) -> None:
    assert idle_seconds(status(**reported), now) == idle


def test_an_unused_one_is_stopped_once_with_the_reason(desk: Desk) -> None:
    job = started(desk, idle_stop_seconds=7200.0)
    seen = Idle(job_id=job.id, attempt=job.attempt, idle_seconds=7199.0)
    desk.do(workbenches.stop_idle, [seen])
    assert desk.job(job.id).state is JobState.RUNNING
    due = replace(seen, idle_seconds=7260.0)
    desk.do(workbenches.stop_idle, [due])
    assert desk.instructions == [Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds)]
    desk.do(workbenches.stop_idle, [due])
    assert desk.instructions == []
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    ended = desk.job(job.id)
    assert (ended.state, ended.end_reason) == (JobState.STOPPED, EndReason.EVICTED)
    assert "it was not used for 2 h" in ended.message


def test_workbench_without_a_limit_or_of_another_attempt_is_left_alone(desk: Desk) -> None:
    job = started(desk)
    desk.do(workbenches.stop_idle, [Idle(job_id=job.id, attempt=job.attempt, idle_seconds=1e9)])
    desk.do(workbenches.stop_idle, [Idle(job_id="j-99", attempt=1, idle_seconds=1e9)])
    assert desk.job(job.id).state is JobState.RUNNING


# ---------------------------------------------------------------- ends


def test_the_program_and_the_words_for_its_ends_agree() -> None:
    reported = {
        files.NO_JUPYTER,
        files.NO_SSHD,
        files.JUPYTER_FAILED,
        files.SSHD_FAILED,
        files.NO_LOGIN,
        files.RELAY_FAILED,
        files.KILLED,
        workbench_start.OLD_PYTHON,
        83,
    }
    assert reported == set(LAUNCH_PROBLEMS)
    assert "exit 83" in HOST_COMMAND[2]


@pytest.mark.parametrize("code", [*LAUNCH_PROBLEMS])
def test_an_end_before_the_beginning_is_reported_in_words(desk: Desk, code: int) -> None:
    job = started(desk)
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=code)
    ended = desk.job(job.id)
    assert (ended.state, ended.end_reason) == (JobState.FAILED, EndReason.LAUNCH_ERROR)
    assert ended.message == LAUNCH_PROBLEMS[code]


def test_the_same_number_of_another_program_means_nothing() -> None:
    end = AttemptStatus(attempt_id="j-1.1", phase=AttemptPhase.ENDED, at=1.0, reason=EndReason.EXIT_CODE, exit_code=81)
    assert explained(JobSpec(command=("python", "own.py")), end) is end
    lost = replace(end, reason=EndReason.OOM_KILLED)
    assert explained(JobSpec(command=HOST_COMMAND), lost) is lost
