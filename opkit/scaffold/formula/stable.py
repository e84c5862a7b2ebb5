"""Rewrite a formula into the equal form that keeps its relative accuracy and does not overflow in
float32."""

from __future__ import annotations

import sympy

from .functions import Expm1, Sigmoid, Softplus, Tanh

__all__ = ["stabilise"]


def stabilise(expression: sympy.Expr) -> sympy.Expr:
    """Return an equal expression without the cancellations and overflows that have a known better
    form.

    1 + tanh(u) becomes 2*sigmoid(2*u), exp(u) - 1 becomes expm1(u), log(1 + exp(u)) becomes
    softplus(u), and so on.
    """
    if not expression.args:
        return expression
    expression = expression.func(*(stabilise(argument) for argument in expression.args))
    if isinstance(expression, sympy.Add):
        return _sum(expression)
    if isinstance(expression, sympy.Mul):
        return _product(expression)
    if isinstance(expression, sympy.Pow):
        return _power(expression)
    if isinstance(expression, sympy.log):
        (argument,) = expression.args
        exponent = _one_plus_exp(argument)
        return expression if exponent is None else Softplus(exponent)
    return expression


def _sum(expression: sympy.Add) -> sympy.Expr:
    expression = _mirrored_sigmoids(expression)
    if not isinstance(expression, sympy.Add):
        return expression
    constant, terms = expression.as_coeff_add()
    if constant == 0:
        return expression
    for index, term in enumerate(terms):
        coefficient, factor = term.as_coeff_Mul()
        replacement = _with_one(constant, coefficient, factor)
        if replacement is not None:
            others = [*terms[:index], *terms[index + 1 :]]
            return sympy.Add(replacement, *others)
    return expression


def _mirrored_sigmoids(expression: sympy.Add) -> sympy.Expr:
    """Turn sigmoid(u) - sigmoid(-u), which cancels near zero, into tanh(u/2)."""
    terms = [term.as_coeff_Mul() for term in expression.args]
    for i, (coefficient, factor) in enumerate(terms):
        for j, (other, mirror) in enumerate(terms):
            both = coefficient > 0 and isinstance(factor, Sigmoid) and isinstance(mirror, Sigmoid)
            if (
                both
                and coefficient == -other
                and sympy.expand(factor.args[0] + mirror.args[0]) == 0
            ):
                rest = [term for k, term in enumerate(expression.args) if k not in (i, j)]
                return sympy.Add(coefficient * Tanh(factor.args[0] / 2), *rest)
    return expression


def _with_one(
    constant: sympy.Expr, coefficient: sympy.Expr, factor: sympy.Expr
) -> sympy.Expr | None:
    """Return an accurate form of `constant + coefficient*factor`, where there is one."""
    same = coefficient == constant
    opposite = coefficient == -constant
    if isinstance(factor, Tanh) and (same or opposite):
        u = factor.args[0] if same else -factor.args[0]
        return 2 * constant * Sigmoid(2 * u)
    if isinstance(factor, Sigmoid) and opposite:
        return constant * Sigmoid(-factor.args[0])
    if isinstance(factor, sympy.exp) and opposite:
        return coefficient * Expm1(factor.args[0])
    if (
        isinstance(factor, sympy.Pow)
        and isinstance(factor.base, Tanh)
        and factor.exp == 2
        and opposite
    ):
        u = factor.base.args[0]
        return 4 * constant * Sigmoid(2 * u) * Sigmoid(-2 * u)
    if coefficient == -4 * constant and isinstance(factor, sympy.Mul) and len(factor.args) == 2:
        a, b = factor.args
        # 1 - 4*sigmoid(u)*sigmoid(-u), which cancels near zero, is tanh(u/2)**2.
        if isinstance(a, Sigmoid) and isinstance(b, Sigmoid) and a.args[0] == -b.args[0]:
            return constant * Tanh(a.args[0] / 2) ** 2
    return None


def _one_plus_exp(expression: sympy.Expr) -> sympy.Expr | None:
    """Return u of `1 + exp(u)`, None for anything else."""
    if not isinstance(expression, sympy.Add) or len(expression.args) != 2:
        return None
    one, other = expression.as_coeff_Add()
    return other.args[0] if one == 1 and isinstance(other, sympy.exp) else None


def _power(expression: sympy.Pow) -> sympy.Expr:
    exponent = _one_plus_exp(expression.base)
    if exponent is None or not expression.exp.is_Integer or expression.exp > 0:
        return expression
    return Sigmoid(-exponent) ** (-expression.exp)


def _product(expression: sympy.Mul) -> sympy.Expr:
    factors = list(expression.args)
    for i, exponential in enumerate(factors):
        if not isinstance(exponential, sympy.exp):
            continue
        for j, sigmoid in enumerate(factors):
            # exp(u) overflows where sigmoid(-u) underflows: inf * 0 instead of their product,
            # sigmoid(u).
            if (
                isinstance(sigmoid, Sigmoid)
                and sympy.expand(exponential.args[0] + sigmoid.args[0]) == 0
            ):
                rest = [f for k, f in enumerate(factors) if k not in (i, j)]
                return _product_of([*rest, Sigmoid(exponential.args[0])])
    return expression


def _product_of(factors: list[sympy.Expr]) -> sympy.Expr:
    product = sympy.Mul(*factors)
    return _product(product) if isinstance(product, sympy.Mul) else product
