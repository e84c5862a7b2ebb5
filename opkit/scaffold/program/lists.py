"""Lists of tensors in compiled operators.

What is computed sees one tensor, along whose first axis the list's lie one behind the other:
kernels join lists in the workspace before their first step, and split what they computed after
the last.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from opkit.schema import LIST_LENGTH, OpSpec, TensorSpec, axis_names

__all__ = [
    "ListCopy",
    "case_axes_of",
    "has_lists",
    "input_places",
    "list_copies",
    "output_places",
    "tensor_axes",
]


@dataclass(frozen=True)
class ListCopy:
    """A list as the kernel's template sees it."""

    name: str
    stem: str
    """The kernel's argument."""
    room: str
    """Where its tensors lie one behind the other."""
    macro: str
    """The macro of its data type."""


def has_lists(spec: OpSpec) -> bool:
    """Return whether an input is a list; outputs that are have one to be as long as."""
    return any(tensor.is_list for tensor in spec.inputs)


def tensor_axes(tensor: TensorSpec) -> tuple[str | int, ...]:
    """Return the axes of an input, or those of each tensor of a list: `...` stays the first."""
    axes = tensor.axes or ()
    return axes[1:] if tensor.is_list and axes[:1] != ("...",) else axes


def list_copies(
    spec: OpSpec, stems: Mapping[str, str]
) -> tuple[tuple[ListCopy, ...], tuple[ListCopy, ...]]:
    """Return the lists that a kernel joins, and those that it splits.

    Args:
        stems: what a tensor is called in the kernel, by its name.
    """

    def copies(tensors: Sequence[TensorSpec]) -> tuple[ListCopy, ...]:
        return tuple(
            ListCopy(t.name, stems[t.name], f"{stems[t.name]}Joined", f"DTYPE_{t.name.upper()}")
            for t in tensors
            if t.is_list
        )

    return copies(spec.inputs), copies(spec.outputs)


def input_places(spec: OpSpec) -> tuple[str, ...]:
    """Return the C++ of which of a launch's tensors each input is; lists take as many as they
    have."""
    return _places(spec.inputs, "Input")


def output_places(spec: OpSpec) -> tuple[str, ...]:
    """Return the same of each output."""
    return _places(spec.outputs, "Output")


def _places(tensors: Sequence[TensorSpec], kind: str) -> tuple[str, ...]:
    return tuple(
        f"context->GetIr{kind}InstanceInfo({index})->GetInstanceStart()"
        if any(tensor.is_list for tensor in tensors[:index])
        else f"{index}"
        for index in range(len(tensors))
    )


def case_axes_of(spec: OpSpec, tensor: TensorSpec) -> tuple[str | int, ...]:
    """Return the axes of an input, or of each tensor of a list, in cases: these give lists
    `LIST_LENGTH` tensors, which is what the names of lists' lengths stand for in other axes."""
    lengths = {t.axes[0] for t in spec.inputs if t.is_list and t.axes}

    def axis(given: str | int) -> str | int:
        if given in lengths and given != "...":
            return LIST_LENGTH
        if not lengths & set(axis_names(given)):
            return given
        return _Lengths(lengths, LIST_LENGTH).text(str(given))

    return tuple(map(axis, tensor_axes(tensor)))


class _Lengths(ast.NodeTransformer):
    """Writes a number where a name says how long lists are."""

    def __init__(self, names: Collection[str | int], number: int) -> None:
        self.names = names
        self.number = number

    def text(self, axis: str) -> str:
        return ast.unparse(self.visit(ast.parse(axis, mode="eval")))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(value=self.number) if node.id in self.names else node
