"""Fused element-wise and reducing nodes as a Triton kernel.

A program of the grid has a block of the outer axes, laid out as rows, and of the inner axis, as
columns. A row that fits is read once; a longer one is read again for each pass of reductions.
"""

from __future__ import annotations

import numpy as np

from ...ir import Dimension, Node, product
from ...passes import FusedGraph, Group, domain_of
from .expressions import TritonWriter, is_fraction, literal, python_number
from .functions import Schedule, TritonFunction, indented, launcher

__all__ = ["write_loops"]

_LONGEST = 8192
"""Elements of a row that a program holds at once."""
_BLOCK = 1024
"""Elements of a block of shorter rows, or of a part of a longer one."""


def write_loops(fused: FusedGraph, group: Group) -> TritonFunction:
    """Return the function that computes a group's outputs.

    Raises:
        GraphError: an operator has no Triton; at the user's line.
    """
    writer = _Loops(
        fused, group.nodes, fused.outputs_of(group), domain_of(fused.graph, group.nodes)
    )
    kernel = writer.kernel()
    return launcher(
        group.name,
        fused,
        writer,
        kernel=kernel,
        inputs=fused.inputs_of(group),
        blocks=writer.blocks(),
        schedules=[Schedule({"ROWS": writer.row_block, "COLUMNS": writer.column_block})],
    )


class _Loops(TritonWriter):
    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        extent = self.domain.extents[self.inner]
        self.reduces = bool(self.domain.reduces)
        self.is_whole = self.reduces and isinstance(extent, int) and extent <= _LONGEST
        self.column_block, self.row_block = self._block(extent)

    def _block(self, extent: Dimension) -> tuple[int, int]:
        """Return the columns and rows of a block: powers of two, as Triton's are."""
        columns = _BLOCK
        if isinstance(extent, int):
            columns = 1 << max(0, extent - 1).bit_length()
            columns = columns if self.is_whole else min(columns, _BLOCK)
        if self.domain.reduces == "rows":
            # What lies beside each other in memory are the rows here.
            columns = columns if self.is_whole else 32
            return columns, max(1, min(64, 4 * _BLOCK // columns))
        return columns, max(1, _BLOCK // columns)

    @property
    def outer(self) -> list[int]:
        """The axes that rows run along."""
        return [axis for axis in range(len(self.domain.extents)) if axis != self.inner]

    def blocks(self) -> list[str]:
        """Return the factors of the number of programs."""
        rows = self.size(product(self.domain.extents[axis] for axis in self.outer))
        found = [f"triton.cdiv({rows}, ROWS)"]
        if not self.reduces:
            columns = self.size(self.domain.extents[self.inner])
            found.append(f"triton.cdiv({columns}, COLUMNS)")
        return found

    def mask(self, name: str) -> str:
        varies = self.domain.varies[name]
        by_row = any(varies[axis] for axis in self.outer)
        if varies[self.inner]:
            return "within" if by_row else "in_columns"
        return "in_rows" if by_row else ""

    def kernel(self) -> list[str]:
        """Return the lines of the kernel's body."""
        rows = self.size(product(self.domain.extents[axis] for axis in self.outer))
        lines = ["at = tl.program_id(0).to(tl.int64)"]
        begin = ""
        if not self.reduces:
            columns = self.size(self.domain.extents[self.inner])
            lines += [
                f"across = tl.cdiv({columns}, COLUMNS)",
                "begin = at % across * COLUMNS",
                "at = at // across",
            ]
            begin = "begin + "
        lines += ["rows = at * ROWS + tl.arange(0, ROWS)[:, None]", f"in_rows = rows < {rows}"]
        lines += self.indices("rows", self.outer)
        if self.is_whole or not self.reduces:
            return [*lines, *self.columns(begin), *self.straight()]
        return [*lines, *self.in_passes()]

    def columns(self, begin: str) -> list[str]:
        """Return the lines that say which elements of the inner axis a block has."""
        axis, extent = self.axis(self.inner), self.size(self.domain.extents[self.inner])
        return [
            f"{axis} = {begin}tl.arange(0, COLUMNS)[None, :]",
            f"in_columns = {axis} < {extent}",
            "within = in_rows & in_columns",
        ]

    def straight(self) -> list[str]:
        """Return the lines for rows that a program holds at once."""
        for folds in self.passes_of_reductions():
            for node in folds:
                self.keep(node, self.folded(node, self.filled(node)))
        for name in self.outputs:
            self.store(name)
        return self.lines

    def in_passes(self) -> list[str]:
        """Return the lines for rows in parts: a loop for each pass of reductions, one for the
        results."""
        found: list[str] = []
        lasting: dict[str, str] = {}
        for folds in [*self.passes_of_reductions(), []]:
            self.known, self.lines = dict(lasting), []
            sums = []
            for node in folds:
                name = self.variable("sum", node.output.name)
                kind = self.sum_kind(node)
                start = python_number(self.neutral(node))
                found.append(f"{name} = tl.full([ROWS, COLUMNS], {start}, tl.{kind})")
                self.lines.append(f"{name} = {self.joined(node, name, self.filled(node))}")
                sums.append((node, name))
            after: list[str] = []
            if not folds:
                inner = [name for name in self.outputs if self.is_inner(name)]
                for name in inner:
                    self.store(name)
                body, self.lines = self.lines, after
                for name in self.outputs:
                    if name not in inner:
                        # What does not vary along the row is not computed in the loop over it.
                        self.known = dict(lasting)
                        self.store(name)
                self.lines = body
            if self.lines:
                extent = self.size(self.domain.extents[self.inner])
                found.append(f"for begin in range(0, {extent}, COLUMNS):")
                found += indented([*self.columns("begin + "), *self.lines])
            found += after
            self.lines = found
            for node, name in sums:
                self.keep(node, self.folded(node, name))
                lasting[node.output.name] = self.known[node.output.name]
        return found

    # Reductions

    def keep(self, node: Node, text: str) -> None:
        """Add the line that holds a reduction's result."""
        name, kind = self.variable("r", node.output.name), self.kind(node.output.name)
        place = f"  # {node.location}" if node.location else ""
        if kind == "int1":
            text = f"{text} != 0"
        elif self.sum_kind(node) != kind:
            text = f"{text}.to(tl.{kind})"
        self.lines.append(f"{name} = {text}{place}")
        self.known[node.output.name] = name

    def sum_kind(self, node: Node) -> str:
        """Return the type that a reduction is held in: whole sums may leave their elements'."""
        kind = self.kind(node.inputs[0])
        if is_fraction(kind):
            return kind
        return "int64" if node.operator == "sum" else "int32" if kind == "int1" else kind

    def neutral(self, node: Node) -> float | int:
        """Return what changes no result of a reduction."""
        kind = self.sum_kind(node)
        if node.operator == "sum":
            return 0.0 if is_fraction(kind) else 0
        if is_fraction(kind):
            return float("-inf" if node.operator == "max" else "inf")
        limits = np.iinfo(kind)
        return int(limits.min if node.operator == "max" else limits.max)

    def filled(self, node: Node) -> str:
        """Return a reduction's operand, with what changes nothing outside of the row."""
        kind = self.sum_kind(node)
        value = self.value(node.inputs[0])
        value = value if self.kind(node.inputs[0]) == kind else f"{value}.to(tl.{kind})"
        return f"tl.where(within, {value}, {literal(self.neutral(node), kind)})"

    def joined(self, node: Node, total: str, value: str) -> str:
        """Return the text that takes a part of a row in."""
        if node.operator == "sum":
            return f"{total} + {value}"
        function = "tl.maximum" if node.operator == "max" else "tl.minimum"
        wins = ", propagate_nan=tl.PropagateNan.ALL" if is_fraction(self.sum_kind(node)) else ""
        return f"{function}({total}, {value}{wins})"

    def folded(self, node: Node, value: str) -> str:
        """Return the text of one number a row."""
        if node.operator == "sum":
            return f"tl.sum({value}, axis=1)[:, None]"
        if is_fraction(self.sum_kind(node)):
            helper = "largest" if node.operator == "max" else "smallest"
            self.helpers.add(helper)
            return f"{helper}({value})"
        return f"tl.{node.operator}({value}, axis=1)[:, None]"
