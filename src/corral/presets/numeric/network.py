"""A small network of fully connected layers, and its training: forward, backward, and steps with momentum."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from corral.presets.numeric.arrays import Rows

MOMENTUM = 0.9


class Network:
    def __init__(self, arrays: Any, sizes: Sequence[int], seed: int) -> None:
        """`sizes` are the numbers of inputs, of the units of each hidden layer, and of outputs."""
        self._arrays = arrays
        self.sizes = list(sizes)
        chance = random.Random(seed)
        weights = []
        for fan_in, fan_out in zip(sizes, sizes[1:]):
            spread = math.sqrt(2.0 / fan_in)
            weights.append([[chance.gauss(0.0, spread) for _ in range(fan_in)] for _ in range(fan_out)])
            weights.append([[0.0] * fan_out])
        still = [[[0.0] * len(row) for row in matrix] for matrix in weights]
        self.load({"sizes": self.sizes, "weights": weights, "speed": still})

    def state(self) -> dict[str, Any]:
        """All parameters, as plain lists: one backend can save them and another one load them."""
        rows = self._arrays.rows
        return {
            "sizes": self.sizes,
            "weights": [rows(matrix) for matrix in self._weights],
            "speed": [rows(matrix) for matrix in self._speed],
        }

    def load(self, state: Any) -> None:
        """Raises ValueError for a network of another shape."""
        if state["sizes"] != self.sizes:
            raise ValueError(f"it has layers of {state['sizes']} units, and this training has {self.sizes}")
        self._weights = [self._arrays.matrix(matrix) for matrix in state["weights"]]
        self._speed = [self._arrays.matrix(matrix) for matrix in state["speed"]]

    def outputs(self, inputs: Rows) -> list[list[float]]:
        found: list[list[float]] = self._arrays.rows(self._forward(self._arrays.matrix(inputs))[-1])
        return found

    def learn(self, inputs: Rows, slope: Any, rate: float) -> None:
        """One step. `slope(outputs)` returns the gradient of the loss with respect to each output."""
        arrays = self._arrays
        seen = self._forward(arrays.matrix(inputs))
        back = arrays.matrix(slope(arrays.rows(seen[-1])))
        for place in range(len(self._weights) - 2, -1, -2):
            before = seen[place // 2]
            slopes = (arrays.times(arrays.transposed(back), before), arrays.total(back))
            if place:
                back = arrays.where_positive(arrays.times(back, self._weights[place]), before)
            for number, change in enumerate(slopes, start=place):
                self._speed[number] = arrays.mixed(self._speed[number], MOMENTUM, change, -rate)
                self._weights[number] = arrays.mixed(self._weights[number], 1.0, self._speed[number], 1.0)

    def _forward(self, inputs: Any) -> list[Any]:
        """The inputs of each layer, and the outputs at the end."""
        seen = [inputs]
        for place in range(0, len(self._weights), 2):
            found = self._arrays.affine(seen[-1], self._weights[place], self._weights[place + 1])
            is_last = place == len(self._weights) - 2
            seen.append(found if is_last else self._arrays.relu(found))
        return seen
