"""Real PyTorch programs: data loaders under a warning, and ranks that save in parts and stop together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from corral.checkpoint import catalog
from tests.servers.torch_python import torch_environment, torch_python

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
    env = {**torch_environment(), "CORRAL_CHECKPOINT_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [torch_python(), "-c", LOADS_DATA], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
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
        env = {**torch_environment(), **place, "CORRAL_CHECKPOINT_DIR": str(tmp_path), "CORRAL_ATTEMPT": str(attempt)}
        ranks = [
            subprocess.Popen(
                [torch_python(), "-c", SAVES_IN_PARTS],
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


GOES_ON = """
import torch
from corral import checkpoint

def parts():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)

def train(model, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        torch.manual_seed(step)
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()

straight, its_optimizer = parts()
train(straight, its_optimizer, range(10))

model, optimizer = parts()
train(model, optimizer, range(5))
both = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
checkpoint.save({**both, "rng": torch.get_rng_state()}, step=5)

state = checkpoint.restore()
model, optimizer = parts()
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
train(model, optimizer, range(checkpoint.steps_done(), 10))
print("same", all(torch.equal(one, two) for one, two in zip(model.parameters(), straight.parameters())))
"""


def test_a_training_goes_on_exactly(tmp_path: Path) -> None:
    assert _run(GOES_ON, tmp_path) == "same True\n"
    assert catalog.verify(catalog.list_checkpoints(tmp_path)[0].path).kind == "torch"


COMES_TO_THE_CPU = """
import torch
from corral import checkpoint

if torch.cuda.is_available():
    weights = torch.randn(1000, 1000, device="cuda")
    checkpoint.save({"weights": weights}, step=1)
    restored = checkpoint.restore()["weights"]
    print(restored.device.type, torch.equal(restored, weights.cpu()))
    print(checkpoint.restore(map_location="cuda:0")["weights"].device.type)
"""


def test_tensors_of_a_gpu_come_to_the_cpu(tmp_path: Path) -> None:
    printed = _run(COMES_TO_THE_CPU, tmp_path)
    if not printed:
        pytest.skip("no GPU that PyTorch can use: this test needs an NVIDIA GPU, install its driver")
    assert printed == "cpu True\ncuda\n"


def _run(program: str, directory: Path) -> str:
    """The output of the program as the only attempt of a job with this checkpoint directory."""
    env = {**torch_environment(), "CORRAL_CHECKPOINT_DIR": str(directory)}
    done = subprocess.run([torch_python(), "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
