"""Damaged files of an attempt concern that attempt only: the engine starts, and shows the others."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from corral.core.model import EndReason
from corral.engines.attempts.aggregation import aggregate
from corral.engines.attempts.claims import CLAIM, record_end, take_claim
from corral.engines.local.attempts import AttemptFiles, LocalLogs, Marker
from corral.engines.local.cgroups import CgroupSupport
from corral.engines.local.rundir import Layout

DAMAGED = (b"\0\0\0\0", b"{]", b"[]", b"{}", b'{"nodes": 3, "grace_seconds": 1, "master_port": null}', b"\xff\xfe")
#: ends of an unknown version, and damaged ones
ENDS = ({"reason": "eaten", "ended_at": 1.0}, {"ended_at": None, "reason": "lost"}, {"ended_at": 1.0})


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(str(tmp_path))
    made.prepare()
    return made


def files_of(layout: Layout) -> AttemptFiles:
    return AttemptFiles(layout, CgroupSupport(version=0, memory="", cpu="", pids=""), "test-")


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_marker(layout: Layout, damage: bytes) -> None:
    files = files_of(layout)
    assert files.create("j-1.1", Marker(nodes=("a", "b"), grace_seconds=1.0)) is not None
    Path(layout.marker("j-1.1")).write_bytes(damage)
    tracked = files.load("j-1.1")
    assert tracked is not None
    assert len(tracked.instances) == 2
    files.refresh(tracked)


@pytest.mark.parametrize("end", ENDS)
def test_a_damaged_end(layout: Layout, end: dict[str, object]) -> None:
    files = files_of(layout)
    tracked = files.create("j-1.1", Marker(nodes=("a",), grace_seconds=1.0))
    assert tracked is not None
    directory = layout.rank_dir("j-1.1", 0)
    claim = take_claim(directory, {"pid": 1, "boot_id": "x"})
    assert claim is not None
    os.close(claim)
    with (Path(directory) / CLAIM).open("a") as file:
        file.write(json.dumps({"pid": 2, "at": "never"}) + "\n")
    record_end(directory, end)
    for _ in range(2):
        files.refresh(tracked)
        status = aggregate("j-1.1", tracked.instances)
        assert status is not None
        assert status.reason is EndReason.LOST
        assert "cannot be read" in status.message
    assert LocalLogs(layout).logs("j-1.1", 0, 0, 10).at_end
