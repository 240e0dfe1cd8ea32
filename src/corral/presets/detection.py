"""Learns to locate the figure in a small image, and reports how well it finds figures in images that it has not
seen."""

from __future__ import annotations

from collections.abc import Sequence

from corral.presets.evaluation import ENOUGH, overlap
from corral.presets.images import DATASETS, Box, boxed
from corral.presets.numeric.arrays import Rows
from corral.presets.training import Samples, network_of, parser, schedule_of, train, write_results

SIZE = 16


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--model", choices=("profiles", "pixels"), default="profiles")
    options.add_argument("--dataset", choices=sorted(DATASETS), default="shapes")
    asked = options.parse_args()
    inputs = 2 * SIZE if asked.model == "profiles" else SIZE * SIZE
    network = network_of(asked, (inputs, 48, 4))
    learned = _samples(asked.dataset, asked.model, asked.images, f"{asked.seed}/learned")
    held_out = _samples(asked.dataset, asked.model, max(4, asked.images // 4), f"{asked.seed}/held-out")
    history = train(network, schedule_of(asked), learned, held_out, squared_error, coverage)
    write_results(asked, network, history, preset="detection", model=asked.model, dataset=asked.dataset)


def _samples(dataset: str, model: str, count: int, seed: str) -> Samples:
    images, boxes = boxed(dataset, count, SIZE, seed)
    return Samples(inputs=images if model == "pixels" else [profiles(image) for image in images], targets=boxes)


def profiles(image: Sequence[float]) -> list[float]:
    """The brightness of each row and each column."""
    rows = [image[start : start + SIZE] for start in range(0, SIZE * SIZE, SIZE)]
    return [4 * sum(line) / SIZE - 1 for line in [*rows, *zip(*rows)]]


def squared_error(outputs: Rows, boxes: Sequence[Box]) -> tuple[float, list[list[float]]]:
    """The error of the edges of the boxes, as parts of the image."""
    total, slopes = 0.0, []
    for row, box in zip(outputs, boxes):
        misses = [found - edge / SIZE for found, edge in zip(row, (box.left, box.top, box.right, box.bottom))]
        total += sum(miss * miss for miss in misses)
        slopes.append([2 * miss / len(boxes) for miss in misses])
    return total / len(boxes), slopes


def coverage(outputs: Rows, boxes: Sequence[Box]) -> dict[str, float]:
    shares = [overlap(_box(row), box) for row, box in zip(outputs, boxes)]
    return {
        "iou": sum(shares) / len(shares),
        "found": sum(share >= ENOUGH for share in shares) / len(shares),
    }


def _box(row: Sequence[float]) -> Box:
    left, top, right, bottom = (value * SIZE for value in row)
    return Box(left=min(left, right), top=min(top, bottom), right=max(left, right), bottom=max(top, bottom))


if __name__ == "__main__":
    main()
