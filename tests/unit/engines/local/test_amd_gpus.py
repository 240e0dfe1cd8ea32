"""AMD's GPUs as a kernel lists them, and what jobs on them get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import Instance, LaunchOrder, LaunchRefused
from corral.core.fleet.gpu_ids import amd_gpu_id, is_amd_gpu
from corral.core.model import Gpu
from corral.engines.attempts.environment import can_limit_share, is_share, job_environment, share_environment
from corral.engines.local.amd_gpus import AmdGpu, find_amd_gpus
from corral.engines.local.containers.container_orders import RuntimeKind, container_spec
from tests.unit.engines.local.test_container_orders import DOCKER, ORDER, PODMAN

FIRST, SECOND = "GPU-de8287300da37c72", "GPU-00000000000000ff"
GIB = 1 << 30


class Machine:
    """A directory with the files of the kernel: one CPU, and GPUs that are added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._nodes = 0
        self.add("cpu_cores_count 64", "simd_count 0", "unique_id 0")

    def add(
        self, *lines: str, banks: tuple[tuple[int, int], ...] = (), links: tuple[tuple[int, int], ...] = ()
    ) -> None:
        place = self.root / "sys/class/kfd/kfd/topology/nodes" / str(self._nodes)
        self._nodes += 1
        self._write(place / "properties", *lines)
        for number, (kind, size) in enumerate(banks):
            self._write(place / f"mem_banks/{number}/properties", f"heap_type {kind}", f"size_in_bytes {size}")
        for number, (kind, node) in enumerate(links):
            folder = "io_links" if number % 2 else "p2p_links"
            self._write(place / f"{folder}/{number}/properties", f"type {kind}", f"node_to {node}", "weight 15")

    def gpu(self, unique_id: int, device: int, minor: int, links: tuple[tuple[int, int], ...] = ()) -> None:
        self.add(
            "simd_count 1216",
            f"device_id {device}",
            f"drm_render_minor {minor}",
            f"unique_id {unique_id}",
            "location_id 33536",
            banks=((1, 192 * GIB), (4, 64)),
            links=links,
        )
        self._write(self.root / f"sys/class/drm/renderD{minor}/device/revision", "0xc8")

    def names(self, *lines: str) -> None:
        self._write(self.root / "usr/share/libdrm/amdgpu.ids", "# List of AMDGPU IDs", "1.0.0", *lines)

    def _write(self, path: Path, *lines: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_without_the_driver_has_none(tmp_path: Path) -> None:
    assert find_amd_gpus(tmp_path) == ()


def test_gpus_are_found_with_id_model_memory_and_device_file(machine: Machine) -> None:
    machine.gpu(0xDE8287300DA37C72, 0x74A1, 128)
    machine.gpu(0, 0x164E, 129)  # a part of a CPU
    machine.gpu(0xFF, 0x744C, 136)
    machine.names("744C,\tC8,\tAMD Radeon RX 7900 XTX", "744C,\tCC,\tAMD Radeon RX 7900 XT")
    assert find_amd_gpus(machine.root) == (
        AmdGpu(gpu=Gpu(id=FIRST, index=0, model="MI300X", memory_bytes=192 * GIB), device="/dev/dri/renderD128"),
        AmdGpu(
            gpu=Gpu(id=SECOND, index=2, model="Radeon-RX-7900-XTX", memory_bytes=192 * GIB),
            device="/dev/dri/renderD136",
        ),
    )


def test_a_model_without_a_name_has_its_pci_id(machine: Machine) -> None:
    machine.gpu(0xFF, 0x744C, 128)
    (found,) = find_amd_gpus(machine.root)
    assert found.gpu.model == "744c"


def test_gpus_with_the_same_id_are_one(machine: Machine) -> None:
    machine.gpu(0xFF, 0x74A1, 128)
    machine.gpu(0xFF, 0x74A1, 129)
    assert [found.device for found in find_amd_gpus(machine.root)] == ["/dev/dri/renderD128"]


def test_gpus_that_xgmi_joins_are_a_group(machine: Machine) -> None:
    machine.gpu(1, 0x740F, 128, links=((2, 0), (11, 2)))
    machine.gpu(2, 0x740F, 129, links=((2, 0),))
    machine.gpu(3, 0x740F, 130, links=((2, 0), (2, 1)))
    assert [found.gpu.link_group for found in find_amd_gpus(machine.root)] == ["xgmi-0", "xgmi-0", ""]


def test_ids_of_both_vendors() -> None:
    assert amd_gpu_id(0xFF) == SECOND
    assert is_amd_gpu(FIRST)
    assert not is_amd_gpu("GPU-01234567-89ab-cdef-0123-456789abcdef")
    assert not is_amd_gpu("n1-gpu0")


def variables(gpus: tuple[str, ...], **env: str) -> dict[str, str]:
    instance = Instance(rank=0, node="n1", gpu_ids=gpus, gpu_indexes=tuple(range(2, 2 + len(gpus))))
    order = LaunchOrder(job_id="j-1", attempt_id="j-1.1", user="ada", command=("true",), env=env, instances=(instance,))
    found = job_environment(order, instance, base={}, master_port=None)
    return {name: value for name, value in found.items() if name.endswith("_VISIBLE_DEVICES")}


def test_a_job_sees_its_own_gpus_only_whatever_it_sets() -> None:
    # HIP counts what ROCR leaves visible; CUDA's variable says the same, as HIP obeys it too.
    assert variables((FIRST, SECOND), HIP_VISIBLE_DEVICES="7", ROCR_VISIBLE_DEVICES="0,1,2,3") == {
        "ROCR_VISIBLE_DEVICES": f"{FIRST},{SECOND}",
        "HIP_VISIBLE_DEVICES": "0,1",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    assert variables((), ROCR_VISIBLE_DEVICES="0") == {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    assert variables(("GPU-01234567-89ab-cdef-0123-456789abcdef",)) == {"CUDA_VISIBLE_DEVICES": "2"}


def test_mps_limits_no_share_of_an_amd_gpu() -> None:
    share = Instance(rank=0, node="n1", gpu_ids=(FIRST,), gpu_indexes=(0,), gpu_milli=500)
    assert is_share(share)
    assert not can_limit_share(share)
    assert share_environment(share, pipe_directory="") == {"CORRAL_GPU_SHARE": "not enforced"}
    assert can_limit_share(replace(share, gpu_ids=("GPU-01234567-89ab-cdef-0123-456789abcdef",)))


def test_a_container_gets_the_device_files_of_its_gpus() -> None:
    order = replace(ORDER, instance=replace(ORDER.instance, gpu_ids=(SECOND,), gpu_indexes=(1,)))
    for runtime in (PODMAN, DOCKER):
        with_gpus = replace(runtime, amd_devices={FIRST: "/dev/dri/renderD128", SECOND: "/dev/dri/renderD136"})
        line = " ".join(container_spec(with_gpus, order)["run"])
        assert "--device /dev/kfd --device /dev/dri/renderD136" in line
        assert "renderD128" not in line
        assert "--gpus" not in line
    with pytest.raises(LaunchRefused, match="has no device file"):
        container_spec(replace(PODMAN, kind=RuntimeKind.PODMAN), order)
