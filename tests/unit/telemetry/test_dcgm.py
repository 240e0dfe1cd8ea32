"""Conversion of exporters' output to readings, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from corral.control.ports import GpuProcess, GpuReading, HostReading, MigSlice
from corral.telemetry.dcgm import NAMES, THROTTLE_BITS, GpuLabels, XidMemory, gpu_readings, host_readings
from corral.telemetry.page import GpuPlace, SeenXids, gpu_families, host_families
from corral.telemetry.promtext import parse, render

LABELS = 'gpu="0",UUID="GPU-a",pci_bus_id="00000000:17:00.0",device="nvidia0",modelName="NVIDIA H100",Hostname="n1"'
DCGM_PAGE = "\n".join(
    f"# HELP {name} x.\n# TYPE {name} gauge\n{name}{{{LABELS}}} {value}"
    for name, value in {
        "DCGM_FI_DEV_SM_CLOCK": "1980",
        "DCGM_FI_DEV_MEM_CLOCK": "2619",
        "DCGM_FI_DEV_MEMORY_TEMP": "9223372036854775794",
        "DCGM_FI_DEV_GPU_TEMP": "63",
        "DCGM_FI_DEV_POWER_USAGE": "310.605000",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "123456",
        "DCGM_FI_DEV_GPU_UTIL": "87",
        "DCGM_FI_DEV_XID_ERRORS": "0",
        "DCGM_FI_DEV_FB_FREE": "80000",
        "DCGM_FI_DEV_FB_USED": "1024",
        "DCGM_FI_DEV_FB_RESERVED": "535",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "2",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "1",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "3",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": "1",
        "DCGM_FI_DEV_POWER_MGMT_LIMIT": "140737488355328.000000",
    }.items()
)


def read(text: str, xids: XidMemory | None = None) -> list[GpuReading]:
    samples, bad = parse(text, NAMES)
    assert bad == 0
    return gpu_readings(samples, 5.0, lambda labels: labels.uuid, xids or XidMemory())


def test_output_of_the_nvidia_exporter_is_parsed() -> None:
    assert read(DCGM_PAGE) == [
        GpuReading(
            gpu_id="GPU-a",
            at=5.0,
            utilization=0.87,
            memory_used_bytes=1 << 30,
            memory_total_bytes=(1024 + 80000 + 535) << 20,
            temperature_celsius=63.0,
            power_watts=310.605,
            energy_joules=123.456,
            sm_clock_mhz=1980.0,
            memory_clock_mhz=2619.0,
            ecc_uncorrected=2,
            remapped_rows=4,
            remap_failed=True,
        )
    ]


def test_gpus_without_a_uuid_are_distinguished_by_host_and_index() -> None:
    text = (
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1"} 10\nDCGM_FI_DEV_GPU_UTIL{gpu="1",Hostname="n1"} 20\n'
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",hostname="n2"} 30\nDCGM_FI_DEV_GPU_UTIL{gpu="x",hostname="n2"} 40\n'
        "DCGM_FI_DEV_GPU_UTIL 50\n"
    )
    seen: list[GpuLabels] = []

    def identify(labels: GpuLabels) -> str | None:
        seen.append(labels)
        return None if labels.index is None else f"{labels.host}/{labels.index}"

    readings = gpu_readings(parse(text)[0], 1.0, identify, XidMemory())
    assert {each.gpu_id: each.utilization for each in readings} == {"n1/0": 0.1, "n1/1": 0.2, "n2/0": 0.3}
    assert GpuLabels(uuid="", host="n2", index=None) in seen


def test_slices_of_a_partitioned_gpu_are_not_the_gpu() -> None:
    part = f'{LABELS},GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'
    text = (
        f"DCGM_FI_DEV_FB_USED{{{part}}} 100\nDCGM_FI_DEV_FB_FREE{{{part}}} 900\nDCGM_FI_DEV_POWER_USAGE{{{part}}} 99\n"
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{part}}} 0.5\n"
    )
    (reading,) = read(text)
    assert (reading.memory_used_bytes, reading.utilization, reading.power_watts) == (None, None, 99.0)
    assert reading.mig_slices == (
        MigSlice(id="7", profile="1g.10gb", memory_used_bytes=100 << 20, memory_total_bytes=1000 << 20),
    )


def test_the_activity_of_the_sms_is_the_compute_efficiency() -> None:
    (reading,) = read(f"DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 98\nDCGM_FI_PROF_SM_ACTIVE{{{LABELS}}} 0.31\n")
    assert (reading.utilization, reading.sm_activity) == (0.98, 0.31)


def test_an_xid_is_reported_when_it_changes() -> None:
    memory = XidMemory()

    def reported(code: int) -> tuple[int, ...]:
        return read(f"DCGM_FI_DEV_XID_ERRORS{{{LABELS}}} {code}\n", memory)[0].xids

    # The first look cannot know when the error was; one that stays is not new.
    assert [reported(code) for code in (31, 31, 79, 79, 0, 79)] == [(), (), (79,), (), (), (79,)]


def test_counted_xids_are_reported_each_time() -> None:
    memory = XidMemory()

    def reported(**counts: int) -> tuple[int, ...]:
        lines = [f'corral_exporter_gpu_xid_events_total{{{LABELS},xid="{code[1:]}"}} {n}' for code, n in counts.items()]
        return read("\n".join([f"DCGM_FI_DEV_XID_ERRORS{{{LABELS}}} 0", *lines]), memory)[0].xids

    looks: list[Mapping[str, int]] = [{}, {"x79": 1}, {"x79": 1}, {"x79": 3, "x48": 1}, {"x79": 1}]
    assert [reported(**counts) for counts in looks] == [(), (79,), (), (48, 79, 79), (79,)]  # at last it was begun anew


def test_a_gpu_without_a_single_value_is_still_there() -> None:
    assert read(f"DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} NaN\n") == [GpuReading(gpu_id="GPU-a", at=5.0)]


whole = st.integers(0, 1 << 40)
some = st.none() | whole
readings_of_gpus = st.builds(
    GpuReading,
    gpu_id=st.sampled_from(["GPU-a", "GPU-b", "GPU-c"]),
    at=st.just(5.0),
    utilization=st.none() | st.integers(0, 100).map(lambda percent: percent / 100),
    memory_used_bytes=whole,
    memory_total_bytes=st.just(0),
    temperature_celsius=st.none() | st.floats(0, 150),
    power_watts=st.none() | st.floats(0, 2000),
    power_limit_watts=st.none() | st.floats(0, 2000),
    energy_joules=st.none() | whole.map(lambda millijoules: millijoules / 1000),
    sm_clock_mhz=st.none() | st.floats(0, 5000),
    memory_clock_mhz=st.none() | st.floats(0, 5000),
    throttle_reasons=st.sets(st.sampled_from([word for _, word in THROTTLE_BITS])).map(
        lambda words: tuple(word for _, word in THROTTLE_BITS if word in words)
    ),
    ecc_uncorrected=some,
    ecc_corrected=some,
    remapped_rows=some,
    remap_failed=st.none() | st.booleans(),
    processes=st.lists(st.builds(GpuProcess, pid=st.integers(1, 1 << 22), memory_bytes=some), max_size=3).map(tuple),
    mig_slices=st.just(()),
).map(lambda reading: replace(reading, memory_total_bytes=(reading.memory_used_bytes or 0) + 12345))


@given(st.lists(readings_of_gpus, max_size=3, unique_by=lambda reading: reading.gpu_id))
def test_our_own_page_gives_the_same_readings_again(readings: list[GpuReading]) -> None:
    place = GpuPlace(index=3, model='a "strange" model', host="n1")
    page = render(gpu_families([(reading, place, SeenXids()) for reading in readings]))
    assert sorted(read(page), key=lambda each: each.gpu_id) == sorted(readings, key=lambda each: each.gpu_id)


def test_lost_gpus_and_slices_make_the_round_trip() -> None:
    place = GpuPlace(index=0, model="H200", host="n1")
    part = MigSlice(id="MIG-1", profile="1g.18gb", memory_used_bytes=1 << 20, memory_total_bytes=1 << 30)
    well = GpuReading(gpu_id="GPU-b", at=5.0, mig_slices=(part,))
    lost = GpuReading(gpu_id="GPU-a", at=5.0, lost=True)
    page = render(gpu_families([(lost, place, SeenXids()), (well, place, SeenXids())]))
    assert {each.gpu_id: each for each in read(page)} == {"GPU-a": lost, "GPU-b": well}
    assert "DCGM_FI_DEV_GPU_TEMP" not in page


def test_hosts_make_the_round_trip() -> None:
    full = HostReading(
        node="n1",
        at=5.0,
        cpu=0.25,
        memory_used_bytes=1,
        memory_total_bytes=2,
        disk_used_bytes=3,
        disk_total_bytes=4,
        network_receive_bytes=5.5,
        network_send_bytes=6.5,
    )
    poor = HostReading(node="n2", at=5.0, cpu=0.0)
    samples, _ = parse(render(host_families([full, poor])))
    assert host_readings(samples, 5.0, lambda host: host) == [full, poor]
    assert host_readings(samples, 5.0, lambda host: None) == []
