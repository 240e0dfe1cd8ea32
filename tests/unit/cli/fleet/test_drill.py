"""`corral drill` writes what the virtual fleet reads, and names nothing that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.core.model import NodeState
from corral.engines.local.faults import FAULTS_FILE, GpuFault
from corral.engines.local.fleet import VirtualFleet, fleet_for
from tests.unit.cli.runner import corral


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VirtualFleet:
    monkeypatch.setenv("CORRAL_HOME", str(tmp_path))
    found = fleet_for(virtual_nodes_text="3x4xA10", drill_directory=tmp_path / "local")
    assert isinstance(found, VirtualFleet)
    return found


def test_every_drill_reaches_the_fleet_and_clearing_ends_it(fleet: VirtualFleet) -> None:
    for words in (
        "overheat a10-001-gpu0 --temperature 99",
        "lose-gpu a10-001-gpu1",
        "hang a10-001-gpu2",
        "xid a10-001-gpu3 79",
        "xid a10-001-gpu3 48",
        "ecc a10-002-gpu0 --errors 3 --remap",
        "lose-node a10-003",
    ):
        result = corral("drill", *words.split())
        assert result.exit_code == 0, result.stderr
    assert fleet.faults() == {
        "a10-001-gpu0": GpuFault(temperature=99.0),
        "a10-001-gpu1": GpuFault(lost=True),
        "a10-001-gpu2": GpuFault(idle=True),
        "a10-001-gpu3": GpuFault(xids=(79, 48)),
        "a10-002-gpu0": GpuFault(ecc_uncorrected=3, remap_failed=True),
    }
    assert [node.state for node in fleet.nodes()] == [NodeState.READY, NodeState.READY, NodeState.DOWN]
    listed = corral("drill", "ls", "-o", "json")
    assert {"name": "a10-003", "fault": "down"} in json.loads(listed.stdout)["items"]
    assert "temperature 99" in corral("drill", "ls").stdout
    assert corral("drill", "clear", "a10-003").exit_code == 0
    assert {node.state for node in fleet.nodes()} == {NodeState.READY}
    assert len(fleet.faults()) == 5
    assert corral("drill", "clear").exit_code == 0
    assert fleet.faults() == {}
    assert "No drill is on" in corral("drill", "ls").stderr


def test_several_faults_of_one_gpu_add_up(fleet: VirtualFleet) -> None:
    corral("drill", "overheat", "a10-001-gpu0")
    corral("drill", "xid", "a10-001-gpu0", "79")
    assert fleet.faults() == {"a10-001-gpu0": GpuFault(temperature=97.0, xids=(79,))}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("overheat a10-001-gpu9", "there is no virtual GPU 'a10-001-gpu9'"),
        ("lose-node a10-004", "there is no node 'a10-004'"),
        ("clear a10-001", "there is no drill on 'a10-001'"),
    ],
)
def test_unknown_names_are_refused(fleet: VirtualFleet, words: str, message: str) -> None:
    result = corral("drill", *words.split())
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Hint: " in result.stderr
    assert fleet.faults() == {}


def test_a_home_without_virtual_gpus_is_refused(tmp_path: Path) -> None:
    for words in (["ls"], ["clear"], ["lose-gpu", "x"], ["lose-node", "x"]):
        result = corral("drill", *words, "--home", str(tmp_path))
        assert result.exit_code == 1
        assert "no server with virtual GPUs was started" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_is_told_and_cleared(fleet: VirtualFleet, tmp_path: Path) -> None:
    path = tmp_path / "local" / FAULTS_FILE
    path.write_text("{")
    result = corral("drill", "hang", "a10-001-gpu0")
    assert result.exit_code == 1
    assert "cannot be read" in result.stderr
    assert corral("drill", "clear").exit_code == 0
    assert json.loads(path.read_text()) == {"gpus": {}, "nodes": {}}
