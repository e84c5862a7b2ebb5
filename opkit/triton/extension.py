"""What the chip's own Triton adds to the language, as far as its documents say what it means.

Programs find it under `triton.language.extra.cann.extension`, some of it in `triton.language`, too.
Source: the chip's Triton, its page on architecture and features (language extension).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton.language as tl
from triton.language import core

__all__ = [
    *("compile_hint", "extract_slice", "gather", "get_element", "insert_slice", "multibuffer"),
    "sort",
]

gather, sort = tl.gather, tl.sort


def _whole(values: Any) -> list[int]:
    return [int(core._unwrap_if_constexpr(each)) for each in core._unwrap_if_constexpr(values)]


def _places(name: str, tile: Any, offsets: Any, semantic: Any) -> list[Any]:
    """Return the handles of offsets, one a dimension of a tile."""
    given = list(core._unwrap_if_constexpr(offsets))
    rank = len(tile.shape)
    if len(given) != rank:
        raise ValueError(f"{name}: {len(given)} offsets for a tile of {rank} dimensions")
    return [
        semantic.cast(semantic.to_tensor(core._unwrap_if_constexpr(each)), core.int64).handle
        for each in given
    ]


def _part(name: str, tile: Any, sizes: Sequence[int], strides: Sequence[int]) -> None:
    """Check that a part fits a tile."""
    whole = [int(core._unwrap_if_constexpr(each)) for each in tile.shape]
    if not len(whole) == len(sizes) == len(strides):
        raise ValueError(
            f"{name}: {len(sizes)} sizes and {len(strides)} strides for {len(whole)} dimensions"
        )
    for axis, (extent, size, stride) in enumerate(zip(whole, sizes, strides, strict=True)):
        if stride < 1 or size < 1 or (size - 1) * stride >= extent:
            raise ValueError(
                f"{name}: {size} elements, {stride} apart, do not lie within the {extent} of"
                f" dimension {axis}"
            )


def _call(semantic: Any, symbol: str, handles: list[Any], kind: Any) -> Any:
    builder = semantic.builder
    handle = builder.create_extern_elementwise(
        "opkit", "", symbol, handles, kind.to_ir(builder), True
    )
    return semantic.tensor(handle, kind)


@core.builtin  # type: ignore[untyped-decorator]
def extract_slice(
    ful: Any, offsets: Any, sizes: Any, strides: Any, _semantic: Any = None, **_: Any
) -> Any:
    """Return the part of a tile at offsets, of sizes, its elements `strides` apart."""
    extents, steps = _whole(sizes), _whole(strides)
    _part("extract_slice", ful, extents, steps)
    places = _places("extract_slice", ful, offsets, _semantic)
    kind = core.block_type(ful.type.scalar, extents)
    symbol = f"extract_slice {' '.join(map(str, steps))}"
    return _call(_semantic, symbol, [ful.handle, *places], kind)


@core.builtin  # type: ignore[untyped-decorator]
def insert_slice(
    ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any, _semantic: Any = None, **_: Any
) -> Any:
    """Return a tile with another one at offsets, whose elements are `strides` apart there."""
    extents, steps = _whole(sizes), _whole(strides)
    _part("insert_slice", ful, extents, steps)
    sub = _semantic.broadcast_impl_shape(_semantic.to_tensor(sub), extents)
    sub = _semantic.cast(sub, ful.type.scalar)
    places = _places("insert_slice", ful, offsets, _semantic)
    symbol = f"insert_slice {' '.join(map(str, steps))}"
    return _call(_semantic, symbol, [ful.handle, sub.handle, *places], ful.type)


@core.builtin  # type: ignore[untyped-decorator]
def get_element(src: Any, indice: Any, _semantic: Any = None, **_: Any) -> Any:
    """Return one element of a tile."""
    places = _places("get_element", src, indice, _semantic)
    return _call(_semantic, "get_element", [src.handle, *places], src.type.scalar)


@core.builtin  # type: ignore[untyped-decorator]
def compile_hint(ptr: Any, name: Any, value: Any = None, _semantic: Any = None, **_: Any) -> None:
    """Change nothing: a hint for another compiler."""


@core.builtin  # type: ignore[untyped-decorator]
def multibuffer(src: Any, size: Any, _semantic: Any = None, **_: Any) -> None:
    """Change nothing: how many buffers another compiler makes of a tile."""


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"extension.{name}: no public document says what it means; opkit has no such name",
        name=name,
    )
