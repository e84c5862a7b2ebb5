"""What the targets that write loops share: what a fused kernel's text calls tensors, sizes and
numbers, and how many passes over a row it needs."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Dimension, Node
from ..ops import OPERATORS
from .domain import Domain
from .fusion import FusedGraph

__all__ = ["LoopWriter"]


class LoopWriter:
    """The names of one kernel's text, found as the text is written."""

    def __init__(
        self, fused: FusedGraph, nodes: Sequence[Node], outputs: Sequence[str], domain: Domain
    ) -> None:
        self.graph = fused.graph
        self.uniform = fused.uniform
        self.nodes = {node.output.name: node for node in nodes}
        self.order = nodes
        self.outputs = outputs
        self.domain = domain
        rank = len(domain.extents)
        self.inner = rank - 2 if domain.reduces == "rows" else rank - 1
        """The axis that reductions run along, else the last."""
        self.tensors: dict[str, str] = {}
        """The variable of each tensor in memory."""
        self.sizes: list[Dimension] = []
        """Sizes that come with each launch."""
        self.scalars: list[str] = []
        """Numbers that come with each launch."""

    # What each target calls things

    def stem_of(self, tensor: str) -> str:
        """Return the variable that a tensor would like."""
        raise NotImplementedError

    def axis(self, axis: int) -> str:
        """Return the variable of an index along an axis."""
        raise NotImplementedError

    def size_name(self, index: int) -> str:
        """Return the variable of a size that comes with each launch."""
        raise NotImplementedError

    # What follows from these

    def stem(self, name: str) -> str:
        """Return a tensor's variable."""
        if name not in self.tensors:
            stem = self.stem_of(name)
            while stem in self.tensors.values():
                stem += "Other"
            self.tensors[name] = stem
        return self.tensors[name]

    def size(self, value: Dimension) -> str:
        """Return the text of a size."""
        if isinstance(value, int):
            return str(value)
        if value not in self.sizes:
            self.sizes.append(value)
        return self.size_name(self.sizes.index(value))

    def index(self, name: str) -> str:
        """Return the text of a tensor's element at the indices under way."""
        terms = [
            f"{self.axis(axis)} * {self.size(stride)}" if stride != 1 else self.axis(axis)
            for axis, (stride, varies) in enumerate(
                zip(self.domain.strides(name), self.domain.varies[name], strict=True)
            )
            if varies
        ]
        return " + ".join(terms) or "0"

    def variable(self, prefix: str, name: str) -> str:
        """Return the variable of what is computed."""
        return f"{prefix}_{''.join(c if c.isalnum() else '_' for c in name)}"

    def is_inner(self, name: str) -> bool:
        """Return whether a tensor varies along the inner axis."""
        return self.domain.varies[name][self.inner]

    def passes_of_reductions(self) -> list[list[Node]]:
        """Return the reductions by the pass over the inner axis in which each can run."""
        passes: dict[str, int] = {}
        found: list[list[Node]] = []
        for node in self.order:
            own = max([0, *(passes.get(name, 0) for name in node.inputs)])
            if OPERATORS[node.operator].kind == "reduction":
                if own == len(found):
                    found.append([])
                found[own].append(node)
                own += 1
            passes[node.output.name] = own
        return found
