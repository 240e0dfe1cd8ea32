"""The few operations on matrices that the trainings need: by PyTorch, by NumPy, or by Python alone.

A matrix has one row for each sample. The outside sees lists of rows only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from operator import mul
from typing import Any

#: Precisions to the number formats of products; everything else has full precision.
PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
BACKENDS = ("auto", "torch", "numpy", "plain")

Rows = Sequence[Sequence[float]]


class PlainArrays:
    """Lists of lists: slow, but available everywhere."""

    name = "plain Python"

    def matrix(self, rows: Rows) -> Any:
        return [list(row) for row in rows]

    def rows(self, matrix: Any) -> list[list[float]]:
        return [list(row) for row in matrix]

    def affine(self, inputs: Any, weights: Any, bias: Any) -> Any:
        """Each row of `inputs` times each row of `weights`, plus the bias."""
        pairs = list(zip(weights, bias[0]))
        return [[sum(map(mul, row, weight)) + shift for weight, shift in pairs] for row in inputs]

    def relu(self, matrix: Any) -> Any:
        return [[value if value > 0 else 0.0 for value in row] for row in matrix]

    def where_positive(self, matrix: Any, sign: Any) -> Any:
        return [[value if mark > 0 else 0.0 for value, mark in zip(row, marks)] for row, marks in zip(matrix, sign)]

    def times(self, left: Any, right: Any) -> Any:
        columns = list(zip(*right))
        return [[sum(map(mul, row, column)) for column in columns] for row in left]

    def transposed(self, matrix: Any) -> Any:
        return [list(column) for column in zip(*matrix)]

    def total(self, matrix: Any) -> Any:
        """One row with the sums of the columns."""
        return [[sum(column) for column in zip(*matrix)]]

    def mixed(self, left: Any, by: float, right: Any, factor: float) -> Any:
        """left * by + right * factor"""
        return [[a * by + b * factor for a, b in zip(row, other)] for row, other in zip(left, right)]


class TensorArrays:
    """The same by NumPy or PyTorch, whose matrices have the same operators."""

    def __init__(self, module: Any, name: str, number: Any, place: Any = None) -> None:
        self.name = name
        self._module = module
        self._number = number
        #: None for NumPy, which has no devices
        self._place = place

    def matrix(self, rows: Rows) -> Any:
        if self._place is None:
            return self._module.asarray(rows, dtype=self._module.float32)
        return self._module.tensor(rows, dtype=self._module.float32, device=self._place)

    def rows(self, matrix: Any) -> list[list[float]]:
        found: list[list[float]] = matrix.tolist()
        return found

    def affine(self, inputs: Any, weights: Any, bias: Any) -> Any:
        return self.times(inputs, weights.T) + bias

    def relu(self, matrix: Any) -> Any:
        return matrix * (matrix > 0)

    def where_positive(self, matrix: Any, sign: Any) -> Any:
        return matrix * (sign > 0)

    def times(self, left: Any, right: Any) -> Any:
        if self._number is None:
            return left @ right
        return self._in(self._in(left, self._number) @ self._in(right, self._number), self._module.float32)

    def transposed(self, matrix: Any) -> Any:
        return matrix.T

    def total(self, matrix: Any) -> Any:
        return matrix.sum(0).reshape(1, -1)

    def mixed(self, left: Any, by: float, right: Any, factor: float) -> Any:
        return left * by + right * factor

    def _in(self, matrix: Any, number: Any) -> Any:
        return matrix.astype(number) if self._place is None else matrix.to(number)


def best_arrays(backend: str, precision: str) -> Any:
    """The requested backend, or the fastest one that is installed. Raises ImportError if it is missing."""
    if backend in ("auto", "torch"):
        torch = _module("torch", needed=backend == "torch")
        if torch is not None:
            place = "cuda" if torch.cuda.is_available() else "cpu"
            return TensorArrays(torch, f"PyTorch on {place}", _number(torch, precision), torch.device(place))
    if backend in ("auto", "numpy"):
        numpy = _module("numpy", needed=backend == "numpy")
        if numpy is not None:
            return TensorArrays(numpy, "NumPy", _number(numpy, precision))
    _number(None, precision)
    return PlainArrays()


def _module(name: str, *, needed: bool) -> Any:
    try:
        return import_module(name)
    except ImportError:
        if needed:
            raise
        return None


def _number(module: Any, precision: str) -> Any:
    """The number type of a precision; None for full precision."""
    if precision == "fp32":
        return None
    number = getattr(module, PRECISIONS[precision], None)
    if number is None:
        sys.stderr.write(f"{precision} is not possible here: the training goes on in full precision\n")
    return number
