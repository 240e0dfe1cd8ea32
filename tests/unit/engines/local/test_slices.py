"""GPUs that are partitioned into slices: how the fleet shows them, and the variables of a job that has one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest

from corral.control.ports import Instance
from corral.core.model import WHOLE
from corral.engines.attempts.environment import share_environment, visible_devices
from corral.engines.local.fleet import discover_gpus, model_name

GIB = 1 << 30
#: Two GPUs; the second one is cut into two slices with a gap between them.
DEVICES: dict[str, Any] = {
    "gpu-0": ("GPU-aa", "NVIDIA H200", 141 * GIB),
    "gpu-1": ("GPU-bb", "NVIDIA H200", 141 * GIB),
    "gpu-1/0": ("MIG-11", "NVIDIA H200 MIG 1g.18gb", 16 * GIB),
    "gpu-1/2": ("MIG-22", "NVIDIA H200 MIG 3g.71gb", 70 * GIB),
}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def slice_of(handle: str, place: int) -> str:
        if f"{handle}/{place}" not in DEVICES:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"{handle}/{place}"

    def mig_mode(handle: str) -> tuple[int, int]:
        if handle == "gpu-0":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return (pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE)

    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: f"gpu-{index}",
        "nvmlDeviceGetUUID": lambda handle: DEVICES[handle][0],
        "nvmlDeviceGetName": lambda handle: DEVICES[handle][1],
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=DEVICES[handle][2]),
        "nvmlDeviceGetMigMode": mig_mode,
        "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
        "nvmlDeviceGetMigDeviceHandleByIndex": slice_of,
        "nvmlDeviceGetP2PStatus": lambda one, other, index: pynvml.NVML_P2P_STATUS_OK,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)


def test_a_cut_gpu_is_shown_as_its_slices(driver: None) -> None:
    assert [(gpu.id, gpu.index, gpu.model, gpu.memory_bytes // GIB) for gpu in discover_gpus()] == [
        ("GPU-aa", 0, "H200", 141),
        ("MIG-11", 200, "H200-MIG-1g.18gb", 16),
        ("MIG-22", 202, "H200-MIG-3g.71gb", 70),
    ]
    assert {gpu.link_group for gpu in discover_gpus()} == {""}, "a slice is linked to nothing"


def test_model_names_of_slices() -> None:
    assert model_name("NVIDIA A100-SXM4-80GB MIG 2g.20gb") == "A100-80G-MIG-2g.20gb"


def test_slices_are_visible_by_id_and_whole_gpus_by_index() -> None:
    assert visible_devices(Instance(rank=0, node="n", gpu_ids=("GPU-a", "GPU-b"), gpu_indexes=(2, 5))) == "2,5"
    assert visible_devices(Instance(rank=0, node="n", gpu_ids=("MIG-11",), gpu_indexes=(200,))) == "MIG-11"
    assert visible_devices(Instance(rank=0, node="n")) == ""


def test_a_share_becomes_a_limit_of_mps_and_a_whole_gpu_has_none() -> None:
    whole = Instance(rank=0, node="n", gpu_ids=("GPU-a",), gpu_indexes=(0,), gpu_memory_bytes=80 * GIB)
    assert share_environment(whole, pipe_directory="/run/mps") == {}
    assert share_environment(Instance(rank=0, node="n", gpu_milli=500), pipe_directory="/run/mps") == {}
    half = Instance(rank=0, node="n", gpu_ids=("GPU-a",), gpu_milli=WHOLE // 2, gpu_memory_bytes=80 * GIB)
    assert share_environment(half, pipe_directory="") == {"CORRAL_GPU_SHARE": "not enforced"}
    assert share_environment(half, pipe_directory="/run/mps") == {
        "CORRAL_GPU_SHARE": "enforced",
        "CUDA_MPS_PIPE_DIRECTORY": "/run/mps",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=40960M",
    }
