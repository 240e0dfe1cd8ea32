"""Learns to classify small images, and reports the accuracy on images that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.presets.images import DATASETS, labelled
from corral.presets.numeric.arrays import Rows
from corral.presets.training import Samples, give_up, network_of, parser, schedule_of, train, write_results

SIZE = 12
#: Units of the hidden layers.
MODELS = {"linear": (), "mlp": (32,), "mlp-deep": (48, 24)}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--model", choices=sorted(MODELS), default="mlp")
    options.add_argument("--dataset", choices=sorted(DATASETS), default="shapes")
    options.add_argument("--classes", type=int, default=4)
    asked = options.parse_args()
    most = len(DATASETS[asked.dataset])
    if not 2 <= asked.classes <= most:
        give_up(f"the data set {asked.dataset} has 2 to {most} classes, not {asked.classes}")
    network = network_of(asked, (SIZE * SIZE, *MODELS[asked.model], asked.classes))
    learned = _samples(asked.dataset, asked.classes, asked.images, f"{asked.seed}/learned")
    held_out = _samples(asked.dataset, asked.classes, max(asked.classes, asked.images // 4), f"{asked.seed}/held-out")
    history = train(network, schedule_of(asked), learned, held_out, cross_entropy, accuracy)
    about = {"model": asked.model, "dataset": asked.dataset, "classes": asked.classes}
    write_results(asked, network, history, preset="classification", **about)


def _samples(dataset: str, classes: int, count: int, seed: str) -> Samples:
    images, labels = labelled(dataset, classes, count, SIZE, seed)
    return Samples(inputs=images, targets=labels)


def cross_entropy(outputs: Rows, labels: Sequence[int]) -> tuple[float, list[list[float]]]:
    total, slopes = 0.0, []
    for row, label in zip(outputs, labels):
        highest = max(row)
        powers = [math.exp(value - highest) for value in row]
        likely = [power / sum(powers) for power in powers]
        total -= math.log(max(likely[label], 1e-12))
        slopes.append([(value - (place == label)) / len(labels) for place, value in enumerate(likely)])
    return total / len(labels), slopes


def accuracy(outputs: Rows, labels: Sequence[int]) -> dict[str, float]:
    right = sum(max(range(len(row)), key=row.__getitem__) == label for row, label in zip(outputs, labels))
    return {"accuracy": right / len(labels)}


if __name__ == "__main__":
    main()
