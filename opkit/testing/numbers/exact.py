"""A reference evaluated again in numbers without limits of range, where float64 left its own.

`log(1 + exp(x))` of 65504 is 65504, and float64 says infinity: its exp overflowed. Called with
`ExactNumber` elements, a golden gives what its text means for real numbers, and what float32 could
have made of that.

Only for single elements: an operation takes some microseconds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkit.errors import OperatorError
from opkit.testing.numbers.arrays import Array, Input
from opkit.testing.numbers.exact_number import (
    choose,
    exact_number,
    larger,
    smaller,
    to_float,
)
from opkit.testing.numbers.float_kinds import Kinds
from opkit.testing.numbers.traced import keeping_arrays

__all__ = ["ExactOutput", "evaluate_exactly"]

_FAILURES = (OperatorError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class ExactOutput:
    """One output, flat."""

    values: Array
    """The nearest float64; NaN where the text has no value."""
    known: Array
    """Where the evaluation came to a value: not where a zero's sign would decide."""
    overflows: Array
    """Where float32 may overflow on the way, by + - * / alone."""
    breaks: Array
    """Where such an overflow may make it NaN, as infinity less infinity is."""
    underflows: Array
    """Where a divisor on the way may be 0 in float32."""
    lost: Array
    """Where a difference came to zero of which too many digits were missing to say so."""
    errors: Array
    """How far underflow and comparisons that roundings decide may move it in float32."""
    noise: Array
    """How far roundings in its sums may move it."""
    poisoned: Array
    """Where it is NaN because an input is, whatever float32 makes of the rest."""


def _called(name: str) -> Any:
    """Return a ufunc of the method of that name, for those that NumPy takes from elsewhere."""
    return np.frompyfunc(lambda value: getattr(exact_number(value), name)(), 1, 1)


_CHOOSING = {
    **{getattr(np, name): _called(name) for name in ("sign", "square", "floor", "ceil", "rint")},
    np.maximum: np.frompyfunc(larger, 2, 1),
    np.minimum: np.frompyfunc(smaller, 2, 1),
    np.less: np.frompyfunc(operator.lt, 2, 1),
    np.less_equal: np.frompyfunc(operator.le, 2, 1),
    np.greater: np.frompyfunc(operator.gt, 2, 1),
    np.greater_equal: np.frompyfunc(operator.ge, 2, 1),
    np.equal: np.frompyfunc(operator.eq, 2, 1),
    np.not_equal: np.frompyfunc(operator.ne, 2, 1),
}
_CHOICE = np.frompyfunc(choose, 3, 1)


class _ExactArray(np.ndarray[Any, Any]):
    """An array of exact numbers, which stays one under the conversions of a golden."""

    def astype(self, *arguments: Any, **keywords: Any) -> Any:
        """Keep the numbers as they are."""
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute element by element."""
        plain = [_plain(value) for value in inputs]
        chosen = _CHOOSING.get(ufunc, ufunc)
        keywords.pop("dtype", None)
        if chosen is not ufunc:
            keywords.pop("initial", None)
            keywords.pop("where", None)
        result = getattr(chosen, method)(*plain, **{k: _plain(v) for k, v in keywords.items()})
        return _exact(result)

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, keywords: Mapping[str, Any]
    ) -> Any:
        """Let functions that are made of ufuncs find them; others move objects about."""
        if function in (np.where, np.broadcast_to, np.concatenate, np.stack, np.select):
            plain = [_plain(value) for value in arguments]
            if function is np.where and len(plain) == 3:
                return _exact(_CHOICE(*plain))
            return _exact(function(*plain, **{k: _plain(v) for k, v in keywords.items()}))
        return super().__array_function__(function, types, arguments, keywords)


def _plain(value: Any) -> Any:
    if isinstance(value, _ExactArray):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value


def _exact(result: Any) -> Any:
    if isinstance(result, np.ndarray):
        return result.view(_ExactArray) if result.dtype == object else result
    return result


def _lifted(value: Input) -> Input:
    if value is None or isinstance(value, list):
        return None if value is None else [_lifted(array) for array in value]  # type: ignore[misc]
    if value.dtype.kind != "f":
        return value
    lifted = np.empty(value.shape, object)
    for position, number in enumerate(value.reshape(-1).tolist()):
        lifted.reshape(-1)[position] = exact_number(number)
    return lifted.view(_ExactArray)


def evaluate_exactly(
    function: Callable[[Sequence[Input]], tuple[Array, ...]],
    inputs: Sequence[Input],
    names: dict[str, Any] | None,
) -> list[ExactOutput] | None:
    """Return the outputs of a golden for real numbers; None where it takes no such elements.

    Args:
        function: the golden, from wide inputs to its outputs.
        names: the global names of its module.
    """
    try:
        with keeping_arrays(names), np.errstate(all="ignore"):
            found = function([_lifted(value) for value in inputs])
        return [_output(output) for output in found]
    except _FAILURES:
        return None


def _output(output: Array) -> ExactOutput:
    numbers = [exact_number(value) for value in np.asarray(output, object).reshape(-1)]
    return ExactOutput(
        values=np.array([to_float(number.value) for number in numbers], np.float64),
        known=np.array([number.known for number in numbers], np.bool_),
        overflows=np.array([number.overflows for number in numbers], np.bool_),
        breaks=np.array([bool(number.instead & Kinds.NAN) for number in numbers], np.bool_),
        underflows=np.array([number.underflows for number in numbers], np.bool_),
        lost=np.array([number.lost for number in numbers], np.bool_),
        errors=np.array([number.error for number in numbers], np.float64),
        noise=np.array([number.noise for number in numbers], np.float64),
        poisoned=np.array([number.poisoned for number in numbers], np.bool_),
    )
