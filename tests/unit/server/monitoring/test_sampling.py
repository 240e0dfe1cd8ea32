"""Reading must go on whatever one collector or one sink does."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from corral.control.ports import Collected, GpuReading, Holder, HostReading, Round
from corral.core.model import JobKind
from corral.server.monitoring import sampling as sampling_module
from corral.server.monitoring.sampling import NodeLoads, Sampling, loads_of
from corral.telemetry.readings import LatestReadings

PATIENCE_SECONDS = 20.0


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.now()


class Scripted:
    """Gives the same GPU each time; may fail, or hang until let go."""

    def __init__(self, gpu_id: str, *, fails: bool = False, hangs: bool = False) -> None:
        self.name = gpu_id
        self.fails = fails
        self.hangs = hangs
        self.hanging = threading.Event()
        self.let_go = threading.Event()
        self.looks = 0
        self.closed = threading.Event()

    def collect(self, at: float) -> Collected:
        self.looks += 1
        if self.fails:
            raise OSError("no such device")
        if self.hangs:
            self.hanging.set()
            self.let_go.wait()
        reading = GpuReading(gpu_id=self.name, at=at, utilization=0.5)
        return Collected(gpus=(reading,), hosts=(HostReading(node=f"node-of-{self.name}", at=at),))

    def close(self) -> None:
        self.closed.set()


class Sink:
    """Keeps rounds, and lets a test wait for them."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.rounds: list[Round] = []
        self._news = threading.Condition()

    def take(self, taken: Round) -> None:
        with self._news:
            self.rounds.append(taken)
            self._news.notify_all()
        if self.fails:
            raise RuntimeError("disk full")

    def wait_for(self, gpu_id: str, times: int = 1) -> None:
        def seen() -> bool:
            return sum(gpu.gpu_id == gpu_id for taken in self.rounds for gpu in taken.gpus) >= times

        with self._news:
            assert self._news.wait_for(seen, PATIENCE_SECONDS), f"{gpu_id} was not read {times} times"


def held(gpu_id: str) -> Holder:
    return Holder(
        job_id="j-1", attempt_id="j-1.1", user="ada", kind=JobKind.TRAINING, gpu_milli=1000, running_since=None
    )


@pytest.fixture
def running() -> Iterator[list[Sampling]]:
    started: list[Sampling] = []
    yield started
    for each in started:
        each.stop()


def make(
    collectors: Sequence[Scripted], sinks: Sequence[Sink | LatestReadings], clock: Clock | None = None
) -> Sampling:
    return Sampling(
        collectors,
        sinks,
        holders=lambda: {"a": [held("a")]},
        clock=clock or Clock(),
        interval_seconds=0.01,
    )


def test_a_collector_that_hangs_and_one_that_fails_delay_no_other(running: list[Sampling]) -> None:
    good, hanging, failing = Scripted("good"), Scripted("hanging", hangs=True), Scripted("failing", fails=True)
    sink = Sink()
    sampling = make([hanging, failing, good], [sink])
    running.append(sampling)
    sampling.start()
    sink.wait_for("good", times=5)
    assert {gpu.gpu_id for taken in sink.rounds for gpu in taken.gpus} == {"good"}
    assert failing.looks > 1
    assert hanging.looks == 1
    hanging.let_go.set()  # it comes back by itself
    sink.wait_for("hanging")


def test_readings_of_a_hanging_collector_grow_stale(running: list[Sampling]) -> None:
    clock = Clock()
    good, other = Scripted("good"), Scripted("other")
    readings, sink = LatestReadings(stale_after_seconds=3.0), Sink()
    sampling = make([good, other], [readings, sink], clock)
    running.append(sampling)
    sampling.start()
    sink.wait_for("other")
    other.hangs = True
    assert other.hanging.wait(PATIENCE_SECONDS)
    clock.at = 1010.0
    sink.wait_for("good", times=2 * len(sink.rounds) + 5)
    latest = readings.all(now=1010.0)
    other.let_go.set()
    assert {gpu: each.stale for gpu, each in latest.items()} == {"good": False, "other": True}


def test_a_sink_that_fails_costs_the_others_nothing_and_is_logged_once(
    running: list[Sampling], caplog: pytest.LogCaptureFixture
) -> None:
    broken, good = Sink(fails=True), Sink()
    sampling = make([Scripted("a")], [broken, good])
    running.append(sampling)
    sampling.start()
    good.wait_for("a", times=5)
    logged = [record for record in caplog.records if "disk full" in record.getMessage()]
    assert len(logged) == 1
    broken.fails = False
    broken.wait_for("a", times=len(broken.rounds) + 2)


def test_a_round_has_the_readings_and_who_holds_what() -> None:
    sink = Sink()
    make([Scripted("a"), Scripted("b")], [sink]).sample()
    (taken,) = sink.rounds
    assert taken.at == 1000.0
    assert [gpu.gpu_id for gpu in taken.gpus] == ["a", "b"]
    assert [host.node for host in taken.hosts] == ["node-of-a", "node-of-b"]
    assert [holder.job_id for holder in taken.holders["a"]] == ["j-1"]


def test_rounds_never_go_back_in_time() -> None:
    clock, sink = Clock(), Sink()
    sampling = make([Scripted("a")], [sink], clock)
    for at in (1000.0, 999.99, 1001.0):
        clock.at = at
        sampling.sample()
    assert [taken.at for taken in sink.rounds] == [1000.0, 1000.0, 1001.0]
    assert [taken.gpus[0].at for taken in sink.rounds] == [1000.0, 999.99, 1001.0]


def test_without_an_answer_about_holders_the_last_one_counts() -> None:
    answers: list[dict[str, list[Holder]]] = [{"a": [held("a")]}]
    sink = Sink()
    sampling = Sampling([Scripted("a")], [sink], holders=lambda: answers.pop(), clock=Clock(), interval_seconds=1.0)
    sampling.sample()
    sampling.sample()  # asking fails now
    assert [set(taken.holders) for taken in sink.rounds] == [{"a"}, {"a"}]


def test_slow_sinks_lose_the_oldest_looks_which_are_counted(
    running: list[Sampling], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling_module, "MAX_WAITING", 4)
    release = threading.Event()
    entered = threading.Event()

    class Slow:
        def take(self, taken: Round) -> None:
            entered.set()
            release.wait()

    clock, collector = Clock(), Scripted("a")
    sampling = Sampling([collector], [Slow()], holders=dict, clock=clock, interval_seconds=0.001)
    sampling.start()
    assert entered.wait(PATIENCE_SECONDS)
    enough = threading.Event()
    while sampling.dropped < 3:
        enough.wait(0.005)
    assert len(sampling._waiting) <= 4
    release.set()
    sampling.stop()
    assert collector.closed.wait(PATIENCE_SECONDS)


def test_stop_does_not_wait_for_a_collector_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_module, "_STOP_COLLECTOR_SECONDS", 0.05)
    hanging, sink = Scripted("a", hangs=True), Sink()
    sampling = make([hanging], [sink])
    sampling.start()
    sampling.stop()
    assert sink.rounds == []
    hanging.let_go.set()
    assert hanging.closed.wait(PATIENCE_SECONDS)
    assert sink.rounds == []


def test_the_use_of_gpus_by_node() -> None:
    readings = [
        GpuReading(gpu_id="a0", at=1.0, utilization=0.2),
        GpuReading(gpu_id="a1", at=1.0, utilization=0.6),
        GpuReading(gpu_id="b0", at=1.0, lost=True),
        GpuReading(gpu_id="unknown", at=1.0, utilization=1.0),
    ]
    assert loads_of(readings, {"a0": "a", "a1": "a", "b0": "b"}) == {"a": {"a0": 0.2, "a1": 0.6}}
    logged: list[object] = []
    loads = NodeLoads(lambda: {"a0": "a"}, logged.append)
    loads.take(Round(at=1.0, gpus=readings))
    loads.take(Round(at=2.0))
    assert logged == [{"a": {"a0": 0.2}}]
