"""The lists that people and loops ask for again and again go through an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

from corral.control.ports import Store
from corral.control.records import EventFilter, JobFilter
from corral.core.model import JobKind, JobState
from tests.contract.store_samples import added, ids_of


@pytest.fixture
def plans(store: Store) -> Iterator[list[str]]:
    """SQLite's plan for every query that the test makes."""
    explained: list[str] = []
    engine = create_engine(f"sqlite:///{store.describe()['place']}")

    def explain(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> None:
        if statement.startswith("SELECT"):
            with engine.connect() as connection:
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                explained.append("; ".join(row.detail for row in rows))

    reader: Engine = store._database.reader  # type: ignore[attr-defined]
    event.listen(reader, "before_cursor_execute", explain)
    yield explained
    event.remove(reader, "before_cursor_execute", explain)
    engine.dispose()


def test_live_jobs_need_no_look_at_those_that_ended(store: Store, plans: list[str]) -> None:
    with store.read() as transaction:
        transaction.jobs.live()
    assert plans == ["SCAN jobs USING INDEX ix_jobs_not_ended"]


@pytest.mark.parametrize("field", ["id", "name", "priority", "created_at"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_pages_are_read_in_the_order_of_an_index(store: Store, plans: list[str], sign: str, field: str) -> None:
    with store.read() as transaction:
        transaction.jobs.page(JobFilter(), sort=sign + field, cursor=None, limit=50)
    (plan,) = plans
    _, _, which = plan.partition("LIST SUBQUERY")
    assert "SCAN jobs USING COVERING INDEX" in which or field == "id"
    # The rows of the page itself are sorted, and no others.
    assert plan.count("TEMP B-TREE") == (field != "id")


def test_rare_matches_of_a_text_are_not_looked_up_one_by_one(store: Store, plans: list[str]) -> None:
    """In the order of an index every job would be a jump to its row."""
    with store.read() as transaction:
        for field in ("name", "priority", "created_at"):
            transaction.jobs.page(JobFilter(text="x"), sort=field, cursor=None, limit=50)
    assert len(plans) == 6
    for near, plan in zip(plans[::2], plans[1::2], strict=True):
        assert "CO-ROUTINE near; SCAN jobs USING INDEX" in near, near
        _, _, which = plan.partition("LIST SUBQUERY")
        assert "SCAN jobs" in which, plan
        # Jobs that have a description are the only ones in that index, in the order of their rows.
        assert "SCAN jobs USING INDEX" not in which.replace("SCAN jobs USING INDEX ix_jobs_search_text", ""), plan


def test_the_first_jobs_of_a_list_are_looked_at_before_those_of_a_filter_are_sorted(
    store: Store, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of a million jobs of one state costs as much as one of a thousand."""
    added(store, *({"name": f"train-{number}"} for number in range(30)))
    whole = _page_ids(store, JobFilter(states=(JobState.QUEUED, JobState.CREATED)))
    sorted_all = [plan for plan in plans if "LIST SUBQUERY" in plan]
    assert len(whole) == 20
    assert not sorted_all
    assert "CO-ROUTINE near; SCAN jobs USING INDEX" in plans[0]
    monkeypatch.setattr("corral.stores.jobs.jobs.NEAR", 5)
    assert _page_ids(store, JobFilter(states=(JobState.QUEUED, JobState.CREATED))) == whole
    assert any("LIST SUBQUERY" in plan for plan in plans)


def test_the_newest_names_that_begin_so_are_found_without_sorting_all_of_them(store: Store, plans: list[str]) -> None:
    added(store, *({"name": f"train-{number}"} for number in range(30)))
    with store.read() as transaction:
        newest = transaction.jobs.page(JobFilter(name_prefix="train-"), sort="-id", cursor=None, limit=5)
    assert ids_of(newest.items) == ["j-30", "j-29", "j-28", "j-27", "j-26"]
    assert not any("LIST SUBQUERY" in plan for plan in plans)
    with store.read() as transaction:
        transaction.jobs.page(JobFilter(name_prefix="other"), sort="-id", cursor=None, limit=5)
    assert "SEARCH jobs USING COVERING INDEX ix_jobs_name_id" in plans[-1]


def _page_ids(store: Store, where: JobFilter) -> list[str]:
    with store.read() as transaction:
        return ids_of(transaction.jobs.page(where, sort="name", cursor=None, limit=20).items)


def test_times_kinds_and_beginnings_of_names_use_their_index(store: Store, plans: list[str]) -> None:
    filters = [
        JobFilter(since=5.0, until=9.0),
        JobFilter(kinds=(JobKind.WORKBENCH,)),
        JobFilter(user="ada", name_prefix="res"),
        JobFilter(array="grid"),
        JobFilter(user="ada", array="grid"),
        JobFilter(users=("ada", "bob")),
    ]
    with store.read() as transaction:
        for where in filters:
            transaction.jobs.page(where, sort="-id", cursor=None, limit=50)
            transaction.jobs.counts(where)
    for plan in plans:
        _, _, which = plan.rpartition("LIST SUBQUERY")
        assert "SEARCH jobs USING" in (which or plan), plan


def test_filters_use_their_index(store: Store, plans: list[str]) -> None:
    filters = [JobFilter(user="ada"), JobFilter(queue="q"), JobFilter(states=(JobState.RUNNING,))]
    with store.read() as transaction:
        for where in filters:
            transaction.jobs.page(where, sort="-id", cursor=None, limit=50)
        transaction.jobs.find("ada", "name")
        transaction.jobs.find(None, "name")
        for event_filter in (EventFilter(actor="a"), EventFilter(subject="s"), EventFilter(owner="o")):
            transaction.events.page(event_filter, cursor=None, limit=50)
    assert all("SEARCH" in plan and "TEMP B-TREE" not in plan for plan in plans), plans


def test_sign_in_and_score_history_use_an_index(store: Store, plans: list[str]) -> None:
    with store.read() as transaction:
        transaction.scores.history("ada", "A10", 5.0)
        transaction.ssh_keys.by_fingerprint("SHA256:x")
        transaction.ssh_keys.of_user("ada")
        transaction.providers.identity("github", "7")
        transaction.providers.identities("github")
    assert len(plans) == 5
    assert all("SEARCH" in plan and "SCAN" not in plan for plan in plans), plans
