"""Trains a classifier of images, texts or rows of numbers from pretrained weights or from scratch, with PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from corral.presets.evaluation import accuracy, confusion
from corral.presets.formats import Sample
from corral.presets.torch_networks import image_side, numbers, picture, word_counts
from corral.presets.torch_training import Setup, parser, set_up, train


class Classification:
    name = "Classification"
    measure = "accuracy"

    def __init__(self, setup: Setup) -> None:
        self._kind = setup.data.kind
        self._side = image_side(setup.architecture)
        self._classes = len(setup.data.classes)

    def inputs(self, samples: Sequence[Sample]) -> Any:
        return torch.stack([self._input(sample.source) for sample in samples])

    def loss(self, outputs: Any, samples: Sequence[Sample]) -> Any:
        return torch.nn.functional.cross_entropy(outputs.float(), _labels(samples).to(outputs.device))

    def measures(self, outputs: Any, samples: Sequence[Sample]) -> dict[str, Any]:
        matrix = confusion([sample.label for sample in samples], outputs.argmax(1).tolist(), self._classes)
        return {"accuracy": accuracy(matrix), "confusion": matrix}

    def _input(self, source: Any) -> Any:
        if self._kind == "image":
            return picture(source, self._side)
        return word_counts(source) if self._kind == "text" else numbers(source)


def _labels(samples: Sequence[Sample]) -> Any:
    return torch.tensor([sample.label for sample in samples])


def main() -> None:
    setup = set_up(parser(__doc__ or "").parse_args(), ("image", "text", "numbers"))
    train(setup, Classification(setup))


if __name__ == "__main__":
    main()
