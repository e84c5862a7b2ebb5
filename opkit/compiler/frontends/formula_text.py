"""Formulas as a front end: the maths of an operator's outputs, as text, to a graph.

A formula is one Python expression over inputs, attributes, named sizes, numbers, `pi` and `e`; it
is read, never run. Names that are called are operators of the table. An axis that a reduction takes
away stays, of length 1, until the output is written, so that `x - mean(x, axis=0)` needs no
`keepdims`.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from opkit.errors import UsageError

from ..ir import (
    HALVES,
    Attribute,
    Graph,
    GraphError,
    Location,
    Value,
    checked_settings,
    computed_size,
    is_one,
    quotient,
    same,
)
from ..ops import OPERATORS
from ..passes import Rebuilder, formula_gradient, in_equal_form
from ..tracing import GraphBuilder, TensorSpec
from .words import ATTENTION, WORDS, arguments_of, einsum, flat_widths

__all__ = ["FormulaOutput", "formula_graph"]

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
_COMPUTED = ("elementwise", "reduction", "scan", "random")
_CURES = {
    "group_norm": 'write group_norm(x, groups, weight, bias, eps) of an input x whose "shape" has'
    ' the number of channels, such as ["N", 32, "H", "W"]',
    "split": "write split(x, 64, axis=-1)[0], the first 64, or a, b = split(x, 64, axis=-1)",
    "chunk": "write chunk(x, 2, axis=-1)[0], the first half, or a, b = chunk(x, 2, axis=-1)",
}
"""What to write for names that are understood in some places only."""
_PROMOTING = ("add", "sub", "mul", "div", "maximum", "minimum")
"""Operators that compute in the widest of their operands' types."""
_LONGEST_NOTE = 60
"""Characters of a formula's part that stand beside the instructions which compute it."""
_KINDS = ("elementwise", "reduction", "movement", "index", "scan", "line", "product", "random")
_FROM_NOTHING = ("arange",)
"""Operators that take no tensor."""
_COUNTED = ("arange", "range")
"""What names every row."""


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
    *,
    sizes: Mapping[str, int] | None = None,
    narrowed: Collection[str] = (),
) -> Graph:
    """Return the graph of an operator's formulas.

    Args:
        sizes: what else formulas may name, beside the named sizes of the inputs.
        narrowed: inputs of int64 that are taken as int32, which kernels compute in.

    Raises:
        GraphError: a formula is wrong; the message has the column and the text there.
    """
    formulas = _Formulas(name, inputs, outputs, attributes, sizes, narrowed, is_whole=False)
    try:
        return formulas.graph()
    except GraphError as err:
        if not formulas.divides:
            raise
        # Parts that only fit where sizes are multiples of what they are divided by are parts of
        # such sizes.
        inputs = [_undivided(spec) for spec in inputs]
        formulas = _Formulas(name, inputs, outputs, attributes, sizes, narrowed, is_whole=True)
        try:
            return formulas.graph()
        except GraphError:
            raise err from None


class _Formulas:
    """All formulas of an operator, read once."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[FormulaOutput],
        attributes: Sequence[Attribute],
        sizes: Mapping[str, int] | None,
        narrowed: Collection[str],
        *,
        is_whole: bool,
    ) -> None:
        self.builder = builder = GraphBuilder(name)
        self.outputs = outputs
        self.attributes = attributes
        self.is_whole = is_whole
        self.divides = False
        named: dict[str, Any] = dict(sizes or {})
        for spec in inputs:
            for extent in spec.shape:
                if not isinstance(extent, int):
                    named |= {str(symbol): symbol for symbol in extent.free_symbols}
        known: dict[str, Any] = dict(_CONSTANTS)
        known |= {size: builder.extent(value) for size, value in named.items()}
        known |= {spec.name: builder.input(spec.name, spec.shape, spec.dtype) for spec in inputs}
        known |= {name: known[name].astype("int32") for name in narrowed}
        self.inputs = [replace(s, dtype="int32") if s.name in narrowed else s for s in inputs]
        known |= {a.name: builder.attribute(a.name, a.kind, a.default) for a in attributes}
        self.known, self.sizes = known, named

    def graph(self) -> Graph:
        """Return the graph; `divides` says whether a formula divides a size that has a name."""
        for output in self.outputs:
            reader = _Reader(
                self.builder,
                self.known,
                output.text,
                self.inputs,
                self.attributes,
                self.sizes,
                is_whole=self.is_whole,
            )
            with self.builder.at(Location("formula", 1, output.name)):
                try:
                    value = reader.output()
                finally:
                    self.divides |= reader.divides
                if output.dtype and value.dtype != output.dtype:
                    value = value.astype(output.dtype)
                self.builder.output(output.name, value)
        return self.builder.graph()


def _undivided(spec: TensorSpec) -> TensorSpec:
    """Return an input whose lengths that are quotients are such without a rest."""
    import sympy

    shape = tuple(
        extent
        if isinstance(extent, int)
        else extent.replace(sympy.floor, lambda inner: sympy.simplify(inner))
        for extent in spec.shape
    )
    return replace(spec, shape=shape)


def _single(value: Any) -> Any:
    is_half = isinstance(value, Value) and value.dtype in HALVES
    return value.astype("float32") if is_half else value


def _floats(operands: Sequence[Any]) -> set[str]:
    """Return the types of what holds fractions."""
    return {e.dtype for e in operands if isinstance(e, Value) and "float" in e.dtype}


def _widened(operands: Sequence[Any]) -> list[Any]:
    """Return operands of which at least one is float32, as far as they are halves: what is computed
    of them is too. That is the largest of them: a product's sums then stay what they are, and what
    is added to each row or column joins its kernel."""
    found = list(operands)
    halves = [at for at, each in enumerate(found) if _single(each) is not each]
    is_wide = any(isinstance(e, Value) and e.dtype == "float32" and e.shape for e in found)
    if halves and not is_wide:
        widest = max(halves, key=lambda at: found[at].ndim)
        found[widest] = _single(found[widest])
    return found


def _is_cut(node: ast.expr) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("chunk", "split")
    )


class _Replaced(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.known.get(node.id, node)


class _Undivided(ast.NodeTransformer):
    """Writes divisions of sizes as those that leave no rest."""

    def visit_FloorDiv(self, node: ast.FloorDiv) -> ast.Div:
        return ast.Div()


def _is_none(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value is None


def _is_dots(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value is Ellipsis


def _is_all(key: ast.Slice) -> bool:
    return key.lower is None and key.upper is None and key.step is None


def _short_text(node: ast.expr) -> str:
    """Return a formula's part; nothing where it is too long for a note."""
    # What is far longer is not worth writing: it may be deeper than Python's stack.
    if (node.end_col_offset or 0) - node.col_offset > 4 * _LONGEST_NOTE:
        return ""
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST_NOTE else ""


class _Reader:
    """Reads one formula."""

    def __init__(
        self,
        builder: GraphBuilder,
        known: Mapping[str, Any],
        text: str,
        inputs: Sequence[TensorSpec],
        attributes: Sequence[Attribute],
        sizes: Mapping[str, Any],
        *,
        is_whole: bool = False,
    ) -> None:
        self.is_whole = is_whole
        """Whether sizes are multiples of what they are divided by."""
        self.divides = False
        """Whether a size was divided that has a name."""
        self.builder = builder
        self.known = known
        self.text = text.strip()
        self.inputs = inputs
        self.attributes = attributes
        self.sizes = sizes

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
        last = self.without_gone(part).value
        assert isinstance(last, Value)
        return last

    def wrong(self, node: ast.expr, what: str, help: str | None = None) -> GraphError:
        text = _short_text(node) or f"{self.text[node.col_offset :][:57]}..."
        message = f'column {node.col_offset + 1}: "{text}" {what}'
        return GraphError(message, location=None, help=help)

    def read(self, node: ast.expr) -> _Part:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            return _Part(node.value)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self.binary(node)
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
        if isinstance(node, ast.Subscript) and _is_cut(node.value):
            return self.cut(node, node.value)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.wrong(node, "is not part of the formula language")

    def binary(self, node: ast.BinOp) -> _Part:
        # A long sum leans to the left: a loop instead of a level for each of its terms.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp) and type(chain[-1].left.op) in _BINARY:
            chain.append(chain[-1].left)
        part = self.read(chain[-1].left)
        for each in reversed(chain):
            name, right = _BINARY[type(each.op)], self.read(each.right)
            if name == "bitwise_xor" and _floats([part.value, right.value]):
                name = "pow"
            part = self.combine(each, name, [part, right])
        return part

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

    def cut(self, node: ast.Subscript, call: ast.Call) -> _Part:
        """Read one part of `chunk(x, count, axis=0)` or of `split(x, length, axis=0)`, which are
        PyTorch's: the last part may be shorter."""
        assert isinstance(call.func, ast.Name)
        what = {"chunk": "count", "split": "length"}[call.func.id]
        settings = {str(each.arg): self.literal(each.value) for each in call.keywords}
        settings |= dict(zip((what, "axis"), map(self.literal, call.args[1:]), strict=False))
        settings = {"axis": 0, **settings}
        at = self.literal(node.slice)
        if not call.args or settings.keys() != {what, "axis"} or type(at) is not int:
            raise self.wrong(node, f"takes a tensor, the {what} of its parts, and an axis")
        x, axis = self.tensor(call, self.read(call.args[0])), settings["axis"]
        if type(axis) is not int or not -x.ndim <= axis < x.ndim:
            raise self.wrong(node, f"has axis {axis}, expected one from {-x.ndim} to {x.ndim - 1}")
        extent, given = x.shape[axis], settings[what]
        if isinstance(given, int) and (given < 1 or at < 0 or (what == "count" and at >= given)):
            raise self.wrong(node, f"has no part {at}")
        length = given if what == "length" else (extent + given - 1) // given
        if what == "count" and not isinstance(extent, int):
            self.divides = True
            length = quotient(extent, given) if self.is_whole else length
        is_last = what == "count" and at == given - 1
        end = extent if is_last else (at + 1) * length
        key = (*(slice(None),) * (axis % x.ndim), slice(at * length, end))
        return _Part(self.guarded(node, lambda: x[key]))

    def subscript(self, node: ast.Subscript) -> _Part:
        """Read `x[...]`: places that are written out, or those of a tensor along one axis."""
        part = self.read(node.value)
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        by_tensor = [at for at, key in enumerate(keys) if self.is_tensor(key)]
        if by_tensor:
            return self.looked_up(node, part, keys, by_tensor)
        if any(map(_is_none, keys)):
            part = self.without_gone(part)
        x = self.tensor(node, part)
        for key in keys:
            self.divides |= isinstance(key, ast.Slice) and key.step is not None
        if self.is_whole:
            x, keys = self.in_steps(node, x, keys)
        places = tuple(self.key(each) for each in keys)
        return _Part(self.guarded(node, lambda: x[places]))

    def in_steps(
        self, node: ast.Subscript, x: Value, keys: list[ast.expr]
    ) -> tuple[Value, list[ast.expr]]:
        """Return a tensor whose axes that are read in steps of n are n columns, and the places with
        one of them: `x[..., 1::2]` is the second of every two."""
        rest = x.ndim - sum(1 for key in keys if not _is_none(key) and not _is_dots(key))
        shape: list[Any] = []
        written: list[ast.expr] = []
        for key in keys:
            if _is_none(key):
                written.append(key)
                continue
            if _is_dots(key):
                shape += x.shape[len(shape) : len(shape) + rest]
                written.append(key)
                continue
            at = len(shape)
            extent = x.shape[at]
            places = self.key(key)
            step = places.step if isinstance(places, slice) else None
            first = places.start or 0 if isinstance(places, slice) else 0
            is_each = (
                isinstance(step, int)
                and step > 1
                and not isinstance(extent, int)
                and isinstance(first, int)
                and 0 <= first < step
                and places.stop is None
            )
            if is_each:
                shape.append((quotient(extent, step), step))
                written += [ast.Slice(), ast.Constant(first)]
            else:
                shape.append(extent)
                written.append(key)
        shape += x.shape[len(shape) :]
        if not any(isinstance(each, tuple) for each in shape):
            return x, keys
        wide = [e for each in shape for e in (each if isinstance(each, tuple) else (each,))]
        return self.guarded(node, lambda: x.reshape(*wide)), written

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether a place is one of a tensor: it reads an input."""
        names = {spec.name for spec in self.inputs}
        return not isinstance(node, ast.Slice) and any(
            isinstance(each, ast.Call) or (isinstance(each, ast.Name) and each.id in names)
            for each in ast.walk(node)
        )

    def looked_up(
        self, node: ast.Subscript, part: _Part, keys: list[ast.expr], by_tensor: list[int]
    ) -> _Part:
        """Read `table[ids]` and `x[:, ids]`, rows by their places, and `x[arange(N), ids]`, a place
        for each row."""
        x = self.tensor(node, part)
        others = [key for at, key in enumerate(keys) if at not in by_tensor]
        is_whole = all(isinstance(key, ast.Slice) and _is_all(key) for key in others)
        first = keys[0]
        if len(by_tensor) == 1 and is_whole:
            axis = by_tensor[0]
            places = self.places(keys[axis])
            return _Part(self.guarded(node, lambda: x.apply("take", places, axis=axis)))
        is_each = len(keys) == 2 and x.ndim == 2 and isinstance(first, ast.Call)
        if is_each and isinstance(first, ast.Call) and ast.unparse(first.func) in _COUNTED:
            places = self.places(keys[1])
            value, gone = self.taken(node, x, places, {"axis": -1})
            return _Part(value, gone)
        raise self.wrong(
            node,
            "names places by tensors and otherwise",
            "write take(x, places, axis=1), or take_along(x, places, axis=1)",
        )

    def places(self, node: ast.expr) -> Value:
        """Read whole numbers, as the operators that look up take them."""
        value = self.tensor(node, self.read(node))
        is_other = "int" in value.dtype and value.dtype != "int32"
        return value.astype("int32") if is_other else value

    def attention(self, node: ast.Call) -> _Part:
        """Read PyTorch's scaled_dot_product_attention(query, key, value, attn_mask, is_causal)."""
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, node.args, strict=False))
        given |= {str(each.arg): each.value for each in node.keywords}
        share = self.literal(given["dropout_p"]) if "dropout_p" in given else 0
        if not {"query", "key", "value"} <= given.keys() <= set(names) or share:
            raise self.wrong(node, "takes query, key, value, attn_mask, is_causal and scale")
        query = self.tensor(node, self.read(given["query"]))
        scores = f"query @ swapaxes(key, -2, -1) / sqrt({query.shape[-1]})"
        if "scale" in given:
            scores = "query @ swapaxes(key, -2, -1) * scale"
        if "is_causal" in given and self.literal(given["is_causal"]):
            # Keys after a query, counted from the first.
            scores = f"where(triu(ones_like({scores}), 1) > 0, -inf, {scores})"
        if "attn_mask" in given:
            mask = self.tensor(node, self.read(given["attn_mask"]))
            is_truth = mask.dtype == "bool"
            scores = f"where(attn_mask, {scores}, -inf)" if is_truth else f"{scores} + attn_mask"
        tree = ast.parse(ATTENTION.format(scores=scores), mode="eval").body
        for each in ast.walk(tree):
            ast.copy_location(each, node)
        return self.read(_Replaced(given).visit(tree))

    def without_gone(self, part: _Part) -> _Part:
        """Return a value without the axes that reductions have taken away."""
        value = part.value
        if not part.gone or not isinstance(value, Value):
            return part
        rank = value.ndim
        kept = [e for axis, e in enumerate(value.shape) if axis - rank not in part.gone]
        return _Part(value.reshape(*kept))

    def word(self, node: ast.Call, name: str) -> _Part:
        """Read a function of `WORDS`: of tensors, then of numbers that are written out."""
        named = [str(each.arg) for each in node.keywords]
        self.guarded(node, lambda: arguments_of(name, len(node.args), named))
        part = self.read(node.args[0])
        settings = {str(each.arg): self.literal(each.value) for each in node.keywords}
        rest = [
            self.read(each).value if self.is_tensor(each) else self.literal(each)
            for each in node.args[1:]
        ]
        axis = settings.get("axis", rest[0] if rest else None)
        if name == "unsqueeze" and part.gone:
            rank = self.tensor(node, part).ndim
            # An axis that a reduction has taken away is put back where it was.
            back = axis if isinstance(axis, int) else 0
            back = back if back < 0 else back - rank + len(part.gone) - 1
            if len(part.gone) == 1 and back in part.gone:
                return _Part(part.value)
        if name == "squeeze":
            x = self.tensor(node, part)
            # It stays until the end, as an axis that a reduction takes away.
            if isinstance(axis, int) and is_one(x.shape[self.guarded(node, lambda: axis % x.ndim)]):
                return _Part(x, part.gone | {axis % x.ndim - x.ndim})
        part = self.without_gone(part)
        x = self.tensor(node, part)
        return _Part(self.guarded(node, lambda: WORDS[name](x, *rest, **settings)))

    def key(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self.key(each) for each in node.elts)
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if part is None else self.literal(part) for part in parts))
        return self.literal(node)

    def literal(self, node: ast.expr) -> Any:
        """Return a value that is written out; numbers may be computed of named sizes."""
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.literal(each) for each in node.elts)
        if any(isinstance(each, ast.FloorDiv) for each in ast.walk(node)):
            self.divides = True
            node = _Undivided().visit(copy.deepcopy(node)) if self.is_whole else node
        try:
            return computed_size(node, self.size)
        except (KeyError, ValueError, ArithmeticError):
            pass
        try:
            return ast.literal_eval(node)
        except ValueError:
            named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            given = next((a for a in self.attributes if a.name in named), None)
            cure = None
            if given is not None and given.kind == "int":
                cure = f'give "{given.name}" a default_value: the kernel is made for it'
            elif given is not None:
                cure = f'make "{given.name}" an attribute of type int'
            raise self.wrong(node, "must be a number here", cure) from None

    def size(self, name: str) -> Any:
        """Return a named size, or an attribute's default, which the program is then made for."""
        if name in self.sizes:
            return self.sizes[name]
        found = self.builder.fixed(name)
        if found is None:
            raise KeyError(name)
        return found

    def call(self, node: ast.Call) -> _Part:
        if not isinstance(node.func, ast.Name):
            raise self.wrong(node, "is not part of the formula language", "call functions by name")
        if node.func.id == "gradient":
            return self.gradient(node)
        if node.func.id in WORDS and node.args:
            return self.word(node, node.func.id)
        if node.func.id == "scaled_dot_product_attention":
            return self.attention(node)
        if node.func.id == "einsum" and node.args:
            text = self.literal(node.args[0])
            values = [self.tensor(each, self.read(each)) for each in node.args[1:]]
            return _Part(self.guarded(node, lambda: einsum(str(text), *values)))
        name = _ALIASES.get(node.func.id, node.func.id)
        if name in ("max", "min") and len(node.args) == 2:
            name = {"max": "maximum", "min": "minimum"}[name]
        row = OPERATORS.get(name)
        if row is None or (row.kind not in _KINDS and name not in _FROM_NOTHING):
            import difflib

            known = [each for each, row in OPERATORS.items() if row.kind in _KINDS]
            near = difflib.get_close_matches(name, known, n=2)
            cure = f"did you mean {' or '.join(near)}?" if near else "docs/operators.md lists them"
            raise self.wrong(node, "calls no operator of the compiler", _CURES.get(name, cure))
        if name == "dropout" and (share := self.given_share(node)) is not None:
            return share
        settings = {str(each.arg): self.literal(each.value) for each in node.keywords}
        positional = list(node.args)
        if row.arity is not None and len(positional) > row.arity:
            # What follows the tensors is the settings, in the table's order: cast(x, "int32").
            names = [each for each in row.parameters if each not in settings]
            extra = positional[row.arity :]
            positional = positional[: row.arity]
            if len(extra) > len(names):
                tensors = f"{row.arity} tensor{'' if row.arity == 1 else 's'}"
                takes = ", ".join([tensors, *row.parameters])
                raise self.wrong(
                    node, f"has {len(extra) - len(names)} too many", f"it takes {takes}"
                )
            settings |= dict(zip(names, map(self.literal, extra), strict=False))
        parts = [self.read(each) for each in self.listed(row.arity, positional)]
        if name == "pad" and "widths" in settings and parts:
            rank = self.tensor(node, parts[0]).ndim
            settings["widths"] = flat_widths(settings["widths"], rank)
        return self.combine(node, name, parts, settings)

    def given_share(self, node: ast.Call) -> _Part | None:
        """Return a dropout whose share is a number of the launch; None for any other."""
        named = {str(each.arg): each.value for each in node.keywords}
        share = node.args[2] if len(node.args) == 3 else named.get("p")
        kinds = {attribute.name: attribute.kind for attribute in self.attributes}
        if not isinstance(share, ast.Name) or kinds.get(share.id) != "float":
            return None
        x = self.tensor(node, self.read(node.args[0]))
        p, seed = self.read(share).value, self.read(node.args[1]).value
        stream = self.literal(named["stream"]) if "stream" in named else 0

        def apply() -> Value:
            random = self.builder.apply("random_uniform", seed, shape=x.shape, stream=stream)
            return random.apply("greater", p).apply("where", _single(x) / (1.0 - p), 0.0)

        return _Part(self.guarded(node, apply))

    def gradient(self, node: ast.Call) -> _Part:
        """Read `gradient(formula, given, x)`: the gradient with respect to the input `x` of what
        depends on the formula with the gradient `given`."""
        if len(node.args) != 3 or node.keywords or not isinstance(node.args[2], ast.Name):
            raise self.wrong(node, "takes a formula, its gradient and the name of an input")
        # Its sizes may be divided inside.
        self.divides = True
        name = "y"
        while f"grad_{name}" in self.known:
            name += "_"
        inner = formula_graph(
            "inner",
            self.inputs,
            [FormulaOutput(name, ast.unparse(node.args[0]))],
            self.attributes,
            sizes=self.sizes,
        )
        for attribute in inner.attributes:
            if attribute.is_fixed:
                self.builder.fixed(attribute.name)
        given = self.tensor(node, self.read(node.args[1]))
        wanted = node.args[2].id

        def apply() -> Value:
            graph, seeds = formula_gradient(inner, [wanted])
            graph = in_equal_form(graph, seeds=seeds, is_last=False)
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
        if name == "broadcast_to" and parts and not isinstance(parts[0].value, Value):
            parts = [_Part(self.builder.constant(parts[0].value))]
        makes = OPERATORS[name].kind == "random" or name in _FROM_NOTHING
        if not makes and not any(isinstance(part.value, Value) for part in parts):
            return _Part(self.number(node, name, parts, given))
        row = OPERATORS[name]
        if row.kind == "elementwise" and any(part.gone for part in parts):
            parts = self.of_one_rank(parts)
        gone: frozenset[int] = frozenset()
        keeps = bool(given.get("keepdims", False))
        if row.kind == "reduction" or name in ("argmax", "argmin"):
            given["keepdims"] = True
        # Halves hold what is stored: what is computed of them is float32 until an output's end.
        operands = [part.value for part in parts]
        if name == "matmul" and "dtype" not in given and len(_floats(operands)) == 1:
            given |= {"dtype": "float32"} if _floats(operands) <= set(HALVES) else {}
        if name in _PROMOTING:
            operands = _widened(operands)
        elif row.kind in _COMPUTED or len(_floats(operands)) > 1:
            operands = [_single(each) for each in operands]
        if name == "take_along" and len(operands) == 2:
            value, gone = self.taken(node, operands[0], operands[1], given)
        else:
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
            axes = given.get("axis", row.parameters["axis"])
            axes = range(rank) if axes is None else axes
            axes = (axes,) if isinstance(axes, int) else axes
            reduced = frozenset(axis if axis < 0 else axis - rank for axis in axes)
            gone = parts[0].gone | (frozenset() if keeps else reduced)
        return _Part(value, gone)

    def taken(
        self, node: ast.expr, x: Any, places: Any, given: Mapping[str, Any]
    ) -> tuple[Value, frozenset[int]]:
        """Return `take_along`; where the places lack its axis there is one for each line, and the
        result lacks it, too."""
        is_line = isinstance(x, Value) and isinstance(places, Value) and places.ndim == x.ndim - 1
        axis = given.get("axis")
        gone: frozenset[int] = frozenset()
        if is_line and isinstance(axis, int) and -x.ndim <= axis < x.ndim:
            at = axis % x.ndim
            places = places.reshape(*places.shape[:at], 1, *places.shape[at:])
            gone = frozenset({at - x.ndim})
        return self.guarded(
            node, lambda: self.builder.apply("take_along", x, places, **given)
        ), gone

    def of_one_rank(self, parts: Sequence[_Part]) -> Sequence[_Part]:
        """Return operands of which those that lack axes lack them for good where another operand
        has the very shape that is left: of N means over a row, and N numbers."""
        plain = [p.value for p in parts if not p.gone and isinstance(p.value, Value)]
        highest = max((x.ndim for x in plain), default=0)
        found = []
        for part in parts:
            value = part.value
            if isinstance(value, Value) and part.gone and 0 < highest < value.ndim:
                rank = value.ndim
                left = [e for at, e in enumerate(value.shape) if at - rank not in part.gone]
                others = [x.shape for x in plain if x.ndim == highest]
                if len(left) == highest and any(all(map(same, left, s)) for s in others):
                    part = self.without_gone(part)
            found.append(part)
        return found

    def number(
        self,
        node: ast.expr,
        name: str,
        parts: Sequence[_Part],
        given: Mapping[str, Any],
    ) -> Any:
        """Return an operator of plain numbers, computed now."""
        import numpy as np

        row = OPERATORS[name]
        if row.kind != "elementwise":
            raise self.wrong(node, "takes a tensor, not a number")
        values = [np.asarray(part.value) for part in parts]
        settings = self.guarded(node, lambda: checked_settings(row, given, 0))
        try:
            with np.errstate(all="ignore"):
                return row.reference(*values, **settings).item()
        except (TypeError, ValueError, AttributeError, ArithmeticError) as err:
            raise self.wrong(node, f"is no number: {err}") from err

    def tensor(self, node: ast.expr, part: _Part) -> Value:
        if not isinstance(part.value, Value):
            raise self.wrong(node, "takes a tensor, not a number")
        return part.value

    def guarded(self, node: ast.expr, apply: Callable[[], Any]) -> Any:
        place = Location("formula", 1, _short_text(node))
        try:
            with self.builder.at(place):
                return apply()
        except UsageError as err:
            # The place of a formula is its column: it stands in no Python file.
            raise self.wrong(node, f"cannot be: {err.message}", err.help) from err
