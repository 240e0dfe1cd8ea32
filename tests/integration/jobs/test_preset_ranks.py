"""Trainings on several GPUs: a process for each GPU, here on CPUs, with the results of one process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.jobs import preset_data
from tests.integration.jobs.test_preset_torch import Training, helper, needs_torchvision
from tests.integration.waiting import wait_until
from tests.servers.corral_server import free_port

pytestmark = pytest.mark.slow
__all__ = ["helper"]

#: 33 images to learn from: the steps have 7 and 6 samples, which no number of processes divides evenly.
OPTIONS = ("--mode=scratch", "--epochs=4", "--batch-size=7")


def training(helper: Path, place: Path, gpus: int, name: str = "classifier", **env: str) -> Training:
    return Training(helper, place, name, CUDA_VISIBLE_DEVICES=",".join(map(str, range(gpus))), **env)


def history(done: Training) -> list[float]:
    return [value for entry in done.report()["history"] for value in entry.values()]


def ranks_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that the first one has started."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def until(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert any(each.startswith(line) for each in process.stdout), f"there is no line {line!r}"


@pytest.mark.parametrize(("gpus", "batch_size"), [(2, 7), (3, 7), (3, 2)])
def test_several_processes_learn_as_one_does(helper: Path, tmp_path: Path, gpus: int, batch_size: int) -> None:
    data = preset_data.image_folder(tmp_path / "images", each=14)
    options = (*OPTIONS, f"--batch-size={batch_size}", "--augmentation=flip-and-crop")
    one, several = training(helper, tmp_path / "one", 1), training(helper, tmp_path / "several", gpus)
    one.run(data, "image-folder", *options)
    log = several.run(data, "image-folder", *options)
    assert history(several) == pytest.approx(history(one), rel=1e-3)
    assert several.report()["confusion"] == one.report()["confusion"], "each held-out sample is counted once"
    assert (one.report()["processes"], several.report()["processes"]) == (1, gpus)
    assert f"on cpu in {gpus} processes" in log
    assert ("less than the number of processes" in log) is (batch_size < gpus)
    assert len(re.findall("^epoch ", log, re.MULTILINE)) == 4, "the first process reports for all"
    curves = [json.loads(line)["step"] for line in (several.outputs / "curves.jsonl").read_text().splitlines()]
    assert curves == [1, 2, 3, 4]
    assert not list(several.checkpoints.glob("save-*-rank-*")), "the first process saves for all"


def test_a_warned_training_resumes_with_another_number_of_gpus(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images", each=40)
    options = ("--mode=scratch", "--epochs=8", "--batch-size=8")
    whole, parts = training(helper, tmp_path / "whole", 1), training(helper, tmp_path / "parts", 2)
    whole.run(data, "image-folder", *options)
    process = parts.start(data, "image-folder", *options)
    until(process, "epoch 2/")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 143, "the warning stopped it"
    assert "Traceback" not in rest

    wider = training(helper, tmp_path / "wider", 3, CORRAL_CHECKPOINT_DIR=str(parts.checkpoints))
    assert "resumed after" in wider.run(data, "image-folder", *options)
    assert history(wider) == pytest.approx(history(whole), rel=1e-3)


def test_a_failure_of_one_process_ends_the_training_with_its_error(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images", each=14)
    missing = training(helper, tmp_path / "missing", 2)
    refused = missing.run(data, "coco", *OPTIONS, code=2)
    assert refused.count("has no annotations.json") == 1, "it is reported once"

    diverging = training(helper, tmp_path / "diverging", 2)
    refused = diverging.run(data, "image-folder", "--learning-rate=1e30", "--epochs=9", code=2)
    assert refused.count("is not a number: choose a lower learning rate") == 1
    assert "rank 0 of 2 failed: the training ends" in refused
    assert "Traceback" not in refused

    (data / "left" / "0.pgm").write_bytes(b"P5 not an image")
    refused = training(helper, tmp_path / "broken", 2).run(data, "image-folder", *OPTIONS, code=2)
    assert refused.count("0.pgm") == 1, "one process reads it"
    assert "Traceback" not in refused, "the loss of its connections is no error of the other process"


def test_a_killed_process_ends_the_training(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images", each=14)
    killed = training(helper, tmp_path / "killed", 3)
    process = killed.start(data, "image-folder", *OPTIONS, "--epochs=100000")
    until(process, "epoch 2/")
    ranks = ranks_of(process)
    assert len(ranks) == 3
    os.kill(ranks[1], signal.SIGKILL)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 137
    assert "rank 1 of 3 failed: the training ends" in rest
    wait_until(lambda: not any(map(is_alive, ranks)), "no process of the training is left")


def test_processes_on_several_nodes_are_one_training(helper: Path, tmp_path: Path) -> None:
    """Two nodes with two GPUs each, with the variables of a gang."""
    data = preset_data.image_folder(tmp_path / "images", each=14)
    one = training(helper, tmp_path / "one", 1)
    one.run(data, "image-folder", *OPTIONS)
    gang = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "NNODES": "2", "WORLD_SIZE": "4"}
    shared = tmp_path / "shared"
    first = training(helper, shared, 2, NODE_RANK="0", CORRAL_RANK="0", **gang)
    second = training(helper, tmp_path / "second", 2, NODE_RANK="1", CORRAL_RANK="1", **gang)
    started = [each.start(data, "image-folder", *OPTIONS) for each in (first, second)]
    logs = [process.communicate(timeout=240)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], logs
    assert first.report()["processes"] == 4
    assert history(first) == pytest.approx(history(one), rel=1e-3)
    assert not list(second.outputs.iterdir()), "the first process of all writes"


def test_a_detector_learns_in_two_processes(helper: Path, tmp_path: Path) -> None:
    both = training(helper, tmp_path / "training", 2, "detector")
    data = preset_data.coco(tmp_path / "data")
    both.run(data, "coco", "--mode=scratch", "--epochs=30", "--learning-rate=0.003")
    assert both.report()["map50"] >= 0.8
    assert both.report()["processes"] == 2


def test_networks_of_torchvision_learn_in_two_processes(helper: Path, tmp_path: Path) -> None:
    """Networks with statistics of normalization, with layers whose outputs the loss does not use, and detectors."""
    needs_torchvision()
    images, boxes = preset_data.image_folder(tmp_path / "images", each=2), preset_data.coco(tmp_path / "boxes", 6)
    cases: tuple[tuple[str, str, Path, str], ...] = (
        ("classifier", "torchvision:googlenet", images, "image-folder"),
        ("detector", "torchvision:ssdlite320_mobilenet_v3_large", boxes, "coco"),
    )
    for name, architecture, data, form in cases:
        both = training(helper, tmp_path / name, 2, name)
        both.run(data, form, f"--architecture={architecture}", "--epochs=2", "--batch-size=4")
        report: dict[str, Any] = both.report()
        assert (report["architecture"], report["processes"]) == (architecture, 2)
