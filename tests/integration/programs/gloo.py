"""The same with PyTorch: started by torchrun, which takes everything from the environment."""

# ruff: noqa: T201 - its output is what the story reads

from __future__ import annotations

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
me, world = dist.get_rank(), dist.get_world_size()
values = torch.arange(1000, dtype=torch.float64) * (me + 1)
dist.all_reduce(values)
assert torch.equal(values, torch.arange(1000, dtype=torch.float64) * (world * (world + 1) // 2))
assert int(os.environ["LOCAL_RANK"]) == me % int(os.environ["GPUS_PER_NODE"])
print(f"rank {me} of {world} has {int(values.sum())}", flush=True)
dist.destroy_process_group()
