"""The drill file: what it means, what it refuses, and that a broken one changes nothing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import NodeState
from corral.engines.local.faults import (
    FAULTS_FILE,
    FaultFile,
    Faults,
    GpuFault,
    announced_fleet,
    faults_body,
    parse_faults,
    write_faults,
)
from corral.engines.local.fleet import VirtualFleet, fleet_for

names = st.text(min_size=1, max_size=20)
gpu_faults = st.builds(
    GpuFault,
    temperature=st.none() | st.floats(0, 200),
    lost=st.booleans(),
    idle=st.booleans(),
    xids=st.lists(st.integers(0, 200), max_size=3).map(tuple),
    ecc_uncorrected=st.integers(0, 1000),
    remap_failed=st.booleans(),
).filter(lambda fault: not fault.is_none)


@given(st.dictionaries(names, gpu_faults, max_size=4), st.frozensets(names, max_size=3))
def test_written_faults_are_read_again(gpus: dict[str, GpuFault], down: frozenset[str]) -> None:
    faults = Faults(gpus=gpus, down=down)
    assert parse_faults(json.loads(json.dumps(faults_body(faults)))) == faults


def test_the_form_that_is_documented() -> None:
    body = {"gpus": {"a-gpu0": {"temperature": 97}, "a-gpu1": {"lost": True}}, "nodes": {"a10-003": "down"}}
    assert parse_faults(body) == Faults(
        gpus={"a-gpu0": GpuFault(temperature=97.0), "a-gpu1": GpuFault(lost=True)}, down=frozenset({"a10-003"})
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the drill: expected an object"),
        ({"gpu": {}}, "'gpu' is unknown; there is gpus, nodes"),
        ({"gpus": {"g": {"temp": 1}}}, "gpus.g: 'temp' is unknown"),
        ({"gpus": {"g": {"temperature": "hot"}}}, "gpus.g.temperature: expected a number"),
        ({"gpus": {"g": {"temperature": True}}}, "gpus.g.temperature: expected a number"),
        ({"gpus": {"g": {"lost": 1}}}, "gpus.g.lost: expected true or false"),
        ({"gpus": {"g": {"xids": 79}}}, "gpus.g.xids: expected a list"),
        ({"gpus": {"g": {"xids": [7.5]}}}, "gpus.g.xids: expected a whole number"),
        ({"gpus": {"g": {"ecc_uncorrected": -1}}}, "gpus.g.ecc_uncorrected: expected a whole number"),
        ({"nodes": {"n": "up"}}, 'nodes.n: expected "down"'),
    ],
)
def test_invalid_faults_are_refused(body: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_faults(body)


def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = FaultFile(tmp_path)
    assert file.current() == Faults()
    faults = Faults(down=frozenset({"a"}))
    write_faults(tmp_path / FAULTS_FILE, faults)
    assert file.current() == faults
    (tmp_path / FAULTS_FILE).write_text("{not json")
    assert file.current() == faults
    assert file.current() == faults
    assert len([record for record in caplog.records if "is ignored" in record.getMessage()]) == 1
    os.unlink(tmp_path / FAULTS_FILE)
    assert file.current() == Faults()
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_node_goes_down_and_comes_back(tmp_path: Path) -> None:
    fleet = fleet_for(virtual_nodes_text="3x2xA10", drill_directory=tmp_path)
    assert isinstance(fleet, VirtualFleet)
    ready = fleet.nodes()
    write_faults(tmp_path / FAULTS_FILE, Faults(down=frozenset({"a10-002", "unknown"})))
    states = {node.id: node.state for node in fleet.nodes()}
    assert states == {"a10-001": NodeState.READY, "a10-002": NodeState.DOWN, "a10-003": NodeState.READY}
    write_faults(tmp_path / FAULTS_FILE, Faults())
    assert fleet.nodes() == ready


def test_names_for_drills_are_left_for_virtual_fleets_only(tmp_path: Path) -> None:
    assert announced_fleet(tmp_path) is None
    fleet_for(virtual_nodes_text="2x1xT4", drill_directory=tmp_path / "home")
    assert announced_fleet(tmp_path / "home") == {"t4-001": ["t4-001-gpu0"], "t4-002": ["t4-002-gpu0"]}
    fleet_for(drill_directory=tmp_path / "home")
    assert announced_fleet(tmp_path / "home") is None
