"""Where in an array the errors are and how large: what the HTML report draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opkit.testing.numbers.measures import Values

__all__ = ["ErrorPicture", "Painter"]

# Powers of ten of the relative error that the histogram tells apart.
_LOWEST, _HIGHEST = -17, 3
# Cells of the map at the most, down and across.
_ROWS, _COLUMNS = 48, 96


@dataclass(frozen=True)
class ErrorPicture:
    """The errors of one output, by size and by place."""

    lowest_power: int
    """The histogram's first bucket holds relative errors below ten to this power, zero too."""
    histogram: tuple[int, ...]
    """Elements by the power of ten of their relative error; the last bucket has all above, NaN."""
    rows: int
    columns: int
    cell_shape: tuple[int, int]
    """Elements down and across that a cell of the map stands for."""
    cells: tuple[float, ...]
    """The largest relative error of each cell, row by row; infinite for NaN on one side."""


class Painter:
    """Gathers an `ErrorPicture` of an array, seen as rows of its last axis."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        columns = shape[-1] if shape else 1
        rows = math.prod(shape[:-1])
        if rows <= 1:
            # One long row: wrapped, so that a map has an area.
            total = rows * columns
            columns = max(1, math.ceil(math.sqrt(total * 2)))
            rows = math.ceil(total / columns)
        self._width = max(columns, 1)
        self._down = max(1, math.ceil(rows / _ROWS))
        self._across = max(1, math.ceil(columns / _COLUMNS))
        self._rows = math.ceil(rows / self._down)
        self._columns = math.ceil(columns / self._across)
        self._cells = np.zeros(self._rows * self._columns)
        self._histogram = np.zeros(_HIGHEST - _LOWEST + 1, dtype=np.int64)

    def add(self, start: int, actual: Values, golden: Values) -> None:
        """Take the next elements, the first of which has the flat index `start`."""
        with np.errstate(all="ignore"):
            errors = np.abs(actual - golden) / (np.abs(golden) + 1e-7)
            same = (actual == golden) | (np.isnan(actual) & np.isnan(golden))
            errors = np.where(same, 0.0, np.where(np.isfinite(errors), errors, np.inf))
            powers = np.clip(np.ceil(np.log10(errors)), _LOWEST, _HIGHEST) - _LOWEST
        self._histogram += np.bincount(powers.astype(np.int64), minlength=self._histogram.size)
        positions = np.arange(start, start + errors.size)
        row, column = np.divmod(positions, self._width)
        cell = (row // self._down) * self._columns + column // self._across
        np.maximum.at(self._cells, cell, errors)

    def picture(self) -> ErrorPicture:
        """Return what was gathered."""
        return ErrorPicture(
            lowest_power=_LOWEST,
            histogram=tuple(self._histogram.tolist()),
            rows=self._rows,
            columns=self._columns,
            cell_shape=(self._down, self._across),
            cells=tuple(self._cells.tolist()),
        )
