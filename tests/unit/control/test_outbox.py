"""Effects in several lanes: what concerns one job is carried out in order, and nothing is lost or done twice."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

from corral.control.outbox import (
    DeleteEffect,
    Effect,
    ForgetEffect,
    Lanes,
    LaunchEffect,
    Outbox,
    ReleaseEffect,
    StopEffect,
    WithholdEffect,
)
from corral.control.ports import Engine, Instance, LaunchOrder, Workspace

JOBS = [f"j-{number}" for number in range(12)]


class SlowEngine:
    """Writes down what it was told, and by which thread."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self._guard = threading.Lock()

    def launch(self, order: LaunchOrder) -> None:
        time.sleep(0.002)
        self._note("launch", order.attempt_id)

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        self._note("stop", attempt_id)

    def forget(self, attempt_ids: list[str], *, delete_logs: bool = False) -> None:
        for attempt_id in attempt_ids:
            self._note("delete" if delete_logs else "forget", attempt_id)

    def withhold(self, node: str, reason: str) -> None:
        self._note("withhold", node)

    def release(self, node: str, *, whoever_withheld: bool) -> None:
        self._note("release", node)

    def _note(self, what: str, attempt_id: str) -> None:
        with self._guard:
            self.told.append((what, attempt_id, threading.current_thread().name))


class Places:
    def __init__(self) -> None:
        self.removed: list[str] = []

    def remove(self, job_ids: list[str]) -> None:
        self.removed += job_ids


def order(job: str) -> LaunchOrder:
    fields: dict[str, Any] = {"job_id": job, "attempt_id": f"{job}.1", "command": ("true",), "user": "ann"}
    return LaunchOrder(instances=(Instance(rank=0, node="n1"),), **fields)


def test_each_job_stays_in_its_lane_and_in_order() -> None:
    engine, places = SlowEngine(), Places()
    lanes = Lanes(
        [
            Outbox(f"lane-{number}", cast(Engine, engine), cast(Workspace, places), lambda attempt, why: None)
            for number in range(3)
        ]
    )
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
    by_job = {job: [entry for entry in engine.told if entry[1] == f"{job}.1"] for job in JOBS}
    assert all([what for what, _, _ in told] == ["launch", "stop", "forget", "delete"] for told in by_job.values())
    threads = {job: {thread for _, _, thread in told} for job, told in by_job.items()}
    assert all(len(names) == 1 for names in threads.values())
    assert len(set.union(*threads.values())) == 3


def test_words_about_a_node_go_through_in_order() -> None:
    engine, places = SlowEngine(), Places()
    lanes = Lanes(
        [
            Outbox(f"lane-{number}", cast(Engine, engine), cast(Workspace, places), lambda attempt, why: None)
            for number in range(3)
        ]
    )
    for node in ("n1", "n2", "n3", "n4"):
        lanes.put(WithholdEffect(node=node, reason="repair"))
        lanes.put(ReleaseEffect(node=node, whoever_withheld=False))
    lanes.start()
    deadline = time.monotonic() + 10
    while len(engine.told) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    lanes.close()
    told = [(what, node) for what, node, _ in engine.told]
    assert sorted(told) == sorted((what, f"n{n}") for what in ("withhold", "release") for n in range(1, 5))
    assert all(told.index(("withhold", f"n{n}")) < told.index(("release", f"n{n}")) for n in range(1, 5))
