"""The contract of every history, the embedded one and Prometheus: the same readings, the same queries."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from corral.control.ports import CLUSTER, History, HistoryUnavailable, Metric, Point
from corral.telemetry.history.precision import PER_UNIT
from corral.telemetry.prometheus import EXPOSED, MOST_STEPS, PrometheusHistory
from tests.servers.prometheus import HOW_TO_INSTALL, PrometheusServer, find_program
from tests.unit.telemetry.history_model import HistoryModel, SetClock, assert_same_series, is_close, open_history

#: Two days ago, at the beginning of a day: within what both keep.
T = (int(time.time()) // 86_400 - 2) * 86_400
UTIL = Metric.GPU_UTILIZATION
#: a name that means something else in a regular expression, and one that must be escaped in a string
ODD = 'gpu.+"0"'
NEAR = "gpuXX0"


def readings() -> list[tuple[float, dict[Metric, dict[str, float]]]]:
    """Three hours every 15 s. One GPU comes late, one is away for half an hour, and one has an odd name."""
    taken: list[tuple[float, dict[Metric, dict[str, float]]]] = []
    for number in range(3 * 240):
        at = T + 7 + 15 * number
        values: dict[Metric, dict[str, float]] = {
            UTIL: {"g0": number % 20 / 20, ODD: 0.25, NEAR: 0.75},
            Metric.GPU_MEMORY_USED: {"g0": float((number % 64) << 30)},
            Metric.GPU_ENERGY: {"g0": 1e9 + 3000.0 * number},
            Metric.GPU_SM_CLOCK: {"g0": 1410.0},
            Metric.NODE_CPU: {"n1": 0.5},
            Metric.QUEUE_LENGTH: {"default": float(number // 100)},
            Metric.CLUSTER_POWER: {CLUSTER: 1000.0 + number},
        }
        if number > 300:
            values[UTIL]["g1"] = 0.9
        if not 200 < number < 320:
            values[UTIL]["g2"] = 0.1 * (number % 3)
        taken.append((at, values))
    return taken


def openmetrics(taken: list[tuple[float, dict[Metric, dict[str, float]]]]) -> str:
    rows: defaultdict[Metric, list[str]] = defaultdict(list)
    for at, values in taken:
        for metric, by in values.items():
            exposed = EXPOSED[metric]
            for subject, value in by.items():
                name = subject.replace("\\", "\\\\").replace('"', '\\"')
                labels = f'{{{exposed.label}="{name}",job="corral"}}' if exposed.label else '{job="corral"}'
                rows[metric].append(f"{exposed.name}{labels} {value * exposed.scale!r} {at}")
    lines = []
    for metric, of in rows.items():
        kind = "counter" if EXPOSED[metric].name.endswith("_total") else "gauge"
        lines += [f"# TYPE {EXPOSED[metric].name.removesuffix('_total')} {kind}", *of]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module", params=["embedded", "compacted", "prometheus"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    place = tmp_path_factory.mktemp("history")
    if request.param == "prometheus":
        yield from _prometheus(place)
        return
    embedded = open_history(place / "history.db", SetClock(at=T + 4 * 3600))
    for at, values in readings():
        embedded.append(at, values)
    if request.param == "compacted":
        embedded.tend()
    yield embedded
    embedded.close()


def _prometheus(place: Path) -> Iterator[History]:
    program = find_program()
    if program is None:
        pytest.skip(HOW_TO_INSTALL)
    server = PrometheusServer(directory=place, program=program)
    server.backfill(openmetrics(readings()))
    server.start("global: {}\n")
    history = PrometheusHistory(server.url)
    yield history
    history.close()
    server.stop()


@pytest.fixture(scope="module")
def model() -> HistoryModel:
    model = HistoryModel(kept_ms={})
    for at, values in readings():
        model.append(round(at * 1000), values)
    return model


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (T + 1000, T + 1060),
        (T, T + 3 * 3600),
        (T + 7, T + 22),  # from a reading on, and before the next
        (T + 3000, T + 9000),
        (T - 3600, T),  # nothing
        (T + 60, T + 60),
    ],
)
def test_means(history: History, model: HistoryModel, since: int, until: int) -> None:
    got = history.means(UTIL, since, until)
    wanted = model.means(UTIL, since * 1000, until * 1000)
    assert sorted(got) == sorted(wanted)
    assert all(is_close(UTIL, got[name], value) for name, value in wanted.items())


@pytest.mark.parametrize("metric", [UTIL, Metric.GPU_MEMORY_USED, Metric.GPU_ENERGY, Metric.GPU_SM_CLOCK])
@pytest.mark.parametrize(
    ("since", "until", "step"),
    [
        (T, T + 3 * 3600, 3600),
        (T, T + 3 * 3600, 60),
        (T + 100, T + 9999, 300),  # steps that are cut at both ends
        (T + 100, T + 130, 300),  # all in one step
        (T, T + 3600, 15),
        (T - 86_400, T + 86_400, 86_400),
    ],
)
def test_series(history: History, model: HistoryModel, metric: Metric, since: int, until: int, step: int) -> None:
    got = history.series(metric, None, since, until, step)
    assert_same_series(metric, got, model.series(metric, since * 1000, until * 1000, step * 1000))


def test_only_the_subjects_that_were_asked_for(history: History) -> None:
    assert set(history.series(UTIL, [ODD, "g1", "unknown"], T, T + 10_800, 600)) == {ODD, "g1"}
    assert history.series(UTIL, [], T, T + 10_800, 600) == {}
    (point,) = history.series(UTIL, [NEAR], T, T + 600, 600)[NEAR]
    assert (point.at, point.mean, point.count) == (T, 0.75, 40)


def test_nodes_queues_and_the_whole_installation(history: History) -> None:
    assert history.means(Metric.NODE_CPU, T, T + 600) == {"n1": 0.5}
    assert history.series(Metric.QUEUE_LENGTH, ["default"], T, T + 3600, 3600) == {
        "default": [Point(at=T, mean=0.75, least=0, most=2, count=240)]
    }
    assert history.series(Metric.CLUSTER_POWER, None, T, T + 30, 30) == {
        CLUSTER: [Point(at=T, mean=1000.5, least=1000, most=1001, count=2)]
    }
    assert history.series(Metric.CLUSTER_POWER, ["g0"], T, T + 30, 30) == {}


def test_clocks_are_in_mhz(history: History) -> None:
    assert history.means(Metric.GPU_SM_CLOCK, T, T + 60) == {"g0": 1410.0}


def test_history_describes_itself(history: History) -> None:
    about = history.describe()
    assert about["kind"] in ("embedded", "prometheus")
    assert about["place"]


def test_every_metric_has_a_name_in_prometheus() -> None:
    assert set(EXPOSED) == set(Metric) == set(PER_UNIT)
    assert len({exposed.name for exposed in EXPOSED.values()}) == len(EXPOSED)


def test_a_long_question_is_put_in_pieces_and_in_longer_steps() -> None:
    asked: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        return httpx.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": []}})

    history = PrometheusHistory("http://prometheus.invalid", transport=httpx.MockTransport(answer))
    assert history.series(UTIL, None, 0, 30_000, 1) == {}
    assert len(asked) == 3
    asked.clear()
    assert history.series(UTIL, None, 0, 10 * MOST_STEPS, 1) == {}
    assert len(asked) == 5
    assert b"step=10.000" in asked[0]


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(503, json={"status": "error", "error": "starting"}), "503: starting"),
        (httpx.Response(200, text="hello"), "not as Prometheus does"),
        (httpx.Response(200, json=["hello"]), "not as Prometheus does"),
        (httpx.ConnectError("refused"), "cannot be queried"),
    ],
)
def test_a_prometheus_that_fails(response: httpx.Response | httpx.ConnectError, message: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(response, Exception):
            raise response
        return response

    history = PrometheusHistory("http://ann:secret@prometheus.invalid:9090/", transport=httpx.MockTransport(answer))
    history.append(T, {UTIL: {"g0": 1.0}})
    for ask in (
        lambda: history.means(UTIL, T, T + 60),
        lambda: history.series(UTIL, None, T, T + 60, 60),
        history.describe,
    ):
        with pytest.raises(HistoryUnavailable, match=message) as failure:
            ask()
        assert "secret" not in str(failure.value)
        assert "prometheus.invalid:9090" in str(failure.value)
