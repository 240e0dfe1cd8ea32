"""The resource panel, recounted by hand, and the history of scores."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from corral.control.fleet.panel import PanelRow, panel, score_history
from corral.control.ports import Store
from corral.control.records import ScorePoint
from corral.control.scheduling import queues
from corral.core.model import GpuHealth, JobKind, Queue, Request
from tests.unit.control.tenants import two_teams
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft
from tests.unit.core.builders import node

TRAINING, WORKBENCH, DISTRIBUTED = JobKind.TRAINING, JobKind.WORKBENCH, JobKind.DISTRIBUTED
HOUR = 3600.0


def rows(desk: Desk, **where: object) -> dict[tuple[JobKind, str], PanelRow]:
    return {(row.kind, row.model): row for row in panel(desk.state, desk.now, **where).rows}  # type: ignore[arg-type]


def sums(desk: Desk, **where: object) -> dict[JobKind, PanelRow]:
    return {row.kind: row for row in panel(desk.state, desk.now, **where).kinds}  # type: ignore[arg-type]


def test_running_and_waiting_for_one_and_for_all(desk: Desk) -> None:
    desk.submit(draft("ann-runs", gpus=3), caller=ANN)
    desk.submit(draft("bob-runs", gpus=4), caller=BOB)
    desk.cycle()
    desk.submit(draft("ann-waits", gpus=4), caller=ANN)
    row = rows(desk, user="ann")[TRAINING, "A10"]
    assert (row.running, row.queued, row.occupied, row.gap, row.total, row.free) == (1, 1, 3.0, 4.0, 8.0, 1.0)
    cluster = rows(desk)[TRAINING, "A10"]
    assert (cluster.running, cluster.queued, cluster.occupied, cluster.gap, cluster.free) == (2, 1, 7.0, 4.0, 1.0)
    assert rows(desk)[WORKBENCH, "A10"].running == 0


@pytest.fixture
def teams(store: Store) -> Desk:
    return two_teams(store)


def test_the_total_of_a_user_is_what_is_in_reach(teams: Desk) -> None:
    assert {model: row.total for (kind, model), row in rows(teams, user="ann").items() if kind is TRAINING} == {
        "A10": 8.0
    }
    assert {model: row.total for (kind, model), row in rows(teams).items() if kind is TRAINING} == {
        "A10": 8.0,
        "A100": 8.0,
    }


def test_the_total_of_a_kind_is_what_its_queues_have(teams: Desk) -> None:
    big = teams.state.snapshot.queues["big"]
    teams.do(queues.edit, ROOT, replace(big, kinds=(TRAINING,)))
    assert (WORKBENCH, "A100") not in rows(teams)
    assert rows(teams)[TRAINING, "A100"].total == 8.0
    assert sums(teams)[WORKBENCH].total == 8.0
    assert sums(teams)[TRAINING].total == 16.0
    teams.do(queues.create, ROOT, Queue(name="benches", pool="big", kinds=(WORKBENCH,)))
    assert sums(teams)[WORKBENCH].total == 16.0


def test_a_group_counts_the_jobs_of_its_users_and_a_model_counts_each_gpu_once(teams: Desk) -> None:
    teams.submit(draft("on-a10", gpus=1), caller=ANN)
    teams.submit(draft("on-a100", gpus=2), caller=BOB)
    teams.cycle()
    group = teams.state.snapshot.memberships["bob"].group
    (model,) = panel(teams.state, teams.now, group=group).models
    assert (model.model, model.running, model.occupied, model.total, model.free) == ("A100", 1, 2.0, 8.0, 6.0)
    both = {row.model: row for row in panel(teams.state, teams.now).models}
    assert {name: (row.running, row.total) for name, row in both.items()} == {"A10": (1, 8.0), "A100": (1, 8.0)}
    assert panel(teams.state, teams.now, group="empty-group").models == ()


def test_filters_by_kind_and_model(teams: Desk) -> None:
    teams.submit(draft("on-a10", gpus=1), caller=ANN)
    teams.submit(draft("on-a100", gpus=2), caller=BOB)
    teams.cycle()
    assert set(rows(teams, kind=TRAINING)) == {(TRAINING, "A10"), (TRAINING, "A100")}
    assert set(rows(teams, model="A100")) == {(kind, "A100") for kind in JobKind}
    (row,) = panel(teams.state, teams.now, kind=TRAINING, model="A100").rows
    assert (row.running, row.occupied, row.free) == (1, 2.0, 6.0)
    (total,) = panel(teams.state, teams.now, kind=TRAINING, model="A100").kinds
    assert (total.running, total.occupied) == (1, 2.0)


def test_the_sums_hold_jobs_without_gpus_too(desk: Desk) -> None:
    desk.submit(draft("cpu-runs", request=Request(cpu_milli=1000)), draft("gpu-runs", gpus=1))
    desk.cycle()
    desk.submit(draft("cpu-waits", request=Request(cpu_milli=64_000)))
    total = sums(desk)[TRAINING]
    assert (total.running, total.queued, total.occupied, total.gap) == (2, 1, 1.0, 0.0)
    assert rows(desk)[TRAINING, "A10"].running == 1


def test_free_is_what_is_in_good_order(store: Store) -> None:
    sick = node("n1", gpus=4)
    sick = replace(sick, gpus=(replace(sick.gpus[0], health=GpuHealth.FAILED), *sick.gpus[1:]))
    desk = Desk(store, nodes=[sick])
    desk.submit(draft("half", request=Request(gpu_milli=500)))
    desk.cycle()
    row = rows(desk)[TRAINING, "A10"]
    assert (row.total, row.free, row.occupied) == (4.0, 2.0, 0.5)


# ------------------------------------------------------------------------------------------------ scores


def point(at: float, value: float, usage: float) -> ScorePoint:
    return ScorePoint(user="ann", model="A10", at=at, value=value, usage=usage)


def test_the_history_is_exact_at_every_point() -> None:
    """Two GPUs from 0 h to 6 h, none after."""
    constant = 6 * HOUR
    peak = 2 * (1 - math.exp(-1))
    history = score_history([point(0, 0, 2), point(6 * HOUR, peak, 0)], 0, 12 * HOUR, constant, 25)
    assert 20 < len(history) <= 25
    assert (history[0].at, history[-1].at) == (0, 12 * HOUR)
    for item in history:
        early = item.at < 6 * HOUR
        exact = 2 * (1 - math.exp(-item.at / constant)) if early else peak * math.exp(-(item.at / constant - 1))
        assert item.value == pytest.approx(exact)
        assert item.usage == (2 if early else 0)
    assert 6 * HOUR in {item.at for item in history}, "changes are points of their own"


def test_the_history_begins_at_the_time_that_was_asked_for() -> None:
    history = score_history([point(0, 0, 1), point(100, 0.5, 0)], 50, 200, 100.0, 10)
    assert history[0].at == 50
    assert history[0].value == pytest.approx(1 - math.exp(-0.5))


def test_many_changes_are_sampled() -> None:
    points = [point(float(n), n / 1000, 1.0) for n in range(1000)]
    history = score_history(points, 0, 1000, 1e9, 50)
    assert len(history) == 50
    assert all(item.value == pytest.approx(math.floor(item.at) / 1000, abs=2e-3) for item in history)
    assert score_history([], 0, 10, 1.0, 5) == []
