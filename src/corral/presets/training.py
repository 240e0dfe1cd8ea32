"""One training: epochs over shuffled batches, saved and resumed, with a log line and a measurement for each epoch.

The order of the batches depends on the seed and the epoch only, so an interrupted training ends like an uninterrupted
one.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, NoReturn

from corral import checkpoint
from corral.presets.numeric.arrays import BACKENDS, PRECISIONS, Rows, best_arrays
from corral.presets.numeric.network import Network
from corral.presets.report import write_text

#: The loss of a batch, and its gradient with respect to each output.
Loss = Callable[[Rows, Sequence[Any]], "tuple[float, list[list[float]]]"]
#: The scores of the outputs, by name.
Scores = Callable[[Rows, Sequence[Any]], "dict[str, float]"]


@dataclass(frozen=True)
class Samples:
    inputs: Rows
    targets: Sequence[Any]


@dataclass(frozen=True)
class Schedule:
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int


def train(
    network: Network, schedule: Schedule, learned: Samples, held_out: Samples, loss: Loss, scores: Scores
) -> list[dict[str, float]]:
    """The measurements after each epoch. Continues from a checkpoint."""
    saved = checkpoint.restore() or {"network": network.state(), "loss": 0.0, "history": []}
    network.load(saved["network"])
    history: list[dict[str, float]] = saved["history"]
    running = float(saved["loss"])
    batches = -(-len(learned.inputs) // schedule.batch_size)
    done = checkpoint.steps_done()
    if done:
        say(f"resumed after {done} of {schedule.epochs * batches} steps")

    def capture() -> dict[str, Any]:
        return {"network": network.state(), "loss": running, "history": history}

    for step in checkpoint.steps(schedule.epochs * batches, capture):
        epoch, batch = divmod(step, batches)
        chosen = order_of(schedule.seed, epoch, len(learned.inputs))[batch::batches]
        targets = [learned.targets[place] for place in chosen]
        found = 0.0

        def slope(outputs: Rows, targets: Sequence[Any] = targets) -> list[list[float]]:
            nonlocal found
            found, slopes = loss(outputs, targets)
            return slopes

        network.learn([learned.inputs[place] for place in chosen], slope, schedule.learning_rate)
        running = (running if batch else 0.0) + found / batches
        if batch == batches - 1:
            measured = scores(network.outputs(held_out.inputs), held_out.targets)
            history.append({"epoch": epoch + 1, "loss": running, **measured})
            measurements = "  ".join(f"{name} {value:.4f}" for name, value in {"loss": running, **measured}.items())
            say(f"epoch {epoch + 1}/{schedule.epochs}  {measurements}")
    return history


def parser(about: str) -> argparse.ArgumentParser:
    """The options that every training has."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--mode", choices=("scratch", "fine-tune"), default="scratch")
    made.add_argument("--base", default="", help="the model.json to fine-tune")
    made.add_argument("--precision", choices=sorted(PRECISIONS), default="fp32")
    made.add_argument("--epochs", type=int, default=10)
    made.add_argument("--batch-size", type=int, default=32)
    made.add_argument("--learning-rate", type=float, default=0.05)
    made.add_argument("--images", type=int, default=600)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--backend", choices=BACKENDS, default="auto")
    return made


def schedule_of(options: argparse.Namespace) -> Schedule:
    return Schedule(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        seed=options.seed,
    )


def network_of(options: argparse.Namespace, sizes: Sequence[int]) -> Network:
    """A new network, or the one to be fine-tuned."""
    arrays = best_arrays(options.backend, options.precision)
    network = Network(arrays, sizes, options.seed)
    say(f"computing with {arrays.name}, {options.precision}; layers of {list(sizes)} units")
    if options.mode == "fine-tune":
        _load_base(network, options.base)
    return network


def write_results(options: argparse.Namespace, network: Network, history: list[dict[str, float]], **about: Any) -> None:
    """Writes `metrics.json` and `model.json` into the output directory of the job, or into the current directory."""
    folder = Path(os.environ.get("CORRAL_OUTPUT_DIR") or ".")
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"mode": options.mode, "precision": options.precision, "seed": options.seed, **about}
    write_text(folder / "model.json", json.dumps({**about, **network.state()}))
    write_text(folder / "metrics.json", json.dumps({**settings, **history[-1], "history": history}))
    say(f"wrote model.json and metrics.json to {folder}")


def _load_base(network: Network, base: str) -> None:
    if not base:
        give_up("fine-tuning needs a base: the model.json of an earlier training")
    try:
        state = json.loads(Path(base).read_text(encoding="utf-8"))
        # The momentum of its own training is not meaningful for this one.
        still = [[[0.0] * len(row) for row in matrix] for matrix in state["weights"]]
        network.load({**state, "speed": still})
    except OSError as error:
        give_up(f"the base {base} cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError) as error:
        give_up(f"the base {base} cannot be used: {error}")
    say(f"begins with {base}")


@functools.lru_cache(maxsize=2)
def order_of(seed: int, epoch: int, count: int) -> tuple[int, ...]:
    """The places of the samples of an epoch, shuffled. Each step of an epoch asks for it."""
    places = list(range(count))
    random.Random(f"{seed}/{epoch}").shuffle(places)
    return tuple(places)


def give_up(text: str) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    sys.exit(2)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
