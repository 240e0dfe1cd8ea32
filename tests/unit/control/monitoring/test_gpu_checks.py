"""Checks of GPUs: jobs on exactly one GPU, evidence, quarantine and return."""

from __future__ import annotations

import pytest

from corral.control.errors import Forbidden, InUse, NotFound
from corral.control.monitoring import gpu_checks, gpu_health
from corral.control.monitoring.gpu_checks import CheckOutcome, CheckRules
from corral.control.people import budgets
from corral.control.ports import AttemptPhase
from corral.control.records import CheckCause, CheckRecord, CheckState, Role, UserRecord
from corral.core.model import EndReason, GpuHealth, Job, JobState
from corral.core.monitoring.checks import Check, Measurement, Problem
from corral.core.monitoring.health.model import Sign
from corral.core.people.budgets import Price
from tests.unit.control.world import ANN, ROOT, Desk, draft

RULES = CheckRules(library="/helper", limits={"A100": {"compute_tflops": 200.0}})


def gpus_of(desk: Desk) -> list[str]:
    return sorted(gpu.id for node in desk.state.snapshot.nodes.values() for gpu in node.gpus)


def health(desk: Desk, gpu: str) -> GpuHealth:
    found = gpu_health.find_gpu(desk.state, gpu)
    assert found is not None
    return found.health


def checked(desk: Desk, target: str, *checks: Check, rules: CheckRules = RULES) -> list[CheckRecord]:
    return desk.do(gpu_checks.request, ROOT, target, checks, rules)


def ended(desk: Desk, record: CheckRecord, outcome: CheckOutcome | None, rules: CheckRules = RULES) -> CheckRecord:
    """Runs the check's job to its end, and evaluates its result."""
    desk.cycle()
    job = desk.job(record.job_id)
    desk.hear(job, AttemptPhase.RUNNING)
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    over = desk.do(gpu_checks.finish, record.job_id, outcome, rules)
    assert over is not None
    assert desk.do(gpu_checks.finish, record.job_id, None, rules) == over, "the first result stands"
    return over


def good(value: float = 300.0) -> CheckOutcome:
    return CheckOutcome(measurements=(Measurement(check=Check.COMPUTE, metric="compute_tflops", value=value),))


def test_a_check_is_a_job_on_exactly_its_gpu(desk: Desk) -> None:
    for gpu in gpus_of(desk)[:3]:
        (record,) = checked(desk, gpu, Check.COMPUTE)
        desk.cycle()
        job = desk.job(record.job_id)
        assert job.allocation is not None
        assert (job.allocation.gpus, job.user, job.priority, job.idles) == ((gpu,), "root", 100, True)
        command = desk.record(record.job_id).spec.command
        assert command[:3] == ("python3", "-m", "corral.presets.gpu_checks")
        assert desk.record(record.job_id).spec.env == {"PYTHONPATH": "/helper"}


def test_a_check_waits_for_its_gpu_and_blocks_no_other_job(desk: Desk) -> None:
    (holder,) = desk.started(draft("holder", gpus=1))
    assert holder.allocation is not None
    (gpu,) = holder.allocation.gpus
    (record,) = checked(desk, gpu)
    (other,) = desk.started(draft("other", gpus=1))
    assert other.allocation is not None
    assert desk.job(record.job_id).state is JobState.QUEUED
    desk.hear(holder, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.cycle()
    assert desk.job(record.job_id).state is JobState.STARTING
    with pytest.raises(InUse):
        checked(desk, gpu)


def test_a_node_is_checked_gpu_by_gpu_and_its_disk_once(desk: Desk) -> None:
    node = next(iter(desk.state.snapshot.nodes.values()))
    records = checked(desk, node.id, Check.COMPUTE, Check.DISK)
    assert [record.gpu_id for record in records] == [gpu.id for gpu in node.gpus]
    assert [Check.DISK in record.checks for record in records] == [True, *([False] * (len(node.gpus) - 1))]


def test_only_operators_check_and_only_what_exists(desk: Desk) -> None:
    with pytest.raises(Forbidden):
        desk.do(gpu_checks.request, ANN, gpus_of(desk)[0], (), RULES)
    with pytest.raises(NotFound):
        checked(desk, "nothing")


def test_a_wrong_result_fails_the_gpu_and_a_passed_check_returns_it(desk: Desk) -> None:
    gpu = gpus_of(desk)[0]
    (record,) = checked(desk, gpu)
    wrong = Problem(check=Check.MEMORY, text="4 of 512 bytes did not keep 0x55", is_fatal=True)
    over = ended(desk, record, CheckOutcome(problems=(wrong,)))
    assert (over.state, health(desk, gpu)) == (CheckState.FAILED, GpuHealth.FAILED)
    evidence = gpu_health.condition_of(desk.state, gpu).evidence[-1]
    assert (evidence.sign, evidence.text) == (Sign.CHECK, wrong.text)
    assert f"corral health run {gpu}" in evidence.advice
    ticket = gpu_checks.ticket(desk.state, [over], gpu, "now")
    assert wrong.text in ticket
    assert f"({gpu_health.find_gpu(desk.state, gpu).model})" in ticket  # type: ignore[union-attr]
    # The check of a GPU in quarantine runs on it all the same, and other jobs do not.
    (again,) = checked(desk, gpu, Check.COMPUTE, Check.MEMORY)
    assert again.cause is CheckCause.RETURN
    assert ended(desk, again, good()).state is CheckState.PASSED
    assert health(desk, gpu) is GpuHealth.HEALTHY
    assert gpu not in desk.state.conditions
    assert "gpu.returned" in desk.actions(gpu)


@pytest.mark.parametrize(
    "outcome",
    [
        CheckOutcome(measurements=good().measurements, skipped={Check.MEMORY: "PyTorch is not installed"}),
        CheckOutcome(skipped={Check.COMPUTE: "no GPU"}),
        None,
    ],
)
def test_a_check_that_found_out_too_little_returns_no_gpu(desk: Desk, outcome: CheckOutcome | None) -> None:
    gpu = gpus_of(desk)[0]
    desk.do(gpu_health.mark, ROOT, gpu, GpuHealth.FAILED, "smoke")
    (record,) = checked(desk, gpu, Check.COMPUTE, Check.MEMORY)
    ended(desk, record, outcome)
    assert health(desk, gpu) is GpuHealth.FAILED


def test_a_gpu_below_the_limit_of_its_model_is_suspect(desk: Desk) -> None:
    gpu = gpus_of(desk)[0]
    model = gpu_health.find_gpu(desk.state, gpu).model  # type: ignore[union-attr]
    rules = CheckRules(limits={model: {"compute_tflops": 200.0}})
    (record,) = checked(desk, gpu, rules=rules)
    over = ended(desk, record, good(150.0), rules)
    assert [problem.is_fatal for problem in over.problems] == [False]
    assert health(desk, gpu) is GpuHealth.SUSPECT


def test_a_straggler_is_found_by_the_latest_checks_of_its_peers(desk: Desk) -> None:
    *peers, slow = gpus_of(desk)
    assert len(peers) >= 4
    for gpu in peers:
        (record,) = checked(desk, gpu)
        assert ended(desk, record, good(300.0)).state is CheckState.PASSED
    (record,) = checked(desk, slow)
    over = ended(desk, record, good(220.0))
    assert over.state is CheckState.FAILED
    assert "of the median of" in over.problems[0].text
    assert health(desk, slow) is GpuHealth.SUSPECT


def test_a_slow_disk_is_the_nodes_problem(desk: Desk) -> None:
    gpu = gpus_of(desk)[0]
    (record,) = checked(desk, gpu, Check.DISK)
    problem = Problem(check=Check.DISK, text="a file did not keep what was written to it", is_fatal=True)
    ended(desk, record, CheckOutcome(problems=(problem,)))
    assert health(desk, gpu) is GpuHealth.HEALTHY
    assert "node.check-failed" in desk.actions(record.node)


def test_scheduled_checks_run_on_idle_gpus_a_few_at_a_time(desk: Desk) -> None:
    rules = CheckRules(every_seconds=3600.0, at_once=2)
    desk.do(lambda work: work.tx.people.add_user(UserRecord(name="root", role=Role.OPERATOR)))
    (holder,) = desk.started(draft("holder", gpus=1))
    assert holder.allocation is not None
    begun = desk.do(gpu_checks.begin_scheduled, rules)
    assert len(begun) == 2
    assert not {record.gpu_id for record in begun} & {*holder.allocation.gpus}
    assert desk.do(gpu_checks.begin_scheduled, rules) == [], "no more at the same time"
    for record in begun:
        ended(desk, record, good(), rules)
    later = desk.do(gpu_checks.begin_scheduled, rules)
    assert not {record.gpu_id for record in later} & {record.gpu_id for record in begun}
    assert desk.do(gpu_checks.begin_scheduled, CheckRules()) == [], "off by default"


def test_no_scheduled_check_begins_while_a_job_waits_for_a_gpu(desk: Desk) -> None:
    desk.do(lambda work: work.tx.people.add_user(UserRecord(name="root", role=Role.OPERATOR)))
    desk.submit(draft("waits", gpus=1))
    assert desk.do(gpu_checks.begin_scheduled, CheckRules(every_seconds=3600.0)) == []


def test_checks_are_not_charged(desk: Desk) -> None:
    desk.do(budgets.set_price, ROOT, "A100", Price(money_micro=1_000_000))
    (record,) = checked(desk, gpus_of(desk)[0])
    desk.now += 3600
    ended(desk, record, good())
    with desk.store.read() as tx:
        assert list(tx.budgets.charges_of(f"{record.job_id}.1")) == []


def test_a_restart_of_the_server_keeps_a_check_and_its_place(desk: Desk) -> None:
    (record,) = checked(desk, gpus_of(desk)[1])
    job: Job = desk.loaded().snapshot.jobs[record.job_id]
    assert job.only_gpus == (record.gpu_id,)
    with desk.store.read() as tx:
        assert tx.health.open_checks() == [record]


def test_a_gpu_that_fails_during_its_check_keeps_the_check(desk: Desk) -> None:
    gpu = gpus_of(desk)[0]
    (record,) = checked(desk, gpu)
    desk.cycle()
    desk.hear(desk.job(record.job_id), AttemptPhase.RUNNING)
    desk.do(gpu_health.mark, ROOT, gpu, GpuHealth.FAILED, "smoke")
    assert desk.job(record.job_id).state is JobState.RUNNING
    assert desk.instructions == []
