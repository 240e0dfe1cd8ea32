"""Simulated readings must be believable, and the same for the same history."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from corral.control.ports import GpuReading
from corral.engines.local.faults import FAULTS_FILE, Faults, GpuFault, write_faults
from corral.engines.local.fleet import VirtualFleet, fleet_for
from corral.engines.local.virtual import build_nodes, gpu_spec, parse_virtual_nodes
from corral.telemetry.virtual import VirtualCollector

MODELS = ("A10", "A100-80G", "H200", "T4")


def fleet() -> VirtualFleet:
    text = ",".join(f"1x2x{model}" for model in MODELS)
    return VirtualFleet(build_nodes(parse_virtual_nodes(text), host="host"))


def run(seconds: int, busy: dict[str, float], *, step: float = 5.0, begin: float = 1000.0) -> list[list[GpuReading]]:
    collector = VirtualCollector(fleet(), lambda: busy)
    return [list(collector.collect(begin + step * index).gpus) for index in range(int(seconds / step) + 1)]


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
        readings = {reading.gpu_id: reading for reading in collector.collect(float(second)).gpus}
    assert 0.3 < (readings[some].utilization or 0.0) < 0.55
    hot = readings[some].temperature_celsius or 0.0
    busy.clear()
    for second in range(300, 900, 5):
        readings = {reading.gpu_id: reading for reading in collector.collect(float(second)).gpus}
    assert readings[some].utilization == 0.0
    assert (readings[some].temperature_celsius or 0.0) < hot - 5.0


def test_the_same_history_gives_the_same_readings() -> None:
    assert run(300, all_busy()) == run(300, all_busy())


def drilled(tmp_path: Path) -> tuple[VirtualFleet, str]:
    found = fleet_for(virtual_nodes_text="2x2xA10", drill_directory=tmp_path)
    assert isinstance(found, VirtualFleet)
    return found, "a10-001-gpu0"


def drill(tmp_path: Path, **faults: GpuFault) -> None:
    write_faults(tmp_path / FAULTS_FILE, Faults(gpus={name.replace("_", "-"): each for name, each in faults.items()}))


def read_one(collector: VirtualCollector, gpu_id: str, at: float) -> GpuReading:
    return next(reading for reading in collector.collect(at).gpus if reading.gpu_id == gpu_id)


def test_every_field_is_reported() -> None:
    for reading in run(60, all_busy())[-1]:
        reported = {name: getattr(reading, name) for name in reading.__slots__}
        unknown = {name for name, value in reported.items() if value is None}
        assert unknown == set()
        assert reading.throttle_reasons == ()
        assert 1000 < (reading.sm_clock_mhz or 0) < 2600


def test_a_drill_shows_in_the_readings(tmp_path: Path) -> None:
    virtual, gpu = drilled(tmp_path)
    collector = VirtualCollector(virtual, lambda: {gpu: 1.0})
    for second in range(0, 120, 5):
        well = read_one(collector, gpu, float(second))
    drill(tmp_path, a10_001_gpu0=GpuFault(temperature=97.0))
    hot = read_one(collector, gpu, 125.0)
    assert (hot.temperature_celsius, hot.throttle_reasons) == (97.0, ("hw_thermal",))
    assert (hot.sm_clock_mhz or 0) < 0.6 * (well.sm_clock_mhz or 0)
    drill(tmp_path, a10_001_gpu0=GpuFault(idle=True))
    hung = read_one(collector, gpu, 130.0)
    assert hung.utilization == 0.0
    assert (hung.memory_used_bytes or 0) > 0.4 * (hung.memory_total_bytes or 0)
    drill(tmp_path, a10_001_gpu0=GpuFault(ecc_uncorrected=3, remap_failed=True))
    worn = read_one(collector, gpu, 135.0)
    assert (worn.ecc_uncorrected, worn.remap_failed) == (3, True)
    drill(tmp_path, a10_001_gpu0=GpuFault(lost=True))
    assert read_one(collector, gpu, 140.0) == GpuReading(gpu_id=gpu, at=140.0, lost=True)
    drill(tmp_path)
    assert (read_one(collector, gpu, 145.0).utilization or 0) > 0.5


def test_an_xid_comes_once_and_a_repeated_one_again(tmp_path: Path) -> None:
    virtual, gpu = drilled(tmp_path)
    collector = VirtualCollector(virtual, dict)
    seen = []
    for at, xids in enumerate([(), (79,), (79,), (79, 79), (79, 79), (48,), (), (48,)]):
        drill(tmp_path, a10_001_gpu0=GpuFault(xids=xids))
        seen.append(read_one(collector, gpu, float(at)).xids)
    assert seen == [(), (79,), (), (79,), (), (48,), (), (48,)]


def test_a_node_that_is_down_is_not_read(tmp_path: Path) -> None:
    virtual, _ = drilled(tmp_path)
    collector = VirtualCollector(virtual, dict)
    assert [host.node for host in collector.collect(1.0).hosts] == ["a10-001", "a10-002"]
    write_faults(tmp_path / FAULTS_FILE, Faults(down=frozenset({"a10-001"})))
    found = collector.collect(2.0)
    assert [host.node for host in found.hosts] == ["a10-002"]
    assert {gpu.gpu_id for gpu in found.gpus} == {"a10-002-gpu0", "a10-002-gpu1"}


def test_hosts_work_along_with_their_gpus() -> None:
    resting, working = VirtualCollector(fleet(), dict), VirtualCollector(fleet(), all_busy)
    for second in range(0, 300, 5):
        idle, busy = resting.collect(float(second)), working.collect(float(second))
    for rest, work in zip(idle.hosts, busy.hosts, strict=True):
        assert 0 < (rest.cpu or 0) < 0.05 < 0.25 < (work.cpu or 0) < 1
        for reading in (rest, work):
            assert 0 < (reading.memory_used_bytes or 0) < (reading.memory_total_bytes or 0)
            assert 0 < (reading.disk_used_bytes or 0) < (reading.disk_total_bytes or 0)
        assert (work.network_receive_bytes or 0) > 100 * (rest.network_receive_bytes or 0)
