"""Functions of formulas that are made of the table's operators, for which one must know how many
axes their operands have: those of PyTorch and NumPy by which tensors are given another shape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from opkit.errors import UsageError

from ...ir import HALVES, Dimension, Shape, Value, is_one, normal_axes, product, same, shape_text
from .more_words import KEEPING_WORDS, MORE_WORDS

__all__ = [
    "ATTENTION",
    "FORMULA_WORDS",
    "Word",
    "arguments_of",
    "as_shape",
    "einsum",
    "flat_widths",
]

Word = Callable[..., Value]
ATTENTION = "softmax({scores}, axis=-1) @ value"
"""PyTorch's attention in the language's words."""


def _axis(x: Value, axis: Any, more: int = 0) -> int:
    return normal_axes(axis, x.ndim + more)[0]


def _unsqueeze(x: Value, axis: int) -> Value:
    at = _axis(x, axis, 1)
    return x.reshape(*x.shape[:at], 1, *x.shape[at:])


def _squeeze(x: Value, axis: Any = None) -> Value:
    axes = [at for at, extent in enumerate(x.shape) if is_one(extent)]
    if axis is not None:
        axes = list(normal_axes(axis, x.ndim))
        wide = [at for at in axes if not is_one(x.shape[at])]
        if wide:
            raise UsageError(f"axis {wide[0]} has {x.shape[wide[0]]} elements, not 1")
    return x.reshape(*(extent for at, extent in enumerate(x.shape) if at not in axes))


def _flatten(x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    start, end = _axis(x, start_dim), _axis(x, end_dim)
    return x.reshape(*x.shape[:start], product(x.shape[start : end + 1]), *x.shape[end + 1 :])


def _unflatten(x: Value, axis: int, sizes: tuple[Dimension, ...]) -> Value:
    at = _axis(x, axis)
    return x.reshape(*x.shape[:at], *sizes, *x.shape[at + 1 :])


def _swapaxes(x: Value, axis0: int, axis1: int) -> Value:
    order = list(range(x.ndim))
    first, second = _axis(x, axis0), _axis(x, axis1)
    order[first], order[second] = order[second], order[first]
    return x.apply("transpose", axes=tuple(order))


def _expand(x: Value, shape: tuple[Dimension, ...]) -> Value:
    rest = len(shape) - x.ndim
    wide = tuple(
        x.shape[at - rest] if isinstance(extent, int) and extent == -1 else extent
        for at, extent in enumerate(shape)
    )
    return x.apply("broadcast_to", shape=wide)


def _repeat(x: Value, counts: tuple[int, ...]) -> Value:
    x = x.reshape(*(1,) * (len(counts) - x.ndim), *x.shape)
    for axis, count in enumerate(counts):
        if not is_one(count):
            x = _repeated(x, count, axis, is_inner=False)
    return x


def _repeat_interleave(x: Value, repeats: Dimension, axis: int) -> Value:
    return _repeated(x, repeats, _axis(x, axis), is_inner=True)


def _repeated(x: Value, count: Dimension, axis: int, *, is_inner: bool) -> Value:
    """Return a tensor with an axis repeated: each element, or the whole."""
    before, (extent, *after) = x.shape[:axis], x.shape[axis:]
    places = (extent, 1) if is_inner else (1, extent)
    wide = (extent, count) if is_inner else (count, extent)
    copies = x.reshape(*before, *places, *after).apply(
        "broadcast_to", shape=(*before, *wide, *after)
    )
    return copies.reshape(*before, extent * count, *after)


def _narrow(x: Value, axis: int, start: Dimension, length: Dimension) -> Value:
    key = [slice(None)] * x.ndim
    key[_axis(x, axis)] = slice(start, start + length)
    return x[tuple(key)]


def _select(x: Value, axis: int, index: int) -> Value:
    key: list[Any] = [slice(None)] * x.ndim
    key[_axis(x, axis)] = index
    return x[tuple(key)]


def _roll(x: Value, shift: int, axis: int) -> Value:
    at = _axis(x, axis)
    extent = x.shape[at]
    cut = -shift if shift < 0 else extent - shift
    ends = (_narrow(x, at, cut, extent - cut), _narrow(x, at, 0, cut))
    return x.builder.apply("concat", *ends, axis=at)


def _flip(x: Value, axis: int) -> Value:
    at = _axis(x, axis)
    places = x.builder.apply("arange", count=x.shape[at])
    last = x.builder.extent(x.shape[at]).apply("cast", dtype="int32") - 1
    return x.apply("take", last - places, axis=at)


def _one_hot(x: Value, num_classes: int) -> Value:
    classes = x.builder.apply("arange", count=num_classes)
    return x[..., None].apply("equal", classes).apply("cast", dtype="int32")


def _triangle(x: Value, diagonal: int, comparison: str) -> Value:
    rows, columns = (x.builder.apply("arange", count=extent) for extent in x.shape[-2:])
    is_kept = columns.apply(comparison, rows[:, None] + diagonal)
    return is_kept.apply("where", x, 0.0 if "float" in x.dtype else 0)


def _full_like(x: Value, value: float) -> Value:
    return x.builder.constant(value, x.dtype).apply("broadcast_to", shape=x.shape)


def _diagonal(x: Value) -> Value:
    rows, columns = (x.builder.apply("arange", count=extent) for extent in x.shape[-2:])
    if not same(x.shape[-1], x.shape[-2]):
        raise UsageError(f"is {shape_text(x.shape)}; its last two axes must be of one length")
    is_kept = columns.apply("equal", rows[:, None])
    return is_kept.apply("where", x, 0.0 if "float" in x.dtype else 0).sum(axis=-1)


def _diff(x: Value, n: int = 1, axis: int = -1) -> Value:
    for _ in range(n):
        rest = x.shape[_axis(x, axis)] - 1
        x = _narrow(x, axis, 1, rest) - _narrow(x, axis, 0, rest)
    return x


def _movedim(x: Value, source: int, destination: int) -> Value:
    order = [at for at in range(x.ndim) if at != _axis(x, source)]
    order.insert(_axis(x, destination), _axis(x, source))
    return x.apply("transpose", axes=tuple(order))


def _cross(x: Value, y: Value, axis: int = -1) -> Value:
    if not same(x.shape[_axis(x, axis)], 3):
        raise UsageError(f"has {x.shape[_axis(x, axis)]} elements along axis {axis}, expected 3")

    def part(of: Value, at: int) -> Value:
        return _narrow(of, axis, at % 3, 1)

    parts = (part(x, i + 1) * part(y, i + 2) - part(x, i + 2) * part(y, i + 1) for i in range(3))
    return x.builder.apply("concat", *parts, axis=_axis(x, axis))


def _inner(x: Value, y: Value) -> Value:
    if x.ndim == 2 and y.ndim == 2:
        return x.apply("matmul", y.transpose(1, 0))
    if y.ndim > 1:
        raise UsageError("takes two matrices, or a vector as its second operand")
    return (x * y).sum(axis=-1)


def _outer(x: Value, y: Value) -> Value:
    return x[:, None] * y[None, :]


def einsum(text: str, *operands: Value) -> Value:
    """Return `einsum("bhsd,bhtd->bhst", q, k)`: of one tensor what its axes give, of two a product
    of matrices.

    Raises:
        UsageError: the text does not fit the operands, or asks for something else.
    """
    sides = text.replace(" ", "").split("->")
    names = sides[0].split(",")
    is_plain = len(sides) == 2 and all(len(set(each)) == len(each) for each in (*names, sides[1]))
    fits = len(names) == len(operands) and all(
        len(each) == x.ndim for each, x in zip(names, operands, strict=False)
    )
    if not is_plain or not fits or len(operands) not in (1, 2):
        raise UsageError(
            f'"{text}" does not fit', help='write "bik,bkj->bij", a letter for each axis'
        )
    out = sides[1]
    if not set(out) <= set("".join(names)):
        raise UsageError(f'"{text}" names an axis of the result that no operand has')
    sums = []
    for at, (own, x) in enumerate(zip(names, operands, strict=True)):
        rest = set(out) | set(names[1 - at] if len(names) == 2 else "")
        alone = tuple(axis for axis, letter in enumerate(own) if letter not in rest)
        value = x
        for axis in reversed(alone):
            value = _squeeze(value.sum(axis=axis, keepdims=True), axis)
        sums.append(("".join(each for each in own if each in rest), value))
    if len(sums) == 1:
        ((own, x),) = sums
        return x.transpose(*(own.index(each) for each in out))
    (left, a), (right, b) = sums
    batch = [each for each in out if each in left and each in right]
    rows = [each for each in left if each not in right]
    columns = [each for each in right if each not in left]
    inner = [each for each in left if each in right and each not in out]
    extent = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))

    def matrix(own: str, x: Value, first: list[str], last: list[str]) -> Value:
        x = x.transpose(*(own.index(each) for each in (*batch, *first, *last)))
        sizes = (product(extent[e] for e in part) for part in (first, last))
        return x.reshape(*(extent[each] for each in batch), *sizes)

    left_matrix, right_matrix = matrix(left, a, rows, inner), matrix(right, b, inner, columns)
    dtype = "float32" if a.dtype in HALVES else None
    joined = left_matrix.apply("matmul", right_matrix, dtype=dtype)
    found = [*batch, *rows, *columns]
    joined = joined.reshape(*(extent[each] for each in found))
    return joined.transpose(*(found.index(each) for each in out))


def as_shape(x: Value, shape: Shape) -> Value:
    """Return a value in the shape that a prototype says for it: axes of length 1 may be more or
    fewer than it has.

    Raises:
        UsageError: it has another shape.
    """
    given, wanted = ([e for e in each if not is_one(e)] for each in (x.shape, shape))
    if len(given) != len(wanted) or not all(map(same, given, wanted)):
        raise UsageError(
            f"is {shape_text(x.shape)}, and `shape` says {shape_text(shape)}",
            help="leave `shape` out: the formula says it",
        )
    has_all = len(x.shape) == len(shape) and all(map(same, x.shape, shape))
    return x if has_all else x.reshape(*shape)


FORMULA_WORDS: Mapping[str, Word] = {
    "cross": _cross,
    "diagonal": _diagonal,
    "diff": _diff,
    "expand": _expand,
    "expand_as": lambda x, y: x.apply("broadcast_to", shape=y.shape),
    "flatten": _flatten,
    "flip": _flip,
    "full_like": _full_like,
    "inner": _inner,
    "len": lambda x: x.builder.extent(x.shape[0]),
    "movedim": _movedim,
    "narrow": _narrow,
    "numel": lambda x: x.builder.extent(product(x.shape)),
    "one_hot": _one_hot,
    "ones_like": lambda x: _full_like(x, 1),
    "outer": _outer,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    "roll": _roll,
    "select": _select,
    "squeeze": _squeeze,
    "swapaxes": _swapaxes,
    "tril": lambda x, diagonal=0: _triangle(x, diagonal, "less_equal"),
    "triu": lambda x, diagonal=0: _triangle(x, diagonal, "greater_equal"),
    "type_as": lambda x, y: x.astype(y.dtype),
    "unflatten": _unflatten,
    "unsqueeze": _unsqueeze,
    "view_as": lambda x, y: x.reshape(*y.shape),
    "with_shape": as_shape,
    "zeros_like": lambda x: _full_like(x, 0),
    **MORE_WORDS,
}


def flat_widths(widths: Any, rank: int) -> Any:
    """Return the widths of a pad as a pair for each axis, where they are PyTorch's: two numbers for
    each axis from the last."""
    is_flat = isinstance(widths, tuple) and len(widths) % 2 == 0 and len(widths) <= 2 * rank
    if not is_flat or not all(isinstance(each, int) for each in widths):
        return widths
    pairs = [widths[at : at + 2] for at in range(0, len(widths), 2)]
    return (*((0, 0),) * (rank - len(pairs)), *reversed(pairs))


def arguments_of(word: str, positional: int, named: list[str]) -> None:
    """Check the arguments of a call.

    Raises:
        UsageError: there are too many or too few, or one has a name that is unknown.
    """
    signature = inspect.signature(FORMULA_WORDS[word])
    if word in KEEPING_WORDS:
        named = [each for each in named if each != "keepdims"]
    try:
        signature.bind(*(None,) * positional, **dict.fromkeys(named))
    except TypeError as err:
        takes = ", ".join(str(each) for each in signature.parameters)
        raise UsageError(f"{err}", help=f"it takes {word}({takes})") from err
