"""A reference evaluated again in numbers without limits of range, where float64 left its own.

`log(1 + exp(x))` of 65504 is 65504, and float64 says infinity: its exp overflowed. Called with
`ExactNumber` elements, a golden gives what its text means for real numbers. Each number also knows
whether float32 could have left its range on the way to it, in whatever order what is multiplied is
multiplied: there any result of a right kernel may be infinite or NaN.

Only for single elements: an operation takes some microseconds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from opkit.errors import OperatorError
from opkit.testing.arrays import Array, Input
from opkit.testing.traced import keeping_arrays

__all__ = ["ExactOutput", "evaluate_exactly"]

# Enough for 1 + z**2 with z from the least to the greatest of float32, squared once more.
_BITS = 1200
_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 128.0, -126.0
# Beyond that an exponential's own exponent does not fit any more.
_LARGEST_ARGUMENT = mpmath.mpf(2) ** 512
_FAILURES = (OperatorError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_context = mpmath.mp.clone()
_context.prec = _BITS


@dataclass(frozen=True)
class ExactOutput:
    """One output, flat."""

    values: Array
    """The nearest float64; NaN where the text has no value."""
    known: Array
    """Where the evaluation came to a value: not where a zero's sign would decide."""
    overflows: Array
    """Where float32 may overflow on the way, by + - * / alone."""
    underflows: Array
    """Where a product or quotient may underflow in float32 on the way."""
    lost: Array
    """Where a difference came to zero of which too many digits were missing to say so."""


class ExactNumber:
    """A real number, infinity or NaN, and how far partial products on its way can reach.

    `high` and `low`: the exponents of two of the largest and smallest product of some of its
    factors. Zeros have no sign, so what is divided by zero is unknown.
    """

    __slots__ = ("absorbs", "high", "known", "lost", "low", "overflows", "underflows", "value")

    value: Any
    known: bool
    overflows: bool
    underflows: bool
    absorbs: bool
    """Whether a sum on its way was so much larger than a term that nothing is left of that."""
    lost: bool
    high: float
    low: float

    def __init__(
        self,
        value: Any,
        sources: Sequence[ExactNumber] = (),
        reach: tuple[float, float] | None = None,
    ) -> None:
        """Take a value, what it was computed from, and its reach where that is not its size's."""
        self.value = value
        self.known = all(source.known for source in sources)
        self.overflows = any(source.overflows for source in sources)
        self.underflows = any(source.underflows for source in sources)
        self.absorbs = any(source.absorbs for source in sources)
        self.lost = any(source.lost for source in sources)
        if reach is None:
            size = self.exponent
            reach = (max(0.0, size), min(0.0, size))
        self.high, self.low = reach

    @property
    def exponent(self) -> float:
        """The logarithm of the size; 0 for what has none, and for what float32 does not hold."""
        value = self.value
        if not value or not _context.isfinite(value):
            return 0.0
        size = float(_context.log(abs(value), 2)) if abs(_context.mag(value)) < 1 << 40 else 1e12
        return size if size <= _LARGEST_EXPONENT else 0.0

    def __float__(self) -> float:
        """Return the nearest float64."""
        return float(self.value)

    def __bool__(self) -> bool:
        """Whether it is not zero, as NumPy asks of conditions."""
        return bool(self.value != 0)

    # Arithmetic

    def __neg__(self) -> ExactNumber:
        return ExactNumber(-self.value, (self,), (self.high, self.low))

    def __pos__(self) -> ExactNumber:
        return self

    def __abs__(self) -> ExactNumber:
        return ExactNumber(abs(self.value), (self,), (self.high, self.low))

    def __add__(self, other: object) -> ExactNumber:
        b = _number(other)
        found = ExactNumber(self.value + b.value, (self, b))
        sizes = abs(self.value), abs(b.value)
        # What rounds to infinity already has been an exponential's, or has been noted.
        if max(sizes) < _OVERFLOW <= sizes[0] + sizes[1]:
            found.overflows = True
        if self.value and b.value and found.value in (self.value, b.value):
            found.absorbs = found.absorbs or bool(_context.isfinite(found.value))
        found.lost = found.lost or (found.absorbs and not found.value)
        found.high = max(found.high, self.high, b.high)
        return found

    def __sub__(self, other: object) -> ExactNumber:
        return self + (-_number(other))

    def __mul__(self, other: object) -> ExactNumber:
        b = _number(other)
        return _product(self.value * b.value, self, b, (self.high + b.high, self.low + b.low))

    def __truediv__(self, other: object) -> ExactNumber:
        b = _number(other)
        if not b.value:
            found = ExactNumber(_context.nan, (self, b))
            found.known = False
            return found
        return _product(self.value / b.value, self, b, (self.high - b.low, self.low - b.high))

    def __pow__(self, other: object) -> ExactNumber:
        b = _number(other)
        exponent = b.value
        if exponent == int(exponent) and abs(exponent) <= 64:
            whole = ExactNumber(_context.mpf(1))
            for _ in range(abs(int(exponent))):
                whole = whole * self
            return whole if exponent >= 0 else 1 / whole
        if _context.isinf(self.value):
            # As C's pow has it: infinite or 0, whatever the sign.
            return ExactNumber(_context.inf if exponent > 0 else _context.mpf(0), (self, b))
        if self.value < 0 or _context.isnan(self.value):
            return ExactNumber(_context.nan, (self, b))
        if not self.value:
            found = ExactNumber(_context.mpf(0), (self, b))
            found.known = bool(exponent > 0)
            return found
        reach = float(exponent) * self.high, float(exponent) * self.low
        return _product(self.value**exponent, self, b, (max(0.0, *reach), min(0.0, *reach)))

    def __radd__(self, other: object) -> ExactNumber:
        return _number(other) + self

    def __rsub__(self, other: object) -> ExactNumber:
        return _number(other) - self

    def __rmul__(self, other: object) -> ExactNumber:
        return _number(other) * self

    def __rtruediv__(self, other: object) -> ExactNumber:
        return _number(other) / self

    def __rpow__(self, other: object) -> ExactNumber:
        return _number(other) ** self

    def square(self) -> ExactNumber:
        """Return the product with itself, as a product and not as any function."""
        return self * self

    # Comparison: 1 or 0, which knows what was compared

    def __lt__(self, other: object) -> ExactNumber:
        return _truth(lambda a, b: a < b, self, other)

    def __le__(self, other: object) -> ExactNumber:
        return _truth(lambda a, b: a <= b, self, other)

    def __gt__(self, other: object) -> ExactNumber:
        return _truth(lambda a, b: a > b, self, other)

    def __ge__(self, other: object) -> ExactNumber:
        return _truth(lambda a, b: a >= b, self, other)

    def __eq__(self, other: object) -> ExactNumber:  # type: ignore[override]
        return _truth(lambda a, b: a == b, self, other)

    def __ne__(self, other: object) -> ExactNumber:  # type: ignore[override]
        return _truth(lambda a, b: a != b, self, other)

    __hash__ = None  # type: ignore[assignment]

    # What NumPy's functions call

    def __getattr__(self, name: str) -> Callable[[], ExactNumber]:
        """Return the function of a number that NumPy calls by its own name, such as `exp`."""
        function = _FUNCTIONS.get(name)
        if name in _SUMS:
            return lambda: _SUMS[name](self)
        if function is None:
            raise AttributeError(name)
        return lambda: ExactNumber(
            _context.nan if _context.isnan(self.value) else function(self.value), (self,)
        )

    def tanh(self) -> ExactNumber:
        """Return the hyperbolic tangent."""
        found = ExactNumber(_tanh(self.value), (self,))
        found.absorbs = found.absorbs or (
            bool(_context.isfinite(self.value)) and abs(found.value) == 1
        )
        return found


# The least number that float32 rounds to infinity.
_OVERFLOW = _context.mpf((2**25 - 1) * 2**103)


def _number(value: object) -> ExactNumber:
    if isinstance(value, ExactNumber):
        return value
    return ExactNumber(_context.mpf(float(value)))  # type: ignore[arg-type]


def _truth(compare: Callable[[Any, Any], Any], a: ExactNumber, other: object) -> ExactNumber:
    b = _number(other)
    return ExactNumber(_context.mpf(bool(compare(a.value, b.value))), (a, b), (0.0, 0.0))


def _decided(chosen: ExactNumber, *others: ExactNumber) -> ExactNumber:
    """Return a number that was chosen by others: theirs is what the choice stands on."""
    return ExactNumber(chosen.value, (chosen, *others), (chosen.high, chosen.low))


def _product(value: Any, a: ExactNumber, b: ExactNumber, reach: tuple[float, float]) -> ExactNumber:
    found = ExactNumber(value, (a, b), reach)
    found.overflows = found.overflows or reach[0] > _LARGEST_EXPONENT
    found.underflows = found.underflows or reach[1] < _SMALLEST_EXPONENT
    return found


def _exp(value: Any) -> Any:
    if abs(value) > _LARGEST_ARGUMENT:
        return _context.inf if value > 0 else _context.mpf(0)
    return _context.exp(value)


def _log(value: Any) -> Any:
    if value < 0:
        return _context.nan
    return _context.log(value) if value else _context.ninf


def _tanh(value: Any) -> Any:
    if _context.isnan(value):
        return value
    # Far out only 1 is left of it, at this precision too.
    return _context.sign(value) if abs(value) > _BITS else _context.tanh(value)


def _whole(value: Any, rounded: Callable[[Any], Any]) -> Any:
    return value if _context.isinf(value) else rounded(value)


def _sign(value: Any) -> Any:
    return _context.mpf((value > 0) - (value < 0))


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": _exp,
    "exp2": lambda value: _exp(value * _context.ln2),
    "log": _log,
    "log2": lambda value: _log(value) / _context.ln2,
    "sqrt": lambda value: _context.sqrt(value) if value >= 0 else _context.nan,
    "sinh": lambda value: (_exp(value) - _exp(-value)) / 2,
    "cosh": lambda value: (_exp(value) + _exp(-value)) / 2,
    "arcsinh": lambda value: _sign(value) * _log(abs(value) + _context.sqrt(value * value + 1)),
    "sign": _sign,
    "floor": lambda value: _whole(value, _context.floor),
    "ceil": lambda value: _whole(value, _context.ceil),
    "rint": lambda value: _whole(value, _context.nint),
}

# Functions whose text has a sum in it.
_SUMS: dict[str, Callable[[ExactNumber], ExactNumber]] = {
    "log1p": lambda number: (1 + number).log(),
    "expm1": lambda number: number.exp() - 1,
    "arctanh": lambda number: ((1 + number) / (1 - number)).log() / 2,
}


def _larger(a: object, b: object) -> ExactNumber:
    one, other = _number(a), _number(b)
    return _decided(one if one > other or _context.isnan(one.value) else other, one, other)


def _smaller(a: object, b: object) -> ExactNumber:
    one, other = _number(a), _number(b)
    return _decided(one if one < other or _context.isnan(one.value) else other, one, other)


def _where(condition: object, a: object, b: object) -> ExactNumber:
    deciding = _number(condition)
    return _decided(_number(a if deciding else b), deciding)


def _called(name: str) -> Any:
    """Return a ufunc of the method of that name, for those that NumPy takes from elsewhere."""
    return np.frompyfunc(lambda value: getattr(_number(value), name)(), 1, 1)


_CHOOSING = {
    **{getattr(np, name): _called(name) for name in ("sign", "square", "floor", "ceil", "rint")},
    np.maximum: np.frompyfunc(_larger, 2, 1),
    np.minimum: np.frompyfunc(_smaller, 2, 1),
    np.less: np.frompyfunc(operator.lt, 2, 1),
    np.less_equal: np.frompyfunc(operator.le, 2, 1),
    np.greater: np.frompyfunc(operator.gt, 2, 1),
    np.greater_equal: np.frompyfunc(operator.ge, 2, 1),
    np.equal: np.frompyfunc(operator.eq, 2, 1),
    np.not_equal: np.frompyfunc(operator.ne, 2, 1),
}
_CHOICE = np.frompyfunc(_where, 3, 1)


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
        lifted.reshape(-1)[position] = _number(number)
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
    numbers = [_number(value) for value in np.asarray(output, object).reshape(-1)]
    return ExactOutput(
        values=np.array([_nearest(number.value) for number in numbers], np.float64),
        known=np.array([number.known for number in numbers], np.bool_),
        overflows=np.array([number.overflows for number in numbers], np.bool_),
        underflows=np.array([number.underflows for number in numbers], np.bool_),
        lost=np.array([number.lost for number in numbers], np.bool_),
    )


def _nearest(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
