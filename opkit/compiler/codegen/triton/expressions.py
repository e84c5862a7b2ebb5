"""Element-wise operators as Triton expressions: one table, for loops and for what follows a
product.

Only what `triton.language` itself has, so that every maker's Triton takes it: no `libdevice`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir import HALVES, Graph, GraphError, Node
from ...passes import LoopWriter

__all__ = ["HELPERS", "KINDS", "TritonWriter", "is_fraction", "literal", "python_number"]

KINDS = {
    **{"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"},
    **{"bool": "int1", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16"},
    **{"int32": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64"},
}
"""The type of `triton.language` in which elements of a data type are computed."""

_INFIX = {
    **{"add": "+", "sub": "-", "mul": "*", "div": "/"},
    **{"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "=="},
    **{"not_equal": "!=", "bitwise_and": "&", "bitwise_or": "|"},
}
_OF_RESULT = ("add", "sub", "mul", "div", "bitwise_and", "bitwise_or")
"""Operators of which the operands get the result's type first."""
_FUNCTIONS = {
    **{"exp": "tl.exp", "log": "tl.log", "sqrt": "tl.sqrt", "abs": "tl.abs"},
    **{"floor": "tl.floor", "ceil": "tl.ceil", "round": "rounded", "trunc": "truncated"},
}
_EXTREMES = {"maximum": "tl.maximum", "minimum": "tl.minimum"}

HELPERS = {
    "rounded": '''
@triton.jit
def rounded(x):
    """The nearest whole number; of two the even one."""
    below = tl.floor(x)
    rest = x - below
    is_odd = below - 2.0 * tl.floor(below * 0.5) == 1.0
    return below + tl.where((rest > 0.5) | ((rest == 0.5) & is_odd), 1.0, 0.0)
''',
    "truncated": """
@triton.jit
def truncated(x):
    return tl.where(x < 0.0, tl.ceil(x), tl.floor(x))
""",
    "largest": '''
@triton.jit
def largest(x):
    """The largest of each row; what is no number wins."""
    lost = tl.max((x != x).to(tl.int32), axis=1)[:, None]
    return tl.where(lost > 0, float("nan"), tl.max(x, axis=1)[:, None])
''',
    "smallest": '''
@triton.jit
def smallest(x):
    """The smallest of each row; what is no number wins."""
    lost = tl.max((x != x).to(tl.int32), axis=1)[:, None]
    return tl.where(lost > 0, float("nan"), tl.min(x, axis=1)[:, None])
''',
    "brain_dot": """
@triton.jit
def brain_dot(left, right):
    # Triton's interpreter would multiply the bits of bfloat16.
    if INTERPRETED:
        left, right = left.to(tl.float32), right.to(tl.float32)
    return tl.dot(left, right)
""",
}
"""Functions that kernels call, by name; a file has those that it needs."""


def is_fraction(kind: str) -> bool:
    """Return whether a type holds fractions."""
    return kind.startswith("float")


def python_number(value: Any) -> str:
    """Return a number as Python writes it, also one that is infinite or none."""
    is_named = isinstance(value, float) and not np.isfinite(value)
    return f'float("{value}")' if is_named else repr(value)


def literal(number: Any, kind: str) -> str:
    """Return a number's text; such as Triton would take for another type are said with theirs."""
    if not is_fraction(kind):
        whole = bool(number) if kind == "int1" else int(number)
        return f"tl.full([1, 1], {whole}, tl.{kind})"
    text = python_number(float(number))
    # Triton takes a bare number that float32 can hold for one of float32.
    return f"tl.full([1, 1], {text}, tl.float64)" if kind == "float64" else text


class TritonWriter(LoopWriter):
    """Lines that compute elements, each value once, in the order in which it is asked for."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.lines: list[str] = []
        """Those under way."""
        self.known: dict[str, str] = {}
        """The variable of each tensor that has been computed."""
        self.helpers: set[str] = set()

    # Names

    def stem_of(self, tensor: str) -> str:
        names = {own: output for output, own in self.graph.outputs}
        return variable_of(names.get(tensor, tensor))

    def axis(self, axis: int) -> str:
        return f"axis_{axis}"

    def size_name(self, index: int) -> str:
        return f"size_{index}"

    def kind(self, name: str) -> str:
        """Return the type in which a tensor's elements are computed."""
        return KINDS[self.graph.tensors[name].dtype]

    def mask(self, name: str) -> str:
        """Return which of the indices under way a tensor has; nothing for all."""
        raise NotImplementedError

    def address(self, name: str) -> str:
        """Return the addresses of a tensor's elements, always a block."""
        index = self.index(name)
        return f"{self.stem(name)} + {'tl.zeros([1, 1], tl.int32)' if index == '0' else index}"

    def indices(self, counter: str, axes: Sequence[int]) -> list[str]:
        """Return the lines that take a counter of the elements of some axes apart."""
        lines = []
        rest = counter
        for axis in reversed(axes):
            extent = self.size(self.domain.extents[axis])
            lines.append(f"{self.axis(axis)} = {rest if axis == axes[0] else f'{rest} % {extent}'}")
            rest = f"{rest} // {extent}"
        return lines

    def dot(self, dtype: str, left: str, right: str) -> str:
        """Return the text that multiplies two blocks of a data type, and adds up in its own."""
        if dtype == "bfloat16":
            self.helpers.add("brain_dot")
            return f"brain_dot({left}, {right})"
        more = {"float32": ', input_precision="ieee"', "int8": ", out_dtype=tl.int32"}
        return f"tl.dot({left}, {right}{more.get(dtype, '')})"

    # Values

    def value(self, name: str) -> str:
        """Return the text of a tensor's elements; lines that compute them come before."""
        if name in self.uniform:
            return self.number(name)
        if name not in self.known:
            node = self.nodes.get(name)
            if node is None:
                text = self.load(name)
            else:
                text = self.expression(node, [self.value(each) for each in node.inputs])
            variable = self.variable("v", name)
            place = f"  # {node.location}" if node is not None and node.location else ""
            self.lines.append(f"{variable} = {text}{place}")
            self.known[name] = variable
        return self.known[name]

    def load(self, name: str) -> str:
        """Return the text that reads a tensor's elements."""
        mask = self.mask(name)
        masked = f", mask={mask}, other=0" if mask else ""
        text = f"tl.load({self.address(name)}{masked})"
        dtype, kind = self.graph.tensors[name].dtype, self.kind(name)
        return text if dtype == kind else f"{text}.to(tl.{kind})"

    def store(self, name: str) -> None:
        """Add the line that writes a tensor's elements."""
        value = self.value(name)
        mask = self.mask(name)
        masked = f", mask={mask}" if mask else ""
        self.lines.append(f"tl.store({self.address(name)}, {value}{masked})")

    def number(self, name: str) -> str:
        """Return the text of a number that comes with the launch, or never changes."""
        node = self.graph.producers[name]
        kind = self.kind(name)
        if node.operator == "constant":
            return literal(node.settings["value"], kind)
        if name not in self.scalars:
            self.scalars.append(name)
        given = f"number_{self.scalars.index(name)}"
        if kind == "int1":
            return f"(tl.full([1, 1], {given}, tl.int32) != 0)"
        return f"tl.full([1, 1], {given}, tl.{kind})"

    def converted(self, value: str, source: str, kind: str) -> str:
        """Return a value in another type, as a cast of the program's gives it: fractions go
        towards 0, and to the nearest limit from beyond it; whole numbers wrap."""
        if source == kind:
            return value
        if kind == "int1":
            return f"({value} != 0)"
        if is_fraction(source) and not is_fraction(kind):
            limits = np.iinfo(kind)
            low, high = float(limits.min), float(limits.max)
            inside = f"tl.where(({value} > {low!r}) & ({value} < {high!r}), {value}, 0.0)"
            above = f"tl.where({value} >= {high!r}, {limits.max}, {inside}.to(tl.{kind}))"
            return f"tl.where({value} <= {low!r}, {limits.min}, {above}).to(tl.{kind})"
        return f"{value}.to(tl.{kind})"

    def rounded(self, value: str, dtype: str) -> str:
        """Return a value as a data type of 16 bits holds it; itself for others."""
        return value if dtype not in HALVES else f"({value}).to(tl.{dtype}).to(tl.float32)"

    def expression(self, node: Node, values: Sequence[str]) -> str:
        """Return the text of what one operator computes.

        Raises:
            GraphError: it has no Triton.
        """
        name = node.operator
        kind = self.kind(node.output.name)
        sources = [self.kind(each) for each in node.inputs]
        same = [
            value if source == kind else f"{value}.to(tl.{kind})"
            for value, source in zip(values, sources, strict=True)
        ]
        if name in _INFIX:
            left, right = same if name in _OF_RESULT else values
            return f"{left} {_INFIX[name]} {right}"
        if name in _FUNCTIONS:
            function = _FUNCTIONS[name]
            if function in HELPERS:
                self.helpers.add(function)
            return f"{function}({same[0]})"
        if name in _EXTREMES:
            wins = ", propagate_nan=tl.PropagateNan.ALL" if is_fraction(kind) else ""
            return f"{_EXTREMES[name]}({', '.join(same)}{wins})"
        if name in ("logical_and", "logical_or"):
            truths = [self.converted(v, s, "int1") for v, s in zip(values, sources, strict=True)]
            return f"{truths[0]} {'&' if name == 'logical_and' else '|'} {truths[1]}"
        if name == "where":
            return (
                f"tl.where({self.converted(values[0], sources[0], 'int1')}, {same[1]}, {same[2]})"
            )
        simple: dict[str, Callable[[], str]] = {
            "neg": lambda: f"-{same[0]}",
            "logical_not": lambda: f"{values[0]} == 0",
            "bitwise_not": lambda: f"{values[0]} == 0" if kind == "int1" else f"~{values[0]}",
            "broadcast_to": lambda: values[0],
            "cast": lambda: self.rounded(
                self.converted(values[0], sources[0], kind), node.output.dtype
            ),
        }
        if name in simple:
            return simple[name]()
        raise GraphError(f"{name} has no Triton", location=node.location)


_TAKEN = frozenset(
    [
        *("tl", "torch", "triton"),
        *("at", "begin", "batch", "across", "down", "first", "high", "within"),
        *("rows", "columns", "depth", "deep", "left", "right", "total"),
        *("along", "query", "key", "value", "mask", "seen", "scores", "peak", "higher", "base"),
        *("kept", "shares", "weight"),
    ]
)
"""Names that lines of kernels give to values of their own."""
_BEGINS = ("v_", "r_", "axis_", "size_", "number_", "in_", "sum_")


def variable_of(name: str) -> str:
    """Return a name that Python takes and that no line of a kernel's own uses."""
    import keyword

    text = "".join(c if c.isalnum() else "_" for c in name) or "value"
    if text[0].isdigit():
        text = f"t{text}"
    is_taken = text in _TAKEN or text in HELPERS or text.startswith(_BEGINS)
    return f"{text}_given" if is_taken or keyword.iskeyword(text) else text


def dtype_text(graph: Graph, tensor: str) -> str:
    """Return torch's name of a tensor's data type."""
    return f"torch.{graph.tensors[tensor].dtype}"
