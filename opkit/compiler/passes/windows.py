"""Slices and concatenations as places in memory: a kernel reads a part of a tensor where it lies,
and writes its result where the parts are put together. Neither is a kernel of its own then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir import Graph, Node
from ..ops import OPERATORS
from .domain import Domain, UnfusableError, Window, domain_of
from .fusion import FusedGraph, Group

__all__ = ["place_windows"]

_FEWEST_COLUMNS = 16
"""Fewest columns of a part: shorter rows fill no block of the vector unit."""


def place_windows(fused: FusedGraph) -> FusedGraph:
    """Return the program without the slices that only vector kernels read, and the concatenations
    of what only vector kernels compute: these read and write parts of other tensors.

    What would take a kernel along other axes than its instructions go stays a kernel of its own.
    """
    work = _Places(fused)
    dropped: set[str] = set()
    while True:
        windows, moved = work.windows(dropped)
        unfit = work.unfit(windows)
        if not unfit:
            break
        dropped |= unfit
    if not windows:
        return fused
    groups = [group for group in fused.groups if group.nodes[0].output.name not in moved]
    if len(groups) == 1:
        groups = [replace(groups[0], name=fused.graph.name)]
    return replace(fused, groups=tuple(groups), windows=windows)


class _Places:
    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        self.graph: Graph = fused.graph
        self.returned = {tensor for _, tensor in self.graph.outputs}
        self.vector = [g for g in fused.groups if g.kind == "vector" and not g.before]
        self.home = {node.output.name: g for g in self.vector for node in g.nodes}

    def windows(self, dropped: set[str]) -> tuple[dict[str, Window], set[str]]:
        """Return the parts, and the slices and concatenations that they spare.

        Args:
            dropped: the tensors that are no parts.
        """
        windows: dict[str, Window] = {}
        moved: set[str] = set()
        for group in self.fused.groups:
            node = group.nodes[0]
            if group.kind == "slice":
                window = self.sliced(node, windows, dropped)
                if window is not None:
                    windows[node.output.name] = window
                    moved.add(node.output.name)
            elif group.kind == "view" and node.inputs[0] in windows:
                seen = windows[node.inputs[0]]
                shape = _sizes(node.output.shape)
                if shape is not None:
                    windows[node.output.name] = replace(seen, strides=_dense(shape))
                    moved.add(node.output.name)
            elif group.kind == "concat":
                parts = self.joined(node, dropped)
                windows |= parts
                moved |= {node.output.name} if parts else set()
        return windows, moved

    def sliced(self, node: Node, windows: Mapping[str, Window], dropped: set[str]) -> Window | None:
        """Return what a slice is a part of; None for one that stays a kernel."""
        name, source = node.output.name, node.inputs[0]
        readers = self.graph.users[name]
        shape = _sizes(node.output.shape)
        before = _sizes(self.graph.tensors[source].shape)
        if name in dropped | self.returned or shape is None or before is None:
            return None
        known = {*self.home, *(r.output.name for r in readers if r.operator == "reshape")}
        if node.settings["step"] != 1 or not known.issuperset(r.output.name for r in readers):
            return None
        views = [reader for reader in readers if reader.operator == "reshape"]
        # Elements that lie together may be seen in any shape.
        at_once = math.prod(before[: node.settings.axis(len(shape))]) == 1
        is_seen = at_once and source not in windows and all(map(self.is_seen, views))
        if views and (not is_seen or dropped & {view.output.name for view in views}):
            return None
        axis, start = node.settings.integer("axis"), node.settings.integer("start")
        base = windows.get(source) or Window(source, 0, _dense(before), math.prod(before))
        if source in self.fused.windows or base.base in self.fused.uniform:
            return None
        begin = base.begin + start * base.strides[axis % len(shape)]
        return replace(base, begin=begin)

    def is_seen(self, view: Node) -> bool:
        """Return whether only vector kernels read a change of shape."""
        name = view.output.name
        users = self.graph.users[name]
        return name not in self.returned and all(u.output.name in self.home for u in users)

    def joined(self, node: Node, dropped: set[str]) -> dict[str, Window]:
        """Return the parts of a concatenation; none where it stays a kernel."""
        shape = _sizes(node.output.shape)
        names = node.inputs
        if shape is None or len(set(names)) < len(names) or dropped & {*names}:
            return {}
        parts: dict[str, Window] = {}
        axis = node.settings.axis(len(shape))
        begin = 0
        for name in names:
            tensor = self.graph.tensors[name]
            own = _sizes(tensor.shape)
            users = self.graph.users[name]
            is_alone = len(users) == 1 and name not in self.returned
            if own is None or name not in self.home or not is_alone or 0 in own:
                return {}
            if tensor.dtype != node.output.dtype:
                return {}
            strides = _dense(shape)
            parts[name] = Window(node.output.name, begin * strides[axis], strides, math.prod(shape))
            begin += own[axis]
        return parts

    def unfit(self, windows: Mapping[str, Window]) -> set[str]:
        """Return the parts that some kernel cannot take."""
        found: set[str] = set()
        for group in self.vector:
            names = {name for node in group.nodes for name in (*node.inputs, node.output.name)}
            own = {name: window for name, window in windows.items() if name in names}
            if own:
                found |= self.not_taken(group, own)
        return found

    def not_taken(self, group: Group, windows: Mapping[str, Window]) -> set[str]:
        """Return the parts that a kernel cannot take: all where it is not known which."""
        try:
            plain = domain_of(self.graph, group.nodes)
            domain = domain_of(self.graph, group.nodes, windows=windows)
        except UnfusableError:
            return {*windows}
        if domain.reduces != plain.reduces or not _is_wide(domain, plain):
            return {*windows}
        for node in group.nodes:
            (source, *_) = (*self.graph.inputs_of(node), node.output)
            if OPERATORS[node.operator].kind == "reduction" and "float" not in source.dtype:
                # It is taken apart yet, by itself.
                return {*windows}
        written = {node.output.name for node in group.nodes}
        return {
            name
            for name in windows
            if not _runs_on(domain, name) or (name in written and not domain.is_written_once(name))
        }


def _is_wide(domain: Domain, plain: Domain) -> bool:
    columns = domain.columns
    return columns == plain.columns or (isinstance(columns, int) and columns >= _FEWEST_COLUMNS)


def _runs_on(domain: Domain, name: str) -> bool:
    """Return whether what a copy takes as one run lies so: columns, or one number of each row."""
    space = domain.space(name)
    step = domain.windows[name].strides[-2 if space == "row" else -1]
    return space == "one" or step == 1


def _sizes(shape: Sequence[object]) -> tuple[int, ...] | None:
    found = tuple(extent for extent in shape if isinstance(extent, int))
    return found if len(found) == len(shape) else None


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
