"""AMD's GPUs as `corral doctor` and the server's machine show them."""

from __future__ import annotations

from typing import cast

import pytest

from corral.cli.system.doctor_checks import machine_checks
from corral.cli.terminal.terminal import Terminal
from corral.core.model import Gpu
from corral.engines.local import amd_gpus, fleet
from corral.engines.local.amd_gpus import AmdGpu
from corral.engines.local.fleet import HostFleet
from corral.telemetry.amd import sources

MI300X = Gpu(id="GPU-6f1f0a2b3c4d5e6f", index=0, model="MI300X", memory_bytes=192 << 30)
NONE = cast(Terminal, None)


@pytest.fixture
def with_amd(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (AmdGpu(gpu=MI300X, device="/dev/dri/renderD128"),)
    for module in (amd_gpus, fleet):
        monkeypatch.setattr(module, "find_amd_gpus", lambda: found)
    monkeypatch.setattr(fleet, "discover_gpus", lambda: ())


def test_doctor_states_that_they_are_untried_and_which_tool_reads_them(
    with_amd: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = machine_checks.gpus(NONE)
    assert "1 of AMD (MI300X), which corral supports without a trial on such hardware" in finding.detail
    assert "no tool reads them" in finding.detail
    monkeypatch.setattr(sources, "find_source", lambda: sources.RocmSmiSource("rocm-smi"))
    assert machine_checks.gpus(NONE).detail.endswith("read by rocm-smi")


def test_the_machine_has_them_unless_it_has_nvidias(with_amd: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (node,) = HostFleet("n1").nodes()
    assert (node.gpus, dict(node.labels)) == ((MI300X,), {"gpu-model": "MI300X"})
    nvidia = Gpu(id="GPU-01234567-89ab-cdef-0123-456789abcdef", index=0, model="H200")
    monkeypatch.setattr(fleet, "discover_gpus", lambda: (nvidia,))
    assert HostFleet("n1").nodes()[0].gpus == (nvidia,)
