"""Generated data sets: small grey images, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

#: Whether a point is inside; the figure reaches from -1 to 1 in both directions.
Figure = Callable[[float, float], bool]

SHAPES: dict[str, Figure] = {
    "square": lambda x, y: max(abs(x), abs(y)) <= 1,
    "disc": lambda x, y: x * x + y * y <= 1.1,
    "triangle": lambda x, y: abs(x) <= (1.1 + y) / 2,
    "cross": lambda x, y: abs(abs(x) - abs(y)) <= 0.3,
    "plus": lambda x, y: min(abs(x), abs(y)) <= 0.25,
    "ring": lambda x, y: 0.4 <= x * x + y * y <= 1.1,
}
#: The strokes of each digit, of seven: top, the upper two sides, middle, the lower two sides, bottom.
_STROKES = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float


def _digit(strokes: str) -> Figure:
    def inside(x: float, y: float) -> bool:
        level = abs(x) <= 0.9
        upper, lower = -1 <= y <= 0, 0 <= y <= 1
        drawn = (
            level and y <= -0.75,
            upper and x <= -0.6,
            upper and x >= 0.6,
            level and abs(y) <= 0.2,
            lower and x <= -0.6,
            lower and x >= 0.6,
            level and y >= 0.75,
        )
        return any(shown and stroke == "1" for shown, stroke in zip(drawn, strokes))

    return inside


DATASETS: dict[str, list[Figure]] = {
    "shapes": list(SHAPES.values()),
    "digits": [_digit(strokes) for strokes in _STROKES],
}


def draw(chance: random.Random, figure: Figure, box: Box, size: int) -> list[float]:
    """An image of `size` times `size` points, each from 0 to 1, row by row."""
    middle_x, middle_y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    half_x, half_y = (box.right - box.left) / 2, (box.bottom - box.top) / 2
    points = []
    for row in range(size):
        y = (row + 0.5 - middle_y) / half_y
        for column in range(size):
            x = (column + 0.5 - middle_x) / half_x
            is_inside = abs(x) <= 1 and abs(y) <= 1 and figure(x, y)
            points.append(chance.uniform(0.6, 1.0) if is_inside else chance.uniform(0.0, 0.4))
    return points


def labelled(dataset: str, classes: int, count: int, size: int, seed: str) -> tuple[list[list[float]], list[int]]:
    """Images with one figure each, and its label."""
    chance = random.Random(seed)
    images, labels = [], []
    for number in range(count):
        label = number % classes
        half_x, half_y = chance.uniform(0.3, 0.42) * size, chance.uniform(0.3, 0.42) * size
        x, y = size / 2 + chance.uniform(-1, 1), size / 2 + chance.uniform(-1, 1)
        box = Box(left=x - half_x, top=y - half_y, right=x + half_x, bottom=y + half_y)
        images.append(draw(chance, DATASETS[dataset][label], box, size))
        labels.append(label)
    return images, labels


def boxed(dataset: str, count: int, size: int, seed: str) -> tuple[list[list[float]], list[Box]]:
    """Images with one figure anywhere, and its box."""
    chance = random.Random(seed)
    images, boxes = [], []
    for _ in range(count):
        width, height = chance.uniform(0.3, 0.7) * size, chance.uniform(0.3, 0.7) * size
        left, top = chance.uniform(0, size - width), chance.uniform(0, size - height)
        box = Box(left=left, top=top, right=left + width, bottom=top + height)
        images.append(draw(chance, chance.choice(DATASETS[dataset]), box, size))
        boxes.append(box)
    return images, boxes
