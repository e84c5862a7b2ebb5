"""A reference in NumPy evaluated again with one of its own values a rounding away.

A golden is an ordinary function of arrays. Called with `Traced` arrays it computes the same values,
and every place is known where a float32 evaluation of the very same text has to round something
that no other way to compute it avoids:

    constant   a number that float32 does not hold, such as 0.1 or pi
    term       a result of rational arithmetic (+ - * / of inputs and numbers) that enters a sum:
               polynomials at their roots
    sum        what is added up over an axis: long sums, and sums whose true value is 0
    decision   a computed value that is rounded to a whole number, compared, or asked for its sign;
               computed values that are put in order, where float32 holds several of them as one
    tie        two values that are compared, one of them computed: roundings may make them equal

Results of other functions are not among them: 1 - tanh(x)**2 is what a formula may say and a kernel
may compute better. Only where values chose what is added, as in exp(x) - sign(y) and
minimum(exp(x), y) - 1, no text could say that they cancel: there they are terms. Source: our own
rule, measured in benchmarks/verdict.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from types import ModuleType
from typing import Any

import numpy as np

from opkit.testing.numbers.tracer import Tracer

__all__ = ["Role", "Traced", "keeping_arrays", "tracing"]


class Role(IntEnum):
    """How a value came about; a result is what the greatest of its operands is."""

    INPUT = 0
    """An input or a number as it is."""
    RATIONAL = 1
    """Computed from inputs and numbers by + - * / and selection."""
    OTHER = 2
    """What any other function gave."""


_active: list[Tracer] = []

# Of the ufuncs: what keeps rational values rational, what adds, what decides.
_RATIONAL = {
    *(np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive, np.square),
    *(np.absolute, np.maximum, np.minimum, np.fmax, np.fmin, np.reciprocal, np.matmul, np.ldexp),
}
_SUMS = {np.add, np.subtract}
_SELECTIONS = {np.maximum, np.minimum, np.fmax, np.fmin}
_SCALES = {np.multiply, np.divide}
_COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_CHOICES = {*_COMPARISONS, *_SELECTIONS, np.sign, np.heaviside}
_DECISIONS = {
    *(np.floor, np.ceil, np.rint, np.trunc, np.sign, np.floor_divide, np.remainder, np.fmod),
    *_COMPARISONS,
}
# Functions that only choose or move elements.
_MOVES = {
    *(np.where, np.broadcast_to, np.reshape, np.concatenate, np.stack, np.transpose),
    *(np.expand_dims, np.squeeze, np.swapaxes, np.moveaxis, np.clip, np.take, np.repeat, np.tile),
    *(np.take_along_axis, np.flip, np.roll, np.split, np.pad, np.select),
}
# Functions that put elements in order, or find the place of the first.
_ORDERINGS = {np.argsort, np.sort, np.argmax, np.argmin, np.argpartition, np.partition}
_PRODUCTS = {np.dot, np.einsum, np.tensordot, np.inner, np.outer, np.vdot}
# Made of ufuncs and methods, which are traced one by one.
_COMPOSED = {
    *(np.sum, np.mean, np.var, np.std, np.cumsum, np.round, np.around, np.average),
    *(np.max, np.min, np.amax, np.amin, np.prod),
}


class Traced(np.ndarray[Any, Any]):
    """An array whose results are traced; holds ordinary values."""

    role: Role
    is_chosen: bool
    """Whether values decided which of several it is, or is computed from."""
    expression: int | None
    """The number of what computed it; None until it is asked for."""
    sources: frozenset[Hashable] | None
    """The expressions that its elements were selected from; None for its own."""

    def __array_finalize__(self, source: object) -> None:
        """Keep the role through views, slices and copies."""
        self.role = getattr(source, "role", Role.OTHER)
        self.is_chosen = getattr(source, "is_chosen", False)
        self.expression = self.sources = None

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **keywords: Any
    ) -> Any:
        """Compute as NumPy does, with the operands that this evaluation perturbs."""
        tracer = _active[-1] if _active else Tracer()
        plain = [_plain(value) for value in inputs]
        names = tuple(_names(tracer, value) for value in inputs)
        form = ufunc, method, names, _names(tracer, tuple(sorted(keywords.items())))
        keywords = {name: _plain(value) for name, value in keywords.items()}
        call: Callable[..., Any] = getattr(ufunc, method)
        roles = [_role(value) for value in inputs]
        if method == "__call__":
            plain = _perturbed(tracer, ufunc, inputs, plain, roles, names)
            result = call(*plain, **keywords)
            if ufunc in _SUMS:
                tracer.watch(np.asarray(result), *plain)
            if ufunc is np.matmul:
                step = tracer.step_at("sum", form)
                result = result + step * call(*map(np.abs, plain), **keywords)
        else:
            result = call(*plain, **keywords)
            if ufunc is np.add and np.asarray(result).dtype.kind == "f":
                sizes = call(np.abs(plain[0]), *plain[1:], **keywords)
                result = result + tracer.step_at("sum", form) * sizes
                tracer.watch(np.asarray(result), sizes)
        tracer.met(ufunc, result)
        if method == "__call__" and (ufunc in _CHOICES or ufunc.__name__ == "clip"):
            tracer.decided(plain)
        role = _result_role(ufunc, plain, roles)
        selects = ufunc in _SELECTIONS
        is_chosen = ufunc in _DECISIONS or (selects and method == "__call__")
        if ufunc in _RATIONAL:
            is_chosen = is_chosen or any(_is_chosen(value) for value in inputs)
        sources = _sources(tracer, inputs) if selects else None
        expression = tracer.expression(form)
        if out is not None:
            for target, value in zip(out, result if isinstance(result, tuple) else (result,)):  # noqa: B905
                np.asarray(target)[...] = value
                if isinstance(target, Traced):
                    _describe(target, role, is_chosen, expression, sources)
            return out[0] if len(out) == 1 else out
        return _traced(result, role, is_chosen, expression, sources)

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, keywords: Mapping[str, Any]
    ) -> Any:
        """Follow the functions that are made of ufuncs; take the others as they are."""
        if function in _COMPOSED:
            return super().__array_function__(function, types, arguments, keywords)
        tracer = _active[-1] if _active else Tracer()
        form = function, _names(tracer, arguments), _names(tracer, tuple(sorted(keywords.items())))
        plain = _plain(arguments)
        if function in _ORDERINGS and _role(arguments[0]) is Role.OTHER:
            step = tracer.step_at("decision", form)
            if step and plain[0].dtype.kind == "f":
                plain = (_in_single_precision(plain[0], flushes=step < 0), *plain[1:])
        named = {name: _plain(value) for name, value in keywords.items()}
        result = function(*plain, **named)
        tracer.met(function, result)
        if function is np.clip:
            tracer.decided((*plain[1:], *named.values()))
        if function in _PRODUCTS:
            sizes = function(*(_magnitude(value) for value in plain), **named)
            result = result + tracer.step_at("sum", form) * sizes
        if function not in _MOVES and function not in _PRODUCTS:
            return _traced(result, Role.OTHER, False, tracer.expression(form))
        # A condition chooses, and is no operand.
        chooses = function in (np.where, np.select)
        counted = arguments[1:] if chooses else arguments
        return _traced(
            result,
            max(_role(counted), Role.RATIONAL),
            chooses or function is np.clip or _is_chosen(counted),
            tracer.expression(form),
            None if function in _PRODUCTS else _sources(tracer, counted),
        )


def _magnitude(value: Any) -> Any:
    return np.abs(value) if isinstance(value, np.ndarray) else value


def _plain(value: Any) -> Any:
    """Return arrays, in lists too, as NumPy's own."""
    if isinstance(value, Traced):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value


def _role(value: Any) -> Role:
    if isinstance(value, Traced):
        return value.role
    if isinstance(value, (list, tuple)):
        return max((_role(item) for item in value), default=Role.INPUT)
    return Role.INPUT


def _is_chosen(value: Any) -> bool:
    if isinstance(value, Traced):
        return value.is_chosen
    return isinstance(value, (list, tuple)) and any(_is_chosen(item) for item in value)


def _is_selected(value: Any) -> bool:
    return isinstance(value, Traced) and value.sources is not None and len(value.sources) > 1


def _names(tracer: Tracer, values: Any) -> Hashable:
    """Return what tells operands from others: numbers as they are, arrays by their expression."""
    if isinstance(values, Traced):
        if values.expression is None:
            values.expression = tracer.number()
        return "expression", values.expression
    if isinstance(values, np.ndarray):
        return "array", tracer.foreign(values)
    if isinstance(values, (list, tuple)):
        return tuple(_names(tracer, item) for item in values)
    try:
        hash(values)
    except TypeError:
        return "other", tracer.number()
    return type(values), values


def _sources(tracer: Tracer, values: Any) -> frozenset[Hashable]:
    """Return the expressions that an element of some values may be selected from."""
    if isinstance(values, Traced) and values.sources is not None:
        return values.sources
    if isinstance(values, (list, tuple)):
        return frozenset().union(*(_sources(tracer, item) for item in values))
    return frozenset([_names(tracer, values)])


def _describe(
    array: Traced,
    role: Role,
    is_chosen: bool,
    expression: int | None,
    sources: frozenset[Hashable] | None,
) -> None:
    array.role, array.is_chosen = role, is_chosen
    array.expression, array.sources = expression, sources


def _traced(
    result: Any,
    role: Role,
    is_chosen: bool,
    expression: int | None,
    sources: frozenset[Hashable] | None = None,
) -> Any:
    if isinstance(result, (tuple, list)):
        # Each is another value, which the one expression does not tell apart.
        return type(result)(_traced(item, role, is_chosen, None) for item in result)
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    traced = np.asarray(result).view(Traced)
    _describe(traced, role, is_chosen, expression, sources)
    return traced


def _result_role(ufunc: np.ufunc, operands: list[Any], roles: list[Role]) -> Role:
    if ufunc is np.power and _is_whole(operands[-1]):
        return max(Role.RATIONAL, *roles)
    if ufunc in _RATIONAL or ufunc in _DECISIONS:
        # Of an input alone, the sign, the size and the digits are still as exact as it is.
        exact = ufunc in (np.negative, np.absolute, np.positive, np.ldexp)
        return roles[0] if exact else max(Role.RATIONAL, *roles)
    return Role.OTHER


def _is_whole(value: Any) -> bool:
    return np.ndim(value) == 0 and float(value).is_integer()


def _perturbed(
    tracer: Tracer,
    ufunc: np.ufunc,
    inputs: tuple[Any, ...],
    operands: list[Any],
    roles: list[Role],
    names: tuple[Hashable, ...],
) -> list[Any]:
    """Return the operands with the one that this evaluation moves."""
    moved = list(operands)
    rational = max(roles) <= Role.RATIONAL
    # What was selected from the same values is rounded as they are: v == max(v).
    alike = ufunc in _DECISIONS and len({_sources(tracer, value) for value in inputs}) == 1
    alike = alike and len(inputs) > 1
    # Where values decided what is added to a function's result, or whether it is one.
    chosen = any(
        _is_selected(value) or (role <= Role.RATIONAL and _is_chosen(value))
        for value, role in zip(inputs, roles, strict=True)
    )
    for number, (value, role) in enumerate(zip(operands, roles, strict=True)):
        kind = ""
        if np.ndim(value) == 0 and role is Role.INPUT:
            if _is_inexact(value):
                kind = "constant"
        elif np.asarray(value).dtype.kind != "f":
            continue
        elif ufunc in _DECISIONS and role is not Role.INPUT and not alike:
            kind = "decision"
        elif ufunc in _SUMS and (role is Role.RATIONAL if rational else chosen):
            kind = "term"
        elif ufunc in _SCALES and role is Role.RATIONAL and not rational:
            # Rounded before a function's result multiplies it: x + sigmoid(y)*(z - x).
            kind = "term"
        if not kind:
            continue
        place: Hashable = ufunc, names, number
        if kind == "decision" and ufunc in _COMPARISONS:
            # All comparisons of the two decide alike, whichever way they ask.
            place = frozenset(names), names[number]
            step = tracer.step_at("tie", place)
            if step:
                other = operands[1 - number]
                moved[number] = np.where(_are_near(value, other, step), other, value)
        step = tracer.step_at(kind, place)
        if step:
            moved[number] = value * (1.0 + step)
    return moved


def _in_single_precision(values: Any, *, flushes: bool) -> Any:
    """Return values as float32 holds them; without subnormal numbers, which some cores lack."""
    with np.errstate(all="ignore"):
        single = np.asarray(values, np.float32)
    if flushes:
        single = np.where(np.abs(single) < np.finfo(np.float32).tiny, np.float32(0.0), single)
    return single.astype(values.dtype)


def _are_near(value: Any, other: Any, step: float) -> Any:
    largest = np.maximum(np.abs(value), np.abs(other))
    return np.isfinite(largest) & (np.abs(value - other) <= abs(step) * largest)


def _is_inexact(value: Any) -> bool:
    """Whether a number is none of float32's."""
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return abs(int(value)) > 1 << 24
    number = float(value)
    with np.errstate(over="ignore"):
        return bool(np.isfinite(number)) and float(np.float32(number)) != number


class _KeepsArrays(ModuleType):
    """NumPy, except that the functions which make plain arrays keep the class of others."""

    def __init__(self) -> None:
        super().__init__("numpy")
        self.asarray = np.asanyarray
        self.ascontiguousarray = np.asanyarray

    def array(self, value: Any, *arguments: Any, **keywords: Any) -> Any:
        """Return `numpy.array` of a value, of its own class."""
        keywords.setdefault("subok", True)
        return np.array(value, *arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@contextmanager
def tracing(tracer: Tracer, names: dict[str, Any] | None) -> Iterator[None]:
    """Trace what is evaluated inside.

    Args:
        names: the global names of the golden's module: there NumPy keeps traced arrays meanwhile.
    """
    _active.append(tracer)
    try:
        with keeping_arrays(names):
            yield
    finally:
        _active.pop()


@contextmanager
def keeping_arrays(names: dict[str, Any] | None) -> Iterator[None]:
    """Have NumPy keep arrays of a class of their own, in the module with these global names."""
    replaced = [name for name, value in (names or {}).items() if value is np]
    keeping = _KeepsArrays()
    try:
        for name in replaced:
            assert names is not None
            names[name] = keeping
        yield
    finally:
        for name in replaced:
            assert names is not None
            names[name] = np
