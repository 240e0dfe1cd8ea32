"""Trains a classifier of images, texts or rows of numbers from pretrained weights or from scratch, with PyTorch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from corral.presets.evaluation import accuracy, confusion
from corral.presets.formats import Sample
from corral.presets.torch_inputs import AUGMENTATIONS, image_tensor, look_of, numbers, word_counts
from corral.presets.torch_training import Setup, parser, set_up, train


class Classification:
    name = "Classification"
    measure = "accuracy"

    def __init__(self, setup: Setup) -> None:
        self._kind = setup.data.kind
        self._look = look_of(setup.architecture, setup.network)
        self._augmentation = setup.options.augmentation
        self._classes = len(setup.data.classes)

    def read(self, sample: Sample, chance: random.Random | None) -> Any:
        if self._kind == "image":
            return image_tensor(sample.source, self._look, self._augmentation, chance)
        return word_counts(sample.source) if self._kind == "text" else numbers(sample.source)

    def loss(self, network: Any, inputs: Sequence[Any], samples: Sequence[Sample]) -> Any:
        found = network(torch.stack(list(inputs)))
        # Some networks have further outputs while they learn: the first one is that of the last layer.
        return self._loss(found if isinstance(found, torch.Tensor) else found[0], samples)

    def test(self, network: Any, inputs: Sequence[Any], samples: Sequence[Sample]) -> tuple[float, list[Any]]:
        found = network(torch.stack(list(inputs)))
        return float(self._loss(found, samples)), found.argmax(1).tolist()

    def measures(self, found: Sequence[Any], samples: Sequence[Sample]) -> dict[str, Any]:
        matrix = confusion([sample.label for sample in samples], found, self._classes)
        return {"accuracy": accuracy(matrix), "confusion": matrix}

    def _loss(self, outputs: Any, samples: Sequence[Sample]) -> Any:
        return torch.nn.functional.cross_entropy(outputs.float(), _labels(samples).to(outputs.device))


def _labels(samples: Sequence[Sample]) -> Any:
    return torch.tensor([sample.label for sample in samples])


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--augmentation", choices=AUGMENTATIONS, default="none", help="random changes of images")
    setup = set_up(options.parse_args(), ("image", "text", "numbers"), "corral.presets.classifier")
    train(setup, Classification(setup))


if __name__ == "__main__":
    main()
