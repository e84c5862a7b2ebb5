"""The loops of a fused kernel: the axes that its tensors share, as few as describe them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from opkit.errors import UsageError

from ..ir import (
    Dimension,
    Graph,
    Node,
    Shape,
    Tensor,
    broadcast_shapes,
    fixed_size,
    is_one,
    product,
    same,
)
from ..ops import OPERATORS

__all__ = ["Domain", "Space", "UnfusableError", "Window", "domain_of", "with_long_batches"]

Space = Literal["tile", "row", "column", "one"]
"""How a tensor varies over (rows, columns): with both, with the row, with the column, with
neither."""


class UnfusableError(UsageError):
    """Operators that cannot share a kernel; says why."""


@dataclass(frozen=True)
class Window:
    """A tensor as a part of another: a slice that is read, or a part of what is put together."""

    base: str
    """The tensor in memory."""
    begin: int
    """Elements before the part's first one."""
    strides: tuple[int, ...]
    """Elements from one index to the next, by axis: of the part, or of a kernel's loops."""
    size: int
    """Elements of the base."""


@dataclass(frozen=True)
class Domain:
    """Batch axes, then rows, then columns; what broadcasts along one does not vary there."""

    extents: tuple[Dimension, ...]
    """Extent of every axis, outermost first; two at least."""
    varies: Mapping[str, tuple[bool, ...]]
    """For each tensor, along which axes it varies."""
    reduces: Literal["", "columns", "rows"]
    """What the kernel's reductions run along."""
    windows: Mapping[str, Window] = field(default_factory=dict)
    """Tensors that are parts of others, with strides by axis of the loops."""

    @property
    def columns(self) -> Dimension:
        """The elements of a row."""
        return self.extents[-1]

    @property
    def rows(self) -> Dimension:
        """The rows of one batch."""
        return self.extents[-2]

    @property
    def batches(self) -> tuple[Dimension, ...]:
        """The axes outside of rows."""
        return self.extents[:-2]

    def space(self, tensor: str) -> Space:
        """Return how a tensor varies over rows and columns."""
        by_row, by_column = self.varies[tensor][-2:]
        if by_row:
            return "tile" if by_column else "row"
        return "column" if by_column else "one"

    def is_written_once(self, tensor: str) -> bool:
        """Return whether no two points of the loops compute the same element of a tensor, but for
        those that a reduction joins."""
        reduced = {"columns": len(self.extents) - 1, "rows": len(self.extents) - 2}.get(
            self.reduces, -1
        )
        return all(
            varies or is_one(extent) or axis == reduced
            for axis, (varies, extent) in enumerate(
                zip(self.varies[tensor], self.extents, strict=True)
            )
        )

    def strides(self, tensor: str) -> tuple[Dimension, ...]:
        """Return the elements from one index to the next by axis; 0 where it does not vary."""
        if tensor in self.windows:
            return self.windows[tensor].strides
        stride: Dimension = 1
        found: list[Dimension] = []
        for extent, varies in zip(
            reversed(self.extents), reversed(self.varies[tensor]), strict=True
        ):
            found.append(stride if varies else 0)
            if varies:
                stride = stride * extent
        return tuple(reversed(found))


def domain_of(
    graph: Graph,
    nodes: Sequence[Node],
    *,
    keeps_matrices: bool = False,
    windows: Mapping[str, Window] | None = None,
) -> Domain:
    """Return the loops of a kernel that computes these nodes.

    Args:
        graph: the program.
        nodes: those of one kernel.
        keeps_matrices: the last two axes stay apart, whatever their extents: blocks of both are
            handed over.
        windows: the tensors that lie in memory as parts of others: axes along which they do not run
            on stay apart.

    Raises:
        UnfusableError: they do not run in one nest of loops.
    """
    tensors = _tensors(graph, nodes)
    try:
        full = broadcast_shapes(*(tensor.shape for tensor in tensors.values()))
    except UsageError as err:
        raise UnfusableError(err.message) from err
    rank = len(full)
    masks = {name: _varies(tensor.shape, full) for name, tensor in tensors.items()}
    reduced = _reduced_axes(graph, nodes, rank)
    names = list(tensors)
    merged: list[tuple[Dimension, tuple[bool, ...], bool]] = []
    parts = {name: window for name, window in (windows or {}).items() if name in tensors}
    steps: list[dict[str, int]] = []
    """The parts' strides along each merged axis."""
    for axis in range(rank):
        is_kept = keeps_matrices and axis >= rank - 2
        if is_one(full[axis]) and not is_kept:
            continue
        signature = tuple(masks[name][axis] for name in names)
        if is_kept and is_one(full[axis]):
            signature = tuple(len(tensor.shape) >= rank - axis for tensor in tensors.values())
        is_reduced = axis in reduced
        step = {
            name: window.strides[axis - rank] if masks[name][axis] else 0
            for name, window in parts.items()
        }
        runs_on = bool(steps) and all(
            steps[-1][name] == each * full[axis] for name, each in step.items()
        )
        if runs_on and not is_kept and merged[-1][1:] == (signature, is_reduced):
            merged[-1] = (merged[-1][0] * full[axis], signature, is_reduced)
            steps[-1] = step
        else:
            merged.append((full[axis], signature, is_reduced))
            steps.append(step)
    flagged = [at for at, (_, _, is_reduced) in enumerate(merged) if is_reduced]
    reduces: Literal["", "columns", "rows"] = ""
    if len(flagged) > 1:
        raise UnfusableError("the axes that it reduces do not lie together for all its tensors")
    if flagged:
        reduces = "columns" if flagged[0] == len(merged) - 1 else "rows"
        if reduces == "rows" and flagged[0] != len(merged) - 2:
            raise UnfusableError(
                "tensors vary differently along the axes inside of the reduced one"
            )
    everywhere = tuple(True for _ in names)
    while len(merged) < 2:
        merged.insert(0, (1, everywhere, False))
        steps.insert(0, dict.fromkeys(parts, 0))
    varies = {name: tuple(each[1][at] for each in merged) for at, name in enumerate(names)}
    placed = {
        name: replace(window, strides=tuple(step[name] for step in steps))
        for name, window in parts.items()
    }
    return Domain(tuple(each[0] for each in merged), varies, reduces, placed)


_SHORT_BATCH = 2048
"""Elements of a batch: with fewer a tile is mostly the time that its instructions take to begin."""


def with_long_batches(domain: Domain) -> Domain:
    """Return the loops with another axis as the rows where the rows of one batch are few, so that a
    tile has more of them. All tensors are then parts of themselves, whose rows lie apart."""
    extents = [extent for extent in domain.extents if isinstance(extent, int)]
    if len(extents) < max(3, len(domain.extents)) or domain.reduces == "rows":
        return domain
    rows = len(extents) - 2
    longest = max(range(rows), key=lambda axis: extents[axis])
    if extents[rows] * extents[-1] >= _SHORT_BATCH or extents[longest] <= extents[rows]:
        return domain
    order = list(range(len(extents)))
    order[longest], order[rows] = rows, longest

    def turned(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[axis] for axis in order)

    windows = {}
    for name, varies in domain.varies.items():
        strides = turned(domain.strides(name))
        if varies[longest] and not varies[-1] and strides[rows] != 1:
            # One number of each row, and the numbers lie apart.
            return domain
        if not any(turned(varies)[: rows + 1]):
            continue
        size = product(e for e, v in zip(extents, varies, strict=True) if v)
        whole = Window(name, 0, (), fixed_size(size))
        windows[name] = replace(domain.windows.get(name, whole), strides=strides)
    return Domain(
        turned(domain.extents),
        {name: turned(varies) for name, varies in domain.varies.items()},
        domain.reduces,
        {**domain.windows, **windows},
    )


def _tensors(graph: Graph, nodes: Sequence[Node]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for node in nodes:
        for tensor in (*graph.inputs_of(node), node.output):
            found.setdefault(tensor.name, tensor)
    return found


def _varies(shape: Shape, full: Shape) -> tuple[bool, ...]:
    lead = len(full) - len(shape)
    return tuple(at >= lead and not is_one(shape[at - lead]) for at in range(len(full)))


def _reduced_axes(graph: Graph, nodes: Sequence[Node], rank: int) -> frozenset[int]:
    """Return the axes that reductions run along, counted in the widest shape."""
    found: frozenset[int] | None = None
    for node in nodes:
        if OPERATORS[node.operator].kind != "reduction":
            continue
        (source,) = graph.inputs_of(node)
        lead = rank - len(source.shape)
        axes = node.settings.axes(len(source.shape))
        own = frozenset(at + lead for at in axes if not is_one(source.shape[at]))
        if found is not None and own != found:
            raise UnfusableError("its reductions run along different axes")
        found = own
    return found or frozenset()


def total(domain: Domain) -> Dimension:
    """Return the number of points that the loops visit."""
    return product(domain.extents)


def equal_domains(left: Domain, right: Domain) -> bool:
    """Return whether two nests have the same extents."""
    return len(left.extents) == len(right.extents) and all(
        same(a, b) for a, b in zip(left.extents, right.extents, strict=True)
    )
