"""Numbers without limits of range that know what float32 could have made of them.

Values are kept to 1200 bits. Beside its value each number knows whether float32 could have left its
range on the way to it, in whatever order what is multiplied is multiplied and what is added is
added, which kinds of numbers it may be then, and how far underflow and comparisons that roundings
decide may move it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mpmath

from opkit.testing.numbers.float_kinds import (
    NOTHING,
    Kinds,
    absolute,
    chosen_by,
    compared,
    divided,
    larger_of,
    multiplied,
    negated,
    of_function,
    of_sign,
    smaller_of,
    summed,
)

__all__ = ["ExactNumber", "choose", "exact_number", "larger", "smaller", "to_float"]

# Enough for 1 + z**2 with z from the least to the greatest of float32, squared once more.
_BITS = 1200
_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 128.0, -126.0
# Products of roundings may be that much, relatively, beyond the exact one.
_SLACK = 2.0**-18
_STEP = 2.0**-24
_DECISION_STEP = 4 * _STEP
_SMALLEST_NORMAL, _SMALLEST = 2.0**-126, 2.0**-149
# Beyond that an exponential's own exponent does not fit any more.
_LARGEST_ARGUMENT = mpmath.mpf(2) ** 512

_context = mpmath.mp.clone()
_context.prec = _BITS
# The least number that float32 rounds to infinity.
_OVERFLOW = _context.mpf((2**25 - 1) * 2**103)
# Where terms that were rounded before may add up to it.
_NEAR_OVERFLOW = _OVERFLOW * (1 - _context.mpf(2) ** -20)
# Below the least number there is only 0.
_LEAST_EXPONENT = -149.0
_INFINITE = Kinds.INFINITY | Kinds.MINUS_INFINITY


class ExactNumber:
    """A real number, infinity or NaN, and what float32 may have in its place.

    `high` and `low`: the exponents of two of the largest and smallest product of some of its
    factors. Zeros have no sign, so what is divided by zero is unknown.
    """

    __slots__ = (
        *("absorbs", "error", "high", "infinite", "instead", "is_computed", "known", "lost"),
        *("low", "noise", "overflows", "poisoned", "terms", "underflows", "value"),
    )

    value: Any
    known: bool
    overflows: bool
    underflows: bool
    absorbs: bool
    """Whether a sum on its way was so much larger than a term that nothing is left of that."""
    lost: bool
    """Whether such a sum came to zero."""
    error: float
    """How far off underflow and decisions of roundings may put it; infinite: it may be anything."""
    noise: float
    """How far roundings of the terms of sums may put it: for what is compared, or made infinite."""
    poisoned: bool
    """Whether it is NaN because an input is: no range, order or rounding makes it a number."""
    is_computed: bool
    """Whether it is no input and no number of the text."""
    instead: Kinds
    """What it may be where something on its way overflows."""
    terms: tuple[float, float] | None
    """Sums of a sum's positive terms and of its negative terms."""
    infinite: Kinds
    """Infinities that a sum's terms may be."""
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
        self.is_computed = bool(sources)
        self.poisoned = (
            any(source.poisoned for source in sources) if sources else bool(_context.isnan(value))
        )
        self.error = self.noise = 0.0
        self.instead = NOTHING
        self.terms = None
        self.infinite = NOTHING
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
        mantissa, power = value.man_exp
        # Of the mantissa's 1200 bits a float takes the first ones.
        surplus = max(0, mantissa.bit_length() - 64)
        size = math.log2(abs(mantissa) >> surplus) + surplus + power
        return size if size <= _LARGEST_EXPONENT else 0.0

    def __float__(self) -> float:
        """Return the nearest float64."""
        return float(self.value)

    def __bool__(self) -> bool:
        """Whether it is not zero, as NumPy asks of conditions."""
        return bool(self.value != 0)

    # Arithmetic

    def __neg__(self) -> ExactNumber:
        found = _like(self, -self.value)
        found.instead = negated(self.instead)
        found.terms = self.terms and (self.terms[1], self.terms[0])
        found.infinite = negated(self.infinite)
        return found

    def __pos__(self) -> ExactNumber:
        return self

    def __abs__(self) -> ExactNumber:
        found = _like(self, abs(self.value))
        found.instead = absolute(self.instead)
        return found

    def __add__(self, other: object) -> ExactNumber:
        b = exact_number(other)
        sizes = abs(self.value), abs(b.value)
        found = ExactNumber(_without_residue(self.value + b.value, max(sizes)), (self, b))
        # What rounds to infinity already has been an exponential's, or has been noted.
        if max(sizes) < _OVERFLOW <= sizes[0] + sizes[1] or (
            max(sizes) < _NEAR_OVERFLOW <= sizes[0] + sizes[1]
        ):
            found.overflows = True
        if self.value and b.value and found.value in (self.value, b.value):
            found.absorbs = found.absorbs or bool(_context.isfinite(found.value))
        found.lost = found.lost or (found.absorbs and not found.value)
        found.high = max(found.high, self.high, b.high)
        found.error = self.error + b.error
        found.noise = self.noise + b.noise
        for term in (self, b):
            found.noise += 2 * _STEP * _computed_size(term)
        ends = zip(_terms(self), _terms(b), strict=True)
        found.terms = positive, negative = tuple(x + y for x, y in ends)  # type: ignore[assignment]
        # Only terms that were rounded before may add up to more than they are.
        bar = _NEAR_OVERFLOW if max(sizes) < _NEAR_OVERFLOW else _OVERFLOW
        found.infinite = _infinities(self) | _infinities(b)
        found.instead = _of_two(summed, self, b) | _of_terms(positive, negative, bar)
        if found.instead and (found.instead | found.infinite) & _INFINITE == _INFINITE:
            # In some order of the terms one infinity meets the other.
            found.instead |= Kinds.NAN
        return found

    def __sub__(self, other: object) -> ExactNumber:
        return self + (-exact_number(other))

    def __mul__(self, other: object) -> ExactNumber:
        b = exact_number(other)
        found = _product(self.value * b.value, self, b, (self.high + b.high, self.low + b.low))
        found.error += _of_product(self, b, self.error, b.error)
        found.noise = _of_product(self, b, self.noise, b.noise)
        if _may_be_zero(self, b) or _may_be_zero(b, self):
            found.error = math.inf
        found.instead |= _of_two(multiplied, self, b)
        return found

    def __truediv__(self, other: object) -> ExactNumber:
        b = exact_number(other)
        if not b.value:
            found = ExactNumber(_context.nan, (self, b))
            found.known = False
            found.instead = _of_two(divided, self, b)
            return found
        reach = self.high - b.low, self.low - b.high
        found = _product(self.value / b.value, self, b, reach)
        slack = _SLACK if self.low and b.high else 0.0
        if reach[1] < slack - _LARGEST_EXPONENT and not _is_nan(found):
            # Divisors may be multiplied with each other first: what is left is 0 then.
            found.error += to_float(abs(found.value))
        # What is near 0 may be rounded to it.
        divisor = to_float(abs(b.value))
        found.underflows = found.underflows or 0 < divisor <= b.error + b.noise
        found.error += _of_quotient(self, b, self.error, b.error)
        found.noise = _of_quotient(self, b, self.noise, b.noise)
        found.instead |= _of_two(divided, self, b)
        return found

    def __pow__(self, other: object) -> ExactNumber:
        b = exact_number(other)
        exponent = b.value
        if exponent == int(exponent) and abs(exponent) <= 64:
            whole = ExactNumber(_context.mpf(1))
            for _ in range(abs(int(exponent))):
                whole = whole * self
            return whole if exponent >= 0 else 1 / whole
        instead = of_function("power" if exponent > 0 else "root", self.instead)
        if _context.isinf(self.value):
            # As C's pow has it: infinite or 0, whatever the sign.
            found = ExactNumber(_context.inf if exponent > 0 else _context.mpf(0), (self, b))
            found.instead = instead
            return found
        if self.value < 0 or _context.isnan(self.value):
            found = ExactNumber(_context.nan, (self, b))
            found.instead = instead
            return found
        if not self.value:
            found = ExactNumber(_context.mpf(0), (self, b))
            found.known = bool(exponent > 0)
            found.instead = instead
            return found
        reach = float(exponent) * self.high, float(exponent) * self.low
        spread = (max(0.0, *reach), min(0.0, *reach))
        found = _product(self.value**exponent, self, b, spread)
        found.error += _spread(lambda value: _power(value, exponent), found.value, self, self.error)
        found.instead |= instead
        return found

    def __radd__(self, other: object) -> ExactNumber:
        return exact_number(other) + self

    def __rsub__(self, other: object) -> ExactNumber:
        return exact_number(other) - self

    def __rmul__(self, other: object) -> ExactNumber:
        return exact_number(other) * self

    def __rtruediv__(self, other: object) -> ExactNumber:
        return exact_number(other) / self

    def __rpow__(self, other: object) -> ExactNumber:
        return exact_number(other) ** self

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
        if name in _SUMS:
            return lambda: _SUMS[name](self)
        if name in _STEPS:
            return lambda: _stepped(name, self)
        function = _FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(name)
        return lambda: _applied(name, function, self)

    def tanh(self) -> ExactNumber:
        """Return the hyperbolic tangent."""
        found = _applied("tanh", _tanh, self)
        found.absorbs = found.absorbs or (
            bool(_context.isfinite(self.value)) and abs(found.value) == 1
        )
        return found


def _without_residue(total: Any, largest: Any) -> Any:
    """Return a sum, 0 where only the rounding of its terms at this precision is left of them.

    Terms of float32 numbers, and of products of four of them, end long before.
    """
    if not total or not _context.isfinite(total) or _context.isinf(largest):
        return total
    return total if _context.mag(total) > _context.mag(largest) - _BITS + 64 else _context.mpf(0)


def exact_number(value: object) -> ExactNumber:
    """Return a number, or what NumPy takes for one, as an exact one."""
    if isinstance(value, ExactNumber):
        return value
    return ExactNumber(_context.mpf(float(value)))  # type: ignore[arg-type]


def to_float(value: Any) -> float:
    """Return the nearest float64, infinity for what is beyond."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def larger(a: object, b: object) -> ExactNumber:
    """Return the larger of two numbers, NaN where one is."""
    one, other = exact_number(a), exact_number(b)
    found = _either(one, other, bool(one.value > other.value or _context.isnan(one.value)))
    found.instead = _of_two(larger_of, one, other)
    return found


def smaller(a: object, b: object) -> ExactNumber:
    """Return the smaller of two numbers, NaN where one is."""
    one, other = exact_number(a), exact_number(b)
    found = _either(one, other, bool(one.value < other.value or _context.isnan(one.value)))
    found.instead = _of_two(smaller_of, one, other)
    return found


def choose(condition: object, a: object, b: object) -> ExactNumber:
    """Return what `numpy.where` does of three numbers."""
    deciding, one, other = exact_number(condition), exact_number(a), exact_number(b)
    chosen = one if deciding else other
    instead = chosen.instead | chosen_by(deciding.instead, _kinds(one), _kinds(other))
    if not deciding.error:
        found = _decided(chosen, deciding)
        found.error, found.noise = chosen.error, chosen.noise
        found.is_computed = chosen.is_computed
        found.poisoned = chosen.poisoned
        if deciding.instead:
            found.poisoned = one.poisoned and other.poisoned
        found.instead = instead
        return found
    # Roundings decide: it may be either.
    found = _decided(chosen, deciding, one, other)
    found.error = max(one.error, other.error) + _distance(one, other)
    found.noise = max(one.noise, other.noise)
    found.poisoned = one.poisoned and other.poisoned
    found.instead = instead | one.instead | other.instead
    return found


def _either(one: ExactNumber, other: ExactNumber, takes_one: bool) -> ExactNumber:
    chosen, left = (one, other) if takes_one else (other, one)
    found = _decided(chosen, left)
    near = _distance(one, other) <= one.error + other.error
    found.is_computed = one.is_computed or other.is_computed
    found.error = max(one.error, other.error) if near else chosen.error
    found.noise = max(one.noise, other.noise)
    return found


def _distance(one: ExactNumber, other: ExactNumber) -> float:
    """Return how far apart two numbers are; infinite where one is not finite and they differ."""
    if one.value == other.value:
        return 0.0
    size = to_float(abs(one.value - other.value))
    return math.inf if math.isnan(size) else size


def _computed_size(number: ExactNumber) -> float:
    """Return the size of what was computed and is no larger than a float64; 0 for anything else."""
    if not number.is_computed or not _context.isfinite(number.value):
        return 0.0
    size = to_float(abs(number.value))
    return size if size < math.inf else 0.0


def _like(number: ExactNumber, value: Any) -> ExactNumber:
    found = ExactNumber(value, (number,), (number.high, number.low))
    found.error, found.noise = number.error, number.noise
    found.is_computed = number.is_computed
    return found


def _decided(chosen: ExactNumber, *others: ExactNumber) -> ExactNumber:
    """Return a number that was chosen by others: theirs is what the choice stands on."""
    return ExactNumber(chosen.value, (chosen, *others), (chosen.high, chosen.low))


def _truth(compare: Callable[[Any, Any], Any], a: ExactNumber, other: object) -> ExactNumber:
    b = exact_number(other)
    found = ExactNumber(_context.mpf(bool(compare(a.value, b.value))), (a, b), (0.0, 0.0))
    # A 0 or 1 has no rounding, and is a number whatever was compared.
    found.is_computed = found.poisoned = False
    apart, near = _distance(a, b), a.error + b.error
    if apart:
        # Two ways to one number mostly come to one in float32 too.
        near += sum(n.noise + _DECISION_STEP * _computed_size(n) for n in (a, b))
    if near and apart <= near and not (_is_nan(a) or _is_nan(b)):
        found.error = 1.0
    if a.instead or b.instead:
        found.instead = _of_two(partial(compared, compare), a, b) & ~_kinds(found)
    return found


def _is_nan(number: ExactNumber) -> bool:
    return bool(_context.isnan(number.value))


def _product(value: Any, a: ExactNumber, b: ExactNumber, reach: tuple[float, float]) -> ExactNumber:
    """Return a product or quotient with what underflow on its way makes of it."""
    found = ExactNumber(value, (a, b), reach)
    grows = reach[0] > max(a.high, b.high)
    if reach[0] > _LARGEST_EXPONENT - (_SLACK if grows else 0.0):
        found.overflows = True
        found.instead = _kinds_beyond(value, reach[1])
    if not value or not _context.isfinite(value) or reach[1] >= _SMALLEST_EXPONENT:
        return found
    if a.is_computed or b.is_computed:
        # What is left of a partial product that underflows, times the largest of the others.
        found.error = 2.0 ** min(1000.0, math.log2(_SMALLEST) + max(0.0, reach[0]))
    elif abs(value) < _SMALLEST_NORMAL:
        found.error = _SMALLEST
    return found


def _of_product(a: ExactNumber, b: ExactNumber, of_a: float, of_b: float) -> float:
    if not of_a and not of_b:
        return 0.0
    if math.inf in (of_a, of_b):
        return math.inf
    sizes = to_float(abs(a.value)), to_float(abs(b.value))
    if not all(map(math.isfinite, sizes)):
        return 0.0
    return sizes[0] * of_b + sizes[1] * of_a + of_a * of_b


def _may_be_zero(factor: ExactNumber, infinite: ExactNumber) -> bool:
    """Whether infinity is multiplied by what float32 may take for zero, or for the other sign.

    Infinite in float32 is an exponential that overflows, too.
    """
    off = factor.error + factor.noise
    is_infinite = bool(abs(infinite.value) >= _OVERFLOW)
    return is_infinite and off > 0 and off >= to_float(abs(factor.value))


def _of_quotient(a: ExactNumber, b: ExactNumber, of_a: float, of_b: float) -> float:
    if not of_a and not of_b:
        return 0.0
    divisor = to_float(abs(b.value))
    quotient = to_float(abs(a.value / b.value))
    if of_a == math.inf or of_b == math.inf or of_b >= divisor:
        return math.inf
    if not math.isfinite(divisor) or not math.isfinite(quotient):
        return 0.0
    return (of_a + quotient * of_b) / (divisor - of_b)


def _kinds(number: ExactNumber) -> Kinds:
    """Return what a number may be in float32."""
    value = number.value
    if _context.isnan(value):
        return Kinds.NAN | number.instead
    sign, size = float(_sign(value)), abs(value)
    found = of_sign(sign, infinite=bool(_context.isinf(value))) | number.instead
    if size >= _OVERFLOW:
        found |= of_sign(sign, infinite=True)
    off = number.error + number.noise
    return found | Kinds.ZERO if off and off >= to_float(size) else found


def _of_two(operation: Callable[[Kinds, Kinds], Kinds], a: ExactNumber, b: ExactNumber) -> Kinds:
    """Return what an operation may give where one of its operands is what overflow made of it."""
    if not (a.instead or b.instead):
        return NOTHING
    found = operation(a.instead, _kinds(b)) if a.instead else NOTHING
    return found | operation(_kinds(a), b.instead) if b.instead else found


def _kinds_beyond(value: Any, low: float) -> Kinds:
    """Return what a product may be of which some factors overflow; others may come to 2^low."""
    if _context.isnan(value):
        return Kinds.NAN
    found = of_sign(float(_sign(value)), infinite=True)
    # What is left of the other factors is zero, or near enough to be flushed to it.
    return found | Kinds.NAN if not value or low < _LEAST_EXPONENT else found


def _terms(number: ExactNumber) -> tuple[float, float]:
    """Return what the positive and the negative terms of a sum come to, or of one term alone."""
    if number.terms is not None:
        return number.terms
    size = to_float(abs(number.value))
    # What rounds to infinity already has been an exponential's, or has been noted.
    if not size < _OVERFLOW:
        return 0.0, 0.0
    return (size, 0.0) if number.value > 0 else (0.0, size)


def _infinities(number: ExactNumber) -> Kinds:
    """Return which infinities the terms of a sum may be, or one term alone."""
    return number.infinite | (_kinds(number) & _INFINITE)


def _of_terms(positive: float, negative: float, bar: Any) -> Kinds:
    """Return what a sum may be in some order of its terms, which overflows at a bar."""
    found = Kinds.INFINITY if positive >= bar else NOTHING
    if negative >= bar:
        found |= Kinds.MINUS_INFINITY | (Kinds.NAN if found else NOTHING)
    return found


def _applied(name: str, function: Callable[[Any], Any], number: ExactNumber) -> ExactNumber:
    instead = of_function(name, number.instead)
    if _context.isnan(number.value):
        found = ExactNumber(_context.nan, (number,))
        found.instead = instead
        return found
    found = ExactNumber(function(number.value), (number,))
    found.instead = instead
    found.error = _spread(function, found.value, number, number.error)
    if number.noise >= abs(number.value):
        found.noise = _spread(function, found.value, number, number.noise)
    if found.value and abs(found.value) < _SMALLEST_NORMAL:
        found.error += _SMALLEST
    return found


def _spread(function: Callable[[Any], Any], value: Any, number: ExactNumber, off: float) -> float:
    """Return how far a function's value moves where its argument is off by so much."""
    if not off or not math.isfinite(off):
        return off
    error = _context.mpf(off)
    ends = [function(number.value + error), function(number.value - error)]
    sizes = [0.0 if end == value else to_float(abs(end - value)) for end in ends]
    return math.inf if any(map(math.isnan, sizes)) else max(sizes)


def _stepped(name: str, number: ExactNumber) -> ExactNumber:
    """Return a function of whole values, which a rounding may put a step away."""
    function, instead = _STEPS[name], of_function(name, number.instead)
    if _context.isnan(number.value):
        found = ExactNumber(_context.nan, (number,))
        found.instead = instead
        return found
    found = ExactNumber(function(number.value), (number,))
    found.instead = instead
    found.is_computed = False
    if not _context.isfinite(number.value):
        return found
    near = number.error + number.noise
    if function is not _sign:
        near += _DECISION_STEP * _computed_size(number)
    if not math.isfinite(near):
        found.error = near
    elif near:
        ends = [function(number.value + side * _context.mpf(near)) for side in (1, -1)]
        found.error = max(to_float(abs(end - found.value)) for end in ends)
    return found


def _exp(value: Any) -> Any:
    if abs(value) > _LARGEST_ARGUMENT:
        return _context.inf if value > 0 else _context.mpf(0)
    return _context.exp(value)


def _log(value: Any) -> Any:
    if value < 0:
        return _context.nan
    return _context.log(value) if value else _context.ninf


def _power(value: Any, exponent: Any) -> Any:
    if value < 0:
        return _context.nan
    return value**exponent if value or exponent > 0 else _context.inf


def _tanh(value: Any) -> Any:
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
}

_STEPS: dict[str, Callable[[Any], Any]] = {
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
