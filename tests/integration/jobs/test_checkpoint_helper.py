"""Real programs that save: killed at any moment, warned, side by side, and on a full disk."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.checkpoint import catalog
from corral.checkpoint.environment import Surroundings
from corral.checkpoint.keeper import Keeper

KILLS = 30

SAVES_FOREVER = """
import sys
from corral import checkpoint
state = checkpoint.restore() or {"step": 0, "weights": bytes(200_000)}
assert state["step"] == checkpoint.steps_done()
print("ready", state["step"], flush=True)
while True:
    state = {"step": state["step"] + 1, "weights": bytes([(state["step"] + 1) % 256]) * 200_000}
    checkpoint.save(state, step=state["step"])
    print("saved", state["step"], flush=True)
"""


@contextmanager
def program(code: str, directory: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    surroundings = {**os.environ, "CORRAL_CHECKPOINT_DIR": str(directory), **env}
    process = subprocess.Popen([sys.executable, "-c", code], env=surroundings, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_killed_at_any_moment_at_most_the_save_under_way_is_lost(tmp_path: Path) -> None:
    rng = random.Random(5)
    acknowledged = cut_off = 0
    for attempt in range(1, KILLS + 1):
        with program(SAVES_FOREVER, tmp_path, CORRAL_ATTEMPT=str(attempt)) as process:
            word, step = next_line(process).split()
            assert word == "ready"
            # Never less than was acknowledged before the kill, and at most the one save that was then under way.
            assert acknowledged <= int(step) <= acknowledged + 1
            lines = [f"saved {step}", *(next_line(process) for _ in range(rng.randint(0, 2)))]
            # The moment of the kill is the random input of this test.
            time.sleep(rng.uniform(0, 0.03))
            process.kill()
            out, _ = process.communicate()
        acknowledged = max(int(line.split()[1]) for line in [*lines, *out.splitlines()])
        cut_off += any(name.startswith(".saving-") for name in os.listdir(tmp_path))
        keeper = Keeper(Surroundings(directory=tmp_path))
        state = keeper.restore()
        if state is not None:
            assert state["step"] == keeper.steps_done() >= acknowledged
            assert state["weights"] == bytes([state["step"] % 256]) * 200_000
    assert cut_off >= 3, "many of the kills came in the middle of a save"
    Keeper(Surroundings(directory=tmp_path)).save("the last", step=acknowledged)
    assert len(os.listdir(tmp_path)) == 3, "what the killed saves left is cleaned away"


def test_a_warned_program_saves_stops_and_is_resumed(tmp_path: Path) -> None:
    code = """
import time
from corral import checkpoint
state = checkpoint.restore() or {"sum": 0}
print("from", checkpoint.steps_done(), flush=True)
for step in checkpoint.steps(1_000_000 if checkpoint.steps_done() == 0 else checkpoint.steps_done() + 5, lambda: state):
    state["sum"] += step
    if step == 100:
        print("under way", flush=True)
print("done", state["sum"], checkpoint.steps_done(), flush=True)
"""
    with program(code, tmp_path) as process:
        assert next_line(process) == "from 0"
        assert next_line(process) == "under way"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    newest = catalog.latest_good(tmp_path, thorough=True)
    assert newest is not None
    with program(code, tmp_path) as process:
        assert next_line(process) == f"from {newest.step}"
        total = newest.step + 5
        assert next_line(process) == f"done {total * (total - 1) // 2} {total}"
        assert process.wait(30) == 0


def test_processes_side_by_side_never_spoil_each_other(tmp_path: Path) -> None:
    code = """
import os
from corral import checkpoint
for step in range(30):
    checkpoint.save([os.environ["WHO"]] * 20_000, step=step)
    state = checkpoint.restore()
    assert len(state) == 20_000 and len(set(state)) == 1, state[:3]
print("fine", flush=True)
"""
    processes = []
    for who in "abc":
        env = {**os.environ, "CORRAL_CHECKPOINT_DIR": str(tmp_path), "WHO": who, "CORRAL_CHECKPOINT_KEEP": "1"}
        processes.append(subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True))
    assert [process.communicate(timeout=120)[0] for process in processes] == ["fine\n"] * 3
    assert [each.good for each in catalog.list_checkpoints(tmp_path)] == [True]


FILLS_THE_DISK = """
import os
from corral import checkpoint
checkpoint.save("small", step=1)
before = sorted(os.listdir(os.environ["CORRAL_CHECKPOINT_DIR"]))
for attempt in range(2):
    try:
        checkpoint.save(os.urandom(4_000_000), step=2)
    except checkpoint.SaveError as error:
        print(error, flush=True)
assert sorted(os.listdir(os.environ["CORRAL_CHECKPOINT_DIR"])) == before
assert checkpoint.restore() == "small"
checkpoint.save("fits again", step=3)
"""


def test_a_limit_on_file_sizes_leaves_the_earlier_ones_good(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
    with program(limit + FILLS_THE_DISK, tmp_path) as process:
        out, _ = process.communicate(timeout=60)
    assert out.count("the checkpoint of step 2 was not saved") == 2
    assert "File too large" in out
    assert process.returncode == 0
    assert Keeper(Surroundings(directory=tmp_path)).restore() == "fits again"


def test_a_full_disk_leaves_the_earlier_ones_good(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare to mount a small file system with: install it (Debian package: util-linux)")
    script = 'mount -t tmpfs -o size=2m none "$CORRAL_CHECKPOINT_DIR" || exit 77; exec "$0" -c "$1"'
    done = subprocess.run(
        [unshare, "-Urm", "sh", "-c", script, sys.executable, FILLS_THE_DISK],
        env={**os.environ, "CORRAL_CHECKPOINT_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"a small file system cannot be mounted here, run as root to allow it: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("No space left on device") == 2
    assert "MiB free" in done.stdout
