"""Whole numbers of 64 bits in kernels that compute in 32: how large results can be.

A bound says that no element is further from 0 than `factor * limit + offset`, where `limit` is what
the inputs of a program keep to. From the bounds of all its results follows the largest limit with
which 32 bits hold them, which is checked whenever the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opkit.compiler import Refused

__all__ = ["INPUT", "LARGEST", "Bound", "bound_of", "largest_limit"]

LARGEST = (1 << 31) - 1
_LEAST = 1 << 10
"""Inputs that could not even be so large are not worth a kernel."""


@dataclass(frozen=True)
class Bound:
    """See the module."""

    factor: int
    offset: int

    def __add__(self, other: Bound) -> Bound:
        return Bound(self.factor + other.factor, self.offset + other.offset)

    def times(self, number: int) -> Bound:
        """Return the bound of so many times the elements."""
        return Bound(self.factor * number, self.offset * number)

    def limit(self) -> int:
        """Return the largest limit of the inputs with which 32 bits hold the elements."""
        if self.offset > LARGEST:
            return -1
        return (LARGEST - self.offset) // self.factor if self.factor else LARGEST


INPUT = Bound(1, 0)
Operand: TypeAlias = "Bound | Any"
Rule = Callable[..., Bound]


def largest_limit(bounds: Sequence[Bound]) -> int:
    """Return the limit of the inputs that keeps all results within 32 bits.

    Raises:
        Refused: results may leave them whatever the inputs are, or soon.
    """
    found = min((bound.limit() for bound in bounds), default=LARGEST)
    if found < _LEAST:
        raise Refused("numbers of 64 bits may be more than the 32 hold that kernels compute in")
    return found


def _of(operand: Operand) -> Bound:
    if isinstance(operand, Bound):
        return operand
    if isinstance(operand, bool | int):
        return Bound(0, abs(int(operand)))
    raise Refused("whole numbers of 64 bits meet fractions")


def _most(*operands: Operand) -> Bound:
    """Return the bound of elements that come from any of several."""
    bounds = [_of(each) for each in operands]
    return Bound(max(b.factor for b in bounds), max(b.offset for b in bounds))


def _first(x: Operand, *_: Any, **__: Any) -> Bound:
    return _of(x)


def _sum(a: Operand, b: Operand, alpha: int = 1) -> Bound:
    if not isinstance(alpha, int):
        raise Refused("whole numbers of 64 bits meet fractions")
    return _of(a) + _of(b).times(abs(alpha))


def _product(a: Operand, b: Operand) -> Bound:
    for x, number in ((a, b), (b, a)):
        if isinstance(number, bool | int):
            return _of(x).times(abs(int(number)))
    left, right = _of(a), _of(b)
    if left.factor or right.factor:
        raise Refused("a product of whole numbers of 64 bits has no kernel")
    return Bound(0, left.offset * right.offset)


def _listed(tensors: Sequence[Operand], *_: Any, **__: Any) -> Bound:
    return _most(*tensors)


def _second_too(x: Operand, mask: Any, value: Operand) -> Bound:
    return _most(x, value)


def _copied(_: Any, source: Operand, *__: Any) -> Bound:
    return _of(source)


def _chosen(_: Any, a: Operand, b: Operand) -> Bound:
    return _most(a, b)


def _limits(x: Operand, *args: Any, **kwargs: Any) -> Bound:
    return _most(x, *(each for each in (*args, *kwargs.values()) if each is not None))


def _filled(value: int) -> Rule:
    return lambda *_, **__: Bound(0, value)


def _full(_: Any, value: Operand, **__: Any) -> Bound:
    return _of(value)


def _padded(x: Operand, _: Any, value: Operand = 0) -> Bound:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _most(x, value)


def _scattered(x: Operand, _: Any, __: Any, source: Operand) -> Bound:
    return _most(x, source)


def _compared(a: Operand, b: Operand) -> Bound:
    return _most(a, b)


def _switched(_: Any, __: Any, zero: Operand, is_on: Operand, *___: Any) -> Bound:
    return _most(zero, is_on)


_SCALARS = ("Tensor", "Scalar")
_MOVED = (
    *(f"{n}.default" for n in ("view", "reshape", "unsqueeze", "squeeze", "_unsafe_view")),
    *("squeeze.dim", "squeeze.dims", "permute.default", "transpose.int", "t.default"),
    *("expand.default", "slice.Tensor", "select.int", "alias.default", "detach.default"),
    *("split.Tensor", "split_with_sizes.default", "unbind.int", "clone.default"),
    *(
        "flip.default",
        "contiguous.default",
        "lift_fresh_copy.default",
        "repeat.default",
        "_to_copy.default",
    ),
    *("index_select.default", "gather.default", "index.Tensor", "_unsafe_index.Tensor"),
    *("amax.default", "amin.default", "max.default", "min.default", "abs.default", "neg.default"),
    *("any.default", "any.dim", "all.default", "all.dim", "logical_not.default"),
)

_BOUNDS: Mapping[str, Rule] = {
    **{f"aten.{name}": _first for name in _MOVED},
    "prims.convert_element_type.default": _first,
    **{f"aten.{name}.{k}": _sum for name in ("add", "sub", "rsub") for k in _SCALARS},
    **{f"aten.mul.{kind}": _product for kind in _SCALARS},
    **{
        f"aten.{name}.{kind}": _compared
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for kind in _SCALARS
    },
    **{f"aten.{name}.default": _compared for name in ("logical_and", "logical_or", "logical_xor")},
    **{f"aten.{name}.default": _most for name in ("minimum", "maximum")},
    **{
        f"aten.{name}.{kind}": _limits
        for name in ("clamp", "clamp_min", "clamp_max")
        for kind in ("default", "Tensor")
    },
    **{f"aten.where.{k}": _chosen for k in ("self", "ScalarOther", "ScalarSelf", "Scalar")},
    **{f"aten.masked_fill.{kind}": _second_too for kind in _SCALARS},
    **{f"aten.{name}.default": _listed for name in ("cat", "stack")},
    **{f"aten.{n}.default": _filled(0) for n in ("zeros", "zeros_like", "new_zeros")},
    **{f"aten.{n}.default": _filled(1) for n in ("ones", "ones_like", "new_ones")},
    **{f"aten.{n}.default": _full for n in ("full", "full_like")},
    "aten.copy.default": _copied,
    "aten.fill.Scalar": _full,
    "aten.constant_pad_nd.default": _padded,
    "aten.scatter.src": _scattered,
    "aten.scatter.value": _scattered,
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": _switched,
}
"""How large the whole numbers are that operators give which read or give such of 64 bits; of those
that give truths or fractions, how large what they read is."""

_PLACES = frozenset(
    f"aten.{name}"
    for name in (
        *("sort.default", "sort.stable", "topk.default", "argmax.default", "argmin.default"),
        *("max.dim", "min.dim", "max_pool2d_with_indices.default"),
        *("max_pool3d_with_indices.default", "kthvalue.default", "searchsorted.Tensor"),
        *("cummax.default", "cummin.default"),
        *("bucketize.Tensor", "_embedding_bag_forward_only.default"),
    )
)
"""Operators that give places, and elements of what they read."""
_SUMS = frozenset(f"aten.{name}" for name in ("sum.default", "sum.dim_IntList", "cumsum.default"))


def bound_of(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    inputs: Sequence[Any],
    results: Sequence[Any],
) -> Bound:
    """Return how large the whole numbers are that an operator gives, or reads.

    Args:
        args, kwargs: the operator's, with bounds for tensors of whole numbers and None for others.
        inputs, results: tensors of their shapes and data types.
    Raises:
        Refused: there is no rule for it.
    """
    if name in _PLACES:
        longest = Bound(0, max(int(each.numel()) for each in inputs))
        return _most(args[0], longest) if isinstance(args[0], Bound) else longest
    if name in _SUMS:
        shrunk = results[0].numel() if "cumsum" not in name else 1
        return _of(args[0]).times(int(inputs[0].numel()) // max(1, int(shrunk)))
    rule = _BOUNDS.get(name)
    if rule is None:
        raise Refused("it computes with whole numbers of 64 bits")
    if any(each.itemsize < 4 and str(each.dtype) in _NARROW for each in results):
        raise Refused("whole numbers of 64 bits are cut to fewer than 32")
    settings = {key: value for key, value in kwargs.items() if key in _SETTINGS}
    try:
        return rule(*args, **settings)
    except (TypeError, ValueError) as err:
        raise Refused(f"it is called in a way that has no row: {err}") from err


_NARROW = ("torch.int8", "torch.uint8", "torch.int16")
_SETTINGS = ("alpha", "min", "max")
