"""The pool of supervisors in one spawner: processes that end after a number of instances lose none."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Any

import pytest

from corral.engines.local.supervisors import supervisor_pool
from corral.engines.local.supervisors.supervisor_pool import SupervisorPool


def test_a_process_ends_after_its_last_instance_and_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(spec: Any) -> bool:
        Path(spec["rank_dir"]).write_text(str(os.getpid()))
        return True

    monkeypatch.setattr(supervisor_pool, "supervise", noted)  # the forked processes inherit both
    monkeypatch.setattr(supervisor_pool, "MAX_INSTANCES", 2)
    poll = select.poll()
    pool = SupervisorPool(poll)
    for number in range(5):
        spec: Any = {"rank_dir": str(tmp_path / str(number))}
        pool.start(f'{{"rank_dir": "{tmp_path}/{number}"}}'.encode(), spec, may_be_sent=True)
        # It waits for another instance, or has ended.
        for descriptor, _ in poll.poll():
            pool.take_report(descriptor)
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2", "3", "4"]
    processes = [(tmp_path / str(number)).read_text() for number in range(5)]
    assert len(set(processes)) == 3
    assert processes[0] == processes[1] != processes[2] == processes[3] != processes[4]
