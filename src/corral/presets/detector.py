"""Trains a detector of objects on a COCO data set from pretrained weights or from scratch, with PyTorch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from corral.presets.evaluation import average_precisions, mean, without_doubles
from corral.presets.formats import Box, Sample
from corral.presets.torch_inputs import Look, image_tensor, open_image
from corral.presets.torch_networks import CELLS
from corral.presets.torch_training import Setup, parser, set_up, train

#: Cells that are less certain of an object are not looked at.
LEAST_CERTAINTY = 0.1
#: How much more the errors of boxes count than those of empty cells.
BOX_WEIGHT = 5.0
#: The images of the small detector.
LOOK = Look(64)


class Detection:
    """The common parts of both kinds of detectors: the measures of their boxes."""

    name = "Detection"
    measure = "map50"

    def __init__(self, setup: Setup) -> None:
        self._classes = setup.data.classes

    def measures(self, found: Sequence[Any], samples: Sequence[Sample]) -> dict[str, Any]:
        precisions = average_precisions([sample.boxes for sample in samples], found, len(self._classes))
        named = {self._classes[label]: value for label, value in precisions.items()}
        return {"map50": mean(precisions.values()), "average_precision": named}


class DetectionByCells(Detection):
    """The small detector: it says of each cell of the image whether an object has its centre there."""

    def read(self, sample: Sample, chance: random.Random | None) -> Any:
        return image_tensor(sample.source, LOOK)

    def loss(self, network: Any, inputs: Sequence[Any], samples: Sequence[Sample]) -> Any:
        return self._loss(network(torch.stack(list(inputs))), samples)

    def test(self, network: Any, inputs: Sequence[Any], samples: Sequence[Sample]) -> tuple[float, list[Any]]:
        outputs = network(torch.stack(list(inputs)))
        return float(self._loss(outputs, samples)), [self._boxes(image) for image in outputs.float().cpu()]

    def _loss(self, outputs: Any, samples: Sequence[Sample]) -> Any:
        """The loss of each cell for whether it has an object; of cells with one, also for the box and the class."""
        functional, outputs = torch.nn.functional, outputs.float()
        present = torch.zeros(len(samples), CELLS, CELLS)
        places, boxes, labels = [], [], []
        for image, sample in enumerate(samples):
            for box in sample.boxes:
                row, column = _cell((box.top + box.bottom) / 2), _cell((box.left + box.right) / 2)
                present[image, row, column] = 1.0
                places.append((image, row, column))
                boxes.append(_target(box, row, column))
                labels.append(box.label)
        loss = functional.binary_cross_entropy_with_logits(outputs[:, 0], present.to(outputs.device))
        if places:
            images, rows, columns = (list(part) for part in zip(*places))
            found = outputs[images, :, rows, columns]
            wanted = torch.tensor(boxes, device=outputs.device)
            loss = loss + BOX_WEIGHT * functional.mse_loss(torch.sigmoid(found[:, 1:5]), wanted)
            loss = loss + functional.cross_entropy(found[:, 5:], torch.tensor(labels, device=outputs.device))
        return loss

    def _boxes(self, cells: Any) -> list[tuple[float, Box]]:
        certainty, edges = torch.sigmoid(cells[0]), torch.sigmoid(cells[1:5])
        labels = cells[5:].argmax(0)
        found = []
        for row, column in (certainty >= LEAST_CERTAINTY).nonzero().tolist():
            x, y, width, height = edges[:, row, column].tolist()
            x, y = (column + x) / CELLS, (row + y) / CELLS
            label = int(labels[row, column])
            box = Box(label, x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            found.append((float(certainty[row, column]), box))
        return without_doubles(found)


def _cell(part: float) -> int:
    return min(CELLS - 1, max(0, int(part * CELLS)))


def _target(box: Box, row: int, column: int) -> tuple[float, float, float, float]:
    """The centre as a part of its cell, the size as a part of the image."""
    x, y = (box.left + box.right) / 2 * CELLS - column, (box.top + box.bottom) / 2 * CELLS - row
    return x, y, box.right - box.left, box.bottom - box.top


class DetectionByTorchvision(Detection):
    """Detectors of torchvision: they resize images of any size themselves, and compute their losses."""

    def read(self, sample: Sample, chance: random.Random | None) -> Any:
        return open_image(sample.source)

    def loss(self, network: Any, inputs: Sequence[Any], samples: Sequence[Sample]) -> Any:
        losses = network(list(inputs), [_absolute(image, sample) for image, sample in zip(inputs, samples)])
        return torch.stack([loss.float() for loss in losses.values()]).sum()

    def test(self, network: Any, inputs: Sequence[Any], samples: Sequence[Sample]) -> tuple[float, list[Any]]:
        outputs = network(list(inputs))
        # They compute losses in training only; their statistics must not learn from held-out samples.
        network.train()
        for layer in network.modules():
            if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                layer.eval()
        loss = float(self.loss(network, inputs, samples))
        network.eval()
        return loss, [_relative(image, found) for image, found in zip(inputs, outputs)]


def _absolute(image: Any, sample: Sample) -> dict[str, Any]:
    """The boxes in pixels, and their classes; 0 is the background."""
    height, width = image.shape[-2:]
    edges = [(box.left * width, box.top * height, box.right * width, box.bottom * height) for box in sample.boxes]
    boxes = torch.tensor(edges, dtype=torch.float32, device=image.device).reshape(-1, 4)
    labels = torch.tensor([box.label + 1 for box in sample.boxes], dtype=torch.int64, device=image.device)
    return {"boxes": boxes, "labels": labels}


def _relative(image: Any, found: dict[str, Any]) -> list[tuple[float, Box]]:
    height, width = image.shape[-2:]
    boxes, labels, scores = (found[name].float().cpu().tolist() for name in ("boxes", "labels", "scores"))
    return [
        (score, Box(int(label) - 1, left / width, top / height, right / width, bottom / height))
        for (left, top, right, bottom), label, score in zip(boxes, labels, scores)
    ]


def main() -> None:
    setup = set_up(parser(__doc__ or "").parse_args(), ("boxes",), "corral.presets.detector")
    train(setup, (DetectionByTorchvision if ":" in setup.architecture else DetectionByCells)(setup))


if __name__ == "__main__":
    main()
