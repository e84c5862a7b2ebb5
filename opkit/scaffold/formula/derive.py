"""The backward operator, by symbolic differentiation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from opkit.schema import OpSpec, TensorSpec

from .functions import (
    COLUMNS,
    EVENTS,
    Equal,
    FormulaFunction,
    Reduction,
    RowInput,
    RowMax,
    RowMean,
    RowMin,
    RowSum,
    Sign,
    Where,
)
from .reader import parse, space_of
from .stable import stabilise
from .text import to_formula

__all__ = ["UnsupportedGradient", "backward", "unsupported_gradients"]

_FLOATING = frozenset({"float16", "float32", "bfloat16"})


@dataclass(frozen=True)
class UnsupportedGradient:
    """An input that the backward operator gives no gradient for."""

    input: str
    reason: str
    is_zero: bool = False
    """The formulas are steps of it, or do not use it: its gradient is zero, so none is right."""


class _Absolute(FormulaFunction):
    """Stands for Abs while differentiating: sympy's own derivative of Abs is written for complex
    numbers."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return Sign(self.args[0])


def backward(spec: OpSpec) -> OpSpec | None:
    """Return the operator that computes the gradients, its formulas in the same language.

    Inputs: `grad_<output>` for each output, then the forward inputs. Outputs: `grad_<input>` for
    each floating input that the formulas depend on, in the shape of the broadcast of all inputs;
    where a forward input was broadcast over the leading axes, the caller sums its gradient over
    them.

    Returns None without formulas, where no input has a gradient, or where two of its tensors would
    have one name; `unsupported_gradients` says why.

    Raises:
        SpecError: a formula is wrong.
    """
    if not spec.has_formula:
        return None
    gradients = _gradients(spec)
    variants = _floating_variants(spec)
    if not gradients or not variants or _refusal(spec, gradients) is not None:
        return None

    def narrow(tensor: TensorSpec, name: str, formula: str | None = None) -> TensorSpec:
        return TensorSpec(
            name=name,
            param_type=tensor.param_type,
            dtypes=tuple(tensor.dtypes[v] for v in variants),
            formats=tuple(tensor.formats[v] for v in variants),
            formula=formula,
        )

    inputs = [narrow(t, f"grad_{t.name}") for t in spec.outputs]
    inputs += [narrow(t, t.name) for t in spec.inputs]
    by_name = {tensor.name: tensor for tensor in spec.inputs}
    tiles = frozenset(sympy.Symbol(tensor.name, real=True) for tensor in inputs)

    rows = parse(spec).row_inputs

    def text(name: str, gradient: sympy.Expr) -> str:
        # A gradient that is the same along a row still has the shape of its input.
        shaped = name in rows or space_of(gradient, tiles) == "tile"
        return to_formula(gradient) if shaped else f"like({to_formula(gradient)}, {name})"

    outputs = [narrow(by_name[n], f"grad_{n}", text(n, e)) for n, e in gradients.items()]
    return OpSpec(
        op=f"{spec.op}Grad",
        name=f"{spec.name}_grad",
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        attrs=spec.attrs,
        source=spec.source,
        pointer=spec.pointer,
    )


def unsupported_gradients(spec: OpSpec) -> tuple[UnsupportedGradient, ...]:
    """Return the inputs that `backward` gives no gradient for, each with the reason."""
    if not spec.has_formula:
        return tuple(UnsupportedGradient(t.name, "there is no formula") for t in spec.inputs)
    gradients = _gradients(spec)
    reason = _refusal(spec, gradients)
    if reason is not None:
        return tuple(UnsupportedGradient(t.name, reason) for t in spec.inputs)
    variants = _floating_variants(spec)
    found = []
    for tensor in spec.inputs:
        if not variants or tensor.dtypes[variants[0]].name not in _FLOATING:
            found.append(UnsupportedGradient(tensor.name, "it is not a floating-point tensor"))
        elif tensor.name not in gradients:
            reason = "it is zero, because no formula depends on it differentiably"
            found.append(UnsupportedGradient(tensor.name, reason, is_zero=True))
    return tuple(found)


def _refusal(spec: OpSpec, gradients: Mapping[str, object]) -> str | None:
    """Return why no backward operator can be written, for all inputs alike."""
    clash = _clash(spec, gradients)
    if clash is not None:
        return f'the backward operator would have two tensors called "{clash}": rename the input'
    count = len(spec.inputs) + len(spec.outputs)
    if count > EVENTS:
        return f"the backward operator would have {count} inputs, more than the {EVENTS} possible"
    return None


def _clash(spec: OpSpec, gradients: Mapping[str, object]) -> str | None:
    """Return a name that two tensors of the backward operator would have."""
    names = [f"grad_{tensor.name}" for tensor in spec.outputs]
    names += [tensor.name for tensor in spec.inputs]
    names += [f"grad_{name}" for name in gradients]
    return next((name for name in names if names.count(name) > 1), None)


def _floating_variants(spec: OpSpec) -> tuple[int, ...]:
    return tuple(
        variant
        for variant in range(spec.variant_count)
        if all(tensor.dtypes[variant].name in _FLOATING for tensor in spec.outputs)
        and any(tensor.dtypes[variant].name in _FLOATING for tensor in spec.inputs)
    )


def _gradients(spec: OpSpec) -> dict[str, sympy.Expr]:
    """Return the gradient of each floating input that the formulas depend on."""
    parsed = parse(spec)
    inputs = parsed.inputs
    variants = _floating_variants(spec)
    cotangents = {}
    for output in parsed.outputs:
        symbol = sympy.Symbol(f"grad_{output.name}", real=True)
        cotangents[output.name] = RowInput(symbol) if output.per_row else symbol
    tiles = frozenset([*inputs.values(), *(c for c in cotangents.values() if c.is_Symbol)])
    gradients = {}
    for tensor in spec.inputs:
        floating = variants and all(tensor.dtypes[v].name in _FLOATING for v in variants)
        if not floating:
            continue
        symbol = inputs[tensor.name]
        total = sympy.Integer(0)
        for output in parsed.outputs:
            expression = stabilise(output.expression).replace(sympy.Abs, _Absolute)
            tape = _Tape(expression, cotangents[output.name], tiles)
            if tensor.name in parsed.row_inputs:
                total += tape.row_gradient(RowInput(symbol), is_once_a_row=output.per_row)
            else:
                total += tape.gradient(symbol)
        total = total.replace(_Absolute, sympy.Abs)
        if total != 0:
            gradients[tensor.name] = stabilise(sympy.factor_terms(total))
    return gradients


class _Tape:
    """Reverse-mode differentiation through reductions.

    Every reduction becomes a symbol, so that what is left between them is elementwise and sympy can
    differentiate it.
    """

    def __init__(
        self, expression: sympy.Expr, cotangent: sympy.Expr, tiles: frozenset[sympy.Symbol]
    ) -> None:
        self.expression = expression
        self.cotangent = cotangent
        self.tiles = tiles
        # A reduction comes before those inside it.
        self.reductions: Sequence[Reduction] = sorted(
            expression.atoms(Reduction), key=lambda r: (-len(r.atoms(Reduction)), str(r))
        )
        self.symbols = {r: sympy.Dummy("r", real=True) for r in self.reductions}
        self.back = {symbol: reduction for reduction, symbol in self.symbols.items()}

    def gradient(self, symbol: sympy.Symbol) -> sympy.Expr:
        """Return the gradient of an input with one value per element."""
        outer, inner = self.gradients(symbol)
        return outer + inner

    def row_gradient(self, row: RowInput, *, is_once_a_row: bool) -> sympy.Expr:
        """Return the gradient of an input with one value per row: a value per row too.

        Args:
            row: the input, as the expression has it.
            is_once_a_row: the expression has one value per row, so that it uses the input once.
        """
        symbol = sympy.Dummy("row", real=True)
        replaced = _Tape(self.expression.xreplace({row: symbol}), self.cotangent, self.tiles)
        outer, inner = (part.xreplace({symbol: row}) for part in replaced.gradients(symbol))
        return (outer if is_once_a_row else self.over_row(outer)) + self.over_row(inner)

    def gradients(self, symbol: sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr]:
        """Return the gradient through what is outside of reductions, and through what is inside."""
        adjoints = dict.fromkeys(self.reductions, sympy.Integer(0))
        outer = self.pull(self.expression, self.cotangent, symbol, adjoints)
        inner = sympy.Integer(0)
        for reduction in self.reductions:
            adjoint = adjoints[reduction]
            if adjoint == 0:
                continue
            (argument,) = reduction.args
            inner += self.pull(argument, self.spread(reduction, adjoint), symbol, adjoints)
        return outer, inner

    def over_row(self, expression: sympy.Expr) -> sympy.Expr:
        """Return the sum of a value over its row, also of one that is the same along it."""
        terms = sympy.Add.make_args(sympy.expand_mul(expression))
        return sympy.Add(
            *(
                self.row_sum(term) if space_of(term, self.tiles) == "tile" else term * COLUMNS
                for term in terms
            )
        )

    def pull(
        self,
        expression: sympy.Expr,
        cotangent: sympy.Expr,
        symbol: sympy.Symbol,
        adjoints: dict[Reduction, sympy.Expr],
    ) -> sympy.Expr:
        """Return the gradient through an elementwise expression, and add to the adjoints of its
        reductions."""
        flat = expression.xreplace(self.symbols)
        for reduction, dummy in self.symbols.items():
            partial = flat.diff(dummy)
            if partial != 0:
                adjoints[reduction] += self.row_sum(cotangent * partial.xreplace(self.back))
        return cotangent * sympy.factor_terms(flat.diff(symbol)).xreplace(self.back)

    def row_sum(self, expression: sympy.Expr) -> sympy.Expr:
        """Return the sum over a row, with the factors that are constant along it outside."""
        if isinstance(expression, sympy.Add):
            return sympy.Add(*(self.row_sum(term) for term in expression.args))
        narrow: list[sympy.Expr] = []
        wide: list[sympy.Expr] = []
        for factor in sympy.Mul.make_args(expression):
            (wide if space_of(factor, self.tiles) == "tile" else narrow).append(factor)
        if not wide:
            # A value per row reaches its reduction once a row, not once an element.
            return expression
        return sympy.Mul(*narrow) * RowSum(sympy.Mul(*wide))

    def spread(self, reduction: Reduction, adjoint: sympy.Expr) -> sympy.Expr:
        """Return the cotangent of a reduction's argument."""
        if isinstance(reduction, RowSum):
            return adjoint
        if isinstance(reduction, RowMean):
            terms = sympy.Add.make_args(adjoint)
            return sympy.Add(*(_mean(term) for term in terms))
        assert isinstance(reduction, RowMax | RowMin)
        # Ties share the gradient, as the mean of the one-sided derivatives does.
        hit = Where(Equal(reduction.args[0], reduction), 1, 0)
        return adjoint * hit / RowSum(hit)


def _mean(term: sympy.Expr) -> sympy.Expr:
    """Return `term / columns`, through mean where the term holds a sum."""
    factors = list(sympy.Mul.make_args(term))
    for index, factor in enumerate(factors):
        if isinstance(factor, RowSum):
            factors[index] = RowMean(factor.args[0])
            return sympy.Mul(*factors)
    return term / COLUMNS
