"""int8 products: scales from calibration, and what stands for a product of floating point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.compiler import Value
from opkit.errors import UsageError
from opkit.graph.aten import Call
from opkit.graph.calibration import (
    LARGEST_LEVEL,
    Quantisation,
    Seen,
    calibrated,
    levels_for,
)
from opkit.graph.channels_last import convolved, kernels_of
from opkit.graph.export import Exported
from opkit.graph.trained import Levels, levels_of, read_past, weight_node_of
from opkit.graph.translation import Replacement, line_of, operator_name

__all__ = ["quantised_products", "rounded_weights", "weight_of"]

PRODUCTS = ("aten.mm.default", "aten.addmm.default")
_DEPTH = 32
"""Numbers of int8 along K that lie together in L0."""


def quantised_products(
    model: Exported,
    batches: Sequence[Sequence[Any]],
    how: Quantisation,
) -> tuple[dict[fx.Node, Replacement], list[dict[str, Any]]]:
    """Return what stands for each product and convolution with weights, and a note for each.

    Args:
        batches: inputs of calibration runs, in the model's data type.
    Raises:
        UsageError: there are none where there must be, or the model has no such product.
    """
    weights = [(node, weight_of(model, node)) for node in model.work()]
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
        left = None if how.weight_only else trained.get(node) or levels_for(found, how)
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


def rounded_weights(matrix: Any, how: Quantisation) -> tuple[Any, Any]:
    """Return weights as int8, and the scale of each column."""
    peaks = np.abs(matrix).max(axis=0 if how.per_channel else None, keepdims=True)
    scales = np.maximum(peaks, 1e-12).reshape(1, -1) / LARGEST_LEVEL
    levels = np.clip(np.rint(matrix / scales), -LARGEST_LEVEL, LARGEST_LEVEL).astype(np.int8)
    return levels, np.broadcast_to(scales, (1, matrix.shape[1])).reshape(-1)


def _trained_weights(model: Exported, product: fx.Node, matrix: Any) -> tuple[Any, Any] | None:
    """Return weights as int8 and the scale of each column, as training has rounded them; None where
    it has not, or along other axes."""
    found = levels_of(model, weight_node_of(product))
    if found is None or found.zero or found.shift:
        return None
    if found.scale.ndim and found.scale.shape != matrix.shape[1:]:
        return None
    levels = np.clip(np.rint(matrix / found.scale), -LARGEST_LEVEL - 1, LARGEST_LEVEL)
    # The weights have the precision of the model: half a level would be another rounding.
    if np.abs(matrix / found.scale - levels).max() > 0.25:
        return None
    return levels.astype(np.int8), np.broadcast_to(found.scale, matrix.shape[1:]).copy()


def weight_of(model: Exported, node: fx.Node) -> torch.Tensor | None:
    """Return the weights of a product or a convolution, down K; None for another node, and for a
    convolution whose K is no multiple of what one instruction reads, as of three channels."""
    kernels = kernels_of(model, node)
    if kernels is not None:
        return kernels.T if kernels.shape[1] % _DEPTH == 0 else None
    if operator_name(node) not in PRODUCTS:
        return None
    left, right = node.args[-2:]
    if not isinstance(left, fx.Node) or not isinstance(right, fx.Node):
        return None
    if node.kwargs.get("alpha", 1) != 1 or node.kwargs.get("beta", 1) != 1:
        return None
    matrix = model.constant(right)
    if matrix is None or model.constant(left) is not None or not matrix.is_floating_point():
        return None
    return matrix


def _added(model: Exported, node: fx.Node, correction: Any, columns: int) -> Any:
    """Return what is added to each column: the bias and what corrects it, as one array, so that the
    product's kernel takes it along; None for nothing."""
    if len(node.args) == 2:
        return correction
    bias = node.args[0 if operator_name(node) in PRODUCTS else 2]
    if bias is None:
        return correction
    matrix = model.constant(bias) if isinstance(bias, fx.Node) else None
    if matrix is None:
        raise UsageError(f"{line_of(node)}: {node.name} adds a bias that is computed in each run")
    wide = np.broadcast_to(matrix.double().numpy(), (columns,))
    return wide if correction is None else wide + correction


def _replacement(levels: Any, scales: Any, left: Levels | None, added: Any) -> Replacement:
    """Return the row of one product: int8 by int8 to int32, then scaled as it leaves the cube.

    Args:
        left: of what the product's left side becomes; None: fractions.
    """
    added = _with_zero(levels, scales, left, added)

    def row(c: Call, *arguments: Any, **_: Any) -> Value:
        x = arguments[-2]
        return _multiplied(c, x if left is None else _levels(x, left), levels, scales, left, added)

    return row


def _with_zero(levels: Any, scales: Any, left: Levels | None, added: Any) -> Any:
    """Return what is added to each column, with what the whole number that stands for 0 takes from
    it: the same in every row."""
    if left is None or not (offset := left.zero + left.shift):
        return added
    beside = -offset * float(left.scale) * scales * levels.sum(axis=0, dtype=np.float64)
    return beside if added is None else added + beside


def _convolution(
    model: Exported, node: fx.Node, levels: Any, scales: Any, left: Levels | None, added: Any
) -> Replacement:
    """Return the row of one convolution: its images become int8 before patches are made of them."""
    added = _with_zero(levels, scales, left, added)

    def prepared(x: Value) -> Value:
        return x if left is None else _levels(x, left)

    def product(c: Call, cells: Value) -> Value:
        return _multiplied(c, cells, levels, scales, left, added)

    frame = 0 if left is None else left.zero + left.shift
    return convolved(model, node, product, prepared, has_bias=True, frame=frame)


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
