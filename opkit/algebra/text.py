"""Formulas as text: in their own language, in torch, and as C++ over doubles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from .functions import FUNCTIONS, REDUCTION_NAMES
from .nodes import COMPARISONS, REDUCTIONS, Node, coefficient_of, negate, number, power, product

__all__ = ["to_cpp", "to_formula", "to_note", "to_torch"]

_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(5)
_LONGEST_NOTE = 72
_LONGEST_INTEGER = 10**15
_REDUCTION_TEXT = {kind: name for name, kind in REDUCTION_NAMES.items()}
_TORCH_REDUCTIONS = {"row_sum": "sum", "row_mean": "mean", "row_max": "amax", "row_min": "amin"}
# What a value is wrapped in on its way to instructions; text shows the value.
_WRAPPERS = frozenset({"guard", "plus_zero", "opaque"})


@dataclass(frozen=True)
class _Dialect:
    names: Callable[[str], str]
    reduction: Callable[[str, str], str]
    constants: Mapping[str, str]
    power: Callable[[str, str], str]
    decimal: Callable[[float], str] | None = None
    """How a number is written; None for an exact fraction."""
    number_argument: Callable[[str], str] | None = None
    """How a function's argument is written that holds no tensor; None: like any other."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    expansions: Mapping[str, Callable[..., str]] = field(default_factory=dict)


def _python_power(base: str, exponent: str) -> str:
    return f"{base}**{exponent}"


# What stable forms are called inside, in functions that a formula may name.
_SPELLED_OUT: dict[str, Callable[..., str]] = {
    "log_one_plus": lambda u: f"log1p({u})",
    "log_sigmoid": lambda u: f"log(sigmoid({u}))",
    "tanh_softplus": lambda u: f"tanh(softplus({u}))",
    "tanhshrink": lambda u: f"({u} - tanh({u}))",
    "logcosh": lambda u: f"(abs({u}) + log1p(exp(-2*abs({u}))) - log(2))",
}
_FORMULA = _Dialect(
    names=str,
    reduction=lambda kind, inner: f"{_REDUCTION_TEXT[kind]}({inner}, axis=-1)",
    constants={},
    power=_python_power,
    expansions=_SPELLED_OUT,
)
_NOTE = _Dialect(
    names=str,
    reduction=lambda kind, inner: f"{_REDUCTION_TEXT[kind]}({inner})",
    constants={},
    power=_python_power,
    # What is rounded to another type is not what a comment is about.
    expansions={**_SPELLED_OUT, "logcosh": lambda u: f"log(cosh({u}))", "cast": str},
)


def to_formula(node: Node) -> str:
    """Return a value in the formula language; `parse` gives the same value back."""
    return _text(node, _FORMULA)


def to_note(node: Node) -> str:
    """Return a value for a comment; empty where it would not fit a line."""
    # A deep value is not worth printing only to be thrown away.
    if node.size > _LONGEST_NOTE:
        return ""
    text = _text(node, _NOTE)
    return text if len(text) <= _LONGEST_NOTE else ""


def to_torch(node: Node, *, columns: str) -> str:
    """Return a value over torch tensors that torch can differentiate again.

    Attributes are tensors too; `_maximum` and `_minimum` are helpers that also take numbers.
    """
    return _text(
        node,
        _Dialect(
            names=lambda kind: FUNCTIONS[kind].torch,
            reduction=lambda kind, inner: (
                f"torch.{_TORCH_REDUCTIONS[kind]}({inner}, dim=-1, keepdim=True)"
            ),
            constants={"pi": "math.pi", "e": "math.e", "columns": columns},
            power=_python_power,
            number_argument=lambda text: f"torch.as_tensor({text})",
            # An input that has one value per row was given its last axis before.
            expansions={"row": lambda name: name},
        ),
    )


def to_cpp(node: Node, symbols: Mapping[str, str]) -> str:
    """Return a value without reductions as C++ over doubles.

    Args:
        node: inputs, attributes and numbers.
        symbols: the C++ text of each name.
    """

    def fail(kind: str, inner: str) -> str:
        raise NotImplementedError(f"{kind} is no scalar")

    return _text(
        node,
        _Dialect(
            names=lambda kind: FUNCTIONS[kind].cpp,
            reduction=fail,
            constants={"pi": "3.141592653589793", "e": "2.718281828459045"},
            power=lambda base, exponent: f"std::pow({base}, {exponent})",
            decimal=repr,
            symbols=symbols,
            expansions={
                "where": lambda condition, a, b: f"({condition} ? {a} : {b})",
                "sigmoid": lambda u: f"(1.0 / (1.0 + std::exp(-({u}))))",
                "softplus": lambda u: (
                    f"(std::fmax({u}, 0.0) + std::log1p(std::exp(-std::fabs({u}))))"
                ),
                "log_one_plus": lambda u: f"std::log1p({u})",
                "tanhshrink": lambda u: f"({u} - std::tanh({u}))",
                "logcosh": lambda u: f"std::log(std::cosh({u}))",
                "relu": lambda u: f"std::fmax({u}, 0.0)",
                "sign": lambda u: f"static_cast<double>((({u}) > 0) - (({u}) < 0))",
            },
        ),
    )


def _text(node: Node, dialect: _Dialect) -> str:
    return _Printer(dialect).show(node, _SUM)


class _Printer:
    def __init__(self, dialect: _Dialect) -> None:
        self.dialect = dialect
        self.known: dict[Node, tuple[str, int]] = {}

    def show(self, node: Node, outer: int) -> str:
        if node not in self.known:
            self.known[node] = self.node(node)
        text, own = self.known[node]
        return f"({text})" if own < outer else text

    def node(self, node: Node) -> tuple[str, int]:
        kind = node.kind
        if kind == "number":
            return self.number(node.fraction)
        if not node.args:
            name = self.dialect.symbols.get(node.name, node.name)
            return (self.dialect.constants.get(node.name, name) if kind != "input" else name), _ATOM
        if kind in _WRAPPERS:
            return self.show(node.args[0], _ATOM), _ATOM
        if kind == "sum":
            return self.sum(node), _SUM
        if kind == "product":
            return self.product(node)
        if kind == "power":
            return self.power(node)
        if kind in COMPARISONS:
            a, b = (self.show(argument, _SUM) for argument in node.args)
            return f"{a} {kind} {b}", _SUM
        if kind in REDUCTIONS:
            return self.dialect.reduction(kind, self.show(node.args[0], _SUM)), _ATOM
        if len(node.args) == 1:
            arguments = [self.argument(node.args[0])]
        else:
            arguments = [self.show(argument, _SUM) for argument in node.args]
        expand = self.dialect.expansions.get(kind)
        if expand is not None:
            return expand(*arguments), _ATOM
        return f"{self.dialect.names(kind)}({', '.join(arguments)})", _ATOM

    def argument(self, node: Node) -> str:
        """Return the text of a function's only argument."""
        text = self.show(node, _SUM)
        if self.dialect.number_argument is None or node.has("input", "attr"):
            return text
        return self.dialect.number_argument(text)

    def number(self, value: Fraction) -> tuple[str, int]:
        if value < 0:
            text, own = self.number(-value)
            return f"-{text}", min(own, _UNARY)
        if self.dialect.decimal is not None:
            return self.dialect.decimal(float(value)), _ATOM
        if value.denominator == 1 and value < _LONGEST_INTEGER:
            return str(value.numerator), _ATOM
        decimal = repr(float(value))
        if Fraction(decimal) == value or max(value.numerator, value.denominator) > _LONGEST_INTEGER:
            return decimal, _ATOM
        return f"{value.numerator}/{value.denominator}", _PRODUCT

    def sum(self, node: Node) -> str:
        # A plain term first reads better than a leading minus. What is there for its infinities
        # and NaN only is added to what the others leave of each other.
        terms = sorted(node.args, key=lambda term: (_is_nothing(term), _is_negative(term)))
        text = self.show(terms[0], _SUM)
        for term in terms[1:]:
            if _is_negative(term):
                text += f" - {self.show(negate(term), _PRODUCT)}"
            else:
                text += f" + {self.show(term, _PRODUCT)}"
        return text

    def product(self, node: Node) -> tuple[str, int]:
        coefficient, rest = coefficient_of(node)
        if coefficient < 0:
            return f"-{self.show(negate(node), _PRODUCT)}", _PRODUCT
        top = [] if coefficient == 1 else [self.show(number(coefficient), _POWER)]
        bottom = []
        for factor in product(rest).args if rest.kind == "product" else (rest,):
            if _divides(factor):
                bottom.append(self.show(_inverse(factor), _POWER))
            else:
                top.append(self.show(factor, _POWER))
        text = "*".join(top) if top else "1"
        for factor_text in bottom:
            text += f"/{factor_text}"
        return text, _PRODUCT

    def power(self, node: Node) -> tuple[str, int]:
        base, exponent = node.args
        if _divides(node):
            one = self.show(number(1), _ATOM)
            return f"{one}/{self.show(_inverse(node), _POWER)}", _PRODUCT
        return self.dialect.power(self.show(base, _ATOM), self.show(exponent, _ATOM)), _POWER


def _is_negative(term: Node) -> bool:
    return coefficient_of(term)[0] < 0


def _is_nothing(term: Node) -> bool:
    """Whether it is 0 times something that may have no number."""
    return coefficient_of(term)[0] == 0 and not term.is_number


def _divides(factor: Node) -> bool:
    """Whether it is written below a fraction bar: the reader joins whole powers only."""
    if factor.kind != "power":
        return False
    exponent = factor.args[1].fraction
    return exponent < 0 and exponent.denominator == 1


def _inverse(factor: Node) -> Node:
    return power(factor.args[0], -factor.args[1].fraction)
