"""The JSON of AMD's tools, as readings. Pure.

The documents differ from version to version: a value is a number, a number with its unit, or the text "N/A"; fields are
named differently or missing. What is not there is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corral.control.ports import GpuProcess, GpuReading
from corral.core.fleet.gpu_ids import amd_gpu_id

MIB = 1 << 20
_NUMBER = re.compile(r"\(?\s*(-?\d+(?:\.\d+)?)")
_HEX = re.compile(r"(?:0x)?([0-9a-f]{1,16})")
#: Drivers report this, or its 32-bit form, for "no value".
_NO_VALUE = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
#: Limits that a GPU violates, and the throttle reasons that they are.
_VIOLATIONS = (
    ("ppt", "sw_power_cap"),
    ("prochot", "hw_slowdown"),
    ("socket_thermal", "hw_thermal"),
    ("vr_thermal", "hw_thermal"),
    ("hbm_thermal", "hw_thermal"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """The values of a GPU that do not change while the driver is loaded."""

    gpu_id: str
    index: int
    product: str = ""
    power_limit_watts: float | None = None


def parsed(output: str) -> Any:
    """The document in a program's output, which warnings may precede. Raises ValueError."""
    starts = [place for place in (output.find("{"), output.find("[")) if place >= 0]
    if not starts:
        raise ValueError("it printed no JSON")
    return json.JSONDecoder().raw_decode(output, min(starts))[0]


# ------------------------------------------------------------------------------------------------ amd-smi


def identities(static: Any) -> dict[int, Identity]:
    """The GPUs of `amd-smi static`, by the number that its other documents give them. GPUs without an id of their own
    are left out."""
    found = {}
    for entry in _entries(static):
        unique_id = _unique_id(_at(entry, "asic", "asic_serial"))
        index = _number(entry.get("gpu"))
        if unique_id and index is not None:
            found[int(index)] = Identity(
                gpu_id=amd_gpu_id(unique_id),
                index=int(index),
                product=_text(_at(entry, "asic", "market_name")),
                power_limit_watts=_watts(
                    _first(
                        entry,
                        ("limit", "socket_power"),
                        ("limit", "ppt0", "socket_power_limit"),
                        ("limit", "max_power"),
                        ("limit", "ppt0", "max_power_limit"),
                    )
                ),
            )
    return found


def metric_readings(metric: Any, known: Mapping[int, Identity], at: float) -> dict[str, GpuReading]:
    """The readings of `amd-smi metric`, by GPU."""
    numbered = [(_number(entry.get("gpu")), entry) for entry in _entries(metric)]
    return {
        identity.gpu_id: metric_reading(entry, identity, at)
        for number, entry in numbered
        if number is not None and (identity := known.get(int(number))) is not None
    }


def metric_reading(entry: Mapping[str, Any], identity: Identity, at: float) -> GpuReading:
    """One GPU's part of `amd-smi metric`."""
    activity = _first(entry, ("usage", "gfx_activity"), ("usage", "gfx_usage"))
    return GpuReading(
        gpu_id=identity.gpu_id,
        at=at,
        utilization=None if activity is None else min(1.0, activity / 100),
        memory_used_bytes=_mib(_first(entry, ("mem_usage", "used_vram"), ("fb_usage", "vram_used"))),
        memory_total_bytes=_mib(_first(entry, ("mem_usage", "total_vram"), ("fb_usage", "vram_total"))),
        temperature_celsius=_celsius(
            # The modules of MI300 report no edge.
            _first(entry, ("temperature", "edge"), ("temperature", "hotspot"), ("temperature", "mem"))
        ),
        power_watts=_watts(
            _first(
                entry,
                ("power", "socket_power"),
                ("power", "current_socket_power"),
                ("power", "average_socket_power"),
                ("power", "current_power"),
                ("power", "average_power"),
            )
        ),
        power_limit_watts=identity.power_limit_watts,
        energy_joules=_first(entry, ("energy", "total_energy_consumption")),
        sm_clock_mhz=_first(entry, ("clock", "gfx_0", "clk"), ("clock", "gfx", "clk"), ("clock", "gfx", "cur_clk")),
        memory_clock_mhz=_first(entry, ("clock", "mem_0", "clk"), ("clock", "mem", "clk"), ("clock", "mem", "cur_clk")),
        throttle_reasons=_throttle_reasons(entry),
        ecc_uncorrected=_count(_first(entry, ("ecc", "total_uncorrectable_count"), ("ecc", "uncorrectable"))),
        ecc_corrected=_count(_first(entry, ("ecc", "total_correctable_count"), ("ecc", "correctable"))),
        processes=tuple(_processes(entry.get("processes"))),
    )


def _throttle_reasons(entry: Mapping[str, Any]) -> tuple[str, ...]:
    reasons = {
        reason for kind, reason in _VIOLATIONS if _text(_at(entry, "throttle", f"{kind}_violation_status")) == "ACTIVE"
    }
    # Without violations it is known only that clocks are held down.
    if not reasons and _text(_at(entry, "power", "throttle_status")) == "THROTTLED":
        reasons = {"hw_slowdown"}
    return tuple(sorted(reasons))


def _processes(listed: Any) -> Iterator[GpuProcess]:
    for each in listed if isinstance(listed, list) else ():
        pid = _number(each.get("pid")) if isinstance(each, Mapping) else None
        if pid:
            yield GpuProcess(pid=int(pid), memory_bytes=_count(_first(each, ("mem",), ("memory_usage", "vram_mem"))))


def _entries(document: Any) -> list[Mapping[str, Any]]:
    """The list of GPUs, which is below `gpu_data` from version 7 on."""
    listed = document.get("gpu_data") if isinstance(document, Mapping) else document
    return [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []


# ------------------------------------------------------------------------------------------------ rocm-smi


def rocm_readings(document: Any, at: float) -> dict[Identity, GpuReading]:
    """The GPUs of `rocm-smi`, which reports no memory errors. Versions write the same names in different case."""
    cards = document if isinstance(document, Mapping) else {}
    found = {}
    for name, card in cards.items():
        if not str(name).startswith("card") or not isinstance(card, Mapping):
            continue
        values = {str(key).casefold(): value for key, value in card.items()}
        unique_id = _unique_id(values.get("unique id"))
        index = str(name).removeprefix("card")
        if unique_id and index.isdecimal():
            limit = _number(values.get("max graphics package power (w)"))
            identity = Identity(
                gpu_id=amd_gpu_id(unique_id), index=int(index), product=_product(values), power_limit_watts=limit
            )
            found[identity] = _card_reading(values, identity, at)
    return found


def _card_reading(values: Mapping[str, Any], identity: Identity, at: float) -> GpuReading:
    use = _named(values, "gpu use (%)")
    return GpuReading(
        gpu_id=identity.gpu_id,
        at=at,
        utilization=None if use is None else min(1.0, use / 100),
        memory_used_bytes=_count(_named(values, "vram total used memory (b)")),
        memory_total_bytes=_count(_named(values, "vram total memory (b)")),
        temperature_celsius=_named(
            values,
            "temperature (sensor edge) (c)",
            "temperature (sensor junction) (c)",
            "temperature (sensor memory) (c)",
        ),
        power_watts=_named(values, "current socket graphics package power (w)", "average graphics package power (w)"),
        power_limit_watts=identity.power_limit_watts,
        sm_clock_mhz=_named(values, "sclk clock speed:"),
        memory_clock_mhz=_named(values, "mclk clock speed:"),
    )


def _product(values: Mapping[str, Any]) -> str:
    return next((text for name in ("device name", "card series") if (text := _text(values.get(name)))), "")


def _named(values: Mapping[str, Any], *names: str) -> float | None:
    return next((found for name in names if (found := _number(values.get(name))) is not None), None)


# ------------------------------------------------------------------------------------------------ values


def _at(entry: Any, *path: str) -> Any:
    for name in path:
        entry = entry.get(name) if isinstance(entry, Mapping) else None
    return entry


def _first(entry: Mapping[str, Any], *paths: tuple[str, ...]) -> float | None:
    """The first number that is there."""
    return next((found for path in paths if (found := _number(_at(entry, *path))) is not None), None)


def _number(value: Any) -> float | None:
    """A number, with or without its unit."""
    if isinstance(value, Mapping):
        value = value.get("value")
    if isinstance(value, str):
        match = _NUMBER.match(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value in _NO_VALUE:
        return None
    return float(value)


def _text(value: Any) -> str:
    return "" if not isinstance(value, str) or value.upper() == "N/A" else value.strip()


def _unique_id(value: Any) -> int:
    match = _HEX.fullmatch(_text(value).casefold())
    return int(match[1], 16) if match else 0


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


def _mib(value: float | None) -> int | None:
    return None if value is None else int(value * MIB)


def _celsius(value: float | None) -> float | None:
    """Some versions of the library report thousandths."""
    return value / 1000 if value is not None and value > 1000 else value


def _watts(value: float | None) -> float | None:
    """Some versions of the library report limits in millionths."""
    return value / 1e6 if value is not None and value > 100_000 else value
