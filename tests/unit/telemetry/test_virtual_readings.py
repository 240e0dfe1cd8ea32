"""Simulated readings must be believable, and the same for the same history."""

from __future__ import annotations

from itertools import pairwise

from corral.control.ports import GpuReading
from corral.engines.local.fleet import VirtualFleet
from corral.engines.local.virtual import build_nodes, gpu_spec, parse_virtual_nodes
from corral.telemetry.virtual import VirtualCollector

MODELS = ("A10", "A100-80G", "H200", "T4")


def fleet() -> VirtualFleet:
    text = ",".join(f"1x2x{model}" for model in MODELS)
    return VirtualFleet(build_nodes(parse_virtual_nodes(text), host="host"))


def run(seconds: int, busy: dict[str, float], *, step: float = 5.0, begin: float = 1000.0) -> list[list[GpuReading]]:
    collector = VirtualCollector(fleet(), lambda: busy)
    return [list(collector.collect(begin + step * index)) for index in range(int(seconds / step) + 1)]


def all_busy() -> dict[str, float]:
    return {gpu.id: 1.0 for node in fleet().nodes() for gpu in node.gpus}


def test_idle_gpus_rest() -> None:
    for reading in run(600, {})[-1]:
        assert reading.utilization == 0.0
        assert 24.0 <= (reading.temperature_celsius or 0.0) <= 38.0
        assert (reading.power_watts or 0.0) < 0.2 * 700
        assert (reading.memory_used_bytes or 0) < 1 << 30


def test_busy_gpus_work_within_their_limits() -> None:
    sheets = {gpu.id: gpu_spec(gpu.model) for node in fleet().nodes() for gpu in node.gpus}
    for round_of_readings in run(900, all_busy())[30:]:
        for reading in round_of_readings:
            sheet = sheets[reading.gpu_id]
            assert 0.69 <= (reading.utilization or 0.0) <= 0.99
            assert 0.6 * sheet.tdp_watts <= (reading.power_watts or 0.0) <= sheet.tdp_watts
            assert 45.0 <= (reading.temperature_celsius or 0.0) <= 80.0
            assert 0 < (reading.memory_used_bytes or 0) <= (reading.memory_total_bytes or 0)


def test_utilisation_wanders_and_gpus_differ() -> None:
    rounds = run(600, all_busy())[20:]
    first = [rounds_reading[0].utilization for rounds_reading in rounds]
    assert len(set(first)) > 3
    assert max(abs((a or 0) - (b or 0)) for a, b in pairwise(first)) < 0.1  # slowly
    assert len({reading.utilization for reading in rounds[-1]}) > 1


def test_temperature_lags_behind_power() -> None:
    warm_up = [readings[0] for readings in run(300, all_busy())]
    assert (warm_up[4].power_watts or 0.0) > 0.7 * (warm_up[30].power_watts or 0.0)
    temperatures = [reading.temperature_celsius or 0.0 for reading in warm_up]
    assert temperatures[4] < temperatures[12] < temperatures[30]


def test_energy_adds_up() -> None:
    readings = [each[0] for each in run(100, all_busy())]
    integral = sum((reading.power_watts or 0.0) * 5.0 for reading in readings[1:])
    assert abs((readings[-1].energy_joules or 0.0) - integral) < 0.01 * integral
    energies = [reading.energy_joules or 0.0 for reading in readings]
    assert energies == sorted(energies)


def test_a_shared_gpu_works_less_and_a_released_one_cools_down() -> None:
    busy = all_busy()
    some = next(iter(busy))
    busy[some] = 0.5
    collector = VirtualCollector(fleet(), lambda: busy)
    for second in range(0, 300, 5):
        readings = {reading.gpu_id: reading for reading in collector.collect(float(second))}
    assert 0.3 < (readings[some].utilization or 0.0) < 0.55
    hot = readings[some].temperature_celsius or 0.0
    busy.clear()
    for second in range(300, 900, 5):
        readings = {reading.gpu_id: reading for reading in collector.collect(float(second))}
    assert readings[some].utilization == 0.0
    assert (readings[some].temperature_celsius or 0.0) < hot - 5.0


def test_the_same_history_gives_the_same_readings() -> None:
    assert run(300, all_busy()) == run(300, all_busy())
