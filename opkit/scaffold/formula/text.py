"""Expressions as text: in the formula language, in NumPy, and as C++ over doubles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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

__all__ = ["to_cpp", "to_formula", "to_note", "to_numpy", "to_torch"]

_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(5)
_LONGEST_NOTE = 72
_INFIX = {
    Less: "<",
    LessEqual: "<=",
    Greater: ">",
    GreaterEqual: ">=",
    Equal: "==",
    NotEqual: "!=",
}
_REDUCTION_NAMES = {RowSum: "sum", RowMean: "mean", RowMax: "max", RowMin: "min"}
_FORMULA_NAMES: dict[type[sympy.Basic], str] = {
    sympy.exp: "exp",
    sympy.log: "log",
    sympy.Abs: "abs",
    Tanh: "tanh",
    Sigmoid: "sigmoid",
    Softplus: "softplus",
    Expm1: "expm1",
    Sign: "sign",
    Floor: "floor",
    Ceil: "ceil",
    Round: "round",
    Maximum: "maximum",
    Minimum: "minimum",
    Where: "where",
    RowInput: "row",
}
_NUMPY_NAMES: dict[type[sympy.Basic], str] = {
    sympy.exp: "np.exp",
    sympy.log: "np.log",
    sympy.Abs: "np.abs",
    Tanh: "np.tanh",
    Sigmoid: "_sigmoid",
    Softplus: "_softplus",
    Expm1: "np.expm1",
    Sign: "np.sign",
    Floor: "np.floor",
    Ceil: "np.ceil",
    Round: "np.rint",
    Maximum: "np.maximum",
    Minimum: "np.minimum",
    Where: "np.where",
    RowInput: "_row",
}
_TORCH_NAMES: dict[type[sympy.Basic], str] = {
    sympy.exp: "torch.exp",
    sympy.log: "torch.log",
    sympy.Abs: "torch.abs",
    Tanh: "torch.tanh",
    Sigmoid: "torch.sigmoid",
    Softplus: "torch.nn.functional.softplus",
    Expm1: "torch.expm1",
    Sign: "torch.sign",
    Floor: "torch.floor",
    Ceil: "torch.ceil",
    Round: "torch.round",
    Maximum: "_maximum",
    Minimum: "_minimum",
    Where: "torch.where",
}
_TORCH_REDUCTIONS = {RowSum: "sum", RowMean: "mean", RowMax: "amax", RowMin: "amin"}
_CPP_NAMES: dict[type[sympy.Basic], str] = {
    sympy.exp: "std::exp",
    sympy.log: "std::log",
    sympy.Abs: "std::fabs",
    Tanh: "std::tanh",
    Expm1: "std::expm1",
    Floor: "std::floor",
    Ceil: "std::ceil",
    Round: "std::nearbyint",
    Maximum: "std::fmax",
    Minimum: "std::fmin",
}


@dataclass(frozen=True)
class _Dialect:
    names: Mapping[type[sympy.Basic], str]
    reduction: Callable[[Reduction, str], str]
    constants: Mapping[sympy.Basic, str]
    sqrt: str
    power: Callable[[str, str], str]
    decimal: Callable[[float], str] | None = None
    """How a number that is not an integer is written; None for an exact fraction."""
    number_argument: Callable[[str], str] | None = None
    """How a function's argument is written that holds no tensor; None: like any other."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    expansions: Mapping[type[sympy.Basic], Callable[..., str]] = field(default_factory=dict)


def to_formula(expression: sympy.Expr) -> str:
    """Return an expression in the formula language; `parse` gives the same expression back."""
    return _text(
        expression,
        _Dialect(
            names=_FORMULA_NAMES,
            reduction=lambda node, inner: f"{_REDUCTION_NAMES[type(node)]}({inner}, axis=-1)",
            constants={sympy.pi: "pi", sympy.E: "e", COLUMNS: "columns"},
            sqrt="sqrt",
            power=lambda base, exponent: f"{base}**{exponent}",
        ),
    )


def to_note(expression: sympy.Basic) -> str:
    """Return an expression for a comment; empty where it would not fit a line."""
    # A deep expression is not worth printing only to be thrown away.
    if expression.count_ops() > _LONGEST_NOTE:
        return ""
    text = _text(expression, _NOTE)
    return text if len(text) <= _LONGEST_NOTE else ""


def to_numpy(expression: sympy.Expr, *, columns: str = "columns") -> str:
    """Return an expression over NumPy float64 arrays, with the helpers of `golden_source`."""
    return _text(
        expression,
        _Dialect(
            names=_NUMPY_NAMES,
            reduction=lambda node, inner: (
                f"np.{_REDUCTION_NAMES[type(node)]}({inner}, axis=-1, keepdims=True)"
            ),
            constants={sympy.pi: "np.pi", sympy.E: "np.e", COLUMNS: columns},
            sqrt="np.sqrt",
            power=lambda base, exponent: f"{base}**{exponent}",
        ),
    )


def to_torch(expression: sympy.Expr, *, columns: str) -> str:
    """Return an expression over torch tensors that torch can differentiate again.

    Attributes are tensors too; `_maximum` and `_minimum` are helpers that also take numbers.
    """
    return _text(
        expression,
        _Dialect(
            names=_TORCH_NAMES,
            reduction=lambda node, inner: (
                f"torch.{_TORCH_REDUCTIONS[type(node)]}({inner}, dim=-1, keepdim=True)"
            ),
            constants={sympy.pi: "math.pi", sympy.E: "math.e", COLUMNS: columns},
            sqrt="torch.sqrt",
            power=lambda base, exponent: f"{base}**{exponent}",
            number_argument=lambda text: f"torch.as_tensor({text})",
        ),
    )


def to_cpp(expression: sympy.Expr, symbols: Mapping[str, str]) -> str:
    """Return an expression without reductions as C++ over doubles.

    Args:
        expression: inputs, attributes and numbers.
        symbols: the C++ text of each symbol's name.
    """

    def fail(node: Reduction, inner: str) -> str:
        raise NotImplementedError(f"{type(node).__name__} is no scalar")

    def choose(condition: str, a: str, b: str) -> str:
        return f"({condition} ? {a} : {b})"

    return _text(
        expression,
        _Dialect(
            names=_CPP_NAMES,
            reduction=fail,
            constants={sympy.pi: repr(float(sympy.pi)), sympy.E: repr(float(sympy.E))},
            sqrt="std::sqrt",
            power=lambda base, exponent: f"std::pow({base}, {exponent})",
            decimal=repr,
            symbols=symbols,
            expansions={
                Where: choose,
                Sigmoid: lambda u: f"(1.0 / (1.0 + std::exp(-({u}))))",
                Softplus: lambda u: (
                    f"(std::fmax({u}, 0.0) + std::log1p(std::exp(-std::fabs({u}))))"
                ),
                Sign: lambda u: f"(({u} > 0.0) - ({u} < 0.0))",
            },
        ),
    )


def _text(expression: sympy.Basic, dialect: _Dialect) -> str:
    return _Printer(dialect).show(expression, _SUM)


class _Printer:
    def __init__(self, dialect: _Dialect) -> None:
        self.dialect = dialect

    def show(self, expression: sympy.Basic, outer: int) -> str:
        text, own = self.node(expression)
        return f"({text})" if own < outer else text

    def node(self, expression: sympy.Basic) -> tuple[str, int]:
        if expression in self.dialect.constants:
            return self.dialect.constants[expression], _ATOM
        if isinstance(expression, sympy.Number):
            return self.number(expression)
        if isinstance(expression, sympy.Dummy):
            return "u", _ATOM
        if isinstance(expression, sympy.Symbol):
            return self.dialect.symbols.get(expression.name, expression.name), _ATOM
        if isinstance(expression, sympy.Add):
            return self.sum(expression), _SUM
        if isinstance(expression, sympy.Mul):
            return self.product(expression)
        if isinstance(expression, sympy.Pow):
            return self.power(expression)
        if isinstance(expression, Comparison):
            sign = _INFIX[type(expression)]
            a, b = (self.show(argument, _SUM) for argument in expression.args)
            return f"{a} {sign} {b}", _SUM
        if isinstance(expression, Reduction):
            inner = self.show(expression.args[0], _SUM)
            return self.dialect.reduction(expression, inner), _ATOM
        if len(expression.args) == 1:
            arguments = [self.argument(expression.args[0])]
        else:
            arguments = [self.show(argument, _SUM) for argument in expression.args]
        expand = self.dialect.expansions.get(type(expression))
        if expand is not None:
            return expand(*arguments), _ATOM
        name = self.dialect.names.get(type(expression))
        if name is None:
            raise NotImplementedError(f"no text for {type(expression).__name__}")
        return f"{name}({', '.join(arguments)})", _ATOM

    def argument(self, expression: sympy.Basic) -> str:
        """Return the text of a function's only argument."""
        text = self.show(expression, _SUM)
        if self.dialect.number_argument is None or expression.free_symbols - {COLUMNS}:
            return text
        return self.dialect.number_argument(text)

    def number(self, number: sympy.Number) -> tuple[str, int]:
        if number < 0:
            text, own = self.number(-number)
            return f"-{text}", min(own, _UNARY)
        if number.is_Integer and self.dialect.decimal is None:
            return str(number), _ATOM
        if self.dialect.decimal is not None:
            return self.dialect.decimal(float(number)), _ATOM
        decimal = repr(float(number))
        if "e" not in decimal and sympy.Rational(decimal) == number:
            return decimal, _ATOM
        return f"{number.p}/{number.q}", _PRODUCT

    def sum(self, expression: sympy.Add) -> str:
        # A plain term first reads better than a leading minus.
        terms = sorted(expression.args, key=lambda term: term.could_extract_minus_sign())
        text = self.show(terms[0], _SUM)
        for term in terms[1:]:
            if term.could_extract_minus_sign():
                text += f" - {self.show(-term, _PRODUCT)}"
            else:
                text += f" + {self.show(term, _PRODUCT)}"
        return text

    def product(self, expression: sympy.Mul) -> tuple[str, int]:
        coefficient, rest = expression.as_coeff_Mul()
        if coefficient < 0:
            inner = -expression
            return f"-{self.show(inner, _PRODUCT)}", _PRODUCT
        top = [] if coefficient == 1 else [self.show(coefficient, _POWER)]
        bottom = []
        for factor in sympy.Mul.make_args(rest):
            if isinstance(factor, sympy.Pow) and factor.exp.is_number and factor.exp.is_negative:
                bottom.append(self.show(factor.base**-factor.exp, _POWER))
            else:
                top.append(self.show(factor, _POWER))
        text = "*".join(top) if top else self.show(sympy.Integer(1), _POWER)
        for factor_text in bottom:
            text += f"/{factor_text}"
        return text, _PRODUCT

    def power(self, expression: sympy.Pow) -> tuple[str, int]:
        base, exponent = expression.args
        if exponent.is_number and exponent.is_negative:
            inner = base**-exponent
            return f"{self.show(sympy.Integer(1), _ATOM)}/{self.show(inner, _POWER)}", _PRODUCT
        if exponent == sympy.Rational(1, 2):
            return f"{self.dialect.sqrt}({self.argument(base)})", _ATOM
        return self.dialect.power(self.show(base, _ATOM), self.show(exponent, _ATOM)), _POWER


_NOTE = _Dialect(
    names=_FORMULA_NAMES,
    reduction=lambda node, inner: f"{_REDUCTION_NAMES[type(node)]}({inner})",
    constants={sympy.pi: "pi", sympy.E: "e", COLUMNS: "columns"},
    sqrt="sqrt",
    power=lambda base, exponent: f"{base}**{exponent}",
)
