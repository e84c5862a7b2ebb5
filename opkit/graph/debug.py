"""`OPKIT_GRAPH_DEBUG=1`: compiled sub-graphs beside the same operators one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from opkit import log
from opkit.chips import Chip
from opkit.errors import OperatorError, OpkitError
from opkit.graph.plan import Place, Plan
from opkit.graph.program import CompiledSegment, run_nodes
from opkit.graph.translation import DTYPES, line_of, operator_name, translate

__all__ = ["GraphDifference", "watch"]

_LIMITS: Mapping[torch.dtype, float] = {
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
    torch.float32: 1e-4,
}
"""Share of the tensor's largest value by which results may differ after several operators; whole
numbers and truths not at all."""


class GraphDifference(OperatorError):
    """A compiled sub-graph gives another value than its operators one by one."""

    def __init__(self, node: str, message: str) -> None:
        super().__init__(message, help="the kernels' text: opkit.graph.explain(...).sources")
        self.node = node
        """The first that differs."""


def watch(
    module: torch.nn.Module,
    segments: Sequence[CompiledSegment],
    sources: Sequence[Sequence[fx.Node]],
    chip: Chip,
) -> None:
    """Have every sub-graph of a compiled graph checked in each call."""
    for index, (segment, nodes) in enumerate(zip(segments, sources, strict=True)):
        setattr(module, f"segment_{index}", _Watched(segment, nodes, chip))


class _Watched(torch.nn.Module):
    """Runs a sub-graph and compares it.

    Raises:
        GraphDifference: it differs by more than its data type explains.
    """

    def __init__(self, segment: CompiledSegment, nodes: Sequence[fx.Node], chip: Chip) -> None:
        super().__init__()
        self.segment, self.nodes, self.chip = segment, nodes, chip

    def forward(self, *tensors: torch.Tensor) -> Any:
        results = self.segment(*tensors)
        if self.segment.plan.draws:
            # torch would draw other numbers.
            log.warning("GRAPH", "a sub-graph with random numbers is not compared")
            return results
        outputs = self.segment.translation.outputs
        given = dict(zip(self.segment.translation.inputs, tensors, strict=True))
        expected: dict[fx.Node, Any] = dict(given)
        for node, number in self.segment.translation.numbers.items():
            like = node.meta["val"]
            expected[node] = torch.full(like.shape, number, dtype=like.dtype, device=like.device)
        with torch.no_grad():
            run_nodes(self.nodes, expected)
        actual = dict(zip(outputs, [results] if len(outputs) == 1 else results, strict=True))
        for node in outputs:
            if _difference(actual[node], expected[node]) is not None:
                self._blame(tensors, node, actual, expected)
        return results

    def _blame(
        self,
        tensors: Sequence[torch.Tensor],
        output: fx.Node,
        actual: Mapping[fx.Node, torch.Tensor],
        expected: Mapping[fx.Node, Any],
    ) -> None:
        """Raise for the first node that differs: all are computed again, each as an output."""
        shown = [node for node in self.nodes if _is_plain(node)]
        first, values, plan, index = output, actual[output], self.segment.plan, None
        try:
            translation = translate(self.nodes, shown, "segment")
            whole = CompiledSegment("debug", translation, self.chip)
            inner = whole(*tensors)
            inner = [inner] if len(shown) == 1 else inner
            for at, node in enumerate(shown):
                if _difference(inner[at], expected[node]) is not None:
                    first, values, plan, index = node, inner[at], whole.plan, at
                    break
        except OpkitError:
            # With every value kept it is another program, which need not compile.
            pass
        if index is None:
            index = self.segment.translation.outputs.index(output)
        place = line_of(first)
        at_index, left, right = _difference(values, expected[first]) or ((), "?", "?")
        raise GraphDifference(
            first.name,
            f"{place}: {first.name} ({operator_name(first)}) differs at {list(at_index)}:"
            f" {left} from kernel {_writer(plan, index)}, {right} from torch",
        )


def _is_plain(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype in DTYPES and value.numel() > 0


def _writer(plan: Plan, output: int) -> str:
    for launch in plan.launches:
        places = [each for each in launch.arguments if isinstance(each, Place)]
        if any(place.space == "output" and place.index == output for place in places):
            return plan.kernels[launch.kernel].name
    return "(none, a copy)"


def _difference(
    actual: torch.Tensor, expected: torch.Tensor
) -> tuple[tuple[int, ...], str, str] | None:
    """Return where two tensors differ most, and both values; None where they agree."""
    limit = _LIMITS.get(expected.dtype, 0.0)
    left, right = actual.detach().cpu().double(), expected.detach().cpu().double()
    finite = right[right.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    same = (left == right) | (left.isnan() & right.isnan())
    error = torch.where(same, 0.0, (left - right).abs()).nan_to_num(nan=float("inf"))
    if error.numel() == 0 or float(error.max()) <= limit * scale:
        return None
    flat = int(error.argmax())
    where = tuple(int(each) for each in torch.unravel_index(torch.tensor(flat), error.shape))
    return where, f"{float(left[where]):.6g}", f"{float(right[where]):.6g}"
