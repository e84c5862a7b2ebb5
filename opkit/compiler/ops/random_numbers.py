"""Rows of the operators that make random numbers: Philox 4x32 with ten rounds, from a seed.

Source of the generator: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
A seed is a number of the program or of the launch (an attribute); the same seed, stream and shape
give the same numbers on every target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    REQUIRED,
    Dimension,
    Operator,
    Settings,
    Shape,
    Tensor,
    Value,
    is_floating,
    shape_text,
)

__all__ = ["ROWS", "philox_uniform"]

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox_uniform(seed: int, stream: int, count: int) -> Any:
    """Return `count` numbers in (0, 1] of a seed's stream, of 24 bits each, as float64."""
    counter = np.arange(-(-count // 4), dtype=np.uint64)
    seed, stream = seed & (1 << 64) - 1, stream & (1 << 64) - 1
    at = [counter & _MASK, counter >> _HALF]
    at += [np.full_like(counter, stream & 0xFFFFFFFF), np.full_like(counter, stream >> 32)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        left, right = np.uint64(0xD2511F53) * at[0], np.uint64(0xCD9E8D57) * at[2]
        at = [
            (right >> _HALF) ^ at[1] ^ np.uint64(keys[0]),
            right & _MASK,
            (left >> _HALF) ^ at[3] ^ np.uint64(keys[1]),
            left & _MASK,
        ]
        keys = [keys[0] + 0x9E3779B9 & 0xFFFFFFFF, keys[1] + 0xBB67AE85 & 0xFFFFFFFF]
    bits = np.stack(at, axis=1).reshape(-1)[:count]
    return ((bits >> np.uint64(8)) + np.uint64(1)).astype(np.float64) / (1 << 24)


def _check_seed(seed: Tensor) -> None:
    if seed.shape:
        raise UsageError(
            "the seed is a tensor, expected a number", help="pass a number or an attribute"
        )


def _given_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    _check_seed(tensors[0])
    shape: Shape = settings["shape"]
    if any(isinstance(extent, int) and extent < 0 for extent in shape):
        raise UsageError(f"{shape_text(shape)} has an axis of less than no elements")
    return shape


def _float32(_: Sequence[Tensor], __: Settings) -> str:
    return "float32"


def _np_uniform(seed: Any, shape: Any, stream: int) -> Any:
    return philox_uniform(int(seed), stream, int(np.prod(shape))).reshape(shape)


def _np_normal(seed: Any, shape: Any, stream: int) -> Any:
    u, v = (_np_uniform(seed, shape, 2 * stream + at) for at in range(2))
    return np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)


def _normal(seed: Value, shape: Sequence[Dimension], stream: int) -> Value:
    u, v = (seed.apply("random_uniform", shape=shape, stream=2 * stream + at) for at in range(2))
    return (u.apply("log") * -2.0).apply("sqrt") * (v * (2.0 * np.pi)).apply("cos")


def _dropped_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    _check_seed(tensors[1])
    if not 0.0 <= settings["p"] < 1.0:
        raise UsageError(f"a share of {settings['p']} is dropped, expected 0 to below 1")
    return tensors[0].shape


def _dropped_dtype(tensors: Sequence[Tensor], _: Settings) -> str:
    return tensors[0].dtype if is_floating(tensors[0].dtype) else "float32"


def _np_dropout(x: Any, seed: Any, p: float, stream: int) -> Any:
    return np.where(_np_uniform(seed, np.shape(x), stream) > p, x / (1.0 - p), 0.0)


def _dropout(x: Value, seed: Value, p: float, stream: int) -> Value:
    u = seed.apply("random_uniform", shape=x.shape, stream=stream)
    return u.apply("greater", p).apply("where", x * (1.0 / (1.0 - p)), 0.0)


_STREAM = {"shape": REQUIRED, "stream": 0}

ROWS = (
    Operator(
        *("random_uniform", 1, "random", _given_shape, _float32, _np_uniform),
        gradient=lambda g, seed, y, shape, stream: (None,),
        aten="rand",
        parameters=_STREAM,
    ),
    # Its two uniform numbers are of the streams 2n and 2n + 1.
    Operator(
        *("random_normal", 1, "random", _given_shape, _float32, _np_normal),
        expand=_normal,
        aten="randn",
        parameters=_STREAM,
    ),
    Operator(
        *("dropout", 2, "random", _dropped_shape, _dropped_dtype, _np_dropout),
        expand=_dropout,
        aten="dropout",
        parameters={"p": 0.5, "stream": 0},
    ),
)
