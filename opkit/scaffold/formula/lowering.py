"""Formulas to an instruction plan."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from opkit.algebra import (
    COLUMNS,
    COMPARISONS,
    ONE,
    REDUCTIONS,
    ZERO,
    Node,
    Polynomial,
    Space,
    add,
    as_power,
    call,
    coefficient_of,
    evaluate,
    factors_of,
    match_polynomial,
    negate,
    number,
    power,
    product,
    simplify,
    stabilise,
    to_note,
)

from .lowerings import LOWERINGS, opaque
from .plan import Operand, Plan, Scalar, Step, Value, ValueSpace, allocate
from .reader import ParsedFormulas

__all__ = ["lower"]

_ROUND_MODES = {"floor": "CAST_FLOOR", "ceil": "CAST_CEIL", "round": "CAST_RINT"}
_COMPARE_MODES = {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "==": "EQ", "!=": "NE"}
_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_REDUCE = {
    "row_sum": "ReduceSum",
    "row_mean": "ReduceSum",
    "row_max": "ReduceMax",
    "row_min": "ReduceMin",
}
# What a Muls can multiply by without overflow or loss of digits.
_SMALLEST, _LARGEST = 2.0**-125, 2.0**127
_ONE_INSTRUCTION = {"exp": "Exp", "log": "Ln", "sqrt": "Sqrt", "abs": "Abs"}


def lower(parsed: ParsedFormulas, *, integer: bool = False) -> Plan:
    """Return the instruction plan of all outputs, common parts computed once.

    Args:
        parsed: the formulas.
        integer: plan for an integer compute type, where 1 - tanh(u) and the like have no better
        form.
    """
    lowering = _Lowering()
    outputs = []
    fast = parsed.spec.fast_math
    for output in parsed.outputs:
        node = output.expression
        if not integer:
            node = stabilise(simplify(node) if fast else node, fast_math=fast)
        outputs.append(lowering.output(node, "row" if output.per_row else "tile"))
    return allocate(lowering.steps, outputs)


class _Lowering:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.known: dict[Node, Value] = {}
        self.masks: dict[tuple[Node, str], Value] = {}
        self.filled: dict[tuple[Operand, str], Value] = {}
        self.read: dict[int, Value] = {}
        self.result_numbers: set[int] = set()

    def output(self, node: Node, space: ValueSpace) -> Value:
        """Lower one output into a value of its own, that no other output and no input shares."""
        value = self.vector(node, space)
        defining = next(s for s in self.steps if s.target.number == value.number)
        if defining.operation == "Widen" or value.number in self.result_numbers:
            value = self.emit("Muls", space, (value, Scalar(ONE)), note=to_note(node))
        self.result_numbers.add(value.number)
        return value

    # Operands

    def emit(
        self,
        operation: str,
        space: ValueSpace,
        sources: tuple[Operand, ...],
        *,
        mode: str = "",
        note: str = "",
        per_row: bool = False,
    ) -> Value:
        target = Value(len(self.steps), space, per_row)
        self.steps.append(Step(operation, target, sources, mode, note))
        return target

    def vector(self, node: Node, space: ValueSpace) -> Value:
        """Return a value in a space that is at least as wide as its own."""
        if node.space == space:
            return self.lower(node)
        scalar = self.scalar(node)
        key = (scalar, space)
        if key not in self.filled:
            self.filled[key] = self.emit("Duplicate", space, (scalar,), note=to_note(node))
        return self.filled[key]

    def scalar(self, node: Node) -> Operand:
        """Return a value that does not vary along the row, as an operand of Adds, Muls and the
        like."""
        if node.space == "uniform":
            return Scalar(node)
        value = self.lower(node)
        if value.number not in self.read:
            self.read[value.number] = self.emit("Read", "scalar", (value,))
        return self.read[value.number]

    # Values

    def lower(self, node: Node) -> Value:
        """Return the value of a node that is not uniform, computed once however often it is
        used."""
        value = self.known.get(node)
        if value is None:
            value = self.lower_new(node)
            self.known[node] = value
        return value

    def lower_new(self, node: Node) -> Value:
        space, kind, note = node.space, node.kind, to_note(node)
        assert space != "uniform", node
        if kind == "row":
            return self.emit("Widen", "row", (), mode=node.args[0].name)
        if kind == "input":
            return self.emit("Widen", "tile", (), mode=node.name)
        if kind == "opaque":
            return self.lower(node.args[0])
        if kind == "plus_zero":
            return self.emit("Adds", space, (self.lower(node.args[0]), Scalar(ZERO)), note=note)
        if kind == "guard":
            return self.guard(node)
        if kind in REDUCTIONS:
            return self.reduction(node)
        polynomial = match_polynomial(node)
        if polynomial is not None:
            return self.polynomial(polynomial, space, note)
        if kind == "sum":
            return self.sum(node, space, note)
        if kind == "product":
            return self.product(node, space, note)
        if kind == "power":
            return self.power(node, space, note)
        if kind in ("maximum", "minimum"):
            return self.extremum(node, space, note)
        if kind == "where":
            return self.where(node, space, note)
        return self.function(node, space, note)

    def function(self, node: Node, space: Space, note: str) -> Value:
        (u,) = node.args
        if node.kind in _ONE_INSTRUCTION:
            return self.emit(_ONE_INSTRUCTION[node.kind], space, (self.lower(u),), note=note)
        if node.kind in _ROUND_MODES:
            mode = _ROUND_MODES[node.kind]
            return self.emit("Cast", space, (self.lower(u),), mode=mode, note=note)
        if node.kind == "relu":
            return self.emit("Maxs", space, (self.lower(u), Scalar(ZERO)), note=note)
        value = self.lower(LOWERINGS[node.kind](opaque(u)))
        self.annotate(note)
        return value

    def guard(self, node: Node) -> Value:
        """Lower v + (m - m), which is NaN where m is infinite and v elsewhere."""
        value, infinite = (self.lower(argument) for argument in node.args)
        nothing = self.emit("Sub", node.space, (infinite, infinite))
        return self.emit("Add", node.space, (value, nothing), note=to_note(node.args[0]))

    def reduction(self, node: Node) -> Value:
        source = self.vector(node.args[0], "tile")
        total = self.emit(_REDUCE[node.kind], "row", (source,), note=to_note(node))
        if node.kind != "row_mean":
            return total
        return self.emit("Muls", "row", (total, Scalar(power(COLUMNS, -1))), note=to_note(node))

    def polynomial(self, polynomial: Polynomial, space: Space, note: str) -> Value:
        """Emit Horner's scheme in the base or, where only every other power occurs, in its
        square."""
        base = polynomial.base
        step = self.lower(power(base, polynomial.stride))
        powers = polynomial.coefficients
        value = step
        if powers[-1] != ONE:
            value = self.emit("Muls", space, (step, Scalar(powers[-1])))
        for index, coefficient in reversed(list(enumerate(powers[:-1]))):
            if coefficient != ZERO:
                value = self.emit("Adds", space, (value, Scalar(coefficient)))
            if index:
                value = self.emit("Mul", space, (value, step))
        if polynomial.lowest:
            lowest = self.lower(power(base, polynomial.lowest))
            value = self.emit("Mul", space, (value, lowest))
        self.annotate(note)
        return value

    def sum(self, node: Node, space: Space, note: str) -> Value:
        narrow = [term for term in node.args if term.space != space]
        wide = [term for term in node.args if term.space == space]
        # A negative term is subtracted, but one has to come first.
        wide.sort(key=_is_negative)
        value = self.lower(wide[0])
        for term in wide[1:]:
            if _is_negative(term):
                value = self.emit("Sub", space, (value, self.lower(negate(term))))
            else:
                value = self.emit("Add", space, (value, self.lower(term)))
        if narrow:
            value = self.emit("Adds", space, (value, self.scalar(add(*narrow))))
        self.annotate(note)
        return value

    def product(self, node: Node, space: Space, note: str) -> Value:
        opposite = self.known.get(negate(node))
        if opposite is not None:
            return self.emit("Muls", space, (opposite, Scalar(number(-1))), note=note)
        narrow, numerator, denominator = [], [], []
        for factor in factors_of(node):
            if factor.space != space:
                narrow.append(factor)
                continue
            base, exponent = as_power(factor)
            if base.kind == "sigmoid":
                # Divided by 1 + exp(-u) instead of multiplied by its reciprocal.
                base = add(ONE, call("exp", negate(base.args[0])))
                exponent = -exponent
            if exponent < 0:
                denominator.append(power(base, -exponent))
            else:
                numerator.append(power(base, exponent))
        scale = product(*narrow)
        if not numerator:
            value, scale = self.vector(scale, space), ONE
        else:
            value = self.chain(numerator, space)
        if denominator:
            value = self.emit("Div", space, (value, self.chain(denominator, space)))
        for part in _within_float32(scale):
            value = self.emit("Muls", space, (value, self.scalar(part)))
        self.annotate(note)
        return value

    def chain(self, factors: list[Node], space: Space) -> Value:
        value = self.lower(factors[0])
        for factor in factors[1:]:
            value = self.emit("Mul", space, (value, self.lower(factor)))
        return value

    def power(self, node: Node, space: Space, note: str) -> Value:
        base, exponent = node.args[0], node.args[1].fraction
        if exponent < 0:
            if base.kind == "sigmoid":
                inverse = add(ONE, call("exp", negate(base.args[0])))
                return self.lower(power(inverse, -exponent))
            one = self.vector(ONE, space)
            return self.emit("Div", space, (one, self.lower(power(base, -exponent))), note=note)
        if exponent.denominator == 1:
            half = self.lower(power(base, exponent.numerator // 2))
            is_even = exponent.numerator % 2 == 0
            value = self.emit("Mul", space, (half, half), note=note if is_even else "")
            if not is_even:
                value = self.emit("Mul", space, (value, self.lower(base)), note=note)
            return value
        if exponent.denominator == 2:
            whole = self.lower(power(base, exponent - Fraction(1, 2)))
            root = self.lower(call("sqrt", base))
            return self.emit("Mul", space, (whole, root), note=note)
        logarithm = self.lower(call("log", base))
        scaled = self.emit("Muls", space, (logarithm, Scalar(number(exponent))))
        return self.emit("Exp", space, (scaled,), note=note)

    def extremum(self, node: Node, space: Space, note: str) -> Value:
        name = "Max" if node.kind == "maximum" else "Min"
        a, b = node.args
        if a.space != space:
            a, b = b, a
        if b.space == space:
            return self.emit(name, space, (self.lower(a), self.lower(b)), note=note)
        return self.emit(f"{name}s", space, (self.lower(a), self.scalar(b)), note=note)

    def where(self, node: Node, space: Space, note: str) -> Value:
        condition, a, b = node.args
        mask = self.compare(condition, space)
        kept = self.vector(a, space)
        if b.space == space:
            return self.emit("Select", space, (mask, kept, self.lower(b)), note=note)
        return self.emit("Selects", space, (mask, kept, self.scalar(b)), note=note)

    def compare(self, condition: Node, space: Space) -> Value:
        key = (condition, space)
        if key not in self.masks:
            self.masks[key] = self.comparison(condition, space)
        return self.masks[key]

    def comparison(self, condition: Node, space: Space) -> Value:
        assert condition.kind in COMPARISONS
        a, b = condition.args
        mode = _COMPARE_MODES[condition.kind]
        if a.space != space:
            a, b, mode = b, a, _MIRRORED[mode]
        left = self.vector(a, space)
        if b.space == space:
            sources: tuple[Operand, ...] = (left, self.lower(b))
            operation = "Compare"
        else:
            sources = (left, self.scalar(b))
            operation = "CompareScalar"
        note = to_note(condition)
        return self.emit(operation, "mask", sources, mode=mode, note=note, per_row=space == "row")

    def annotate(self, note: str) -> None:
        """Put the maths beside the last step of its group."""
        last = self.steps[-1]
        if not last.note:
            self.steps[-1] = replace(last, note=note)


def _within_float32(scale: Node) -> list[Node]:
    """Return the factors that multiply like `scale`, each a number that float32 has."""
    if scale == ONE:
        return []
    value = abs(evaluate(scale)) if scale.is_constant else 1.0
    if _SMALLEST < value < _LARGEST or value == 0 or math.isinf(value):
        return [scale]
    step = Fraction(2) ** (100 if value > 1 else -100)
    return [number(step), *_within_float32(product(scale, number(1 / step)))]


def _is_negative(term: Node) -> bool:
    return coefficient_of(term)[0] < 0
