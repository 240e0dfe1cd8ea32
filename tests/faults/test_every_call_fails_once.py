"""Every external call fails once, at a random step of a random story: afterwards everything goes on by itself, and the
rules of docs/reference/invariants.md hold.

A fixed number of seeds; more with FAULT_SEEDS=1000.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from concurrent.futures import Future
from typing import Any

import pytest

from corral.control.errors import Refusal
from corral.control.jobs import jobs
from corral.control.live import outage, outbox, worker
from corral.control.live.controller import Controller
from corral.control.live.journal import replay
from corral.control.live.state import State, load_state
from corral.control.live.unit_of_work import SYSTEM
from corral.control.people import budgets
from corral.control.ports import OutcomeUnknown, Store
from corral.control.records import EVERY_JOB, EventFilter, EventRecord
from corral.control.system.policies import Policies
from corral.core.model import EndReason, JobState, Request
from corral.core.people.budgets import Price
from corral.core.snapshot.changes import PutLastNode, PutMix
from corral.core.snapshot.journal import Digest
from corral.server.wiring.foundation import SystemClock
from corral.stores.database.store import SqlStore
from tests.faults.injection import Faults, FaultyWorkspace, MemoryEngine, break_store
from tests.unit.control.ledger import assert_charged_once
from tests.unit.control.world import ANN, draft, eventually
from tests.unit.core.builders import node

pytest_plugins = ("tests.servers.fixtures",)

SEEDS = int(os.environ.get("FAULT_SEEDS", "24"))
#: about how many calls a story makes; a fault behind the end hits nothing
STEPS = 450
ROUNDS = 20


class Story:
    """Jobs are submitted, stopped, deleted, and end, while calls fail."""

    def __init__(self, store: Store, seed: int) -> None:
        assert isinstance(store, SqlStore)
        self.rng = random.Random(seed)
        self.store = store
        self.faults = Faults()
        self.clock = SystemClock()
        self.engine = MemoryEngine([node("n1", gpus=4), node("n2", gpus=4)], self.faults, self.clock)
        self.announced: list[int] = []
        self.accepted: set[str] = set()
        self.unknown: set[str] = set()
        self.refused: set[str] = set()
        self.deleted: set[str] = set()
        self._asked: list[tuple[str, Future[Any]]] = []
        self._names = 0
        break_store(store, self.faults)
        self.controller = Controller(
            store=store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=FaultyWorkspace(self.faults),
            announce=self._announce,
            observe_seconds=0.1,
            tidy_seconds=0.5,
        )

    def _announce(self, events: Any) -> None:
        self.announced.extend(event.id for event in events)
        if self.faults.hits("announce"):
            raise RuntimeError("no subscriber")

    def run(self) -> None:
        self.controller.start()
        # Attempts are charged from the first one on.
        self.controller.execute(budgets.set_price, SYSTEM, "A10", Price()).result(30)
        self.faults.arm(self.rng.randrange(1, STEPS), self.rng.choice([1, 1, 1, 2, 5, 40]))
        for _ in range(ROUNDS):
            self._act()
            self._hear(0.02)
            # A moment for the engine and the controller, also when everything is refused at once.
            threading.Event().wait(0.01)
        self.faults.disarm()
        self._hear(30)

    def _act(self) -> None:
        for _ in range(self.rng.randrange(3)):
            self._submit()
        for attempt_id in self.engine.running:
            if self.rng.random() < 0.4:
                reason = self.rng.choice([EndReason.EXIT_CODE, EndReason.EXIT_CODE, EndReason.LOST])
                self.engine.end(attempt_id, reason)
        if self.rng.random() < 0.3:
            self.controller.execute(budgets.settle)
        known = sorted(self.accepted - self.deleted)
        if known and self.rng.random() < 0.3:
            self.controller.execute(jobs.stop, ANN, self.rng.choice(known))
        if known and self.rng.random() < 0.2:
            name = self.rng.choice(known)
            answer = self.controller.execute(jobs.delete, ANN, name)
            # Whether it is gone shows in the end; until then it may be.
            self.deleted.add(name)
            answer.add_done_callback(lambda done: self.deleted.discard(name) if _is_refusal(done) else None)

    def _submit(self) -> None:
        self._names += 1
        name = f"story-{self._names:03d}"
        request = Request(gpus=self.rng.choice([1, 1, 2, 4]), nodes=self.rng.choice([1, 1, 1, 2]))
        self._asked.append((name, self.controller.execute(jobs.submit, ANN, [draft(name, request=request)])))

    def _hear(self, seconds: float) -> None:
        """Collects the results of requests."""
        left = []
        for name, answer in self._asked:
            try:
                error = answer.exception(seconds)
            except TimeoutError:
                left.append((name, answer))
                continue
            if error is None:
                self.accepted.add(name)
            elif isinstance(error, OutcomeUnknown):
                self.unknown.add(name)
            else:
                self.refused.add(name)
        self._asked = left

    # ---------------------------------------------------------------- what must be

    def settle(self) -> None:
        """Ends the faults, and waits until everything has ended by itself."""

        def over() -> bool:
            for attempt_id in self.engine.running:
                self.engine.end(attempt_id, EndReason.EXIT_CODE)
            with self.store.read() as tx:
                return not tx.jobs.live()

        eventually(lambda: not self.controller.outage, 30)
        eventually(over, 60)
        eventually(lambda: not self.engine.running, 30)

    def check(self) -> None:
        assert not self.engine.violations
        assert not self._asked, "a request waits for ever"
        twice = [attempt for attempt, count in Counter(self.engine.begun).items() if count > 1]
        assert not twice
        assert self.accepted, "a story about nothing"
        with self.store.read() as tx:
            records = tx.jobs.page(EVERY_JOB, sort="id", cursor=None, limit=500).items
            events = tx.events.page(EventFilter(), cursor=None, limit=5_000).items
            attempts = [attempt for record in records for attempt in tx.attempts.of_job(record.job.id)]
            replayed = list(replay(tx.cycles.since_base()))
            loaded = load_state(tx, Policies())
            assert_charged_once(tx)
        names = {record.job.name for record in records}
        assert self.accepted - self.deleted <= names, "accepted and lost"
        assert names <= self.accepted | self.unknown, "refused and there"
        for record in records:
            assert record.job.state in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)
            assert record.job.end_reason is not None
        assert all(attempt.ended_at is not None for attempt in attempts)
        self._check_events(events)
        assert [one.recorded for one in replayed] == [one.decided for one in replayed]
        in_memory = self.controller.inspect(_digest).result(10)
        assert in_memory == _digest(loaded), "the snapshot differs from the store"

    def _check_events(self, events: Any) -> None:
        submitted = Counter(event.subject for event in events if event.action == "job.submitted")
        assert set(submitted.values()) <= {1}
        ends = Counter((event.subject, event.detail.get("attempt")) for event in events if _is_end(event))
        assert set(ends.values()) <= {1}, ends
        assert set(Counter(self.announced).values()) <= {1}, "announced twice"
        assert set(self.announced) <= {event.id for event in events}, "announced and not there"


def _is_end(event: EventRecord) -> bool:
    return event.action in ("job.completed", "job.failed", "job.requeued") or (
        event.action == "job.stopped" and "attempt" in event.detail
    )


def _digest(state: State) -> str:
    """Without what only lasts as long as a server: where the last job started, and what is asked for lately."""
    digest = Digest()
    digest.add(change for change in state.snapshot.contents() if not isinstance(change, PutLastNode | PutMix))
    return digest.hex()


def _is_refusal(done: Future[Any]) -> bool:
    return isinstance(done.exception(), Refusal)


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(outbox, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(outage, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr("corral.core.jobs.backoff.BACKOFF_SECONDS", 0.02)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_server_goes_on_after_any_call_fails_once(store: Store, seed: int) -> None:
    story = Story(store, seed)
    try:
        story.run()
        story.settle()
        story.check()
    except BaseException as error:
        error.add_note(f"seed {seed}; what failed: {story.faults.failed}")
        raise
    finally:
        story.controller.stop()
