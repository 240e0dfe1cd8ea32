"""Measures of trained models: confusion matrix and accuracy, and the mean average precision of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from corral.presets.formats import Box

#: From this overlap on a box counts as found.
ENOUGH = 0.5


def confusion(right: Sequence[int], found: Sequence[int], classes: int) -> list[list[int]]:
    """A row for each right class, a column for each found one."""
    matrix = [[0] * classes for _ in range(classes)]
    for truth, guess in zip(right, found):
        matrix[truth][guess] += 1
    return matrix


def accuracy(matrix: Sequence[Sequence[int]]) -> float:
    total = sum(map(sum, matrix))
    return sum(matrix[place][place] for place in range(len(matrix))) / total if total else 0.0


class Edges(Protocol):
    """A rectangle."""

    @property
    def left(self) -> float: ...
    @property
    def top(self) -> float: ...
    @property
    def right(self) -> float: ...
    @property
    def bottom(self) -> float: ...


def overlap(one: Edges, other: Edges) -> float:
    """Intersection over union."""
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    common = max(0.0, width) * max(0.0, height)
    together = sum((box.right - box.left) * (box.bottom - box.top) for box in (one, other)) - common
    return common / together if together > 0 else 0.0


def average_precisions(
    right: Sequence[Sequence[Box]], found: Sequence[Sequence[tuple[float, Box]]], classes: int
) -> dict[int, float]:
    """The average precision of each class in the images: the area under precision over recall, at the
    overlap `ENOUGH`.
    """
    measured = {}
    for label in range(classes):
        truths = [[box for box in boxes if box.label == label] for boxes in right]
        count = sum(map(len, truths))
        if count:
            guesses = [
                (certainty, image, box)
                for image, boxes in enumerate(found)
                for certainty, box in boxes
                if box.label == label
            ]
            measured[label] = _average_precision(truths, guesses, count)
    return measured


def mean(values: Any) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _average_precision(truths: list[list[Box]], guesses: list[tuple[float, int, Box]], count: int) -> float:
    used: list[set[int]] = [set() for _ in truths]
    hits, curve = 0, []
    for number, (_, image, box) in enumerate(sorted(guesses, key=lambda guess: -guess[0]), start=1):
        shares = [(overlap(box, truth), place) for place, truth in enumerate(truths[image]) if place not in used[image]]
        best, place = max(shares, default=(0.0, -1))
        if best >= ENOUGH:
            used[image].add(place)
            hits += 1
        curve.append((hits / count, hits / number))
    # From the last guess to the first: the best precision at this recall or a higher one.
    area, best_precision = 0.0, 0.0
    recalls = [0.0, *(recall for recall, _ in curve)]
    for step in reversed(range(len(curve))):
        best_precision = max(best_precision, curve[step][1])
        area += (curve[step][0] - recalls[step]) * best_precision
    return area


def without_doubles(found: Sequence[tuple[float, Box]]) -> list[tuple[float, Box]]:
    """The most certain box of those that overlap and have the same class."""
    kept: list[tuple[float, Box]] = []
    for certainty, box in sorted(found, key=lambda each: -each[0]):
        if all(box.label != other.label or overlap(box, other) < ENOUGH for _, other in kept):
            kept.append((certainty, box))
    return kept
