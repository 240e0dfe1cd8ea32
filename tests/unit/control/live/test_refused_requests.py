"""A refused request leaves the store and the state as they were, whatever it changed before the refusal, and the other
requests of its turn are committed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.errors import Refusal, WrongState
from corral.control.fleet import node_actions
from corral.control.jobs import jobs
from corral.control.live.state import State
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase, AttemptStatus
from corral.control.records import IdleWarning
from corral.core.jobs.lifecycle import Stop
from corral.core.model import EndReason, JobState
from corral.core.monitoring.health.model import Condition
from corral.core.snapshot.journal import digest_of
from corral.stores.database.store import SqlStore
from tests.unit.control.fresh_stores import FreshStores
from tests.unit.control.live.test_controller import House
from tests.unit.control.world import ANN, ROOT, draft, eventually, status


def _put_condition(work: Work) -> None:
    work.state.conditions["n2-gpu-0"] = Condition(gpu_id="n2-gpu-0")


def _put_test(work: Work) -> None:
    work.state.testing["n2-gpu-0"] = None


def _put_idle_warning(work: Work) -> None:
    warning = IdleWarning(job_id="j-1", attempt=1, warned_at=work.now, deadline=work.now + 60)
    work.state.idle_warnings[warning.job_id] = warning


def _edit_spec(work: Work) -> None:
    job = work.state.snapshot.jobs["j-1"]
    work.jobs.edit_spec(job, replace(work.jobs.spec(job.id), labels={"changed": "yes"}))


def _delete_attempt(work: Work) -> None:
    del work.state.attempts["j-1.1"]


#: Everything that a use case can change, through each of the ways that it has.
CHANGES: dict[str, Callable[[Work], Any]] = {
    "submit": lambda work: jobs.submit(work, ANN, [draft("refused-one")]),
    "stop a running job": lambda work: jobs.stop(work, ANN, "j-1"),
    "delete a job": lambda work: jobs.delete(work, ANN, "j-2"),
    "edit an ended job": lambda work: work.jobs.edit(_ended(work), replace(_ended(work), message="changed")),
    "edit a spec": _edit_spec,
    "cordon a node": lambda work: node_actions.cordon(work, ROOT, "n1"),
    "write a row": lambda work: work.tx.meta.put("changed", "yes"),
    "take ids": lambda work: work.tx.jobs.next_ids(3),
    "record an event": lambda work: work.record(ANN, "job.changed", "j-1"),
    "instruct the engine": lambda work: work.effects.instructions.append(Stop(attempt_id="j-1.1", grace_seconds=1)),
    "put a condition": _put_condition,
    "begin a GPU test": _put_test,
    "warn of an idle job": _put_idle_warning,
    "drop an attempt": _delete_attempt,
    "forget a cluster": lambda work: work.state.observed.pop("local"),
}


def _ended(work: Work) -> Any:
    job = work.jobs.get("j-2")
    assert job is not None
    return job


@settings(max_examples=40)
@given(changes=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3, unique=True), others=st.booleans())
def test_a_refused_request_changes_nothing(fresh_stores: FreshStores, changes: list[str], others: bool) -> None:
    if {"stop a running job", "drop an attempt"} <= set(changes):
        changes.remove("drop an attempt")
    if {"delete a job", "edit an ended job"} <= set(changes):
        changes.remove("delete a job")

    def refused(work: Work) -> None:
        for name in changes:
            CHANGES[name](work)
        raise WrongState("refused at the end")

    with fresh_stores.new() as store:
        house = _house(store)
        try:
            house.clock.time += 1
            before = _seen(house)
            launched, stopped = list(house.engine.launched), list(house.engine.stopped)
            if others:
                first, answer, last = house.together(lambda work: None, refused, lambda work: "the last one")
                assert (first.result(10), last.result(10)) == (None, "the last one")
            else:
                answer = house.controller.execute(refused)
            with pytest.raises(Refusal, match="refused at the end"):
                answer.result(10)
            assert _seen(house) == before
            assert (house.engine.launched, house.engine.stopped) == (launched, stopped)
        finally:
            house.controller.stop()


def _house(store: SqlStore) -> House:
    """A house with one running job and one ended job."""
    house = House(store)
    house.controller.start()
    house.submit("running-one", "ended-one")
    for job_id in ("j-1", "j-2"):
        house.engine.report(status(f"{job_id}.1", AttemptPhase.RUNNING, house.clock.time))
    house.engine.report(_exit("j-2.1", house.clock.time))
    eventually(lambda: house.job("j-1").state is JobState.RUNNING and house.job("j-2").state.is_ended)
    eventually(lambda: "j-2.1" in house.engine.forgotten)
    return house


def _seen(house: House) -> tuple[Any, ...]:
    return house.controller.inspect(_contents).result(10), _rows(house)


def _contents(state: State) -> dict[str, Any]:
    names = ("attempts", "conditions", "testing", "idle_warnings", "receipts", "unreadable_held")
    found: dict[str, Any] = {name: dict(getattr(state, name)) for name in names}
    return {
        **found,
        "unstored": state.unstored(),
        "digest": digest_of(state.snapshot.contents()),
        "waiting": state.dependents.of("j-1"),
    }


def _rows(house: House) -> dict[str, list[Any]]:
    """Everything that is stored."""
    with closing(sqlite3.connect(house.store._database.place)) as connection:  # type: ignore[attr-defined]
        tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
        return {name: sorted(connection.execute(f"select * from {name}"), key=repr) for (name,) in tables}


def _exit(attempt_id: str, at: float) -> AttemptStatus:
    return status(attempt_id, AttemptPhase.ENDED, at, reason=EndReason.EXIT_CODE, exit_code=0)
