"""Formulas to an instruction plan."""

from __future__ import annotations

import sympy

from .functions import (
    COLUMNS,
    Ceil,
    Comparison,
    Equal,
    Expm1,
    Floor,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Maximum,
    Minimum,
    NotEqual,
    Reduction,
    Round,
    RowInput,
    RowMax,
    RowMean,
    RowMin,
    RowSum,
    Sigmoid,
    Sign,
    Softplus,
    Tanh,
    Where,
)
from .plan import Operand, Plan, Scalar, Step, Value, ValueSpace, allocate
from .polynomial import Polynomial, match_polynomial
from .reader import ParsedFormulas, Space, space_of
from .stable import stabilise
from .text import to_note

__all__ = ["lower"]

_ROUND_MODES = {Floor: "CAST_FLOOR", Ceil: "CAST_CEIL", Round: "CAST_RINT"}
_COMPARE_MODES: dict[type[Comparison], str] = {
    Less: "LT",
    LessEqual: "LE",
    Greater: "GT",
    GreaterEqual: "GE",
    Equal: "EQ",
    NotEqual: "NE",
}
_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_REDUCE = {RowSum: "ReduceSum", RowMean: "ReduceSum", RowMax: "ReduceMax", RowMin: "ReduceMin"}
# Below this |u|, tanh(u) comes from its continued fraction: there 1 - 2/(exp(2u) + 1) cancels.
_TANH_SMALL = sympy.Rational(1, 2)
# Terms of atanh's series that log(1 + z) needs for float32 with z <= 1: the next is below 2**-24 of
# the first.
_LOG1P_TERMS = 8


def lower(parsed: ParsedFormulas, *, integer: bool = False) -> Plan:
    """Return the instruction plan of all outputs, common parts computed once.

    Args:
        parsed: the formulas.
        integer: plan for an integer compute type, where 1 - tanh(u) and the like have no better
        form.
    """
    lowering = _Lowering(parsed)
    outputs = []
    for output in parsed.outputs:
        expression = output.expression if integer else stabilise(output.expression)
        outputs.append(lowering.output(expression, "row" if output.per_row else "tile"))
    return allocate(lowering.steps, outputs)


class _Lowering:
    def __init__(self, parsed: ParsedFormulas) -> None:
        self.steps: list[Step] = []
        self.inputs = set(parsed.inputs.values())
        self.known: dict[sympy.Basic, Value] = {}
        self.filled: dict[tuple[Operand, str], Value] = {}
        self.read: dict[int, Value] = {}
        self.bound_rows: set[sympy.Symbol] = set()
        self.result_numbers: set[int] = set()

    def output(self, expression: sympy.Expr, space: ValueSpace) -> Value:
        """Lower one output into a value of its own, that no other output and no input shares."""
        value = self.vector(expression, space)
        defining = next(s for s in self.steps if s.target.number == value.number)
        if defining.operation == "Widen" or value.number in self.result_numbers:
            value = self.emit(
                "Muls", space, (value, Scalar(sympy.Integer(1))), note=to_note(expression)
            )
        self.result_numbers.add(value.number)
        return value

    # Operands

    def space(self, expression: sympy.Basic) -> Space:
        if isinstance(expression, sympy.Symbol) and expression in self.bound_rows:
            return "row"
        if not self.bound_rows or isinstance(expression, Reduction | RowInput):
            return space_of(expression, frozenset(self.inputs))
        if isinstance(expression, sympy.Symbol):
            return "tile" if expression in self.inputs else "uniform"
        spaces = {self.space(argument) for argument in expression.args}
        return "tile" if "tile" in spaces else "row" if "row" in spaces else "uniform"

    def bind(self, expression: sympy.Expr) -> sympy.Symbol:
        """Return a symbol for an expression's value, so that sympy cannot take the expression apart
        again."""
        if isinstance(expression, sympy.Symbol):
            return expression
        for symbol, value in self.known.items():
            if isinstance(symbol, sympy.Dummy) and self.known.get(expression) is value:
                return symbol
        symbol = sympy.Dummy("u", real=True)
        value = self.lower(expression)
        self.known[symbol] = value
        if value.space == "row":
            self.bound_rows.add(symbol)
        else:
            self.inputs.add(symbol)
        return symbol

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

    def vector(self, expression: sympy.Expr, space: ValueSpace) -> Value:
        """Return an expression's value in a space that is at least as wide as its own."""
        own = self.space(expression)
        if own == space:
            return self.lower(expression)
        scalar = self.scalar(expression)
        key = (scalar, space)
        if key not in self.filled:
            self.filled[key] = self.emit("Duplicate", space, (scalar,), note=to_note(expression))
        return self.filled[key]

    def scalar(self, expression: sympy.Expr) -> Operand:
        """Return an expression that does not vary along the row, as an operand of Adds, Muls and
        the like."""
        if self.space(expression) == "uniform":
            return Scalar(expression)
        value = self.lower(expression)
        if value.number not in self.read:
            self.read[value.number] = self.emit("Read", "scalar", (value,))
        return self.read[value.number]

    # Expressions

    def lower(self, expression: sympy.Expr) -> Value:
        """Return the value of an expression that is not uniform, computed once however often it is
        used."""
        value = self.known.get(expression)
        if value is None:
            value = self.lower_new(expression)
            self.known[expression] = value
        return value

    def lower_new(self, expression: sympy.Expr) -> Value:
        space = self.space(expression)
        assert space != "uniform", expression
        note = to_note(expression)
        if isinstance(expression, RowInput):
            return self.emit("Widen", "row", (), mode=expression.args[0].name)
        if isinstance(expression, sympy.Symbol):
            return self.emit("Widen", "tile", (), mode=expression.name)
        if isinstance(expression, Reduction):
            return self.reduction(expression)
        polynomial = match_polynomial(expression)
        if polynomial is not None:
            return self.polynomial(polynomial, space, note)
        if isinstance(expression, sympy.Add):
            return self.sum(expression, space, note)
        if isinstance(expression, sympy.Mul):
            return self.product(expression, space, note)
        if isinstance(expression, sympy.exp):
            return self.emit("Exp", space, (self.lower(expression.args[0]),), note=note)
        if isinstance(expression, sympy.Pow):
            return self.power(expression, space, note)
        return self.function(expression, space, note)

    def function(self, expression: sympy.Expr, space: Space, note: str) -> Value:
        kind = type(expression)
        first = expression.args[0]
        if kind is sympy.log:
            return self.emit("Ln", space, (self.lower(first),), note=note)
        if kind is sympy.Abs:
            return self.emit("Abs", space, (self.lower(first),), note=note)
        if kind in _ROUND_MODES:
            return self.emit(
                "Cast", space, (self.lower(first),), mode=_ROUND_MODES[kind], note=note
            )
        if kind in (Maximum, Minimum):
            return self.extremum(expression, space, note)
        if kind is Where:
            return self.where(expression, space, note)
        if kind is Softplus:
            return self.softplus(first)
        if kind is Sigmoid:
            return self.lower(1 / (1 + sympy.exp(-first)))
        expand = {Tanh: _tanh, Expm1: _expm1, Sign: _sign}.get(kind)
        if expand is None:
            raise NotImplementedError(f"no lowering for {kind.__name__}")
        return self.lower(expand(self.bind(first)))

    def softplus(self, argument: sympy.Expr) -> Value:
        """Lower max(u, 0) + log(1 + z), z = exp(-|u|), with log(1 + z) = 2 atanh(w), w = z/(2 + z).

        Ln(1 + z) would lose the relative accuracy of a small z.
        """
        u = self.bind(argument)
        z = self.bind(sympy.exp(-sympy.Abs(u)))
        w = self.bind(z / (2 + z))
        series = [w ** (2 * k + 1) * sympy.Rational(2, 2 * k + 1) for k in range(_LOG1P_TERMS)]
        logarithm = self.bind(sympy.Add(*series))
        return self.lower(Maximum(u, 0) + logarithm)

    def reduction(self, expression: Reduction) -> Value:
        source = self.vector(expression.args[0], "tile")
        total = self.emit(_REDUCE[type(expression)], "row", (source,), note=to_note(expression))
        if not isinstance(expression, RowMean):
            return total
        return self.emit("Muls", "row", (total, Scalar(1 / COLUMNS)), note=to_note(expression))

    def polynomial(self, polynomial: Polynomial, space: Space, note: str) -> Value:
        """Emit Horner's scheme in g or, where only every other power occurs, in g**2."""
        g = polynomial.generator
        step = self.lower(g**polynomial.stride)
        powers = polynomial.coefficients
        value = step
        if powers[-1] != 1:
            value = self.emit("Muls", space, (step, Scalar(powers[-1])))
        for coefficient in reversed(powers[:-1]):
            if coefficient != 0:
                value = self.emit("Adds", space, (value, Scalar(coefficient)))
            if coefficient is not powers[0]:
                value = self.emit("Mul", space, (value, step))
        if polynomial.lowest:
            value = self.emit("Mul", space, (value, self.lower(g**polynomial.lowest)), note=note)
        return value

    def sum(self, expression: sympy.Add, space: Space, note: str) -> Value:
        narrow = [t for t in expression.args if self.space(t) != space]
        wide = [t for t in expression.args if self.space(t) == space]
        positive = [t for t in wide if not t.could_extract_minus_sign()]
        negative = [-t for t in wide if t.could_extract_minus_sign()]
        if positive:
            value = self.lower(positive[0])
            rest = positive[1:]
        elif len(negative) == 1:
            # The product takes the sign into its coefficient.
            value = self.lower(-negative[0])
            rest, negative = [], []
        else:
            # -(a + b) + c: one negation for all.
            value = self.lower(sympy.Add(*negative))
            value = self.emit("Muls", space, (value, Scalar(sympy.Integer(-1))))
            rest, negative = [], []
        for term in rest:
            value = self.emit("Add", space, (value, self.lower(term)))
        for term in negative:
            value = self.emit("Sub", space, (value, self.lower(term)))
        if narrow:
            value = self.emit("Adds", space, (value, self.scalar(sympy.Add(*narrow))))
        self.annotate(note)
        return value

    def product(self, expression: sympy.Mul, space: Space, note: str) -> Value:
        narrow, numerator, denominator = [], [], []
        for factor in expression.args:
            if isinstance(factor, Sigmoid) and self.space(factor) == space:
                factor = 1 / (1 + sympy.exp(-factor.args[0]))
            if self.space(factor) != space:
                narrow.append(factor)
                continue
            base, exponent = factor.as_base_exp()
            if isinstance(base, Sigmoid):
                base, exponent = 1 + sympy.exp(-base.args[0]), -exponent
            if exponent.is_number and exponent.is_negative and base != sympy.E:
                denominator.append(base**-exponent)
            else:
                numerator.append(base**exponent)
        scale = sympy.Mul(*narrow)
        value = None
        for factor in numerator:
            other = self.lower(factor)
            value = other if value is None else self.emit("Mul", space, (value, other))
        divisor = None
        for factor in denominator:
            other = self.lower(factor)
            divisor = other if divisor is None else self.emit("Mul", space, (divisor, other))
        if value is None:
            value, scale = self.vector(scale, space), sympy.Integer(1)
        if divisor is not None:
            value = self.emit("Div", space, (value, divisor))
        if scale != 1:
            value = self.emit("Muls", space, (value, self.scalar(scale)))
        self.annotate(note)
        return value

    def power(self, expression: sympy.Pow, space: Space, note: str) -> Value:
        base, exponent = expression.args
        if self.space(base) == "uniform":
            return self.lower(sympy.exp(exponent * sympy.log(base), evaluate=False))
        if exponent.is_negative:
            if isinstance(base, Sigmoid):
                return self.lower((1 + sympy.exp(-base.args[0])) ** -exponent)
            one = self.vector(sympy.Integer(1), space)
            return self.emit("Div", space, (one, self.lower(base**-exponent)), note=note)
        if exponent.is_Integer:
            half = self.lower(base ** (exponent // 2))
            value = self.emit("Mul", space, (half, half), note=note if exponent % 2 == 0 else "")
            if exponent % 2:
                value = self.emit("Mul", space, (value, self.lower(base)), note=note)
            return value
        if exponent == sympy.Rational(1, 2):
            return self.emit("Sqrt", space, (self.lower(base),), note=note)
        if (2 * exponent).is_Integer:
            whole = self.lower(base ** (exponent - sympy.Rational(1, 2)))
            return self.emit("Mul", space, (whole, self.lower(sympy.sqrt(base))), note=note)
        logarithm = self.lower(sympy.log(base, evaluate=False))
        scaled = self.emit("Muls", space, (logarithm, Scalar(exponent)))
        return self.emit("Exp", space, (scaled,), note=note)

    def extremum(self, expression: sympy.Expr, space: Space, note: str) -> Value:
        name = "Max" if isinstance(expression, Maximum) else "Min"
        a, b = expression.args
        if self.space(a) != space:
            a, b = b, a
        if self.space(b) == space:
            return self.emit(name, space, (self.lower(a), self.lower(b)), note=note)
        return self.emit(f"{name}s", space, (self.lower(a), self.scalar(b)), note=note)

    def where(self, expression: Where, space: Space, note: str) -> Value:
        condition, a, b = expression.args
        mask = self.compare(condition, space)
        kept = self.vector(a, space)
        if self.space(b) == space:
            return self.emit("Select", space, (mask, kept, self.lower(b)), note=note)
        return self.emit("Selects", space, (mask, kept, self.scalar(b)), note=note)

    def compare(self, condition: Comparison, space: Space) -> Value:
        key = sympy.Tuple(condition, sympy.Symbol(space))
        if key in self.known:
            return self.known[key]
        a, b = condition.args
        mode = _COMPARE_MODES[type(condition)]
        if self.space(a) != space:
            a, b, mode = b, a, _MIRRORED[mode]
        left = self.vector(a, space)
        per_row = space == "row"
        if self.space(b) == space:
            sources: tuple[Operand, ...] = (left, self.lower(b))
            operation = "Compare"
        else:
            sources = (left, self.scalar(b))
            operation = "CompareScalar"
        mask = self.emit(
            operation, "mask", sources, mode=mode, note=to_note(condition), per_row=per_row
        )
        self.known[key] = mask
        return mask

    def annotate(self, note: str) -> None:
        """Put the maths beside the last step of its group."""
        last = self.steps[-1]
        if not last.note:
            self.steps[-1] = Step(last.operation, last.target, last.sources, last.mode, note)


def _tanh_fraction(u: sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr]:
    """Return numerator and denominator of tanh's continued fraction, u/(1 + u^2/(3 + u^2/(5 +
    u^2/(7 + u^2/9))))."""
    square = u**2
    numerator = u * (945 + 105 * square + square**2)
    denominator = 945 + 420 * square + 15 * square**2
    return numerator, denominator


def _tanh(u: sympy.Symbol) -> sympy.Expr:
    numerator, denominator = _tanh_fraction(u)
    # For large |u| exp saturates to 0 or infinity, and both give the right limit.
    large = 1 - 2 / (sympy.exp(2 * u) + 1)
    return Where(Less(sympy.Abs(u), _TANH_SMALL), numerator / denominator, large)


def _expm1(u: sympy.Symbol) -> sympy.Expr:
    # exp(u) - 1 = 2t/(1 - t) with t = tanh(u/2).
    numerator, denominator = _tanh_fraction(u / 2)
    small = 2 * sympy.expand(numerator) / sympy.expand(denominator - numerator)
    return Where(Less(sympy.Abs(u), 2 * _TANH_SMALL), small, sympy.exp(u) - 1)


def _sign(u: sympy.Symbol) -> sympy.Expr:
    # Scaling twice lifts even the smallest subnormal above 1; zero stays zero.
    scaled = u * sympy.Integer(10) ** 38
    clamped = Maximum(Minimum(scaled, 1), -1)
    return Maximum(Minimum(clamped * sympy.Integer(10) ** 38, 1), -1)
