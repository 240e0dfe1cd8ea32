"""Outputs of AMD's tools in several versions, as readings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.ports import GpuReading
from corral.telemetry.amd.documents import Identity, identities, metric_reading, metric_readings, parsed, rocm_readings

DOCUMENTS = Path(__file__).parent / "documents"
MIB = 1 << 20


def document(name: str) -> Any:
    return json.loads((DOCUMENTS / f"{name}.json").read_text())


def test_a_gpu_of_rocm_6_reports_every_value_and_an_integrated_one_is_left_out() -> None:
    known = identities(document("amd_smi_6_static"))
    assert known == {
        0: Identity(
            gpu_id="GPU-de8287300da37c72", index=0, product="AMD Instinct MI250X / MI250", power_limit_watts=500.0
        )
    }
    readings = metric_readings(document("amd_smi_6_metric"), known, 5.0)
    assert list(readings.values()) == [
        GpuReading(
            gpu_id="GPU-de8287300da37c72",
            at=5.0,
            utilization=0.87,
            memory_used_bytes=1024 * MIB,
            memory_total_bytes=65520 * MIB,
            temperature_celsius=51.0,
            power_watts=312.0,
            power_limit_watts=500.0,
            energy_joules=1234567.5,
            sm_clock_mhz=1700.0,
            memory_clock_mhz=1600.0,
            ecc_uncorrected=1,
            ecc_corrected=3,
        )
    ]


def test_rocm_7_has_another_form_and_what_is_not_there_is_none() -> None:
    known = identities(document("amd_smi_7_static"))
    assert [each.gpu_id for each in known.values()] == ["GPU-6f1f0a2b3c4d5e6f", "GPU-06f1f0a2b3c4d5e7"]
    full, poor = metric_readings(document("amd_smi_7_metric"), known, 5.0).values()
    assert full.temperature_celsius == 76.0
    assert full.power_limit_watts == 700.0
    assert full.utilization == 1.0
    assert full.throttle_reasons == ("hw_thermal", "sw_power_cap")
    assert full.ecc_uncorrected == 0
    assert poor == GpuReading(
        gpu_id="GPU-06f1f0a2b3c4d5e7",
        at=5.0,
        memory_total_bytes=196592 * MIB,
        throttle_reasons=("hw_slowdown",),
    )


def test_rocm_smi_of_two_versions() -> None:
    first, second = rocm_readings(document("rocm_smi_5"), 5.0).items()
    assert first[0].product == "Arcturus GL-XL [Instinct MI100]"
    assert first[1] == GpuReading(
        gpu_id="GPU-79ccd55167a2124a",
        at=5.0,
        utilization=0.07,
        memory_used_bytes=6750208,
        memory_total_bytes=34342961152,
        temperature_celsius=53.0,
        power_watts=36.0,
        power_limit_watts=290.0,
        sm_clock_mhz=300.0,
        memory_clock_mhz=1200.0,
    )
    assert second[1] == GpuReading(gpu_id="GPU-04edfb117a17a07d", at=5.0)
    ((identity, reading),) = rocm_readings(document("rocm_smi_6"), 5.0).items()
    assert identity.product == "AMD Instinct MI300X OAM"
    assert (reading.temperature_celsius, reading.power_watts, reading.utilization) == (41.0, 139.0, 0.0)


def test_units_of_the_library_and_of_old_texts() -> None:
    known = Identity(gpu_id="GPU-0000000000000001", index=0)
    entry = {
        "usage": {"gfx_usage": "12 %"},
        "temperature": {"edge": 65535, "hotspot": 61000},
        "power": {"current_socket_power": "N/A", "average_socket_power": 210},
        "fb_usage": {"vram_used": 3, "vram_total": 7},
    }
    assert metric_reading(entry, known, 1.0) == GpuReading(
        gpu_id=known.gpu_id,
        at=1.0,
        utilization=0.12,
        temperature_celsius=61.0,
        power_watts=210.0,
        memory_used_bytes=3 * MIB,
        memory_total_bytes=7 * MIB,
    )
    micro = identities([{"gpu": 0, "asic": {"asic_serial": "0x1"}, "limit": {"socket_power": 300_000_000}}])
    assert micro[0].power_limit_watts == 300.0


def test_warnings_before_the_document_are_left_out() -> None:
    assert parsed('WARNING: user is missing a group\n{"card0": {}}\nbye') == {"card0": {}}
    with pytest.raises(ValueError, match="no JSON"):
        parsed("WARNING: No JSON data to report")


#: what a version might print in place of any value
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["N/A", "7 W"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "gpu", "clk"]), inner),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    ["gpu", "usage", "power", "temperature", "clock", "ecc", "throttle", "processes", "asic", "limit"]
)


@given(st.lists(st.dictionaries(_NAMES, _ANY)) | _ANY)
def test_no_document_raises(printed: Any) -> None:
    known = {0: Identity(gpu_id="GPU-0000000000000001", index=0)}
    identities(printed)
    metric_readings(printed, known, 1.0)
    rocm_readings({"card0": printed, "card1": {"Unique ID": "0x1", "GPU use (%)": printed}}, 1.0)
