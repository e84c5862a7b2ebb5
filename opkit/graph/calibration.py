"""What calibration runs see of products' inputs, and the levels of int8 that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.errors import UsageError
from opkit.graph.channels_last import kernels_of, taps_of
from opkit.graph.export import Exported, run
from opkit.graph.trained import Levels, left_of

__all__ = ["LARGEST_LEVEL", "Quantisation", "Seen", "calibrated", "levels_for"]

METHODS = ("min-max", "percentile", "entropy")
_BINS = 2048
_LEVELS = 128
"""Sizes that a number of 8 bits and either sign has."""
LARGEST_LEVEL = _LEVELS - 1
"""The largest int8 of what has the same range on both sides of 0."""
_GAIN = 0.75
"""Levels around another number than 0 are worth their additions where they lie so much closer."""


@dataclass(frozen=True)
class Quantisation:
    """How a model becomes one of int8."""

    method: str = "min-max"
    """How the range of what a product reads is found: `min-max`, `percentile` or `entropy`."""
    percentile: float = 99.99
    """Share of the values, in percent, that the range holds, with that method."""
    per_channel: bool = True
    """A scale for each output column of the weights; otherwise one for all."""
    weight_only: bool = False
    """Weights are kept in int8 and multiplied as fractions; needs no calibration."""
    correct_bias: bool = True
    """Add what rounding the weights takes from a product's mean."""
    skip: tuple[str, ...] = ()
    """Names of products that stay as they are; `Model.notes` has the names."""

    def __post_init__(self) -> None:
        """Raise UsageError for what there is not."""
        if self.method not in METHODS:
            raise UsageError(
                f'there is no calibration "{self.method}"', help=f"there is {', '.join(METHODS)}"
            )
        if not 50 <= self.percentile <= 100:
            raise UsageError(f"percentile is {self.percentile}, expected 50 to 100")


@dataclass
class Seen:
    """What calibration saw of one product's left side."""

    smallest: float = 0.0
    largest: float = 0.0
    samples: list[Any] = field(default_factory=list)
    """Sizes of the elements."""
    total: Any = 0.0
    """Sums of the columns; of a convolution those of its patches."""
    rows: int = 0


def calibrated(
    model: Exported, products: Sequence[fx.Node], batches: Sequence[Sequence[Any]]
) -> Mapping[fx.Node, Seen]:
    """Return what runs of a model see of some products' left sides."""
    found = {node: Seen() for node in products}
    for batch in batches:
        values = run(model, batch, wide=True)
        for node, seen in found.items():
            given = values[left_of(node)]
            low, high = given.aminmax()
            seen.smallest = min(seen.smallest, float(low))
            seen.largest = max(seen.largest, float(high))
            seen.samples.append(given.abs().numpy().reshape(-1))
            total, rows = _sums(model, node, given.double())
            seen.total = seen.total + total
            seen.rows += rows
    return found


def _sums(model: Exported, node: fx.Node, given: torch.Tensor) -> tuple[Any, int]:
    """Return the sums of the columns of what a product reads, and its rows."""
    kernels = kernels_of(model, node)
    if kernels is None:
        return given.sum(dim=0).numpy(), given.shape[0]
    taps, counts = taps_of(model, node, given)
    sums = [tap.sum(dim=(0, 2, 3)) for tap in taps]
    return torch.cat(sums).numpy(), given.shape[0] * counts[0] * counts[1]


def levels_for(seen: Seen, how: Quantisation) -> Levels:
    """Return the levels that a product's left side becomes: around 0, or, where that brings them
    much closer, as behind an activation, between its own ends."""
    size = max(_range(seen, how), 1e-12)
    low, high = max(seen.smallest, -size), min(seen.largest, size)
    between, around = (high - low) / (2 * _LEVELS - 1), size / LARGEST_LEVEL
    if between < _GAIN * around and between > 0:
        return Levels(np.float64(between), round(-low / between), 0, 2 * _LEVELS - 1)
    return Levels(np.float64(around), 0, -LARGEST_LEVEL, LARGEST_LEVEL)


def _range(seen: Seen, how: Quantisation) -> float:
    """Return the largest size that is told from larger ones."""
    if how.method == "min-max":
        return max(-seen.smallest, seen.largest)
    sizes = np.concatenate(seen.samples)
    if how.method == "percentile":
        return float(np.percentile(sizes, how.percentile))
    return _least_divergence(sizes)


def _least_divergence(sizes: Any) -> float:
    """Return the range whose rounding loses the least information: the least Kullback-Leibler
    divergence between the values' histogram and the one that 128 levels can tell apart."""
    counts, edges = np.histogram(sizes, bins=_BINS, range=(0.0, float(sizes.max()) or 1.0))
    best, least = float(edges[-1]), np.inf
    for end in range(_LEVELS, _BINS + 1, 16):
        kept = counts[:end].astype(np.float64)
        kept[-1] += counts[end:].sum()
        present = counts[:end] > 0
        group = np.arange(end) * _LEVELS // end
        sums = np.bincount(group, counts[:end].astype(np.float64), _LEVELS)
        filled = np.bincount(group, present.astype(np.float64), _LEVELS)
        shared = np.where(present, (sums / np.maximum(filled, 1))[group], 0.0)
        if kept.sum() == 0 or shared.sum() == 0:
            continue
        p, q = kept / kept.sum(), shared / shared.sum()
        both = (p > 0) & (q > 0)
        lost = float(p[(p > 0) & (q == 0)].sum())
        divergence = float((p[both] * np.log(p[both] / q[both])).sum()) + 10.0 * lost
        if divergence < least:
            best, least = float(edges[end]), divergence
    return best
