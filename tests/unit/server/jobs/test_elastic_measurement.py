"""Measured utilisation of elastic jobs: over a whole window, sent when it has changed, and never estimated."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from corral.control.ports import GpuReading, Holder, Round
from corral.core.model import JobKind
from corral.core.snapshot.installation import ScalingRules
from corral.server.jobs.elastic_measurement import UseWatch


class StubController:
    """Knows one elastic attempt, and records the values that it receives."""

    def __init__(self) -> None:
        self.elastic = frozenset({"j-1.1"})
        self.sent: list[dict[str, float]] = []

    def inspect(self, question: Any) -> Future[Any]:
        return _done(self.elastic)

    def execute(self, use_case: Any, used: dict[str, float]) -> Future[Any]:
        self.sent.append(used)
        return _done(None)


def _done(value: Any) -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_result(value)
    return answer


def watching(rules: ScalingRules | None = None) -> tuple[StubController, UseWatch]:
    controller = StubController()
    made = UseWatch(controller, rules or ScalingRules(), window_seconds=60.0, interval_seconds=5.0)  # type: ignore[arg-type]
    return controller, made


def a_round(at: float, *uses: float | None, attempt: str = "j-1.1", since: float | None = 0.0) -> Round:
    """One reading for each GPU that the attempt holds."""
    holder = Holder(
        job_id="j-1", attempt_id=attempt, user="ann", kind=JobKind.TRAINING, gpu_milli=1000, running_since=since
    )
    return Round(
        at=at,
        gpus=[GpuReading(gpu_id=f"g{n}", at=at, utilization=use) for n, use in enumerate(uses)],
        holders={f"g{n}": [holder] for n in range(len(uses))},
    )


def test_the_mean_of_all_its_gpus_is_sent_after_a_whole_window() -> None:
    controller, watch = watching()
    for at in range(0, 60, 5):
        watch.take(a_round(float(at), 0.8, 1.0))
    assert controller.sent == []
    watch.take(a_round(60.0, 0.8, 1.0))
    (sent,) = controller.sent
    assert list(sent) == ["j-1.1"]
    assert round(sent["j-1.1"], 6) == 0.9


def test_only_changes_are_sent() -> None:
    controller, watch = watching()
    for at in range(0, 600, 5):
        watch.take(a_round(float(at), 0.82 + (at % 2) * 0.02))
    assert len(controller.sent) == 1
    for at in range(600, 700, 5):
        watch.take(a_round(float(at), 0.78))
    assert len(controller.sent) == 2, "a threshold was crossed"


def test_unknown_step_rates_are_not_judged() -> None:
    controller, watch = watching()
    for at in range(0, 300, 5):
        watch.take(a_round(float(at), None))
        watch.take(a_round(float(at), 0.9, attempt="j-2.1"))
        watch.take(a_round(float(at), 0.9, since=None))
    for at in range(300, 600, 40):
        watch.take(a_round(float(at), 0.9))
    assert controller.sent == []


def test_a_new_attempt_begins_anew() -> None:
    controller, watch = watching()
    for at in range(0, 65, 5):
        watch.take(a_round(float(at), 0.9))
    controller.elastic = frozenset({"j-1.2"})
    for at in range(65, 120, 5):
        watch.take(a_round(float(at), 0.9, attempt="j-1.2"))
    assert [list(sent) for sent in controller.sent] == [["j-1.1"]]
    watch.take(a_round(125.0, 0.9, attempt="j-1.2"))
    assert [list(sent) for sent in controller.sent] == [["j-1.1"], ["j-1.2"]]


def test_switched_off_it_measures_nothing() -> None:
    controller, watch = watching(ScalingRules(enabled=False))
    for at in range(0, 200, 5):
        watch.take(a_round(float(at), 0.9))
    assert controller.sent == []
