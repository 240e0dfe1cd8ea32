"""Trains a detector of objects on a COCO data set from pretrained weights or from scratch, with PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from corral.presets.evaluation import average_precisions, mean, without_doubles
from corral.presets.formats import Box, Sample
from corral.presets.torch_networks import CELLS, image_side, picture
from corral.presets.torch_training import Setup, parser, set_up, train

#: Cells that are less certain of an object are not looked at.
LEAST_CERTAINTY = 0.1
#: How much more the errors of boxes count than those of empty cells.
BOX_WEIGHT = 5.0


class Detection:
    name = "Detection"
    measure = "map50"

    def __init__(self, setup: Setup) -> None:
        self._side = 2 * image_side(setup.architecture)
        self._classes = setup.data.classes

    def inputs(self, samples: Sequence[Sample]) -> Any:
        return torch.stack([picture(sample.source, self._side) for sample in samples])

    def loss(self, outputs: Any, samples: Sequence[Sample]) -> Any:
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

    def measures(self, outputs: Any, samples: Sequence[Sample]) -> dict[str, Any]:
        found = [self._boxes(image) for image in outputs]
        precisions = average_precisions([sample.boxes for sample in samples], found, len(self._classes))
        named = {self._classes[label]: value for label, value in precisions.items()}
        return {"map50": mean(precisions.values()), "average_precision": named}

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


def main() -> None:
    setup = set_up(parser(__doc__ or "").parse_args(), ("boxes",))
    train(setup, Detection(setup))


if __name__ == "__main__":
    main()
