"""Formulas as a front end: the maths of an operator's outputs, as text, to a graph.

A formula is one Python expression over inputs, attributes, named sizes, numbers, `pi` and `e`; it
is read, never run. Names that are called are operators of the table. An axis that a reduction takes
away stays, of length 1, until the output is written, so that `x - mean(x, axis=0)` needs no
`keepdims`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.errors import UsageError

from .builder import GraphBuilder, TensorSpec, Value
from .differentiation import gradient
from .graph import Attribute, Graph, GraphError, Location
from .operators import OPERATORS
from .rewrite import Rebuilder

__all__ = ["FormulaOutput", "evaluate_formulas", "formula_graph", "shapes_at"]

_BINARY = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"},
    **{ast.FloorDiv: "floor_divide", ast.Mod: "mod", ast.MatMult: "matmul"},
    **{ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor"},
}
_COMPARE = {
    **{ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal"},
    **{ast.Eq: "equal", ast.NotEq: "not_equal"},
}
_ALIASES = {"ln": "log", "arctan2": "atan2", "power": "pow"}
_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf}
_NUMPY_KINDS = {"b": "bool", "f": "float64", "i": "int64", "u": "int64"}
_KIND_OF = {bool: "bool", int: "int"}
_COMPUTED = ("elementwise", "reduction", "scan")
_LONGEST_NOTE = 60
"""Characters of a formula's part that stand beside the instructions which compute it."""
_KINDS = ("elementwise", "reduction", "movement", "index", "scan", "line", "product")


@dataclass(frozen=True)
class FormulaOutput:
    """One output of an operator."""

    name: str
    text: str
    dtype: str = ""
    """That it is written in; that of its value where empty."""


@dataclass(frozen=True)
class _Part:
    """A value, and which of its axes a reduction has taken away: counted from the last, -1."""

    value: Value | float | int | bool
    gone: frozenset[int] = frozenset()

    @property
    def axes(self) -> frozenset[int]:
        rank = self.value.ndim if isinstance(self.value, Value) else 0
        return frozenset(range(-rank, 0))


def formula_graph(
    name: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[FormulaOutput],
    attributes: Sequence[Attribute] = (),
) -> Graph:
    """Return the graph of an operator's formulas.

    Raises:
        GraphError: a formula is wrong; the message has the column and the text there.
    """
    builder = GraphBuilder(name)
    known: dict[str, Any] = dict(_CONSTANTS)
    for spec in inputs:
        for extent in spec.shape:
            if not isinstance(extent, int):
                known |= {str(s): builder.extent(s) for s in extent.free_symbols}
    known |= {spec.name: builder.input(spec.name, spec.shape, spec.dtype) for spec in inputs}
    known |= {a.name: builder.attribute(a.name, a.kind, a.default) for a in attributes}
    for output in outputs:
        with builder.at(Location("formula", 1, output.name)):
            value = _Reader(builder, known, output.text, inputs, attributes).output()
            if output.dtype and value.dtype != output.dtype:
                value = value.astype(output.dtype)
            builder.output(output.name, value)
    return builder.graph()


def evaluate_formulas(
    outputs: Mapping[str, str],
    arrays: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Any:
    """Return what formulas give for NumPy arrays: one array, or a tuple of them in order.

    Fractions are computed in float64, whole numbers in int64 unless `dtypes` says in which type a
    tensor's wrap. This is NumPy, operator by operator; no kernel and no part of the compiler's
    lowering has to do with it.

    Args:
        outputs: the formula of each output.
        arrays: the inputs by name.
        attributes: numbers by name.
        dtypes: of inputs and outputs of whole numbers, by name.

    Raises:
        GraphError: a formula is wrong, or the arrays do not fit it.
        TypeError: an array holds no numbers.
    """
    import numpy as np

    from .reference import apply_nodes

    types = dict(dtypes or {})
    wide = {name: np.asanyarray(array) for name, array in arrays.items()}
    for name, array in wide.items():
        if array.dtype.kind not in _NUMPY_KINDS:
            raise TypeError(f"{name} holds {array.dtype}, expected numbers")
        types.setdefault(name, _NUMPY_KINDS[array.dtype.kind])
    specs = [TensorSpec(name, tuple(a.shape), types[name]) for name, a in wide.items()]
    given = dict(attributes or {})
    rows = [Attribute(name, _KIND_OF.get(type(v), "float"), v) for name, v in given.items()]
    wanted = [FormulaOutput(name, text, types.get(name, "")) for name, text in outputs.items()]
    graph = formula_graph("formula", specs, wanted, rows)
    found: dict[str, Any] = {
        name: array if array.dtype == types[name] else array.astype(types[name])
        for name, array in wide.items()
    }
    with np.errstate(all="ignore"):
        apply_nodes(graph, found, given, {})
    results = tuple(found[tensor] for _, tensor in graph.outputs)
    return results[0] if len(results) == 1 else results


def shapes_at(
    axes: Mapping[str, Sequence[str | int]], shape: Sequence[int], *, least: int = 0
) -> dict[str, tuple[int, ...]]:
    """Return a shape for each input whose axes have names, at a main shape.

    The main shape's last axes are the named sizes, in the order in which they first occur; what is
    left of it in front is `...`, or is multiplied into the first named size. No size is below
    `least`: what is empty has no largest element.
    """
    all_axes = [axis for each in axes.values() for axis in each]
    names = list(dict.fromkeys(a for a in all_axes if isinstance(a, str) and a != "..."))
    given = (1,) * (len(names) - len(shape)) + tuple(shape)
    leading = tuple(max(least, extent) for extent in given[: len(given) - len(names)])
    sizes = dict(zip(names, given[len(leading) :], strict=True))
    if names and "..." not in all_axes:
        sizes[names[0]] *= math.prod(leading)
    sizes = {name: max(least, size) for name, size in sizes.items()}

    def extents(axis: str | int) -> tuple[int, ...]:
        return leading if axis == "..." else (axis if isinstance(axis, int) else sizes[axis],)

    return {name: tuple(e for axis in each for e in extents(axis)) for name, each in axes.items()}


def _single(value: Any) -> Any:
    is_half = isinstance(value, Value) and value.dtype in ("float16", "bfloat16")
    return value.astype("float32") if is_half else value


def _better(node: ast.expr) -> ast.expr | None:
    """Return an equal form that loses no digits and takes fewer instructions; None without one.

    `1 + tanh(u)` cancels where `2*sigmoid(2*u)` does not, and `u*tanh(softplus(u))` is Mish.
    """
    if not isinstance(node, ast.BinOp):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        inner = _argument(other, "tanh")
        if inner is None:
            continue
        is_one = isinstance(one, ast.Constant) and one.value == 1
        if is_one and (isinstance(node.op, ast.Add) or node.left is one):
            sign = {ast.Add: "2", ast.Sub: "-2"}.get(type(node.op))
            if sign is not None:
                return _formula(f"2*sigmoid({sign}*({ast.unparse(inner)}))")
        plus = _argument(inner, "softplus")
        if plus is not None and isinstance(node.op, ast.Mult) and ast.dump(plus) == ast.dump(one):
            return _formula(f"mish({ast.unparse(one)})")
    return None


def _argument(node: ast.expr, function: str) -> ast.expr | None:
    """Return what a function of one value is called with; None where something else stands."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    fits = node.func.id == function and len(node.args) == 1 and not node.keywords
    return node.args[0] if fits else None


def _formula(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Reader:
    """Reads one formula."""

    def __init__(
        self,
        builder: GraphBuilder,
        known: Mapping[str, Any],
        text: str,
        inputs: Sequence[TensorSpec],
        attributes: Sequence[Attribute],
    ) -> None:
        self.builder = builder
        self.known = known
        self.text = text.strip()
        self.inputs = inputs
        self.attributes = attributes

    def output(self) -> Value:
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
            message = f'"{self.text}" is not a formula: {err}'
            raise GraphError(message, location=None) from err
        part = self.read(tree)
        value = part.value
        if not isinstance(value, Value):
            raise self.wrong(tree, "is a number, the same for every element")
        if part.gone:
            rank = value.ndim
            kept = [e for axis, e in enumerate(value.shape) if axis - rank not in part.gone]
            value = value.reshape(*kept)
        return value

    def wrong(self, node: ast.expr, what: str, help: str | None = None) -> GraphError:
        text = ast.unparse(node)
        text = text if len(text) <= 60 else f"{text[:57]}..."
        message = f'column {node.col_offset + 1}: "{text}" {what}'
        return GraphError(message, location=None, help=help)

    def read(self, node: ast.expr) -> _Part:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            return _Part(node.value)
        if isinstance(node, ast.Name):
            return self.name(node)
        better = _better(node)
        if better is not None:
            return self.read(ast.copy_location(better, node))
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self.apply(node, _BINARY[type(node.op)], node.left, node.right)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            return self.apply(node, _COMPARE[type(node.ops[0])], node.left, node.comparators[0])
        if isinstance(node, ast.BoolOp):
            name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
            total = self.read(node.values[0])
            for each in node.values[1:]:
                total = self.combine(node, name, [total, self.read(each)])
            return total
        if isinstance(node, ast.IfExp):
            return self.apply(node, "where", node.test, node.body, node.orelse)
        if isinstance(node, ast.Attribute) and node.attr == "T":
            part = self.read(node.value)
            return _Part(self.tensor(node, part).T)
        if isinstance(node, ast.Subscript):
            part = self.read(node.value)
            return _Part(self.guarded(node, lambda: self.tensor(node, part)[self.key(node.slice)]))
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.wrong(node, "is not part of the formula language")

    def name(self, node: ast.Name) -> _Part:
        if node.id not in self.known:
            import difflib

            near = difflib.get_close_matches(node.id, [*self.known, *OPERATORS], n=1)
            raise self.wrong(
                node,
                "is no input, attribute or size",
                f"did you mean {near[0]}?" if near else "there are " + ", ".join(self.known),
            )
        return _Part(self.known[node.id])

    def unary(self, node: ast.UnaryOp) -> _Part:
        part = self.read(node.operand)
        if isinstance(node.op, ast.UAdd):
            return part
        if not isinstance(part.value, Value):
            operators: dict[type, Callable[[Any], Any]] = {
                **{ast.USub: lambda value: -value, ast.Not: lambda value: not value},
                ast.Invert: lambda value: ~int(value),
            }
            return _Part(operators[type(node.op)](part.value))
        names = {ast.USub: "neg", ast.Not: "logical_not", ast.Invert: "bitwise_not"}
        return self.combine(node, names[type(node.op)], [part])

    def key(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self.key(each) for each in node.elts)
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if part is None else self.literal(part) for part in parts))
        return self.literal(node)

    def literal(self, node: ast.expr) -> Any:
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise self.wrong(node, "must be a number here") from None

    def call(self, node: ast.Call) -> _Part:
        if not isinstance(node.func, ast.Name):
            raise self.wrong(node, "is not part of the formula language", "call functions by name")
        if node.func.id == "gradient":
            return self.gradient(node)
        name = _ALIASES.get(node.func.id, node.func.id)
        if name in ("max", "min") and len(node.args) == 2:
            name = {"max": "maximum", "min": "minimum"}[name]
        row = OPERATORS.get(name)
        if row is None or row.kind not in _KINDS:
            import difflib

            known = [each for each, row in OPERATORS.items() if row.kind in _KINDS]
            near = difflib.get_close_matches(name, known, n=2)
            raise self.wrong(
                node,
                "calls no operator of the compiler",
                f"did you mean {' or '.join(near)}?" if near else "docs/operators.md lists them",
            )
        settings = {str(each.arg): self.literal(each.value) for each in node.keywords}
        positional = list(node.args)
        if row.arity is not None and len(positional) > row.arity:
            # What follows the tensors is the settings, in the table's order: cast(x, "int32").
            names = [each for each in row.parameters if each not in settings]
            extra = positional[row.arity :]
            positional = positional[: row.arity]
            settings |= dict(zip(names, map(self.literal, extra), strict=False))
        parts = [self.read(each) for each in self.listed(row.arity, positional)]
        return self.combine(node, name, parts, settings)

    def gradient(self, node: ast.Call) -> _Part:
        """Read `gradient(formula, given, x)`: the gradient with respect to the input `x` of what
        depends on the formula with the gradient `given`."""
        if len(node.args) != 3 or node.keywords or not isinstance(node.args[2], ast.Name):
            raise self.wrong(node, "takes a formula, its gradient and the name of an input")
        name = "y"
        while f"grad_{name}" in self.known:
            name += "_"
        inner = formula_graph(
            "inner", self.inputs, [FormulaOutput(name, ast.unparse(node.args[0]))], self.attributes
        )
        given = self.tensor(node, self.read(node.args[1]))
        wanted = node.args[2].id

        def apply() -> Value:
            graph = gradient(inner, [wanted])
            seed = graph.inputs[0]
            value = given if given.dtype == seed.dtype else given.astype(seed.dtype)
            return Rebuilder(graph, self.builder, {**self.known, seed.name: value}).output()

        return _Part(self.guarded(node, apply))

    def listed(self, arity: int | None, nodes: list[ast.expr]) -> list[ast.expr]:
        """Return the operands; those of an operator over lists may stand in brackets."""
        if arity is None and len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
            return list(nodes[0].elts)
        return nodes

    def apply(self, node: ast.expr, name: str, *operands: ast.expr) -> _Part:
        return self.combine(node, name, [self.read(each) for each in operands])

    def combine(
        self,
        node: ast.expr,
        name: str,
        parts: Sequence[_Part],
        settings: Mapping[str, Any] | None = None,
    ) -> _Part:
        given = dict(settings or {})
        if not any(isinstance(part.value, Value) for part in parts):
            return _Part(self.number(node, name, parts))
        row = OPERATORS[name]
        gone: frozenset[int] = frozenset()
        keeps = bool(given.get("keepdims", False))
        if row.kind == "reduction" or name in ("argmax", "argmin"):
            given["keepdims"] = True
        # Halves hold what is stored: what is computed of them is float32 until an output's end.
        operands = [_single(part.value) if row.kind in _COMPUTED else part.value for part in parts]
        value = self.guarded(node, lambda: self.builder.apply(name, *operands, **given))
        if row.kind == "elementwise":
            everywhere = [part.axes for part in parts]
            gone = frozenset(
                axis
                for part in parts
                for axis in part.gone
                if all(
                    axis in other.gone or axis not in axes
                    for other, axes in zip(parts, everywhere, strict=True)
                )
            )
        elif "keepdims" in given:
            rank = self.tensor(node, parts[0]).ndim
            axes = given.get("axis")
            axes = range(rank) if axes is None else axes
            axes = (axes,) if isinstance(axes, int) else axes
            reduced = frozenset(axis if axis < 0 else axis - rank for axis in axes)
            gone = parts[0].gone | (frozenset() if keeps else reduced)
        return _Part(value, gone)

    def number(self, node: ast.expr, name: str, parts: Sequence[_Part]) -> Any:
        """Return an operator of plain numbers, computed now."""
        import numpy as np

        values = [np.asarray(part.value) for part in parts]
        try:
            with np.errstate(all="ignore"):
                return OPERATORS[name].reference(*values).item()
        except (TypeError, ValueError, AttributeError, ArithmeticError) as err:
            raise self.wrong(node, f"is no number: {err}") from err

    def tensor(self, node: ast.expr, part: _Part) -> Value:
        if not isinstance(part.value, Value):
            raise self.wrong(node, "takes a tensor, not a number")
        return part.value

    def guarded(self, node: ast.expr, apply: Callable[[], Any]) -> Any:
        text = ast.unparse(node)
        place = Location("formula", 1, text if len(text) <= _LONGEST_NOTE else "")
        try:
            with self.builder.at(place):
                return apply()
        except UsageError as err:
            # The place of a formula is its column: it stands in no Python file.
            raise self.wrong(node, f"cannot be: {err.message}", err.help) from err
