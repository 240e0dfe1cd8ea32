"""Packed arrays: a few jobs run the items one after another, and a later attempt skips what has succeeded."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from corral.control.errors import Invalid
from corral.control.jobs import arrays
from corral.control.launch.packed_items import RESUMES, packed_command
from corral.core.jobs.arrays import parse_packed
from corral.core.model import Request
from tests.unit.control.world import ANN, Desk, draft

#: Item 3 fails with exit code 7 the first time only; each item notes its index and its checkpoint directory.
PROGRAM = (
    'echo "$CORRAL_ARRAY_INDEX $(basename "$CORRAL_CHECKPOINT_DIR") ${CORRAL_RESUME_FROM:-none}" >> "$1/seen"; '
    '[ "$CORRAL_ARRAY_INDEX" != 3 ] || [ -e "$1/twice" ] || { touch "$1/twice"; exit 7; }'
)


def run(directory: Path, items: tuple[int, ...], program: str = PROGRAM, **env: str) -> subprocess.Popen[str]:
    known = {"CORRAL_OUTPUT_DIR": str(directory), "CORRAL_CHECKPOINT_DIR": str(directory / "ckpt")}
    return subprocess.Popen(
        packed_command(("/bin/sh", "-c", program, "item", str(directory)), items),
        env={**os.environ, **known, "CORRAL_RESUME_FROM": "/some/checkpoint", **env},
        stdout=subprocess.PIPE,
        text=True,
    )


def results(directory: Path) -> list[tuple[str, str]]:
    lines = (directory / "items.tsv").read_text().splitlines()
    return [(index, code) for index, code, _ in (line.split("\t") for line in lines)]


def test_items_run_in_order_and_a_failure_is_counted(tmp_path: Path) -> None:
    first = run(tmp_path, (1, 2, 3, 4))
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 1
    assert "1 items failed" in output
    assert (tmp_path / "seen").read_text().split("\n")[:2] == ["1 item-1 none", "2 item-2 none"]
    assert results(tmp_path) == [("1", "0"), ("2", "0"), ("3", "7"), ("4", "0")]
    again = run(tmp_path, (1, 2, 3, 4), **{RESUMES: "1"})
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert results(tmp_path)[4:] == [("3", "0")], "only what failed runs again"
    fresh = run(tmp_path, (1, 2))
    fresh.communicate(timeout=60)
    assert results(tmp_path) == [("1", "0"), ("2", "0")], "a new start runs all items"


def test_a_stop_interrupts_the_item_and_runs_no_other(tmp_path: Path) -> None:
    # A process that is left behind would hold the output open.
    program = """trap 'kill $!; exit 0' TERM; sleep 60 & touch "$1/up"; wait"""
    job = run(tmp_path, (1, 2), program)
    deadline = time.monotonic() + 60
    while not (tmp_path / "up").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    job.send_signal(signal.SIGTERM)
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 143
    assert "item 1 was interrupted" in output
    assert results(tmp_path) == []


def test_items_are_dealt_out_in_turn() -> None:
    assert parse_packed("1-7%3") == ((1, 4, 7), (2, 5), (3, 6))
    assert parse_packed("1-4") == ((1, 2, 3, 4),)
    assert parse_packed("5%8") == ((5,),)
    assert sum(len(items) for items in parse_packed("1-5000%8")) == 5000
    for wrong in ("1-7%0", "1-7%x", "1-7%", "1-20000%4"):
        with pytest.raises(ValueError, match="1-"):
            parse_packed(wrong)


def test_a_packed_array_makes_one_job_for_each_pack(desk: Desk) -> None:
    records = desk.do(arrays.submit_packed, ANN, draft("small", gpus=1), parse_packed("1-500%8"))
    assert [record.job.name for record in records] == [f"small-{number}" for number in range(1, 9)]
    stored = [desk.record(record.job.id).spec for record in records]
    assert sorted(item for spec in stored for item in spec.items) == list(range(1, 501))
    assert {spec.array_size for spec in stored} == {500}
    with pytest.raises(Invalid, match="one node"):
        desk.do(arrays.submit_packed, ANN, draft("wide", request=Request(nodes=2, gpus=1)), parse_packed("1-4"))
