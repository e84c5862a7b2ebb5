"""Reductions, cumulative sums, filters and padding of the high-level library against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.errors import KernelFault

REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "ReduceSum": np.sum,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceMean": np.mean,
    "ReduceProd": np.prod,
}
SHAPE = "uint32_t shape[2] = {number(0), number(1)}; "
PATTERNS = {
    f"{name}{pattern}": f"{SHAPE}{name}<T, Pattern::Reduce::{pattern}>(OUT(T, 0), IN(T, 0), space, shape, true);"
    for name in REDUCTIONS
    for pattern in ("AR", "RA")
}
ROWS = {
    "Sum": "Sum(OUT(T, 0), IN(T, 0), space, SumParams{number(0), number(1), number(2)});",
    "Mean": "Mean<T, float>(OUT(T, 0), IN(T, 0), space, MeanParams{number(0), number(1), number(2)});",
    "CumSum": "CumSum<T, kLast>(OUT(T, 0), OUT(T, 1), IN(T, 0), space, CumSumInfo{number(0), number(1)});",
    "CumSumFirst": "CumSum<T, kFirst>(OUT(T, 0), OUT(T, 1), IN(T, 0), space, CumSumInfo{number(0), number(1)});",
}
INFO = "SelectWithBytesMaskShapeInfo{number(0), number(1), number(2)}"
MASKS = {np.bool_: "bool", np.uint8: "uint8_t", np.int16: "int16_t", np.uint32: "uint32_t"}
FILTERS = {
    **{
        f"Select{name}": f"Select(OUT(T, 0), IN(T, 0), static_cast<T>(7.0f), IN({name}, 1), space, {INFO});"
        for name in MASKS.values()
    },
    "SelectScalarFirst": "SelectWithBytesMask(OUT(T, 0), static_cast<T>(7.0f), IN(T, 0), IN(uint8_t, 1), space, "
    f"{INFO});",
    **{
        f"DropOut{mode}": "DropOutShapeInfo info; info.firstAxis = number(0); info.srcLastAxis = number(1); "
        f"info.maskLastAxis = number(2); DropOut<T, false, {mode}>(OUT(T, 0), IN(T, 0), IN(uint8_t, 1), space, 0.5f, "
        "info);"
        for mode in range(5)
    },
}
PADS = {
    "Pad": "PadParams params{static_cast<uint16_t>(number(2)), static_cast<uint16_t>(number(3)), -9}; PadTiling tiling; "
    "tiling.srcHeight = number(0); tiling.srcWidth = number(1); Pad(OUT(T, 0), IN(T, 0), params, space, tiling);",
    "UnPad": "UnPadParams params{0, static_cast<uint16_t>(number(2))}; UnPadTiling tiling; "
    "tiling.srcHeight = number(0); tiling.srcWidth = number(1); UnPad(OUT(T, 0), IN(T, 0), params, space, tiling);",
}
PROLOGUE = """
using T = {0};
constexpr CumSumConfig kLast = {{true, false, true}};
constexpr CumSumConfig kFirst = {{false, false, true}};
"""
NAMES = {np.float32: "float", np.float16: "half"}
Calls = Callable[..., list[np.ndarray]]


class Matrices:
    def __init__(self, local_calls: Callable[..., Calls], dtype: type) -> None:
        self.dtype = dtype
        patterns = {
            name: text
            for name, text in PATTERNS.items()
            if dtype is np.float32 or name.startswith(("ReduceMax", "ReduceMin"))
        }
        calls = {**patterns, **ROWS, **FILTERS, **PADS}
        self.run: Calls = local_calls(calls, PROLOGUE.format(NAMES[dtype]))
        self.tolerance = 1e-5 if dtype is np.float32 else 4e-3

    def random(self, *shape: int, seed: int = 1) -> np.ndarray:
        return np.random.default_rng(seed).uniform(-2, 2, shape).astype(self.dtype)

    def check(self, found: np.ndarray, expected: np.ndarray) -> None:
        np.testing.assert_allclose(
            found.astype(np.float64), expected, rtol=self.tolerance, atol=self.tolerance
        )


@pytest.fixture(scope="module", params=["float", "half"])
def matrices(request: pytest.FixtureRequest, local_calls: Callable[..., Calls]) -> Matrices:
    return Matrices(local_calls, {"float": np.float32, "half": np.float16}[request.param])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("rows", "width", "used"), [(5, 16, 16), (17, 80, 75), (3, 16, 1), (1, 640, 633)]
)
def test_reductions_along_either_axis(matrices: Matrices, rows: int, width: int, used: int) -> None:
    x = matrices.random(rows, width)
    for name, reference in REDUCTIONS.items():
        if matrices.dtype is np.float16 and name not in ("ReduceMax", "ReduceMin"):
            continue
        for pattern, axis in (("AR", 1), ("RA", 0)):
            # Behind the rows' elements stands padding up to a data block.
            block = 32 // x.itemsize
            padded = x[:, : -(-used // block) * block]
            expected = reference(padded[:, :used].astype(np.float64), axis=axis)
            out = np.full(rows if pattern == "AR" else used, 55, matrices.dtype)
            found = matrices.run(name + pattern, [padded], [out], [rows, used], 8192)[0]
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("rows", "width", "used"), [(5, 16, 13), (70, 32, 32)])
def test_sums_and_means_of_rows(matrices: Matrices, rows: int, width: int, used: int) -> None:
    x = matrices.random(rows, width)
    exact = x[:, :used].astype(np.float64)
    out = np.zeros(rows, matrices.dtype)
    found = matrices.run("Sum", [x], [out], [rows, width, used], 256)[0]
    matrices.check(found, exact.sum(axis=1))
    # What the host says: a row and its column, what a reduction needs, 64 means.
    space = (8 * 9 + width + 8) * 4 + 64 * 4
    found = matrices.run("Mean", [x], [out], [rows, width, used], space)[0]
    matrices.check(found, exact.mean(axis=1))


@pytest.mark.parametrize(("rows", "width", "space"), [(3, 16, 2304), (37, 48, 8192)])
def test_cumulative_sums(matrices: Matrices, rows: int, width: int, space: int) -> None:
    x = matrices.random(rows, width)
    for name, axis in (("CumSum", 1), ("CumSumFirst", 0)):
        expected = x.astype(np.float64).cumsum(axis=axis)
        out = [np.zeros_like(x), np.zeros(width, matrices.dtype)]
        found = matrices.run(name, [x], out, [rows, width], space)
        matrices.check(found[0], expected)
        np.testing.assert_array_equal(found[1], found[0][-1])


@pytest.mark.parametrize("dtype", MASKS, ids=MASKS.values())
@pytest.mark.parametrize(("width", "mask_width", "space"), [(32, 32, 600), (48, 64, 2200)])
def test_select_by_numbers(
    matrices: Matrices, dtype: type, width: int, mask_width: int, space: int
) -> None:
    x = matrices.random(9, width)
    values = np.random.default_rng(2).integers(0, 3, (9, mask_width))
    mask = (values * 40000 if dtype is np.uint32 else values).astype(dtype)
    chosen = mask[:, :width] == 0
    space = space * 2 if dtype is np.uint32 else space
    found = matrices.run(
        f"Select{MASKS[dtype]}", [x, mask], [np.zeros_like(x)], [9, width, mask_width], space
    )[0]
    np.testing.assert_array_equal(found, np.where(chosen, x, matrices.dtype(7)))
    if dtype is np.uint8:
        found = matrices.run(
            "SelectScalarFirst", [x, mask], [np.zeros_like(x)], [9, width, mask_width], space
        )[0]
        np.testing.assert_array_equal(found, np.where(chosen, matrices.dtype(7), x))


def test_drop_out_by_bytes_and_bits(matrices: Matrices) -> None:
    x = matrices.random(4, 256)
    kept = np.random.default_rng(3).integers(0, 2, (4, 256)).astype(np.uint8)
    expected = np.where(kept == 1, x.astype(np.float64) * 2, 0)
    bits = np.packbits(kept, axis=1, bitorder="little")
    padded_bytes = np.pad(kept, [(0, 0), (0, 32)], constant_values=1)
    padded_bits = np.pad(bits, [(0, 0), (0, 32)], constant_values=255)
    for mode, mask in ((2, kept), (1, padded_bytes), (3, bits), (4, padded_bits)):
        for call in (f"DropOut{mode}", "DropOut0"):
            numbers = [4, 256, mask.shape[1]]
            found = matrices.run(call, [x, mask], [np.zeros_like(x)], numbers, 1024)[0]
            np.testing.assert_array_equal(found, expected, err_msg=f"{call} of mode {mode}")


def test_pad_and_unpad(matrices: Matrices) -> None:
    block = 32 // np.dtype(matrices.dtype).itemsize
    width = 2 * block
    for left, right in ((0, 3), (2, 1), (4, 0)):
        x = matrices.random(7, width - left - right)
        expected = np.pad(x, [(0, 0), (left, right)], constant_values=-9)
        numbers = [7, x.shape[1], left, right]
        found = matrices.run("Pad", [x], [np.zeros_like(expected)], numbers, 256)[0]
        np.testing.assert_array_equal(found, expected)
    x = matrices.random(7, width)
    expected = x.copy()
    expected[:, -3:] = -9
    found = matrices.run("Pad", [x], [np.zeros_like(x)], [7, width, 0, 3], 256)[0]
    np.testing.assert_array_equal(found, expected)
    for right in (1, block - 1):
        kept = np.ascontiguousarray(x[:, : width - right])
        found = matrices.run("UnPad", [x], [np.zeros_like(kept)], [7, width, right], 32)[0]
        np.testing.assert_array_equal(found, kept)


def test_what_is_not_documented_or_does_not_fit_is_refused(matrices: Matrices) -> None:
    x = matrices.random(8, 32)
    cases = [
        ("Pad", [8, 31, 2, 0], 256, "fill the data blocks"),
        ("UnPad", [8, 31, 1], 256, "whole data blocks"),
        ("CumSum", [8, 32], 512, "smaller than eight rows"),
        ("Selectuint8_t", [8, 32, 32], 96, "256 mask elements"),
        ("Sum", [8, 32, 32], 16, "too small for a row"),
        ("Sum", [8, 20, 20], 4096, "inner is no multiple of 32 bytes, or n not in 1 to inner"),
        ("Sum", [8, 32, 0], 4096, "n not in 1 to inner"),
        ("Mean", [8, 16, 17], 4096, "n not in 1 to inner"),
        ("CumSum", [9, 32], 8192, "a tensor has fewer elements than outter rows"),
        ("CumSumFirst", [0, 32], 8192, "outter is 0"),
    ]
    for name, numbers, space, message in cases:
        with pytest.raises(KernelFault, match=message):
            matrices.run(name, [x, x.astype(np.uint8)], [x, x], numbers, space)
