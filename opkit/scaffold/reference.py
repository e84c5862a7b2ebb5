"""Formulas as plain C++ loops over doubles: the reference of the generated C++ unit test.

It reads the formula's text itself, apart from the lowering that writes the kernel, so that a
mistake there shows.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from opkit.errors import OpkitError
from opkit.schema import OpSpec

__all__ = ["Reference", "ReferenceOutput", "reference"]

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_FUNCTIONS = {
    "exp": "std::exp({0})",
    "expm1": "std::expm1({0})",
    "log": "std::log({0})",
    "ln": "std::log({0})",
    "sqrt": "std::sqrt({0})",
    "rsqrt": "1.0 / std::sqrt({0})",
    "abs": "std::fabs({0})",
    "log1p": "std::log1p({0})",
    "sinh": "std::sinh({0})",
    "cosh": "std::cosh({0})",
    "tanh": "std::tanh({0})",
    "asinh": "std::asinh({0})",
    "atanh": "std::atanh({0})",
    "sigmoid": "1.0 / (1.0 + std::exp(-({0})))",
    "softplus": "std::fmax({0}, 0.0) + std::log1p(std::exp(-std::fabs({0})))",
    "relu": "std::max({0}, 0.0)",
    "square": "({0}) * ({0})",
    "reciprocal": "1.0 / ({0})",
    "sign": "double(({0}) > 0) - double(({0}) < 0)",
    "floor": "std::floor({0})",
    "ceil": "std::ceil({0})",
    "round": "std::nearbyint({0})",
    "maximum": "std::max<double>({0}, {1})",
    "minimum": "std::min<double>({0}, {1})",
    "max": "std::max<double>({0}, {1})",
    "min": "std::min<double>({0}, {1})",
    "pow": "std::pow({0}, {1})",
    "where": "({0}) ? ({1}) : ({2})",
}
_CONSTANTS = {"pi": "3.141592653589793", "e": "2.718281828459045"}
_REDUCTIONS = frozenset({"sum", "mean", "max", "min"})


@dataclass(frozen=True)
class ReferenceOutput:
    """One output's loop."""

    name: str
    rows: tuple[str, ...]
    """Statements before the loop over a row, in order: one value each for every reduction."""
    value: str
    """The element at `row` and `column`; a per-row value does not use `column`."""
    per_row: bool


@dataclass(frozen=True)
class Reference:
    """One operator's loops."""

    outputs: tuple[ReferenceOutput, ...]
    row_inputs: frozenset[str]
    """Inputs that hold one value per row."""

    @property
    def works_by_row(self) -> bool:
        """Whether the last axis is more than one of many: rows are reduced, or have values."""
        return bool(self.row_inputs) or any(output.rows for output in self.outputs)


def reference(spec: OpSpec) -> Reference | None:
    """Return the loops that compute an operator's formulas; None when an output has none.

    The formulas have been checked before: anything unknown here is our own gap.

    Raises:
        OpkitError: a construct of the formula language has no C++ form.
    """
    if not spec.has_formula:
        return None
    outputs, row_inputs = [], set()
    for tensor in spec.outputs:
        writer = _Writer(spec)
        tree = ast.parse((tensor.formula or "").strip(), mode="eval")
        value = writer.text(tree.body)
        per_row = not writer.uses_element
        outputs.append(ReferenceOutput(tensor.name, tuple(writer.rows), value, per_row))
        row_inputs |= writer.row_inputs
    return Reference(tuple(outputs), frozenset(row_inputs))


class _Writer:
    def __init__(self, spec: OpSpec) -> None:
        self._inputs = {tensor.name for tensor in spec.inputs}
        self._attributes = {attr.name for attr in spec.attrs}
        self.rows: list[str] = []
        self.row_inputs: set[str] = set()
        self.uses_element = False

    def text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return repr(float(node.value)) if isinstance(node.value, (int, float)) else ""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.UnaryOp):
            sign = "-" if isinstance(node.op, ast.USub) else "+"
            return f"({sign}({self.text(node.operand)}))"
        if isinstance(node, ast.BinOp):
            left, right = self.text(node.left), self.text(node.right)
            if isinstance(node.op, ast.Pow):
                return f"std::pow({left}, {right})"
            return f"({left} {_BINARY[type(node.op)]} {right})"
        if isinstance(node, ast.Compare):
            left, right = self.text(node.left), self.text(node.comparators[0])
            return f"({left} {_COMPARE[type(node.ops[0])]} {right})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id)
        raise OpkitError(f"the C++ reference has no form for {ast.unparse(node)}")

    def _name(self, name: str) -> str:
        if name in self._inputs:
            self.uses_element = True
            return f"in_{name}.at(row, column)"
        if name in self._attributes:
            return f"attr_{name}"
        if name == "columns":
            return "double(columns)"
        return _CONSTANTS[name]

    def _call(self, node: ast.Call, name: str) -> str:
        if name == "row" and isinstance(node.args[0], ast.Name):
            self.row_inputs.add(node.args[0].id)
            return f"in_{node.args[0].id}.at(row)"
        if name == "like":
            # like(value, x): a value per row that fills the row.
            self.uses_element = True
            return self.text(node.args[0])
        if name in _REDUCTIONS and len(node.args) == 1:
            return self._reduction(node, name)
        if name not in _FUNCTIONS:
            raise OpkitError(f"the C++ reference has no form for the function {name}")
        return f"({_FUNCTIONS[name].format(*(self.text(argument) for argument in node.args))})"

    def _reduction(self, node: ast.Call, name: str) -> str:
        outer = self.uses_element
        body = self.text(node.args[0])
        self.uses_element = outer
        value = f"{name}_{len(self.rows)}"
        element = f"[&](int64_t column) {{ return {body}; }}"
        self.rows.append(f"const double {value} = reduce_{name}(columns, {element});")
        return value
