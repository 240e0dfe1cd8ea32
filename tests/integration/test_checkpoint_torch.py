"""Real PyTorch programs: data loaders under a warning, and ranks that save in parts and stop together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from corral.checkpoint import catalog

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch (CPU is enough)")

LOADS_DATA = """
import time
import torch
from torch.utils.data import DataLoader, Dataset
from corral import checkpoint

class Numbers(Dataset):
    def __len__(self):
        return 1_000_000
    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.tensor([float(index)])

state = checkpoint.restore() or {"sum": torch.zeros(1)}
loader = DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=checkpoint.ignore_in_worker)
batches = iter(loader)
for step in checkpoint.steps(100_000, lambda: state):
    state["sum"] += next(batches).sum()
    if step == 20:
        print("under way", flush=True)
"""


def test_a_warning_to_all_processes_lets_the_training_save(tmp_path: Path) -> None:
    env = {**os.environ, "CORRAL_CHECKPOINT_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", LOADS_DATA], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "under way\n"
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.communicate()
    newest = catalog.latest_good(tmp_path, thorough=True)
    assert newest is not None
    assert newest.kind == "torch"
    assert newest.step > 20


SAVES_IN_PARTS = """
import torch
import torch.distributed as dist
from corral import checkpoint

dist.init_process_group("gloo")

def agree(want):
    largest = torch.tensor([want])
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return int(largest)

part = checkpoint.restore() or {"of": torch.full((3,), float(dist.get_rank()))}
assert part["of"].tolist() == [float(dist.get_rank())] * 3
first = checkpoint.steps_done()
dist.barrier()
for step in checkpoint.steps(10_000_000, lambda: part, shard=True, agree=agree):
    if step == first + 20:
        print("under way from", first, flush=True)
"""


def test_ranks_save_in_parts_stop_at_the_same_step_and_resume(tmp_path: Path) -> None:
    saved = 0
    for attempt in (1, 2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        env = {**os.environ, **place, "CORRAL_CHECKPOINT_DIR": str(tmp_path), "CORRAL_ATTEMPT": str(attempt)}
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", SAVES_IN_PARTS],
                env={**env, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            for process in ranks:
                assert process.stdout is not None
                assert process.stdout.readline() == f"under way from {saved}\n"
            ranks[1].send_signal(signal.SIGTERM)  # only one of them hears it
            assert [process.wait(60) for process in ranks] == [143, 143]
        finally:
            for process in ranks:
                process.kill()
                process.communicate()
        newest = catalog.list_checkpoints(tmp_path)[0]
        assert (newest.good, newest.world, newest.attempt) == (True, 2, attempt)
        assert newest.step > saved
        saved = newest.step
