"""Ids of AMD's GPUs, by which the vendor of a GPU is known."""

from __future__ import annotations

import re

#: 16 digits; the ids of NVIDIA's GPUs have hyphens between groups of digits.
_AMD = re.compile(r"GPU-[0-9a-f]{16}")


def amd_gpu_id(unique_id: int) -> str:
    """The id by which ROCm knows a GPU, from the unique id that its driver reports."""
    return f"GPU-{unique_id:016x}"


def is_amd_gpu(gpu_id: str) -> bool:
    return _AMD.fullmatch(gpu_id) is not None
