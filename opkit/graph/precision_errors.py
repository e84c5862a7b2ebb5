"""How far a model's results are from float32's with some of its operators in fewer bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.graph.calibration import Quantisation, Seen, calibrated, levels_for
from opkit.graph.export import PRECISIONS, Exported, run, with_fractions
from opkit.graph.quantising import rounded_weights, weight_of
from opkit.graph.trained import Levels, left_of, weight_node_of
from opkit.graph.translation import does_nothing, is_view

__all__ = ["PrecisionErrors"]


class PrecisionErrors:
    """Runs of a model in float32, with some operators rounded as kernels round."""

    def __init__(
        self, whole: Exported, calibration: Sequence[Sequence[Any]], how: Quantisation
    ) -> None:
        self.whole = whole
        batches = [[with_fractions(each, torch.float32) for each in batch] for batch in calibration]
        self.runs = [run(whole, batch) for batch in batches]
        self.all = whole.work()
        self.nodes = [n for n in self.all if not is_view(n) and not does_nothing(n)]
        weights = {
            node: found for node in self.nodes if (found := weight_of(whole, node)) is not None
        }
        self.products = [node for node in weights if node.name not in how.skip]
        seen = calibrated(whole, self.products, batches)
        self._rounded: dict[fx.Node, tuple[torch.Tensor, torch.Tensor | float, Levels | None]] = {}
        for node in self.products:
            self._rounded[node] = self._as_rounded(node, weights[node], seen.get(node), how)
        self._known: dict[tuple[str, str], float] = {}

    def of(self, node: fx.Node, kind: str) -> float:
        """Return the model's error where one operator alone computes in a kind."""
        key = (node.name, kind)
        if key not in self._known:
            self._known[key] = 0.0 if kind == "float32" else self._run({node.name: kind}, "float32")
        return self._known[key]

    def of_all(self, chosen: Mapping[str, str], base: str) -> float:
        """Return the model's error with all decisions, and results in memory as `base`."""
        return self._run(chosen, base)

    def _run(self, chosen: Mapping[str, str], base: str) -> float:
        wrong = total = 0.0
        for exact in self.runs:
            values = dict(exact)
            if base != "float32":
                values |= {node: _rounded_to(exact[node], base) for node in self.whole.inputs}
            changed: set[fx.Node] = set()
            for node in self.all:
                kind = chosen.get(node.name, "float32")
                if kind == base == "float32" and not changed.intersection(node.all_input_nodes):
                    continue
                result = self._value(node, kind, values)
                values[node] = result if kind == "float32" else _rounded_to(result, base)
                changed.add(node)
            for node in self.whole.outputs:
                a, b = values[node].double(), exact[node].double()
                wrong += float((a - b).square().sum())
                total += float(b.square().sum())
        error = math.sqrt(wrong / total) if total else math.sqrt(wrong)
        return error if math.isfinite(error) else math.inf

    def _as_rounded(
        self, node: fx.Node, values: torch.Tensor, seen: Seen | None, how: Quantisation
    ) -> tuple[torch.Tensor, torch.Tensor | float, Levels | None]:
        """Return a product's weights as int8 has them, what corrects its results, and the levels of
        its left side."""
        matrix = values.double().numpy()
        levels, scales = rounded_weights(matrix, how)
        rounded = levels * scales
        seen = seen or Seen()
        added: torch.Tensor | float = 0.0
        if how.correct_bias and seen.rows:
            wide = seen.total / seen.rows @ (matrix - rounded)
            added = torch.from_numpy(wide.astype(np.float32))
        weight = torch.from_numpy(rounded.astype(np.float32))
        given = self.whole.constant(weight_node_of(node))
        assert given is not None
        if given.dim() == 4:  # rows of taps, and channels last
            outputs, channels, *taps = given.shape
            weight = weight.reshape(*taps, channels, outputs).permute(3, 2, 0, 1)
            added = added if isinstance(added, float) else added.reshape(-1, 1, 1)
        return weight, added, None if how.weight_only else levels_for(seen, how)

    def _value(self, node: fx.Node, kind: str, values: Mapping[fx.Node, Any]) -> Any:
        given = dict.fromkeys(node.all_input_nodes)
        inputs: dict[fx.Node, Any] = {source: values[source] for source in given}
        if kind == "int8":
            weight, added, levels = self._rounded[node]
            inputs[weight_node_of(node)] = weight
            if levels is not None:
                left = left_of(node)
                step, zero = float(levels.scale), levels.zero
                numbers = (inputs[left] / step + zero).round().clamp(levels.low, levels.high)
                inputs[left] = (numbers - zero) * step
        elif kind != "float32":
            inputs = {source: _rounded_to(value, kind) for source, value in inputs.items()}
        args = fx.map_arg(node.args, inputs.__getitem__)
        kwargs = fx.map_arg(node.kwargs, inputs.__getitem__)
        assert callable(node.target)
        with torch.no_grad():
            result = node.target(*args, **kwargs)
        if kind == "int8":
            result = result + added
        return result if kind in ("float32", "int8") else _rounded_to(result, kind)


def _rounded_to(value: Any, dtype: str) -> Any:
    """Return fractions as they are after lying in memory in a data type."""
    if isinstance(value, tuple | list):
        return tuple(_rounded_to(each, dtype) for each in value)
    if dtype == "float32" or not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.to(PRECISIONS[dtype]).to(value.dtype)
