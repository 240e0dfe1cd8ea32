"""The compressed week: settings are compressed alike, and the programs of its jobs save and resume."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks.compressed_week import SETTINGS, rules_of
from benchmarks.live_week import PROGRAM

from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.installation import DEFAULT_BACKFILL, DEFAULT_PREEMPTION
from tests.unit.control.world import eventually


def test_all_times_of_the_settings_are_compressed_alike() -> None:
    rules = rules_of(SETTINGS[-1], 360.0, 1.0)
    compressed, patience = rules.preemption, DEFAULT_PREEMPTION.gang_patience_seconds
    assert patience is not None
    assert (rules.policy, rules.preempts, rules.score_time_constant) == ("shortest", True, 60.0)
    assert rules.ordering.unknown_seconds * 360 == OrderingRules().unknown_seconds
    assert compressed.min_run_seconds * 360 == DEFAULT_PREEMPTION.min_run_seconds
    assert (compressed.patience_seconds, compressed.gang_patience_seconds) == (300 / 360, patience / 360)
    assert rules.backfill.hold_after_seconds * 360 == DEFAULT_BACKFILL.hold_after_seconds


def test_a_program_saves_when_it_is_warned_and_goes_on_from_there(tmp_path: Path) -> None:
    state = tmp_path / "left"
    environment = {**os.environ, "CORRAL_CHECKPOINT_DIR": str(tmp_path)}
    command = ["/bin/sh", "-c", PROGRAM, "job"]
    first = subprocess.Popen([*command, "100000", "1"], env=environment)
    eventually(state.exists)
    first.terminate()
    assert first.wait() == 143
    assert 0 < int(state.read_text()) <= 100_000
    state.write_text("2")
    assert subprocess.run([*command, "100000", "1"], env=environment, check=False).returncode == 0
    assert state.read_text() == "2\n", "it began with what was left"


def test_only_the_first_rank_of_a_gang_saves(tmp_path: Path) -> None:
    environment = {**os.environ, "CORRAL_CHECKPOINT_DIR": str(tmp_path), "RANK": "1"}
    subprocess.run(["/bin/sh", "-c", PROGRAM, "job", "1", "1"], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
