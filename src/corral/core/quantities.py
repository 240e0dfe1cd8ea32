"""Amounts as users write them: durations, sizes, GPUs and CPUs. Every error shows an example of a valid value.

This module parses; which amounts are allowed is checked by the use cases.
"""

from __future__ import annotations

import math
import re

from corral.core.model import WHOLE

#: Ten years: a longer duration is a typing mistake.
MAX_DURATION_SECONDS = 3653 * 86400.0
#: An exbibyte; also keeps every size within a signed 64-bit column.
MAX_BYTES = 2**60
MAX_COUNT = 1_000_000

_DURATION_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([wdhms])")
#: As clocks and Slurm write it: 1:30:00, 2-12:00:00. Without seconds it could be minutes or hours.
_CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,3}):([0-5]\d):([0-5]\d)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgtp]?)(i?)(b?)", re.IGNORECASE)
_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}

DURATION_HINT = "write seconds, or a text such as 90m, 2h or 1d12h"
SIZE_HINT = "write bytes, or a text such as 16GiB or 500M"


def parse_duration(value: str | int | float) -> float:
    """Seconds from a number of seconds or from a text such as "2h", "90m", "1d12h" or "1:30:00". Raises ValueError."""
    seconds = _duration_of_text(value.strip()) if isinstance(value, str) else _plain_number(value, DURATION_HINT)
    if not 0 <= seconds <= MAX_DURATION_SECONDS:
        raise ValueError(f"a duration is between 0 seconds and ten years, got {value!r}")
    return seconds


def parse_bytes(value: str | int | float) -> int:
    """Bytes from a number or from a text such as "16GiB" (binary) or "500M" (decimal). Raises ValueError."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None or (match[3] and not match[2]):
            raise ValueError(f"{value!r} is not a size: {SIZE_HINT}")
        base = 1024 if match[3] else 1000
        size = float(match[1]) * float(base ** _SIZE_POWERS[match[2].lower()])
    else:
        size = _plain_number(value, SIZE_HINT)
    if not 0 <= size <= MAX_BYTES:
        raise ValueError(f"a size is between 0 and 1 EiB, got {value!r}")
    # Whole numbers of bytes stay exact also above 2**53.
    return value if isinstance(value, int) else round(size)


def parse_gpus(value: int | float) -> tuple[int, int]:
    """Parses whole GPUs and the share of one GPU in thousandths; one of the two is always 0. Raises ValueError."""
    amount = _plain_number(value, "write 0, a share such as 0.5, or a whole number of GPUs")
    if not 0 <= amount <= MAX_COUNT:
        raise ValueError(f"GPUs are between 0 and {MAX_COUNT}, got {value!r}")
    if amount >= 1:
        if amount != int(amount):
            raise ValueError(
                f"more than one GPU comes in whole numbers, got {value!r}; only a share below 1 is a fraction"
            )
        return int(amount), 0
    share = round(amount * WHOLE)
    if not math.isclose(share, amount * WHOLE, abs_tol=1e-6) or (amount > 0 and share == 0):
        raise ValueError(f"a share of a GPU has at most three decimals, got {value!r}")
    return 0, share


def parse_cpus(value: int | float) -> int:
    """CPUs in thousandths. Raises ValueError."""
    amount = _plain_number(value, "write a number of CPUs such as 4 or 0.5")
    if not 0 <= amount <= MAX_COUNT:
        raise ValueError(f"CPUs are between 0 and {MAX_COUNT}, got {value!r}")
    milli = round(amount * WHOLE)
    if amount > 0 and milli == 0:
        raise ValueError(f"the smallest part of a CPU is 0.001, got {value!r}")
    return milli


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads back to the same whole second."""
    left = round(seconds)
    parts = []
    for unit, size in _DURATION_UNITS.items():
        if unit != "w" and left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts) or "0s"


def format_bytes(size: int) -> str:
    """A size as shown to users, in binary units: 1.5GiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            return f"{amount:.4g}{unit}"
        amount /= 1024
    return f"{amount:.4g}PiB"


def _duration_of_text(text: str) -> float:
    if _NUMBER.fullmatch(text):
        return float(text)
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)
    lowered = text.lower()
    parts = _DURATION_PART.findall(lowered)
    units = [unit for _, unit in parts]
    order = [unit for unit in _DURATION_UNITS if unit in units]
    if not parts or "".join(number + unit for number, unit in parts) != lowered or units != order:
        raise ValueError(f"{text!r} is not a duration: {DURATION_HINT}")
    return sum(float(number) * _DURATION_UNITS[unit] for number, unit in parts)


def _plain_number(value: int | float, hint: str) -> float:
    # True is an int in Python, but not an amount.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number: {hint}")
    if isinstance(value, int) and abs(value) > 2**62:
        raise ValueError("the number is far too large")
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number: {hint}")
    return float(value)
