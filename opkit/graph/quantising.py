"""int8 products: scales from calibration, and what stands for a product of floating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.compiler import Value
from opkit.errors import UsageError
from opkit.graph.aten import Call
from opkit.graph.channels_last import convolved, kernels_of
from opkit.graph.export import Exported, run
from opkit.graph.trained import Levels, levels_of, read_past
from opkit.graph.translation import Replacement, line_of, operator_name

__all__ = [
    "MOST",
    "Quantisation",
    "Seen",
    "calibrated",
    "quantised_products",
    "rounded_weights",
    "step_of",
    "weight_of",
]

PRODUCTS = ("aten.mm.default", "aten.addmm.default")
_DEPTH = 32
"""Numbers of int8 along K that lie together in L0."""
METHODS = ("min-max", "percentile", "entropy")
_BINS = 2048
_LEVELS = 128
"""Sizes that a number of 8 bits and either sign has."""
MOST = _LEVELS - 1
"""The largest int8 that values become: ranges are the same on both sides of 0."""


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

    largest: float = 0.0
    samples: list[Any] = field(default_factory=list)
    total: Any = 0.0
    rows: int = 0


def quantised_products(
    model: Exported,
    batches: Sequence[Sequence[Any]],
    how: Quantisation,
    *,
    convolutions: bool = False,
) -> tuple[dict[fx.Node, Replacement], list[dict[str, Any]]]:
    """Return what stands for each product with weights, and a note for each.

    Args:
        batches: inputs of calibration runs, in the model's data type.
        convolutions: those of constant kernels are products too.
    Raises:
        UsageError: there are none where there must be, or the model has no such product.
    """
    weights = [(node, _weight(model, node, convolutions)) for node in model.work()]
    products = [(node, weight) for node, weight in weights if weight is not None]
    unknown = [name for name in how.skip if name not in {node.name for node, _ in products}]
    if unknown:
        raise UsageError(
            f'there is no product "{unknown[0]}" to skip',
            help=f"there is {', '.join(node.name for node, _ in products) or 'none'}",
        )
    products = [(node, weight) for node, weight in products if node.name not in how.skip]
    if not products:
        raise UsageError(
            "the model has no product of an input and weights that int8 would serve",
            help='build it with precision="float16"',
        )
    trained = {} if how.weight_only else read_past(model, [node for node, _ in products])
    if not how.weight_only and not batches and len(trained) < len(products):
        raise UsageError(
            "int8 needs calibration: inputs from which the ranges are taken",
            help="build(..., calibration=[(x,), ...]), or Quantisation(weight_only=True)",
        )
    seen = calibrated(model, [node for node, _ in products], batches)
    replaced: dict[fx.Node, Replacement] = {}
    notes = []
    for node, values in products:
        matrix = values.double().numpy()
        levels, scales = _trained_weights(model, node, matrix) or rounded_weights(matrix, how)
        rounded = matrix - levels * scales
        found = seen.get(node, Seen())
        correction = None
        if how.correct_bias and found.rows:
            correction = found.total / found.rows @ rounded
        left = None if how.weight_only else trained.get(node) or _around_zero(found, how)
        step = 0.0 if left is None else float(left.scale)
        added = _added(model, node, correction, matrix.shape[1])
        if operator_name(node) in PRODUCTS:
            replaced[node] = _replacement(levels, scales, left, added)
        else:
            replaced[node] = _convolution(model, node, levels, scales, left, added)
        notes.append(
            {
                "node": node.name,
                "operator": operator_name(node),
                "location": str(line_of(node)),
                "computes": "int8 weights" if how.weight_only else "int8",
                "scale": step,
                "weight_error": float(np.abs(rounded).max()),
            }
        )
    return replaced, notes


def _weight(model: Exported, node: fx.Node, convolutions: bool) -> torch.Tensor | None:
    """Return the weights of a product or a convolution, down K; None for another node, and for a
    convolution whose K is no multiple of what one instruction reads, as of three channels."""
    found = weight_of(model, node)
    if found is not None or not convolutions:
        return found and found[0]
    kernels = kernels_of(model, node)
    return kernels.T if kernels is not None and kernels.shape[1] % _DEPTH == 0 else None


def rounded_weights(matrix: Any, how: Quantisation) -> tuple[Any, Any]:
    """Return weights as int8, and the scale of each column."""
    peaks = np.abs(matrix).max(axis=0 if how.per_channel else None, keepdims=True)
    scales = np.maximum(peaks, 1e-12).reshape(1, -1) / MOST
    levels = np.clip(np.rint(matrix / scales), -MOST, MOST).astype(np.int8)
    return levels, np.broadcast_to(scales, (1, matrix.shape[1])).reshape(-1)


def _around_zero(seen: Seen, how: Quantisation) -> Levels:
    return Levels(np.float64(step_of(seen, how)), 0, -MOST, MOST)


def _trained_weights(model: Exported, product: fx.Node, matrix: Any) -> tuple[Any, Any] | None:
    """Return weights as int8 and the scale of each column, as training has rounded them; None where
    it has not, or along other axes."""
    right = product.args[-1]
    found = levels_of(model, right) if isinstance(right, fx.Node) else None
    if found is None or found.zero or found.shift:
        return None
    if found.scale.ndim and found.scale.shape != matrix.shape[1:]:
        return None
    levels = np.clip(np.rint(matrix / found.scale), -_LEVELS, MOST)
    # The weights have the precision of the model: half a level would be another rounding.
    if np.abs(matrix / found.scale - levels).max() > 0.25:
        return None
    return levels.astype(np.int8), np.broadcast_to(found.scale, matrix.shape[1:]).copy()


def step_of(seen: Seen, how: Quantisation) -> float:
    """Return what one level of a product's left side stands for."""
    return max(_range(seen, how), 1e-12) / MOST


def weight_of(model: Exported, node: fx.Node) -> tuple[torch.Tensor, fx.Node] | None:
    """Return the matrix of weights that a product reads on its right side, and its left side."""
    if operator_name(node) not in PRODUCTS:
        return None
    left, right = node.args[-2:]
    if not isinstance(left, fx.Node) or not isinstance(right, fx.Node):
        return None
    if node.kwargs.get("alpha", 1) != 1 or node.kwargs.get("beta", 1) != 1:
        return None
    matrix = _constant(model, right)
    if matrix is None or _constant(model, left) is not None or not matrix.is_floating_point():
        return None
    return matrix, left


def _constant(model: Exported, node: fx.Node) -> torch.Tensor | None:
    """Return a weight, also one that is seen through a view."""
    if node in model.constants:
        return model.constants[node]
    sources = node.all_input_nodes
    if node.op != "call_function" or not sources:
        return None
    values = {source: _constant(model, source) for source in sources}
    if any(value is None for value in values.values()):
        return None
    assert callable(node.target)
    args = fx.map_arg(node.args, values.__getitem__)
    result = node.target(*args, **fx.map_arg(node.kwargs, values.__getitem__))
    return result if isinstance(result, torch.Tensor) else None


def calibrated(
    model: Exported, products: Sequence[fx.Node], batches: Sequence[Sequence[Any]]
) -> Mapping[fx.Node, Seen]:
    """Return what runs of a model see of some products' left sides."""
    found = {node: Seen() for node in products}
    for batch in batches:
        values = run(model, batch)
        for node, seen in found.items():
            is_product = operator_name(node) in PRODUCTS
            left = node.args[-2 if is_product else 0]
            assert isinstance(left, fx.Node)
            array = values[left].double().numpy()
            seen.largest = max(seen.largest, float(np.abs(array).max()))
            seen.samples.append(np.abs(array).astype(np.float32).reshape(-1))
            if is_product:
                seen.total = seen.total + array.sum(axis=0)
                seen.rows += array.shape[0]
    return found


def _range(seen: Seen, how: Quantisation) -> float:
    """Return the largest size that is told from larger ones."""
    if how.method == "min-max":
        return seen.largest
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


def _added(model: Exported, node: fx.Node, correction: Any, columns: int) -> Any:
    """Return what is added to each column: the bias and what corrects it, as one array, so that the
    product's kernel takes it along; None for nothing."""
    if len(node.args) == 2:
        return correction
    bias = node.args[0 if operator_name(node) in PRODUCTS else 2]
    if bias is None:
        return correction
    matrix = _constant(model, bias) if isinstance(bias, fx.Node) else None
    if matrix is None:
        raise UsageError(f"{line_of(node)}: {node.name} adds a bias that is computed in each run")
    wide = np.broadcast_to(matrix.double().numpy(), (columns,))
    return wide if correction is None else wide + correction


def _replacement(levels: Any, scales: Any, left: Levels | None, added: Any) -> Replacement:
    """Return the row of one product: int8 by int8 to int32, then scaled as it leaves the cube.

    Args:
        left: of what the product's left side becomes; None: fractions.
    """
    if left is not None and (offset := left.zero + left.shift):
        # What the numbers are beside 0 adds the same to every row.
        beside = -offset * float(left.scale) * scales * levels.sum(axis=0, dtype=np.float64)
        added = beside if added is None else added + beside

    def row(c: Call, *arguments: Any, **_: Any) -> Value:
        x = arguments[-2]
        return _multiplied(c, x if left is None else _levels(x, left), levels, scales, left, added)

    return row


def _convolution(
    model: Exported, node: fx.Node, levels: Any, scales: Any, left: Levels | None, added: Any
) -> Replacement:
    """Return the row of one convolution: its images become int8 before patches are made of them."""

    def prepared(x: Value) -> Value:
        return x if left is None else _levels(x, left)

    def product(c: Call, cells: Value) -> Value:
        return _multiplied(c, cells, levels, scales, left, added)

    return convolved(model, node, product, prepared, has_bias=True)


def _levels(x: Value, left: Levels) -> Value:
    """Return fractions as int8."""
    wide = x.astype("float32") * (1.0 / float(left.scale))
    # As training rounds: with the zero point added, so that ties go the same way.
    wide = (wide + float(left.zero) if left.zero else wide).apply("round")
    wide = wide.apply("clamp", low=float(left.low), high=float(left.high))
    return (wide + float(left.shift) if left.shift else wide).astype("int8")


def _multiplied(
    c: Call, x: Value, levels: Any, scales: Any, left: Levels | None, added: Any
) -> Value:
    weight = c.constant(levels.T.copy())
    if left is None:
        scale = c.constant(scales.astype(np.float32).reshape(-1, 1))
        wide = (weight.astype("float32") * scale).astype(x.dtype)
        found: Value = x.apply("matmul", wide, transpose_b=True).astype("float32")
    else:
        scale = c.constant((scales * float(left.scale)).astype(np.float32))
        found = x.apply("matmul", weight, transpose_b=True).astype("float32") * scale
    return found if added is None else found + c.constant(added.astype(np.float32))
