"""A reference in NumPy evaluated again with one of its own values a rounding away.

A golden is an ordinary function of arrays. Called with `Traced` arrays it computes the same values,
and every place is known where a float32 evaluation of the very same text has to round something
that no other way to compute it avoids:

    constant   a number that float32 does not hold, such as 0.1 or pi
    term       a result of rational arithmetic (+ - * / of inputs and numbers) that enters a sum:
               polynomials at their roots
    sum        what is added up over an axis: long sums, and sums whose true value is 0
    decision   a computed value that is rounded to a whole number, compared, or asked for its sign

Results of other functions are not among them: 1 - tanh(x)**2 is what a formula may say and a kernel
may compute better. Source: our own rule, measured in benchmarks/verdict.py.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from opkit.testing.arrays import Array

__all__ = ["Cancellation", "Role", "Site", "Traced", "Tracer", "keeping_arrays", "tracing"]


class Role(IntEnum):
    """How a value came about; a result is what the greatest of its operands is."""

    INPUT = 0
    """An input or a number as it is."""
    RATIONAL = 1
    """Computed from inputs and numbers by + - * / and selection."""
    OTHER = 2
    """What any other function gave."""


@dataclass(frozen=True)
class Site:
    """One place where a value is perturbed."""

    kind: str
    """`constant`, `term`, `sum` or `decision`."""


@dataclass(frozen=True)
class Cancellation:
    """The sum of a golden that loses most of its operands' digits at one element."""

    file: Path
    line: int
    text: str
    """The expression in the golden, or its whole line."""
    operands: tuple[float, ...]
    """What is added; the sum of the magnitudes where it is added up over an axis."""
    result: float

    def __str__(self) -> str:
        added = " and ".join(f"{value:.6g}" for value in self.operands)
        return f"{self.file.name}:{self.line}: {self.text}: {added} cancel to {self.result:.3g}"


@dataclass
class Tracer:
    """One evaluation: which place is perturbed, and by what factor less 1."""

    target: int = -1
    step: float = 0.0
    watched: int | None = None
    """A flat position in the result, whose worst cancellation is looked for."""
    watched_shape: tuple[int, ...] = ()
    sites: list[Site] = field(default_factory=list)
    worst: Cancellation | None = None
    _loss: float = 4.0

    def step_at(self, kind: str) -> float:
        """Note a place; return how far its value is moved in this evaluation, relatively."""
        self.sites.append(Site(kind))
        return self.step if len(self.sites) - 1 == self.target else 0.0

    def watch(self, result: Array, *operands: object) -> None:
        """Note the operands of a sum where they cancel at the watched position."""
        if self.watched is None:
            return
        found = _at(result, self.watched, self.watched_shape)
        values = [_at(np.asarray(o), self.watched, self.watched_shape) for o in operands]
        if found is None or any(value is None for value in values):
            return
        known = [value for value in values if value is not None]
        total = sum(abs(value) for value in known)
        loss = total / abs(found) if found else np.inf if total else 0.0
        if np.isfinite(total) and loss > self._loss:
            place = _place()
            if place is not None:
                self._loss = loss
                self.worst = Cancellation(*place, tuple(known), found)


_PACKAGES = (str(Path(np.__file__).parent), str(Path(__file__).resolve()))


def _place() -> tuple[Path, int, str] | None:
    """Return file, line and expression of the golden that is being evaluated."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line)
    text = source.strip()
    # Only from Python 3.11 on does a frame know its columns.
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is not None:
        first, last, start, end = list(positions())[frame.f_lasti // 2]
        if first == last == line and start is not None and end is not None:
            text = source.encode()[start:end].decode(errors="replace").strip() or text
    return Path(file), line, text


def _at(values: Array, position: int, shape: tuple[int, ...]) -> float | None:
    """Return the element that ends up at a flat position of an array of `shape`."""
    if values.size == 1:
        return float(values.reshape(-1)[0])
    if values.ndim > len(shape):
        return None
    index = np.unravel_index(position, shape)[len(shape) - values.ndim :]
    fits = all(a in (1, b) for a, b in zip(values.shape, shape[len(shape) - values.ndim :]))  # noqa: B905
    if not fits:
        return None
    return float(values[tuple(i if n > 1 else 0 for i, n in zip(index, values.shape, strict=True))])


_active: list[Tracer] = []

# Of the ufuncs: what keeps rational values rational, what adds, what decides.
_RATIONAL = {
    *(np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive, np.square),
    *(np.absolute, np.maximum, np.minimum, np.fmax, np.fmin, np.reciprocal, np.matmul),
}
_SUMS = {np.add, np.subtract}
_SCALES = {np.multiply, np.divide}
_DECISIONS = {
    *(np.floor, np.ceil, np.rint, np.trunc, np.sign, np.floor_divide, np.remainder, np.fmod),
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
}
# Functions that only choose or move elements.
_MOVES = {
    *(np.where, np.broadcast_to, np.reshape, np.concatenate, np.stack, np.transpose),
    *(np.expand_dims, np.squeeze, np.swapaxes, np.moveaxis, np.clip, np.take, np.repeat, np.tile),
    *(np.take_along_axis, np.flip, np.roll, np.split, np.pad, np.select),
}
_PRODUCTS = {np.dot, np.einsum, np.tensordot, np.inner, np.outer, np.vdot}
# Made of ufuncs and methods, which are traced one by one.
_COMPOSED = {
    *(np.sum, np.mean, np.var, np.std, np.cumsum, np.round, np.around, np.average),
    *(np.max, np.min, np.amax, np.amin, np.prod),
}


class Traced(np.ndarray[Any, Any]):
    """An array whose results are traced; holds ordinary values."""

    role: Role

    def __array_finalize__(self, source: object) -> None:
        """Keep the role through views, slices and copies."""
        self.role = getattr(source, "role", Role.OTHER)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **keywords: Any
    ) -> Any:
        """Compute as NumPy does, with the operands that this evaluation perturbs."""
        tracer = _active[-1] if _active else Tracer()
        roles = [_role(value) for value in inputs]
        plain = [_plain(value) for value in inputs]
        keywords = {name: _plain(value) for name, value in keywords.items()}
        call: Callable[..., Any] = getattr(ufunc, method)
        if method == "__call__":
            plain = _perturbed(tracer, ufunc, plain, roles)
            result = call(*plain, **keywords)
            if ufunc in _SUMS:
                tracer.watch(np.asarray(result), *plain)
            if ufunc is np.matmul:
                result = result + tracer.step_at("sum") * call(*map(np.abs, plain), **keywords)
        else:
            result = call(*plain, **keywords)
            if ufunc is np.add and np.asarray(result).dtype.kind == "f":
                sizes = call(np.abs(plain[0]), *plain[1:], **keywords)
                result = result + tracer.step_at("sum") * sizes
                tracer.watch(np.asarray(result), sizes)
        role = _result_role(ufunc, plain, roles)
        if out is not None:
            for target, value in zip(out, result if isinstance(result, tuple) else (result,)):  # noqa: B905
                np.asarray(target)[...] = value
                if isinstance(target, Traced):
                    target.role = role
            return out[0] if len(out) == 1 else out
        return _traced(result, role)

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, keywords: Mapping[str, Any]
    ) -> Any:
        """Follow the functions that are made of ufuncs; take the others as they are."""
        if function in _COMPOSED:
            return super().__array_function__(function, types, arguments, keywords)
        tracer = _active[-1] if _active else Tracer()
        plain = _plain(arguments)
        named = {name: _plain(value) for name, value in keywords.items()}
        result = function(*plain, **named)
        if function in _PRODUCTS:
            sizes = function(*(_magnitude(value) for value in plain), **named)
            result = result + tracer.step_at("sum") * sizes
        role = Role.OTHER
        if function in _MOVES or function in _PRODUCTS:
            # A condition chooses, and is no operand.
            counted = arguments[1:] if function in (np.where, np.select) else arguments
            role = max(_role(counted), Role.RATIONAL)
        return _traced(result, role)


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


def _traced(result: Any, role: Role) -> Any:
    if isinstance(result, tuple):
        return tuple(_traced(item, role) for item in result)
    if isinstance(result, list):
        return [_traced(item, role) for item in result]
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    traced = np.asarray(result).view(Traced)
    traced.role = role
    return traced


def _result_role(ufunc: np.ufunc, operands: list[Any], roles: list[Role]) -> Role:
    if ufunc is np.power and _is_whole(operands[-1]):
        return max(Role.RATIONAL, *roles)
    if ufunc in _RATIONAL or ufunc in _DECISIONS:
        # Of an input alone, the sign and the size are still as exact as it is.
        exact = ufunc in (np.negative, np.absolute, np.positive)
        return roles[0] if exact else max(Role.RATIONAL, *roles)
    return Role.OTHER


def _is_whole(value: Any) -> bool:
    return np.ndim(value) == 0 and float(value).is_integer()


def _perturbed(
    tracer: Tracer, ufunc: np.ufunc, operands: list[Any], roles: list[Role]
) -> list[Any]:
    """Return the operands with the one that this evaluation moves."""
    moved = list(operands)
    rational = max(roles) <= Role.RATIONAL
    for number, (value, role) in enumerate(zip(operands, roles, strict=True)):
        kind = ""
        if np.ndim(value) == 0 and role is Role.INPUT:
            if _is_inexact(value):
                kind = "constant"
        elif np.asarray(value).dtype.kind != "f":
            continue
        elif ufunc in _DECISIONS and role is not Role.INPUT:
            kind = "decision"
        elif ufunc in _SUMS and role is Role.RATIONAL and rational:
            kind = "term"
        elif ufunc in _SCALES and role is Role.RATIONAL and not rational:
            # Rounded before a function's result multiplies it: x + sigmoid(y)*(z - x).
            kind = "term"
        if kind:
            step = tracer.step_at(kind)
            moved[number] = value * (1.0 + step) if step else value
    return moved


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
