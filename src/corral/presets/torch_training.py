"""One training with PyTorch: from pretrained weights or from scratch, on all GPUs of the job, saved and resumed; then a
report, and the best weights.

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
from corral.presets.torch_ranks import Ranks, join, wait_for_cause
from corral.presets.training import give_up, order_of

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
    ranks: Ranks


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
    made.add_argument("--batch-size", type=int, default=32, help="samples in one step of all GPUs together")
    made.add_argument("--learning-rate", type=float, default=0.001)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--allow-cpu", choices=("true", "false"), default="false")
    return made


def set_up(options: argparse.Namespace, kinds: Sequence[str], program: str) -> Setup:
    """Data, network and device; ends the program with a message if they do not fit together. `program` is the module
    that was started, which each further GPU runs in a process of its own."""
    ranks = join(program, may_use_cpus=options.allow_cpu == "true")
    device = _device(options, ranks)
    torch.manual_seed(options.seed)
    weights = _seen(options.weights)
    if options.mode == "auto":
        options.mode = "scratch" if weights is None else "fine-tune"
    with ranks.first_alone():
        if options.mode != "scratch" and weights is None:
            give_up(f"{options.mode} needs pretrained weights: choose a model, or the mode scratch")
        try:
            data, architecture, network = _data_and_network(options, kinds, weights, ranks)
        except (BadData, BadModel) as error:
            give_up(str(error))
    if options.mode == "feature-extraction":
        freeze_body(network)
    processes = "" if ranks.is_single else f" in {ranks.world} processes"
    ranks.say(
        f"{architecture} on {device.type}{processes}, {options.precision}, {options.mode}: "
        f"{len(data.classes)} classes, {len(data.learned)} samples to learn from, {len(data.held_out)} to test with"
    )
    if options.batch_size < ranks.world:
        ranks.say(f"batch_size {options.batch_size} is less than the number of processes: some compute nothing")
    return Setup(options, data, architecture, network.to(device), device, PRECISIONS[options.precision], ranks)


def _data_and_network(
    options: argparse.Namespace, kinds: Sequence[str], weights: Path | None, ranks: Ranks
) -> tuple[Collected, str, nn.Module]:
    data = collect(_seen(options.data) or Path(), options.format, options.seed)
    if data.kind not in kinds:
        raise BadData(f"this training is for {' and '.join(kinds)}, and the data set has {data.kind}")
    about = described(weights) if weights is not None else {}
    architecture = options.architecture or str(
        about.get("architecture") or options.weights_architecture or USUAL[data.kind]
    )
    inputs = len(data.learned[0].source) if data.kind == "numbers" else 0
    network = build(architecture, data.kind, len(data.classes), inputs)
    if options.mode != "scratch" and weights is not None:
        loaded, all_of_them = load_weights(network, weights)
        ranks.say(f"{loaded} of {all_of_them} tensors are those of {options.weights_name or weights}")
    return data, architecture, network


def _device(options: argparse.Namespace, ranks: Ranks) -> Any:
    if torch.cuda.is_available():
        return torch.device("cuda", ranks.local_rank)
    with ranks.first_alone():
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
    ranks = setup.ranks
    try:
        state = _learn(setup, task)
        if ranks.is_first:
            _write(setup, task, state)
        ranks.leave()
    except BadModel as error:
        give_up(str(error))
    except _OutOfMemory as error:
        of_step = f"{setup.options.batch_size} samples in one step of {ranks.world} processes"
        give_up(f"the memory of the GPU is full, with {of_step}: {error}")
    except RuntimeError:
        if not ranks.is_single:
            wait_for_cause()
        raise


class _Step(nn.Module):  # type: ignore[misc]
    """The network with its loss as one module: gradients are summed for what the loss needs."""

    def __init__(self, task: Task, network: nn.Module) -> None:
        super().__init__()
        self._task = task
        self.network = network

    def forward(self, inputs: Sequence[Any], samples: Sequence[Sample]) -> Any:
        return self._task.loss(self.network, inputs, samples)


def _learn(setup: Setup, task: Task) -> dict[str, Any]:
    options, data, network, ranks = setup.options, setup.data, setup.network, setup.ranks
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
        ranks.say(f"resumed after {checkpoint.steps_done()} of {options.epochs * batches} steps")
    loss_of = ranks.parallel(_Step(task, network), has_idle_parameters=":" in setup.architecture)

    def capture() -> dict[str, Any]:
        trained = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}
        return {**trained, "state": state}

    def own_part(step: int) -> tuple[list[Sample], float]:
        """The samples of this rank, and their part of the step. A rank without samples takes one that counts for
        nothing."""
        epoch, batch = divmod(step, batches)
        places = order_of(options.seed, epoch, len(data.learned))[batch::batches]
        own = ranks.part_of(places)
        return [data.learned[place] for place in own or places[:1]], len(own) / len(places)

    def read(step: int, sample: Sample) -> Any:
        return task.read(sample, random.Random(f"{options.seed}/{step}/{sample.source}"))

    reader = Reader(lambda step: own_part(step)[0], read, options.epochs * batches, ranks.local_world)
    try:
        for step in checkpoint.steps(options.epochs * batches, capture, agree=ranks.largest):
            epoch, batch = divmod(step, batches)
            # A resumed training draws the same random numbers as an undisturbed one.
            torch.manual_seed(options.seed * _SEEDS + step + ranks.rank * _SEEDS**2)
            start_learning(network, is_frozen=options.mode == "feature-extraction")
            optimizer.zero_grad()
            samples, part = own_part(step)
            with _autocast(setup):
                loss = loss_of(_on_device(setup, reader.batch(step)), samples)
            # The mean of the gradients of all ranks is that of the whole step.
            scaler.scale(loss * (part * ranks.world)).backward()
            scaler.step(optimizer)
            scaler.update()
            state["running"] = (state["running"] if batch else 0.0) + ranks.sum(float(loss.detach()) * part) / batches
            if not math.isfinite(state["running"]):
                ranks.fail(f"the loss of step {step + 1} is not a number: choose a lower learning rate, or bf16")
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
        # The other ranks need no copy: the first one writes the files.
        stored = setup.network.state_dict() if setup.ranks.is_first else {}
        tensors = {name: tensor.detach().cpu().clone() for name, tensor in stored.items()}
        state["best"] = {"epoch": epoch, "measures": measured, "tensors": tensors}
    shown = "  ".join(f"{name} {value:.4f}" for name, value in {"loss": state["running"], **values}.items())
    setup.ranks.say(f"epoch {epoch}/{setup.options.epochs}  {shown}")
    checkpoint.log(epoch, loss=state["running"], **values)


def _goodness(task: Task, measures: dict[str, Any]) -> tuple[float, float]:
    """The loss decides between equal measures."""
    return measures[task.measure], -measures["held_out_loss"]


def _test(setup: Setup, task: Task) -> dict[str, Any]:
    """The measures on all held-out samples. Each rank tests a part of them, and each gets all findings."""
    ranks, samples = setup.ranks, setup.data.held_out
    ranks.use_first_buffers(setup.network)
    setup.network.eval()
    size = -(-setup.options.batch_size // ranks.world)
    parts = ranks.part_of([range(len(samples))[start : start + size] for start in range(0, len(samples), size)])
    own = [[samples[place] for place in places] for places in parts]
    tested: list[tuple[range, float, list[Any]]] = []
    reader = Reader(lambda part: own[part], lambda _, sample: task.read(sample, None), len(own), ranks.local_world)
    try:
        with torch.no_grad(), _autocast(setup):
            for number, part in enumerate(own):
                loss, found = task.test(setup.network, _on_device(setup, reader.batch(number)), part)
                tested.append((parts[number], loss, found))
    finally:
        reader.close()
    everything = sorted((each for some in ranks.gather(tested) for each in some), key=lambda each: each[0].start)
    loss = sum(part_loss * len(places) for places, part_loss, _ in everything) / len(samples)
    return {"held_out_loss": loss, **task.measures([each for *_, found in everything for each in found], samples)}


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
        "processes": setup.ranks.world,
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
    setup.ranks.say(
        f"best epoch {best['epoch']}: {task.measure} {about[task.measure]:.4f}; report.html and best/ are in {folder}"
    )
