"""One turn: its requests share a commit and a cycle, each is answered after it, and its outcome can be found out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import WrongState
from corral.control.jobs import jobs
from corral.control.live.planner import Planner
from corral.control.live.turn import Request, RequestFailed, Turn
from corral.control.live.unit_of_work import Work
from corral.control.ports import Store, StoreUnavailable, Transaction
from corral.core.model import JobState
from corral.core.snapshot.journal import digest_of
from tests.unit.control.world import ANN, Desk, StillClock, WrappedStore, draft


def submits(name: str) -> Request:
    return Request(run=lambda work: jobs.submit(work, ANN, [draft(name)]))


def ran(desk: Desk, *requests: Request, plans: bool = False) -> Turn:
    turn = Turn(requests=requests)
    clock = StillClock(desk.now)
    turn.run(desk.store, desk.state, desk.now, Planner(clock, 60.0) if plans else None)
    return turn


def answer(request: Request) -> Any:
    return request.answer.result(0)


def test_requests_of_one_turn_share_a_commit_and_are_answered_after_it(desk: Desk) -> None:
    first, second = submits("first"), submits("second")
    turn = ran(desk, first, second)
    assert not first.answer.done()
    assert turn.is_written
    for request in (first, second):
        request.committed(desk.state)
    assert [answer(request)[0].job.name for request in (first, second)] == ["first", "second"]
    assert [event.action for event in turn.events] == ["job.submitted", "job.submitted"]
    assert [desk.job(name).state for name in ("j-1", "j-2")] == [JobState.QUEUED] * 2


def test_an_answer_shows_what_the_cycle_of_its_turn_has_started(desk: Desk) -> None:
    request = submits("first")
    digest = digest_of(desk.state.snapshot.contents())
    turn = ran(desk, request, plans=True)
    request.committed(desk.state)
    assert answer(request)[0].job.state is JobState.STARTING
    assert turn.digest is not None
    assert turn.digest != digest, "it planned from the state with the request"
    assert desk.job("j-1").state is JobState.STARTING


def test_without_a_planner_and_without_a_due_cycle_nothing_is_planned(desk: Desk) -> None:
    assert ran(desk, submits("first")).digest is None
    planner = Planner(StillClock(desk.now), 60.0)
    Turn(requests=()).run(desk.store, desk.state, desk.now, planner)
    idle = Turn(requests=())
    idle.run(desk.store, desk.state, desk.now, planner)
    assert (idle.digest, idle.events) == (None, [])


def test_a_refusal_that_changed_nothing_is_answered_like_a_result(desk: Desk) -> None:
    def refuse(work: Work) -> None:
        raise WrongState("not now")

    refused, other = Request(run=refuse), submits("first")
    ran(desk, refused, other)
    for request in (refused, other):
        request.committed(desk.state)
    with pytest.raises(WrongState, match="not now"):
        answer(refused)
    assert answer(other)[0].job.id == "j-1"


@pytest.mark.parametrize("error", [WrongState("too late"), ZeroDivisionError("a bug")])
def test_failure_after_a_change_undoes_the_turn_and_names_its_request(desk: Desk, error: Exception) -> None:
    def fail(work: Work) -> None:
        jobs.submit(work, ANN, [draft("gone")])
        raise error

    good, bad = submits("good"), Request(run=fail)
    turn = Turn(requests=[good, bad])
    with pytest.raises(RequestFailed) as failed:
        turn.run(desk.store, desk.state, desk.now, None)
    assert failed.value.request is bad
    assert failed.value.cause is error
    assert str(failed.value) == f"{type(error).__name__}: {error}"
    assert not turn.is_written
    assert not good.answer.done(), "it is run again without the other one"
    assert desk.loaded().snapshot.jobs == {}


def test_a_store_that_fails_is_no_fault_of_the_request(desk: Desk) -> None:
    def cut_off(work: Work) -> None:
        raise StoreUnavailable("the connection was lost")

    with pytest.raises(StoreUnavailable, match="the connection was lost"):
        ran(desk, Request(run=cut_off))


def test_an_answer_is_given_once(desk: Desk) -> None:
    request = submits("first")
    ran(desk, request)
    request.committed(desk.state)
    request.fail(RuntimeError("the server stops"))
    request.committed(desk.state)
    assert answer(request)[0].job.id == "j-1"
    given_up = Request(run=lambda work: None, answer=_cancelled())
    given_up.committed(desk.state)
    given_up.fail(RuntimeError("the server stops"))
    assert given_up.answer.cancelled()


def test_every_request_of_a_turn_fails_with_it(desk: Desk) -> None:
    requests = [submits("first"), submits("second")]
    Turn(requests=requests).fail(StoreUnavailable("away"))
    for request in requests:
        with pytest.raises(StoreUnavailable, match="away"):
            answer(request)


class LosesTheCommit(WrappedStore):
    """Every write is undone at its end, as if the connection broke before the commit."""

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._store.write() as tx:
            yield tx
            raise StoreUnavailable("lost")


def test_the_outcome_of_a_commit_is_found_out_by_its_last_event(desk: Desk, store: Store) -> None:
    committed = ran(desk, submits("first"))
    lost = Turn(requests=[submits("second")])
    with pytest.raises(StoreUnavailable):
        lost.run(LosesTheCommit(store), desk.state, desk.now, None)
    assert lost.is_written
    with store.read() as tx:
        assert committed.was_committed(tx)
        assert not lost.was_committed(tx)


def test_an_event_of_another_turn_with_the_same_number_does_not_count(desk: Desk, store: Store) -> None:
    lost = Turn(requests=[submits("second")])
    with pytest.raises(StoreUnavailable):
        lost.run(LosesTheCommit(store), desk.state, desk.now, None)
    desk.state = desk.loaded()
    other = ran(desk, submits("other"))
    assert other.events[-1].id == lost.events[-1].id
    lost.events[-1] = replace(lost.events[-1], at=lost.events[-1].at + 1.0)
    with store.read() as tx:
        assert other.was_committed(tx)
        assert not lost.was_committed(tx)


def test_a_turn_without_an_event_counts_as_lost(desk: Desk, store: Store) -> None:
    turn = ran(desk, Request(run=lambda work: None))
    with store.read() as tx:
        assert not turn.was_committed(tx)


def _cancelled() -> Future[Any]:
    made: Future[Any] = Future()
    made.cancel()
    return made
