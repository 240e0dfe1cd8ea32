"""Receipts of preemptions, on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.ports import Store
from corral.control.records import ReceiptFilter, ReceiptRecord
from corral.core.scheduling.plan.plan import PreemptionRule
from tests.contract.store_samples import added

pytest_plugins = ("tests.servers.fixtures",)


def receipt(job: str, for_job: str, at: float = 10.0, **changes: Any) -> ReceiptRecord:
    fields: dict[str, Any] = {
        "at": at,
        "rule": PreemptionRule.GUARANTEE,
        "detail": 'queue 训练 is guaranteed 4 GPUs \x00 "été"',
        "job_id": job,
        "job_name": "训练-été",
        "user": "zoë",
        "attempt": 2,
        "for_job": for_job,
        "for_job_name": "urgent",
        "for_user": "ann",
        "gpu_milli": 2500,
        "work_since": at - 60.5,
        "lost_gpu_seconds": 151.25,
    }
    return ReceiptRecord(**{**fields, **changes})


def added_receipts(store: Store, *receipts: ReceiptRecord) -> list[ReceiptRecord]:
    with store.write() as transaction:
        return [transaction.receipts.add(item) for item in receipts]


def listed(store: Store, **where: Any) -> list[int]:
    with store.read() as transaction:
        page = transaction.receipts.page(ReceiptFilter(**where), cursor=None, limit=50)
    return [item.id for item in page.items]


def test_a_receipt_comes_back_as_it_went_in_and_goes_on(store: Store) -> None:
    (first,) = added_receipts(store, receipt("j-1", "j-2"))
    over = replace(first, saved=True, ended_at=12.5, back_at=20.0, lost_gpu_seconds=0.5, is_open=False)
    with store.read() as transaction:
        assert transaction.receipts.open() == [first]
    with store.write() as transaction:
        transaction.receipts.save([over])
        transaction.receipts.save([])
    with store.read() as transaction:
        assert transaction.receipts.open() == []
        assert transaction.receipts.of_job("j-1", 10) == transaction.receipts.of_job("j-2", 10) == [over]
        assert transaction.receipts.of_job("j-3", 10) == transaction.receipts.of_job("nonsense", 10) == []


def test_receipts_are_numbered_over_restarts_and_survive_both_jobs(store: Store) -> None:
    victim, other = added(store, {}, {})
    (one,) = added_receipts(store, receipt(victim.job.id, other.job.id))
    with store.write() as transaction:
        transaction.jobs.delete([victim.job.id, other.job.id])
    (two,) = added_receipts(store, receipt(victim.job.id, "j-9", at=11.0))
    assert two.id == one.id + 1
    with store.read() as transaction:
        assert transaction.receipts.of_job(victim.job.id, 10) == [two, one]
        assert transaction.receipts.of_job(victim.job.id, 1) == [two]


def test_lists_are_filtered_by_either_side_rule_and_time(store: Store) -> None:
    made = added_receipts(
        store,
        receipt("j-1", "j-2", 10.0),
        receipt("j-3", "j-4", 20.0, user="bob", for_user="zoë", rule=PreemptionRule.ORDER),
        receipt("j-5", "j-6", 30.0, user="bob", for_user="eve", rule=PreemptionRule.OVERRUN),
    )
    zoe, mixed, bob = (item.id for item in made)
    assert listed(store) == [bob, mixed, zoe]
    assert listed(store, of="zoë") == [mixed, zoe]
    assert listed(store, of="zoë", user="bob") == [mixed], "nobody sees more by asking for somebody"
    assert listed(store, of="nobody") == []
    assert listed(store, rule=PreemptionRule.OVERRUN) == [bob]
    assert listed(store, since=20.0) == [bob, mixed]


def test_pages_go_on_where_they_ended(store: Store) -> None:
    made = [item.id for item in added_receipts(store, *(receipt(f"j-{n}", "j-99") for n in range(1, 6)))]
    seen: list[int] = []
    cursor = None
    while True:
        with store.read() as transaction:
            page = transaction.receipts.page(ReceiptFilter(), cursor=cursor, limit=2)
        seen += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == made[::-1]
    with store.read() as transaction, pytest.raises(ValueError, match="cursor"):
        transaction.receipts.page(ReceiptFilter(), cursor="nonsense", limit=2)


def test_old_ones_are_dropped_but_not_open_ones(store: Store) -> None:
    added_receipts(store, receipt("j-1", "j-2", 10.0, is_open=False), receipt("j-3", "j-2", 10.0))
    (kept,) = added_receipts(store, receipt("j-4", "j-2", 20.0, is_open=False))
    with store.write() as transaction:
        assert transaction.receipts.counts() == {PreemptionRule.GUARANTEE: 3}
        assert transaction.receipts.prune(20.0) == 1
        assert [item.job_id for item in transaction.receipts.of_job("j-2", 10)] == ["j-4", "j-3"]
    assert listed(store, since=15.0) == [kept.id]
