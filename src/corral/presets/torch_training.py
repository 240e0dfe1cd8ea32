"""One training with PyTorch: from pretrained weights or from scratch, on a GPU, saved and resumed; then a report, and
the best weights.

The task (classification or detection) is an argument: how samples become tensors, the loss, and the measures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from corral import checkpoint
from corral.presets.formats import FORMATS, BadData, Collected, Sample, collect
from corral.presets.report import write_report
from corral.presets.torch_inputs import Reader
from corral.presets.torch_networks import (
    USUAL,
    BadModel,
    build,
    described,
    freeze_body,
    load_weights,
    save_weights,
    start_learning,
)
from corral.presets.training import give_up, order_of, say

MODES = ("auto", "fine-tune", "feature-extraction", "scratch")
#: Trainings with neighbouring seeds share no random numbers within so many steps.
_SEEDS = 1_000_003
_OutOfMemory: type[Exception] = getattr(torch.cuda, "OutOfMemoryError", MemoryError)
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Task(Protocol):
    name: str
    #: the measure by which the best weights are chosen; the larger the better
    measure: str

    def read(self, sample: Sample, chance: random.Random | None) -> Any:
        """The input of the network. Several threads call it; with `chance` the input is changed at random."""
        ...

    def loss(self, network: nn.Module, inputs: Sequence[Any], samples: Sequence[Sample]) -> Any: ...

    def test(self, network: nn.Module, inputs: Sequence[Any], samples: Sequence[Sample]) -> tuple[float, list[Any]]:
        """The mean loss, and the finding for each sample."""
        ...

    def measures(self, found: Sequence[Any], samples: Sequence[Sample]) -> dict[str, Any]:
        """Values for the history, and tables for the report."""
        ...


@dataclass(frozen=True)
class Setup:
    options: argparse.Namespace
    data: Collected
    architecture: str
    network: nn.Module
    device: Any
    number: Any


def parser(about: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--data", required=True, help="the directory of the data set")
    made.add_argument("--format", choices=FORMATS, required=True)
    made.add_argument("--data-name", default="", help="of the data set, for the report")
    made.add_argument("--weights", default="", help="pretrained weights: a file, or a directory with weights.pt")
    made.add_argument("--weights-name", default="", help="of the weights, for the report")
    made.add_argument("--weights-architecture", default="", help="of the weights, if nothing beside them says it")
    made.add_argument(
        "--architecture", default="", help="small-cnn, torchvision:resnet18, timm:…; empty: of the weights"
    )
    made.add_argument("--mode", choices=MODES, default="auto", help="auto: fine-tune with weights, else scratch")
    made.add_argument("--precision", choices=sorted(PRECISIONS), default="fp32")
    made.add_argument("--epochs", type=int, default=5)
    made.add_argument("--batch-size", type=int, default=32)
    made.add_argument("--learning-rate", type=float, default=0.001)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--allow-cpu", choices=("true", "false"), default="false")
    return made


def set_up(options: argparse.Namespace, kinds: Sequence[str]) -> Setup:
    """Data, network and device; ends the program with a message if they do not fit together."""
    device = _device(options)
    torch.manual_seed(options.seed)
    weights = _seen(options.weights)
    if options.mode == "auto":
        options.mode = "scratch" if weights is None else "fine-tune"
    if options.mode != "scratch" and weights is None:
        give_up(f"{options.mode} needs pretrained weights: choose a model, or the mode scratch")
    try:
        data = collect(_seen(options.data) or Path(), options.format, options.seed)
        if data.kind not in kinds:
            give_up(f"this training is for {' and '.join(kinds)}, and the data set has {data.kind}")
        about = described(weights) if weights is not None else {}
        architecture = options.architecture or str(
            about.get("architecture") or options.weights_architecture or USUAL[data.kind]
        )
        inputs = len(data.learned[0].source) if data.kind == "numbers" else 0
        network = build(architecture, data.kind, len(data.classes), inputs)
        if options.mode != "scratch" and weights is not None:
            loaded, all_of_them = load_weights(network, weights)
            say(f"{loaded} of {all_of_them} tensors are those of {options.weights_name or weights}")
    except (BadData, BadModel) as error:
        give_up(str(error))
    if options.mode == "feature-extraction":
        freeze_body(network)
    say(
        f"{architecture} on {device}, {options.precision}, {options.mode}: {len(data.classes)} classes, "
        f"{len(data.learned)} samples to learn from, {len(data.held_out)} to test with"
    )
    return Setup(options, data, architecture, network.to(device), device, PRECISIONS[options.precision])


def _device(options: argparse.Namespace) -> Any:
    if torch.cuda.is_available():
        if torch.cuda.device_count() > 1:
            say(f"this training uses 1 of the {torch.cuda.device_count()} GPUs that the job has")
        return torch.device("cuda")
    if options.allow_cpu != "true":
        give_up("there is no GPU: this training runs on GPUs only (allow_cpu=true lets it run on CPUs)")
    if options.precision == "fp16":
        give_up("fp16 needs a GPU: choose bf16 or fp32")
    if options.precision != "fp32":
        # This library uses instructions for bf16 that not every CPU has: the program would be killed.
        torch.backends.mkldnn.set_flags(False)
    return torch.device("cpu")


def _seen(place: str) -> Path | None:
    """The path at which the job really sees a mount."""
    if not place:
        return None
    for requested, real in json.loads(os.environ.get("CORRAL_MOUNTS") or "{}").items():
        if place == requested or place.startswith(f"{requested}/"):
            return Path(real + place[len(requested) :])
    return Path(place)


def train(setup: Setup, task: Task) -> None:
    """Learn, test after each epoch, keep the best weights, and write everything into the outputs of the job."""
    try:
        _write(setup, task, _learn(setup, task))
    except BadModel as error:
        give_up(str(error))
    except _OutOfMemory as error:
        give_up(f"the memory of the GPU is full, with {setup.options.batch_size} samples in one step: {error}")


def _learn(setup: Setup, task: Task) -> dict[str, Any]:
    options, data, network = setup.options, setup.data, setup.network
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=options.learning_rate)
    scaler = _scaler(setup)
    batches = -(-len(data.learned) // options.batch_size)
    state: dict[str, Any] = {"history": [], "running": 0.0, "best": None}
    saved = checkpoint.restore()
    if saved is not None:
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        if saved.get("scaler"):
            scaler.load_state_dict(saved["scaler"])
        state = saved["state"]
        say(f"resumed after {checkpoint.steps_done()} of {options.epochs * batches} steps")

    def capture() -> dict[str, Any]:
        trained = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}
        return {**trained, "state": state}

    def samples_of(step: int) -> list[Sample]:
        epoch, batch = divmod(step, batches)
        return [data.learned[place] for place in order_of(options.seed, epoch, len(data.learned))[batch::batches]]

    def read(step: int, sample: Sample) -> Any:
        return task.read(sample, random.Random(f"{options.seed}/{step}/{sample.source}"))

    reader = Reader(samples_of, read, options.epochs * batches)
    try:
        for step in checkpoint.steps(options.epochs * batches, capture):
            epoch, batch = divmod(step, batches)
            # A resumed training draws the same random numbers as an undisturbed one.
            torch.manual_seed(options.seed * _SEEDS + step)
            start_learning(network, is_frozen=options.mode == "feature-extraction")
            optimizer.zero_grad()
            with _autocast(setup):
                loss = task.loss(network, _on_device(setup, reader.batch(step)), samples_of(step))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            state["running"] = (state["running"] if batch else 0.0) + float(loss.detach()) / batches
            if not math.isfinite(state["running"]):
                raise BadModel(f"the loss of step {step + 1} is not a number: choose a lower learning rate, or bf16")
            if batch == batches - 1:
                _end_epoch(setup, task, state, epoch + 1)
    finally:
        reader.close()
    return state


def _on_device(setup: Setup, inputs: Sequence[Any]) -> list[Any]:
    return [each.to(setup.device, non_blocking=True) for each in inputs]


def _scaler(setup: Setup) -> Any:
    """Scales losses of fp16. PyTorch before 2.3 has it in another place."""
    enabled = setup.number is torch.float16
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(setup.device.type, enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)


def _end_epoch(setup: Setup, task: Task, state: dict[str, Any], epoch: int) -> None:
    measured = _test(setup, task)
    values = {name: value for name, value in measured.items() if isinstance(value, float)}
    state["history"].append({"epoch": epoch, "loss": state["running"], **values})
    best = state["best"]
    if best is None or _goodness(task, values) > _goodness(task, best["measures"]):
        tensors = {name: tensor.detach().cpu().clone() for name, tensor in setup.network.state_dict().items()}
        state["best"] = {"epoch": epoch, "measures": measured, "tensors": tensors}
    shown = "  ".join(f"{name} {value:.4f}" for name, value in {"loss": state["running"], **values}.items())
    say(f"epoch {epoch}/{setup.options.epochs}  {shown}")
    checkpoint.log(epoch, loss=state["running"], **values)


def _goodness(task: Task, measures: dict[str, Any]) -> tuple[float, float]:
    """The loss decides between equal measures."""
    return measures[task.measure], -measures["held_out_loss"]


def _test(setup: Setup, task: Task) -> dict[str, Any]:
    """The measures on all held-out samples."""
    setup.network.eval()
    size, samples = setup.options.batch_size, setup.data.held_out
    parts = [samples[start : start + size] for start in range(0, len(samples), size)]
    found, loss = [], 0.0
    reader = Reader(lambda part: parts[part], lambda _, sample: task.read(sample, None), len(parts))
    try:
        with torch.no_grad(), _autocast(setup):
            for number, part in enumerate(parts):
                part_loss, part_found = task.test(setup.network, _on_device(setup, reader.batch(number)), part)
                loss += part_loss * len(part) / len(samples)
                found += part_found
    finally:
        reader.close()
    return {"held_out_loss": loss, **task.measures(found, samples)}


def _autocast(setup: Setup) -> Any:
    return torch.autocast(setup.device.type, dtype=setup.number or torch.bfloat16, enabled=setup.number is not None)


def _write(setup: Setup, task: Task, state: dict[str, Any]) -> None:
    options, best = setup.options, state["best"]
    folder = Path(os.environ.get("CORRAL_OUTPUT_DIR") or ".")
    about = {
        "architecture": setup.architecture,
        "classes": setup.data.classes,
        "dataset": options.data_name or options.data,
        "weights": options.weights_name or options.weights or "none",
        "mode": options.mode,
        "precision": options.precision,
        "device": torch.cuda.get_device_name() if setup.device.type == "cuda" else "cpu",
        "best_epoch": best["epoch"],
        task.measure: best["measures"][task.measure],
    }
    save_weights(folder / "best", best["tensors"], about)
    report = {
        "title": f"{task.name}: {about['dataset']}",
        **about,
        "facts": [name for name in about if name != "classes"],
        "curves": [name for name in state["history"][0] if name != "epoch"],
        "history": state["history"],
        **{name: value for name, value in best["measures"].items() if not isinstance(value, float)},
        **({"map50": best["measures"]["map50"]} if "map50" in best["measures"] else {}),
    }
    write_report(folder, report)
    say(f"best epoch {best['epoch']}: {task.measure} {about[task.measure]:.4f}; report.html and best/ are in {folder}")
