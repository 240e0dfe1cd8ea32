"""Logs, messages and small files, each by itself."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.engines.attempts.claims import CLAIM, ClaimState, add_to_claim, claim_state, read_claim, take_claim
from corral.engines.attempts.environment import base_environment
from corral.engines.attempts.instance_messages import MAX_MESSAGE_BYTES, BadFrame, take_frames
from corral.engines.attempts.json_files import read_json, write_json
from corral.engines.attempts.log_segments import PREFIX, LogPlaces, LogWriter
from corral.engines.attempts.processes import descendants, start_ticks
from corral.engines.local.rundir import Layout, is_safe_id
from tests.unit.searching import DEAR


@DEAR
@given(chunks=st.lists(st.binary(min_size=1, max_size=300), max_size=30), limit=st.integers(8, 600))
def test_the_log_keeps_the_newest_bytes_under_their_offsets(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], limit: int
) -> None:
    directory = str(tmp_path_factory.mktemp("log"))
    writer = LogWriter(directory, limit)
    for chunk in chunks:
        writer.write(chunk)
    writer.close()
    written = b"".join(chunks)
    kept = sum(os.stat(os.path.join(directory, name)).st_size for name in os.listdir(directory))
    assert kept <= limit
    assert log_of(directory).end() == len(written)
    data, end = log_of(directory).read(0, 1 << 20)
    assert end == len(written)
    assert written.endswith(data)
    assert len(data) == kept
    for offset in range(len(written) - len(data), len(written), 37):
        piece, after = log_of(directory).read(offset, 50)
        assert piece == written[offset : offset + 50]
        assert after == offset + len(piece)
        assert log_of(directory).read(offset - len(written), 50)[0] == piece


def log_of(directory: str) -> LogPlaces:
    return LogPlaces(((directory, PREFIX),))


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert log_of(str(tmp_path / "none")).read(0, 10) == (b"", 0)
    assert log_of(str(tmp_path / "none")).read(-5, 10) == (b"", 0)


def test_output_that_cannot_be_written_is_dropped_and_counted(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "none"), 1000)
    writer.write(b"lost")
    assert writer.dropped_bytes == 4
    (tmp_path / "none").mkdir()
    writer.write(b"kept")
    assert log_of(str(tmp_path / "none")).read(0, 10) == (b"kept", 4)
    assert list(log_of(str(tmp_path / "none")).segments()) == [0]


def test_messages_are_taken_as_they_become_complete() -> None:
    buffer = bytearray()
    stream = b"".join(struct.pack("!I", len(body)) + body for body in (b"one", b"", b"three"))
    taken: list[bytes] = []
    for byte in stream:
        buffer.append(byte)
        taken += take_frames(buffer)
    assert taken == [b"one", b"", b"three"]
    assert not buffer


def test_a_stream_out_of_step_is_noticed() -> None:
    with pytest.raises(BadFrame):
        take_frames(bytearray(struct.pack("!I", MAX_MESSAGE_BYTES + 1)))


def test_a_claim_is_held_as_long_as_its_supervisor_lives(tmp_path: Path) -> None:
    directory = str(tmp_path)
    assert claim_state(directory) is ClaimState.NONE
    descriptor = take_claim(directory, {"pid": 7})
    assert descriptor is not None
    assert claim_state(directory) is ClaimState.HELD
    assert read_claim(directory).started == {}
    add_to_claim(descriptor, {"at": 5.0})
    assert (read_claim(directory).supervisor, read_claim(directory).started) == ({"pid": 7}, {"at": 5.0})
    os.close(descriptor)
    assert claim_state(directory) is ClaimState.FREE
    assert os.listdir(directory) == [CLAIM]


def test_an_unfinished_line_of_a_claim_does_not_count(tmp_path: Path) -> None:
    (tmp_path / CLAIM).write_text('{"pid": 7}\n{"at": 5')
    assert read_claim(str(tmp_path)).started == {}


def test_small_files_are_replaced_whole_and_damage_is_tolerated(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    assert read_json(path) is None
    write_json(path, {"a": 1})
    write_json(path, {"nodes": ["n" * 100] * 1000}, durable=True)
    assert read_json(path) == {"nodes": ["n" * 100] * 1000}
    assert os.listdir(tmp_path) == ["file"]
    for damage in ("", "{", json.dumps([1])):
        Path(path).write_text(damage)
        assert read_json(path) is None


@pytest.mark.parametrize("attempt_id", ["", ".", "..", "a/b", "../x", ".hidden", "x.tmp", "a" * 200, "a\n", "a b"])
def test_ids_that_could_leave_their_directory_are_unsafe(attempt_id: str) -> None:
    assert not is_safe_id(attempt_id)


def test_run_directories_are_spread_and_private(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path / "engine"))
    layout.prepare()
    layout.prepare()
    assert is_safe_id("j-12.1")
    assert layout.attempt_dir("j-12.1").startswith(f"{layout.runs_dir}/")
    assert len({os.path.dirname(layout.attempt_dir(f"j-{number}.1")) for number in range(1000)}) > 200
    assert (tmp_path / "engine").stat().st_mode & 0o077 == 0


def test_the_base_environment_is_a_short_list() -> None:
    server = {"PATH": "/bin", "HOME": "/root", "CORRAL_TOKEN": "x", "LD_PRELOAD": "y", "VIRTUAL_ENV": "/v"}
    expected = {"PATH": "/bin:/opt/corral/bin", "HOME": "/root", "VIRTUAL_ENV": "/v"}
    assert base_environment(server, python_dir="/opt/corral/bin") == expected
    assert base_environment(expected, python_dir="/opt/corral/bin") == expected
    assert base_environment({}, python_dir="/x")["PATH"].endswith("/bin:/x")


def test_a_process_is_named_by_its_start() -> None:
    assert start_ticks(os.getpid()) == start_ticks(os.getpid())
    assert start_ticks(2**22 + 1) is None
    assert os.getpid() in descendants(os.getppid())
