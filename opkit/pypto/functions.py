"""The functions of both surfaces, by name: most are rows of the compiler's table under another
name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkit.compiler import GraphError

from .annotations import TensorType
from .building import FUNCTIONS, current_builder, is_tracing
from .casting import cast
from .convolution import conv
from .declared import Declared
from .diagnostics import check_heads
from .elementary import FUNCTIONS as ELEMENTARY
from .elements import FUNCTIONS as ELEMENTS
from .elements import Element
from .enumerations import PRECISION, dtype_name
from .extension import extension_of
from .location import here
from .loops import FUNCTIONS as LOOPS
from .places import FUNCTIONS as PLACES
from .settings import FUNCTIONS as SETTINGS
from .symbolic import SymbolicScalar
from .tiles import FUNCTIONS as TILES
from .traced import Traced, new_value
from .verification import FUNCTIONS as VERIFICATION
from .whole_numbers import FUNCTIONS as WHOLE_NUMBERS

__all__ = ["FUNCTIONS"]


def _operator(name: str) -> Callable[..., Any]:
    def call(*operands: Any, precision_type: object = None, **settings: object) -> Traced:
        # How precisely something is computed follows the operands; it is float32 here.
        given = [each for each in operands if not isinstance(each, PRECISION)]
        return new_value(current_builder(), name, *given, **settings)

    call.__name__ = name
    return call


def _log(x: Traced, base: Any = None, precision_type: object = None) -> Traced:
    name = {"LOG_2": "log2", "LOG_10": "log10"}.get(getattr(base, "name", ""), "log")
    return new_value(current_builder(), name, x)


def _number_or(name: str, number: Callable[[float], float]) -> Callable[..., Any]:
    """Functions of tensors that also take Python's numbers, as `pypto.sqrt(head_dim)` does."""

    def call(x: Any, precision_type: object = None) -> Any:
        return number(x) if isinstance(x, int | float) else new_value(current_builder(), name, x)

    call.__name__ = name
    return call


def _reduction(name: str) -> Callable[..., Any]:
    numbers = {"max": max, "min": min}.get(name)

    def call(
        x: Any, axis: Any = None, keepdim: bool = False, keepdims: bool = False, dim: Any = None
    ) -> Traced:
        if numbers is not None and isinstance(x, int):
            # Of sizes and indices, as the public project's programs write it.
            return numbers(x, axis)  # type: ignore[no-any-return]
        over = dim if axis is None else axis
        return new_value(current_builder(), name, x, axis=over, keepdims=bool(keepdim or keepdims))

    call.__name__ = name
    return call


def _var(
    x: Traced,
    dim: Any = None,
    correction: float | None = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    unbiased: bool | None = None,
) -> Traced:
    """The public project's variance divides by one less than the elements, the article's by all.

    The article names `axis`, the public project `dim`.
    """
    over = dim if axis is None else axis
    if correction is None:
        correction = float(axis is None if unbiased is None else unbiased)
    found = new_value(current_builder(), "var", x, axis=over, keepdims=bool(keepdim))
    if not correction:
        return found
    count = x.size // max(found.size, 1)
    rest = count - correction
    return found * (count / rest if rest > 0 else float("inf"))


def _softmax(x: Traced, axis: int = -1, dim: int | None = None) -> Traced:
    over = axis if dim is None else dim
    check_heads(x.builder, x.value, over)
    return new_value(current_builder(), "softmax", x, axis=over)


def _matmul(
    a: Traced,
    b: Traced,
    out_dtype: object = None,
    *,
    a_trans: bool = False,
    b_trans: bool = False,
    extend_params: Mapping[str, Any] | None = None,
    **options: object,
) -> Traced:
    bias, is_relu, further = extension_of(extend_params)
    scale = further.pop("scale", None)
    # Products of float32 are exact to its last bits whatever they may be rounded to.
    further.pop("trans_mode", None)
    unknown = [name for name, value in (*options.items(), *further.items()) if value]
    if unknown:
        raise GraphError(f"matmul: opkit has no {unknown[0]}", location=here())
    if a.dtype != b.dtype:
        raise GraphError(
            f"matmul takes equal data types, not {a.dtype} and {b.dtype}",
            location=here(),
            help="cast one of them",
        )
    usual = "int32" if a.dtype == "int8" else a.dtype
    wanted = usual if out_dtype is None else dtype_name(out_dtype)
    # What follows sees the sums, which are rounded once: to the result's type.
    is_summed = usual in ("float16", "bfloat16") and (scale is not None or wanted != usual)
    result = new_value(
        current_builder(),
        "matmul",
        a,
        b,
        transpose_a=a_trans,
        transpose_b=b_trans,
        dtype="float32" if is_summed else None,
    )
    if scale is not None:
        result = result.apply("cast", dtype="float32") * float(scale)
    if bias is not None:
        result = result + bias
    if is_relu:
        result = result.apply("relu")
    return result if wanted == result.dtype else result.apply("cast", dtype=wanted)


def _filled(shape: Sequence[int], value: float | Element, dtype: object = "float32") -> Traced:
    name = dtype_name(dtype)
    value = value.value if isinstance(value, Element) else value
    with current_builder().at(here()):
        number = current_builder().constant(value, name)
        full = number.apply("broadcast_to", shape=tuple(shape))
    return Traced(current_builder(), full)


def _full(
    size: Sequence[int],
    fill_value: float | Element,
    dtype: object = "float32",
    *,
    valid_shape: Sequence[int] | None = None,
) -> Traced:
    whole = _filled(size if valid_shape is None else valid_shape, fill_value, dtype)
    return whole if valid_shape is None else Traced(whole.builder, whole.value, shape=tuple(size))


def _zeros(*shape: Sequence[int] | int, dtype: object = "float32") -> Traced:
    return _filled(*_shape_and_dtype(shape, 0.0, dtype))


def _ones(*shape: Sequence[int] | int, dtype: object = "float32") -> Traced:
    return _filled(*_shape_and_dtype(shape, 1.0, dtype))


def _shape_and_dtype(given: Sequence[Any], value: float, dtype: object) -> tuple[Any, float, Any]:
    """Return a shape that comes as one argument or as several, a value and a data type."""
    if given and not isinstance(given[0], int):
        return given[0], value, given[1] if len(given) > 1 else dtype
    return tuple(given), value, dtype


class _TensorMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Traced)


class _Tensor(metaclass=_TensorMeta):
    """A tensor that nothing is written to yet; outside of programs, one that blocks are over."""

    def __new__(  # type: ignore[misc]
        cls, shape: Sequence[int] = (), dtype: object = None, name: str = "", **form: object
    ) -> Traced | TensorType:
        if not is_tracing():
            is_open = not shape or not all(isinstance(extent, int) for extent in shape)
            if is_open:  # what a parameter may be
                return TensorType(list(shape), dtype, **form)
            return Declared(shape, dtype, name, **form)
        tensor = Traced(
            current_builder(), None, shape=tuple(shape), dtype=dtype_name(dtype or "float32")
        )
        tensor.name = name
        tensor.is_open = not shape
        return tensor


def _empty_like(x: Traced) -> Traced:
    return Traced(current_builder(), None, shape=x.shape, dtype=x.dtype)


def _reshape(x: Traced, shape: Sequence[int], **settings: Any) -> Traced:
    return x.reshape(*shape, **settings)


def _transpose(x: Traced, *axes: Any) -> Traced:
    if len(axes) == 2 and all(isinstance(axis, int) for axis in axes):
        order = list(range(x.ndim))
        order[axes[0]], order[axes[1]] = order[axes[1]], order[axes[0]]
        return x.transpose(*order)
    return x.transpose(*axes)


def _concat(tensors: Sequence[Traced], dim: int = 0, axis: int | None = None) -> Traced:
    over = dim if axis is None else axis
    return new_value(current_builder(), "concat", *tensors, axis=over % tensors[0].ndim)


def _clip(x: Traced, low: Any = -math.inf, high: Any = math.inf) -> Traced:
    if isinstance(low, Traced) or isinstance(high, Traced):
        return x.apply("maximum", low).apply("minimum", high)
    return x.apply("clamp", low=float(low), high=float(high))


def _unsqueeze(x: Traced, dim: int) -> Traced:
    at = dim % (x.ndim + 1)
    return x.reshape(*x.shape[:at], 1, *x.shape[at:])


def _expand_clone(x: Traced, shape: Sequence[int], **_: object) -> Traced:
    return x.apply("broadcast_to", shape=tuple(shape))


def _ceil_div(a: Any, b: Any) -> Any:
    """A quotient rounded up: of numbers, or of tensors of whole numbers element by element."""
    if isinstance(a, Traced):
        return -(-a).apply("floor_divide", b)
    return -(-a // b)


FUNCTIONS |= {
    # What both surfaces share.
    **{
        name: _operator(name)
        for name in (
            *("add", "sub", "mul", "div", "relu", "maximum", "minimum", "exp", "neg", "abs"),
            *(
                "sigmoid",
                "tanh",
                "erf",
                "erfc",
                "floor",
                "ceil",
                "trunc",
                "expm1",
                "log1p",
            ),
            *("rsqrt", "reciprocal", "square", "where", "pow", "logical_not", "logical_and"),
            *("logical_or", "gelu", "silu", "sin", "cos", "sign", "layer_norm", "rms_norm"),
        )
    },
    "log": _log,
    "sqrt": _number_or("sqrt", math.sqrt),
    "zeros": _zeros,
    "ones": _ones,
    "full": _full,
    "empty_like": _empty_like,
    "zeros_like": lambda x: _filled(x.shape, 0.0, x.dtype),
    "matmul": _matmul,
    "conv": conv,
    "softmax": _softmax,
    "reshape": _reshape,
    "transpose": _transpose,
    **{name: _reduction(name) for name in ("sum", "mean", "max", "min")},
    "var": _var,
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    # The public project's.
    "tensor": _Tensor,
    "cast": cast,
    "concat": _concat,
    "clip": _clip,
    "clone": lambda x: x + 0,
    "unsqueeze": _unsqueeze,
    "expand_clone": _expand_clone,
    "symbolic_scalar": SymbolicScalar,
    "SymbolicScalar": SymbolicScalar,
    **dict.fromkeys(("ceildiv", "ceil_div"), _ceil_div),
    **LOOPS,
    **TILES,
    **SETTINGS,
    **VERIFICATION,
    **PLACES,
    **ELEMENTARY,
    **ELEMENTS,
    **WHOLE_NUMBERS,
}
