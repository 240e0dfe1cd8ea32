"""Reading the openb traces, and drawing arrivals from them."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from corral.core.model import Request
from corral.simulator.traces import openb
from corral.simulator.traces.job import UnreadableTrace

MIB = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn-1,96000,1024,2,G2\nn-0,8000,512,1,T4\n"
    )
    with gzip.open(tmp_path / "openb_pod_list_small.csv.gz", "wt") as file:
        file.write("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n")
        file.write("p-2,2000,20,1,460,T4|G2,LS\np-1,1000,10,2,1000,,LS\np-3,500,5,0,0,,BE\n")
    (tmp_path / "openb_pod_list_plain.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-1,1000,10,1,1000\n"
    )
    return tmp_path


def test_nodes_and_pods_become_values_of_the_core(folder: Path) -> None:
    assert openb.trace_names(folder) == ["plain", "small"]
    nodes = openb.read_nodes(folder)
    assert [(node.id, node.cpu_milli, node.memory_bytes, len(node.gpus)) for node in nodes] == [
        ("n-1", 96_000, 1024 * MIB, 2),
        ("n-0", 8000, 512 * MIB, 1),
    ]
    assert openb.read_pods(folder, "small") == [
        Request(gpus=2, cpu_milli=1000, memory_bytes=10 * MIB),
        Request(gpu_milli=460, cpu_milli=2000, memory_bytes=20 * MIB, models=("G2", "T4")),
        Request(cpu_milli=500, memory_bytes=5 * MIB),
    ]
    assert openb.read_pods(folder, "plain") == [Request(gpus=1, cpu_milli=1000, memory_bytes=10 * MIB)]


def test_a_file_that_is_not_there_or_not_understood_is_said(folder: Path) -> None:
    with pytest.raises(UnreadableTrace, match="cannot be read"):
        openb.read_pods(folder, "absent")
    (folder / "openb_pod_list_bad.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-1,much,10,1,1000\n")
    with pytest.raises(UnreadableTrace, match="line 2: cpu_milli is 'much', not a number"):
        openb.read_pods(folder, "bad")


@pytest.mark.parametrize("seed", range(5))
def test_arrivals_come_up_to_the_load_and_not_beyond(seed: int) -> None:
    pods = [Request(gpus=1)] * 5 + [Request(gpu_milli=300)] * 5 + [Request(cpu_milli=1000)] * 2
    drawn = openb.arrivals(pods, 20_000, random.Random(seed))
    asked = sum(request.total_gpu_milli for request in drawn)
    assert 25_000 <= asked <= 26_000
    assert sorted(map(repr, drawn[: len(pods)])) == sorted(map(repr, pods))
    assert drawn == openb.arrivals(pods, 20_000, random.Random(seed))


def test_a_list_that_is_too_long_is_thinned_out() -> None:
    drawn = openb.arrivals([Request(gpus=1)] * 50, 20_000, random.Random(1))
    assert len(drawn) == 26
