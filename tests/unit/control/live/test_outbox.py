"""Effects in several lanes: what concerns one job is carried out in order, and nothing is lost or done twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.fleet.node_effects import ReleaseEffect, WithholdEffect
from corral.control.launch.directories import JobDirectories
from corral.control.live.outbox import (
    DeleteEffect,
    Effect,
    ForgetEffect,
    Lanes,
    LaunchEffect,
    Outbox,
    StopEffect,
)
from corral.control.live.outbox_retries import PAUSES, PutBack
from corral.control.ports import EngineUnavailable, Instance, LaunchOrder
from tests.unit.control.world import NoWorkspace, RecordingEngine, eventually

JOBS = [f"j-{number}" for number in range(12)]


class SlowEngine(RecordingEngine):
    """Records its orders, and the threads that sent them."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[tuple[str, str, str]] = []
        #: what it cannot take now, as it would be written down
        self.trouble: dict[tuple[str, str], Exception] = {}
        self.tried: list[tuple[str, str]] = []
        self._guard = threading.Lock()

    def launch(self, order: LaunchOrder) -> None:
        time.sleep(0.002)
        self._note("launch", order.attempt_id)

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._note("stop", attempt_id)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        for attempt_id in attempt_ids:
            self._note("delete" if delete_logs else "forget", attempt_id)

    def withhold(self, node: str, reason: str) -> None:
        self._note("withhold", node)

    def release(self, node: str, *, force: bool) -> None:
        self._note("release", node)

    def _note(self, what: str, attempt_id: str) -> None:
        with self._guard:
            self.tried.append((what, attempt_id))
            if (what, attempt_id) in self.trouble:
                raise self.trouble[what, attempt_id]
            self.orders.append((what, attempt_id, threading.current_thread().name))


class UnreliableEngine(SlowEngine):
    """Refuses the first few orders about each attempt."""

    def __init__(self, refusals: dict[tuple[str, str], int]) -> None:
        super().__init__()
        self.refusals = dict(refusals)

    def _note(self, what: str, attempt_id: str) -> None:
        left = self.refusals.get((what, attempt_id), 0)
        if left:
            self.refusals[what, attempt_id] = left - 1
            raise EngineUnavailable("not now")
        super()._note(what, attempt_id)


class Places(NoWorkspace):
    def __init__(self) -> None:
        self.removed: list[str] = []
        #: what making the directories of a job ends with
        self.trouble: dict[str, OSError] = {}

    def prepare(self, job_id: str) -> None:
        if job_id in self.trouble:
            raise self.trouble[job_id]

    def remove(self, job_ids: Sequence[str]) -> None:
        self.removed += job_ids


def order(job: str) -> LaunchOrder:
    fields: dict[str, Any] = {"job_id": job, "attempt_id": f"{job}.1", "command": ("true",), "user": "ann"}
    return LaunchOrder(instances=(Instance(rank=0, node="n1"),), **fields)


def test_each_job_stays_in_its_lane_and_in_order() -> None:
    engine, places = SlowEngine(), Places()
    lanes = Lanes([Outbox(f"lane-{number}", engine, places, lambda attempt, why: None) for number in range(3)])
    effects: list[Effect] = [LaunchEffect(order=order(job)) for job in JOBS]
    effects += [StopEffect(attempt_id=f"{job}.1", grace_seconds=0) for job in JOBS]
    effects.append(ForgetEffect(attempt_ids=tuple(f"{job}.1" for job in JOBS)))
    effects.append(DeleteEffect(attempts={job: (f"{job}.1",) for job in JOBS}))
    for effect in effects:
        lanes.put(effect)
    lanes.start()
    deadline = time.monotonic() + 30
    while len(places.removed) < len(JOBS) and time.monotonic() < deadline:
        time.sleep(0.005)
    lanes.close()

    assert sorted(places.removed) == sorted(JOBS)
    by_job = {job: [entry for entry in engine.orders if entry[1] == f"{job}.1"] for job in JOBS}
    assert all([what for what, _, _ in orders] == ["launch", "stop", "forget", "delete"] for orders in by_job.values())
    threads = {job: {thread for _, _, thread in orders} for job, orders in by_job.items()}
    assert all(len(names) == 1 for names in threads.values())
    assert len(set.union(*threads.values())) == 3


def test_directories_that_cannot_be_made_end_that_attempt_and_a_full_disk_only_delays_it() -> None:
    engine, places = SlowEngine(), Places()
    refused: list[tuple[str, str]] = []
    waits: list[tuple[str, str]] = []
    places.trouble = {
        "j-1": NotADirectoryError(20, "a link is in the way", "/jobs/j-1/checkpoints"),
        "j-2": OSError(28, "No space left on device", "/jobs/j-2"),
    }
    outbox = Outbox(
        "lane",
        engine,
        places,
        lambda attempt, why: refused.append((attempt, why)),
        prepare=partial(JobDirectories(places).prepare, "local"),
        not_taken=lambda attempt, why: waits.append((attempt, why)),
    )
    for job in ("j-1", "j-2", "j-3"):
        outbox.put(LaunchEffect(order=order(job)))
    outbox.start()
    eventually(lambda: any(what == "launch" for what, _, _ in engine.orders) and bool(waits))
    assert [entry[:2] for entry in engine.orders] == [("launch", "j-3.1")]
    why = "its directories cannot be prepared: /jobs/j-1/checkpoints: a link is in the way"
    assert refused == [("j-1.1", why)]
    assert waits[0][0] == "j-2.1"
    assert "No space left on device" in waits[0][1]
    del places.trouble["j-2"]
    outbox.hurry()
    eventually(lambda: ("launch", "j-2.1") in [entry[:2] for entry in engine.orders])
    outbox.close()
    assert len(refused) == 1


def test_words_about_a_node_go_through_in_order() -> None:
    engine, places = SlowEngine(), Places()
    lanes = Lanes([Outbox(f"lane-{number}", engine, places, lambda attempt, why: None) for number in range(3)])
    for node in ("n1", "n2", "n3", "n4"):
        lanes.put(WithholdEffect(node=node, reason="repair"))
        lanes.put(ReleaseEffect(node=node, force=False))
    lanes.start()
    deadline = time.monotonic() + 10
    while len(engine.orders) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    lanes.close()
    orders = [(what, node) for what, node, _ in engine.orders]
    assert sorted(orders) == sorted((what, f"n{n}") for what in ("withhold", "release") for n in range(1, 5))
    assert all(orders.index(("withhold", f"n{n}")) < orders.index(("release", f"n{n}")) for n in range(1, 5))


# -------------------------------------------------------------------------------------------- what it cannot take now

AWAY = EngineUnavailable("Slurm: try again")


class Lane:
    """One outbox, with what it says."""

    def __init__(self, engine: SlowEngine | None = None) -> None:
        self.engine, self.places = engine or SlowEngine(), Places()
        self.refused: list[str] = []
        self.words: list[tuple[str, str]] = []
        self.outbox = Outbox(
            "lane",
            self.engine,
            self.places,
            lambda attempt, why: self.refused.append(attempt),
            not_taken=lambda attempt, why: self.words.append((attempt, why)),
        )

    def put(self, *effects: Effect) -> None:
        for effect in effects:
            self.outbox.put(effect)

    def done(self) -> list[tuple[str, str]]:
        return [(what, whose) for what, whose, _ in self.engine.orders]

    def settle(self, job: str) -> None:
        """Everything before this is taken, and everything that waits was tried once more."""
        self.outbox.hurry()
        self.put(LaunchEffect(order=order(job)))
        eventually(lambda: ("launch", f"{job}.1") in self.done())
        self.put(LaunchEffect(order=order(f"{job}0")))
        eventually(lambda: ("launch", f"{job}0.1") in self.done())


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lane]:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 0.002)
    lane = Lane()
    lane.outbox.start()
    yield lane
    lane.outbox.close()


def test_an_order_that_the_engine_refuses_delays_no_other_and_is_retried(lane: Lane) -> None:
    lane.engine.trouble["launch", "j-1.1"] = AWAY
    lane.put(*(LaunchEffect(order=order(job)) for job in ("j-1", "j-2", "j-3")))
    lane.put(StopEffect(attempt_id="j-2.1", grace_seconds=0))
    eventually(lambda: lane.done() == [("launch", "j-2.1"), ("launch", "j-3.1"), ("stop", "j-2.1")])
    eventually(lambda: lane.engine.tried.count(("launch", "j-1.1")) > 2)
    assert set(lane.words) == {("j-1.1", "Slurm: try again")}
    lane.engine.trouble.clear()
    eventually(lambda: ("launch", "j-1.1") in lane.done())
    eventually(lambda: lane.words[-1] == ("j-1.1", ""))
    tried = lane.engine.tried.count(("launch", "j-1.1"))
    lane.settle("j-4")
    assert lane.engine.tried.count(("launch", "j-1.1")) == tried, "what was taken is not tried again"
    assert {attempt for attempt, _ in lane.words} == {"j-1.1"}, "success is not reported"


def test_reconciling_that_finds_it_missing_does_not_shorten_its_pause(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 3600.0)
    lane.engine.trouble["launch", "j-1.1"] = AWAY
    lane.put(*(LaunchEffect(order=order("j-1")) for _ in range(5)), LaunchEffect(order=order("j-2")))
    eventually(lambda: ("launch", "j-2.1") in lane.done())
    assert lane.engine.tried.count(("launch", "j-1.1")) == 1
    lane.engine.trouble.clear()
    lane.outbox.hurry()
    eventually(lambda: ("launch", "j-1.1") in lane.done())


def test_a_stop_overtakes_a_launch_that_was_not_taken(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 3600.0)
    lane.engine.trouble["launch", "j-1.1"] = AWAY
    lane.put(LaunchEffect(order=order("j-1")), StopEffect(attempt_id="j-1.1", grace_seconds=5))
    eventually(lambda: ("stop", "j-1.1") in lane.done())
    lane.engine.trouble.clear()
    lane.settle("j-2")
    assert lane.engine.tried.count(("launch", "j-1.1")) == 1
    assert lane.done().count(("stop", "j-1.1")) == 1


@pytest.mark.parametrize("trouble", [AWAY, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")])
def test_a_stop_is_sent_until_the_engine_takes_it_and_waits_for_nothing(lane: Lane, trouble: Exception) -> None:
    lane.engine.trouble = {("launch", "j-1.1"): AWAY, ("stop", "j-1.1"): trouble}
    stop = StopEffect(attempt_id="j-1.1", grace_seconds=5)
    lane.put(LaunchEffect(order=order("j-1")), stop, stop, LaunchEffect(order=order("j-1")))
    eventually(lambda: lane.engine.tried.count(("stop", "j-1.1")) > 2)
    lane.engine.trouble.clear()
    eventually(lambda: ("stop", "j-1.1") in lane.done())
    lane.settle("j-2")
    assert lane.done().count(("stop", "j-1.1")) == 1
    assert ("launch", "j-1.1") not in lane.done(), "what is stopped is not launched"


@pytest.mark.parametrize(
    "end", [ForgetEffect(attempt_ids=("j-1.1", "j-3.1")), DeleteEffect(attempts={"j-1": ("j-1.1",), "j-3": ("j-3.1",)})]
)
def test_nothing_is_tried_again_of_an_attempt_whose_end_is_recorded(
    lane: Lane, end: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 3600.0)
    lane.engine.trouble = {("launch", "j-1.1"): AWAY, ("stop", "j-3.1"): AWAY}
    lane.put(LaunchEffect(order=order("j-1")), StopEffect(attempt_id="j-3.1", grace_seconds=0), end)
    eventually(lambda: {whose for _, whose in lane.done()} == {"j-1.1", "j-3.1"})
    lane.engine.trouble.clear()
    lane.settle("j-2")
    assert [lane.engine.tried.count(one) for one in (("launch", "j-1.1"), ("stop", "j-3.1"))] == [1, 1]


@pytest.mark.parametrize("what", ["delete", "forget", "withhold", "release"])
def test_an_effect_that_fails_stays_until_it_is_carried_out(lane: Lane, what: str) -> None:
    effects: dict[str, Effect] = {
        "delete": DeleteEffect(attempts={"j-1": ("j-1.1",)}),
        "forget": ForgetEffect(attempt_ids=("j-1.1",)),
        "withhold": WithholdEffect(node="j-1.1", reason="repair"),
        "release": ReleaseEffect(node="j-1.1", force=False),
    }
    lane.engine.trouble[what, "j-1.1"] = IsADirectoryError(21, "Is a directory", "/places/j-1.1.0.log")
    lane.put(effects[what])
    eventually(lambda: lane.engine.tried.count((what, "j-1.1")) > 2)
    assert lane.outbox.backlog().waiting == 1
    assert "Is a directory: '/places/j-1.1.0.log'" in lane.outbox.backlog().trouble
    lane.engine.trouble.clear()
    eventually(lambda: (what, "j-1.1") in lane.done() and lane.outbox.backlog().waiting == 0)


def test_directories_of_jobs_are_removed_although_the_engine_cannot_forget_them(lane: Lane) -> None:
    lane.engine.trouble["delete", "j-1.1"] = AWAY
    lane.put(DeleteEffect(attempts={"j-1": ("j-1.1",), "j-2": ("j-2.1",)}))
    eventually(lambda: {"j-1", "j-2"} <= {*lane.places.removed})


def test_the_last_word_about_a_node_counts(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 3600.0)
    lane.engine.trouble = {("withhold", "n1"): AWAY}
    withhold = WithholdEffect(node="n1", reason="repair")
    lane.put(withhold, withhold, ReleaseEffect(node="n1", force=True))
    eventually(lambda: ("release", "n1") in lane.done())
    lane.engine.trouble.clear()
    lane.settle("j-2")
    assert lane.engine.tried.count(("withhold", "n1")) == 1


REFUSALS = st.dictionaries(
    st.tuples(st.sampled_from(("launch", "stop", "forget")), st.sampled_from([f"{job}.1" for job in JOBS[:4]])),
    st.integers(1, 3),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(refusals=REFUSALS, stopped=st.sets(st.sampled_from(JOBS[:4])))
def test_outbox_carries_out_instructions_once_and_in_order_despite_failures(
    refusals: dict[tuple[str, str], int], stopped: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 0.001)
    lane = Lane(UnreliableEngine(refusals))
    for job in JOBS[:4]:
        lane.put(LaunchEffect(order=order(job)))
        if job in stopped:
            lane.put(StopEffect(attempt_id=f"{job}.1", grace_seconds=0))
    lane.outbox.start()
    ends = {("stop" if job in stopped else "launch", f"{job}.1") for job in JOBS[:4]}
    eventually(lambda: ends <= {*lane.done()})
    lane.put(*(ForgetEffect(attempt_ids=(f"{job}.1",)) for job in JOBS[:4]))
    eventually(lambda: sum(what == "forget" for what, _ in lane.done()) == 4)
    lane.outbox.close()
    for job in JOBS[:4]:
        orders = [what for what, whose in lane.done() if whose == f"{job}.1"]
        launch = [] if job in stopped and refusals.get(("launch", f"{job}.1")) else ["launch"]
        assert orders == [*launch, *(["stop"] if job in stopped else []), "forget"]


def test_pauses_grow_up_to_the_longest_and_begin_anew_with_something_else() -> None:
    waiting: PutBack[str] = PutBack()

    def rounds() -> int:
        count = 1
        while waiting.next_round() != ["j-1.1"]:
            count += 1
        return count

    launch, stop = "launch", "stop"
    pauses = []
    for _ in range(len(PAUSES) + 2):
        waiting.put("j-1.1", launch)
        pauses.append(rounds())
    assert pauses == [*PAUSES, PAUSES[-1], PAUSES[-1]]
    waiting.put("j-1.1", stop)
    assert rounds() == PAUSES[0]
    waiting.put("j-1.1", stop)
    assert waiting.hurry() == ["j-1.1"]
    waiting.put("j-1.1", stop)
    assert rounds() == PAUSES[0]
    assert (waiting.drop("j-1.1"), waiting.drop("j-1.1"), bool(waiting)) == (stop, None, False)
