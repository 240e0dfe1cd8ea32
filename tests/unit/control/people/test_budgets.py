"""Budgets in use: charges, refunds, grants, limits that hold jobs, statements, and what each caller sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.errors import Forbidden, Invalid, NotFound
from corral.control.jobs import jobs
from corral.control.live.reconcile import reconcile, report
from corral.control.live.unit_of_work import Work
from corral.control.people import budgets
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import AttemptPhase, AttemptStatus, Observation, Store
from corral.control.records import EntryKind
from corral.core.model import EndReason, Job, JobState
from corral.core.people.budgets import MICRO, Account, AccountKind, Period, Price, Unit
from corral.core.scheduling.limits.hold_rules import first_reason
from tests.unit.control.copied_desks import once
from tests.unit.control.fresh_stores import FreshStores
from tests.unit.control.ledger import assert_charged_once
from tests.unit.control.world import ANN, BOB, ROOT, TWO_NODES, Desk, draft
from tests.unit.searching import DEAR

HOUR = 3600.0
GPU_HOURS, MONEY = Unit.GPU_HOURS, Unit.MONEY
OF_ANN = Account(kind=AccountKind.USER, name="ann")
OF_GROUP = Account(kind=AccountKind.GROUP, name="default")


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


def limit(desk: Desk, account: Account = OF_ANN, unit: Unit = GPU_HOURS, **values: Any) -> None:
    given = {"period": Period.MONTH, "soft_micro": None, "hard_micro": None, **values}
    desk.do(budgets.set_budget, ROOT, account, unit, **given)


def budget_status(desk: Desk, account: Account = OF_ANN, unit: Unit = GPU_HOURS) -> budgets.BudgetStatus:
    assert desk.loaded().snapshot.budgets == desk.state.snapshot.budgets, "the store says the same"
    assert dict(desk.loaded().charged_until) == dict(desk.state.charged_until)
    with desk.store.read() as tx:
        assert_charged_once(tx)
        found = budgets.statuses_of(tx, ROOT, account, desk.now)
    return next(one for one in found if one.unit is unit)


def ended(desk: Desk, job: Job, reason: EndReason = EndReason.EXIT_CODE) -> Job:
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, reason, exit_code=0 if reason is EndReason.EXIT_CODE else None)
    return desk.job(job.id)


def test_without_prices_and_budgets_nothing_is_charged(staffed: Desk) -> None:
    (job,) = staffed.started(draft(gpus=2))
    staffed.now += HOUR
    staffed.do(budgets.settle)
    ended(staffed, job)
    with staffed.store.read() as tx:
        assert tx.budgets.accounts() == []


def test_an_attempt_is_charged_once_to_its_user_and_group(staffed: Desk) -> None:
    limit(staffed)
    model = TWO_NODES[0].gpus[0].model
    staffed.do(budgets.set_price, ROOT, model, Price(weight_micro=2 * MICRO, money_micro=3 * MICRO))
    (job,) = staffed.started(draft(gpus=2))
    staffed.now += HOUR / 2
    staffed.do(budgets.settle)
    staffed.do(budgets.settle)
    staffed.now += HOUR / 2
    ended(staffed, job)
    with staffed.store.read() as tx:
        for account in (OF_ANN, OF_GROUP):
            assert sum(tx.budgets.sums(account, GPU_HOURS, 0.0, 1e18).values()) == -4 * MICRO
            assert sum(tx.budgets.sums(account, MONEY, 0.0, 1e18).values()) == -6 * MICRO
        assert tx.budgets.imbalance() == 0
        charged = tx.budgets.charges_of(job.attempt_id)
    assert len(charged) == 2 * 2 * 2, "two parts, two accounts, two units"
    assert {one.job_name for one in charged} == {job.name}


def test_a_price_counts_from_when_it_is_set(staffed: Desk) -> None:
    limit(staffed)
    model = TWO_NODES[0].gpus[0].model
    (job,) = staffed.started(draft(gpus=1))
    staffed.now += HOUR
    staffed.do(budgets.set_price, ROOT, model, Price(weight_micro=5 * MICRO, money_micro=MICRO))
    staffed.now += HOUR
    ended(staffed, job)
    with staffed.store.read() as tx:
        assert tx.budgets.sums(OF_ANN, GPU_HOURS, 0.0, 1e18) == {EntryKind.CHARGE: -6 * MICRO}
        assert tx.budgets.sums(OF_ANN, MONEY, 0.0, 1e18) == {EntryKind.CHARGE: -MICRO}


def test_only_time_since_the_first_budget_is_charged(staffed: Desk) -> None:
    (job,) = staffed.started(draft(gpus=1))
    staffed.now += HOUR
    limit(staffed)
    staffed.now += HOUR / 4
    staffed.do(budgets.settle)
    staffed.do(budgets.delete_budget, ROOT, OF_ANN, GPU_HOURS)
    staffed.now += HOUR
    ended(staffed, job)
    with staffed.store.read() as tx:
        assert tx.budgets.sums(OF_ANN, GPU_HOURS, 0.0, 1e18) == {EntryKind.CHARGE: -MICRO // 4}


@pytest.mark.parametrize("reason", [EndReason.NODE_LOST, EndReason.GPU_FAILED, EndReason.LOST])
def test_work_lost_by_the_platform_is_refunded(staffed: Desk, reason: EndReason) -> None:
    limit(staffed, hard_micro=10 * MICRO)
    (job,) = staffed.started(draft(gpus=4))
    staffed.now += HOUR
    staffed.do(budgets.settle)
    assert budget_status(staffed).charged_micro == 4 * MICRO
    staffed.now += HOUR
    assert ended(staffed, job, reason).state is JobState.QUEUED
    found = budget_status(staffed)
    assert (found.charged_micro, found.refunded_micro, found.spent_micro) == (4 * MICRO, 4 * MICRO, 0)
    assert found.balance_micro == 0


def test_saved_work_is_charged_although_the_node_is_lost(staffed: Desk) -> None:
    limit(staffed)
    (job,) = staffed.started(draft(gpus=1))
    began = staffed.now
    staffed.now += HOUR
    staffed.do(budgets.settle)
    staffed.now += HOUR
    saved = staffed.job(job.id)
    staffed.do(lambda work: work.jobs.edit(saved, replace(saved, checkpointed_at=began + HOUR / 2)))
    ended(staffed, job, EndReason.NODE_LOST)
    with staffed.store.read() as tx:
        assert tx.budgets.sums(OF_ANN, GPU_HOURS, 0.0, 1e18) == {
            EntryKind.CHARGE: -MICRO,
            EntryKind.REFUND: MICRO // 2,
        }


def test_time_after_an_end_that_is_reported_late_is_refunded(staffed: Desk) -> None:
    limit(staffed)
    (job,) = staffed.started(draft(gpus=1))
    began = staffed.now
    staffed.now += 2 * HOUR
    staffed.do(budgets.settle)
    staffed.hear(staffed.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0, at=began + HOUR)
    found = budget_status(staffed)
    assert (found.charged_micro, found.refunded_micro) == (2 * MICRO, MICRO)


def test_an_attempt_that_is_settled_and_lost_in_one_transaction_is_refunded(staffed: Desk) -> None:
    limit(staffed)
    (job,) = staffed.started(draft(gpus=1))
    staffed.now += HOUR

    def turn(work: Work) -> None:
        budgets.settle(work)
        status = AttemptStatus(
            attempt_id=job.attempt_id, phase=AttemptPhase.ENDED, at=work.now, reason=EndReason.NODE_LOST
        )
        report(work, status)

    staffed.do(turn)
    assert budget_status(staffed).refunded_micro == MICRO


def test_two_charges_can_begin_within_a_millisecond(staffed: Desk) -> None:
    limit(staffed)
    (job,) = staffed.started(draft(gpus=4))
    staffed.now += HOUR
    for seconds in (0.0, 0.0003, 5.0):
        staffed.now += seconds
        staffed.do(budgets.settle)
    ended(staffed, job)
    budget_status(staffed)


def test_a_requeue_by_the_owner_is_charged(staffed: Desk) -> None:
    limit(staffed)
    (job,) = staffed.started(draft(gpus=1))
    staffed.now += HOUR
    staffed.do(jobs.requeue, ANN, job.id)
    ended(staffed, job)
    assert budget_status(staffed).spent_micro == MICRO


def test_a_hard_limit_holds_further_jobs_and_says_by_how_much(staffed: Desk) -> None:
    limit(staffed, OF_GROUP, soft_micro=MICRO, hard_micro=2 * MICRO)
    (job,) = staffed.started(draft(gpus=2))
    staffed.now += 1.5 * HOUR
    ended(staffed, job)
    (waits,) = staffed.submit(draft(gpus=1))
    assert staffed.cycle() == []
    reason = first_reason(staffed.state.snapshot, staffed.job(waits.id), staffed.now)
    assert reason is not None
    assert reason.rule == "over-budget"
    assert reason.detail.startswith(
        "group default is over budget by 1.00 GPU-hours: spent 3.00 of 2.00; the next month"
    )
    (small,) = staffed.submit(draft(gpus=0))
    assert staffed.cycle() == [small.id], "a job without GPUs is not held"
    actions = [event.action for event in staffed.events() if event.action.startswith("budget.")]
    assert sorted(actions) == ["budget.hard-limit-reached", "budget.set", "budget.soft-limit-reached"]

    staffed.do(budgets.grant, ROOT, OF_GROUP, GPU_HOURS, 5 * MICRO, "for the deadline")
    assert staffed.cycle() == [waits.id]
    found = budget_status(staffed, OF_GROUP)
    assert (found.granted_micro, found.spent_micro, found.left_micro) == (5 * MICRO, -2 * MICRO, 4 * MICRO)


def test_a_new_month_begins_with_nothing_spent(staffed: Desk) -> None:
    limit(staffed, hard_micro=MICRO)
    (job,) = staffed.started(draft(gpus=2))
    staffed.now += HOUR
    ended(staffed, job)
    (waits,) = staffed.submit(draft(gpus=1))
    assert staffed.cycle() == []
    staffed.now += 40 * 86400.0
    staffed.do(budgets.settle)
    assert staffed.state.needs_cycle
    assert staffed.cycle() == [waits.id]
    found = budget_status(staffed)
    assert (found.spent_micro, found.balance_micro) == (0, -2 * MICRO)


def test_a_forecast_of_the_end_of_a_budget(staffed: Desk) -> None:
    limit(staffed, period=Period.TOTAL, hard_micro=4 * MICRO)
    staffed.now += 7 * 86400.0
    (job,) = staffed.started(draft(gpus=2))
    staffed.now += HOUR
    ended(staffed, job)
    assert budget_status(staffed).ends_at == staffed.now + 7 * 86400.0, "half of it in seven days"


def test_callers_see_their_own_account_and_their_groups(staffed: Desk) -> None:
    limit(staffed)
    limit(staffed, OF_GROUP)
    with staffed.store.read() as tx:
        assert {str(one.account) for one in budgets.statuses(tx, ANN, 0.0)} == {"user ann", "group default"}
        assert {str(one.account) for one in budgets.statuses(tx, BOB, 0.0)} == {"group default"}
        with pytest.raises(Forbidden):
            budgets.statement(tx, BOB, OF_ANN, GPU_HOURS, 0.0, 1.0)
        with pytest.raises(Forbidden):
            budgets.statuses_of(tx, BOB, OF_ANN, 0.0)


def test_only_operators_change_budgets_and_wrong_values_are_refused(staffed: Desk) -> None:
    with pytest.raises(Forbidden):
        staffed.do(budgets.grant, ANN, OF_ANN, GPU_HOURS, MICRO, "")
    with pytest.raises(Forbidden):
        staffed.do(budgets.set_price, ANN, "A100", Price())
    with pytest.raises(NotFound):
        limit(staffed, Account(kind=AccountKind.GROUP, name="nobody"))
    with pytest.raises(Invalid, match="above the hard limit"):
        limit(staffed, soft_micro=2, hard_micro=1)
    with pytest.raises(Invalid):
        staffed.do(budgets.grant, ROOT, OF_ANN, GPU_HOURS, 0, "")


def test_the_ledger_outlives_a_user(staffed: Desk) -> None:
    limit(staffed)
    (job,) = staffed.started(draft(gpus=1))
    staffed.now += HOUR
    ended(staffed, job)
    staffed.do(jobs.delete, ANN, job.id)
    staffed.do(delete_user, ROOT, "ann")
    assert staffed.state.snapshot.budgets == {}
    assert staffed.state.accounting_since is None
    with staffed.store.read() as tx:
        assert budgets.statement(tx, ROOT, OF_ANN, GPU_HOURS, 0.0, 1e18).closing_micro == -MICRO


ACTS = st.tuples(
    st.sampled_from(["submit", "end", "lost", "settle", "grant", "requeue", "month", "restart", "observe"]),
    st.integers(0, 5),
    st.floats(0.001, 30_000.0),
)


@settings(DEAR, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTS, max_size=14))
def test_the_books_are_balanced_after_any_history(
    fresh_stores: FreshStores, acts: list[tuple[str, int, float]]
) -> None:
    """The sum of all entries is zero, every attempt is charged exactly once, and the state in memory is the one of the
    store."""
    with fresh_stores.new() as store:
        desk = Desk(store)
        for name in ("root", "ann"):
            desk.do(create_user, ROOT, name, password_hash="hash")
        limit(desk, hard_micro=200 * MICRO)
        limit(desk, OF_GROUP, period=Period.QUARTER, soft_micro=50 * MICRO)
        for act, number, seconds in acts:
            desk.now += seconds
            _do(desk, act, number)
        budget_status(desk)


def _do(desk: Desk, act: str, number: int) -> None:
    holding = [job for job in desk.state.snapshot.jobs.values() if job.state.holds_resources]
    job = holding[number % len(holding)] if holding else None
    if act == "submit":
        desk.started(draft(gpus=number % 4 + 1, max_retries=9))
    elif act == "end" and job:
        ended(desk, job)
    elif act == "lost" and job:
        ended(desk, job, [EndReason.NODE_LOST, EndReason.GPU_FAILED, EndReason.LOST][number % 3])
    elif act == "settle":
        desk.do(budgets.settle)
    elif act == "grant":
        desk.do(budgets.grant, ROOT, OF_ANN, GPU_HOURS, (number + 1) * MICRO, "")
    elif act == "requeue" and job and job.state is JobState.RUNNING:
        desk.do(jobs.requeue, ANN, job.id)
        ended(desk, job)
    elif act == "month":
        desk.now += 31 * 86400.0
    elif act == "restart":
        desk.state = desk.loaded()
    elif act == "observe":
        desk.do(reconcile, "local", Observation(nodes=TWO_NODES, attempts=()), desk.now - 1000.0)
