"""Softmax functions of the high-level library against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from opkit.errors import KernelFault

SHAPE = "SoftMaxShapeInfo{number(0), number(1), number(0), number(2)}"
# Data of type T, columns of type U.
CALLS = {
    # Types are deduced where the call leaves them out, as public kernels do.
    "SoftMax": f"SoftMax(OUT(T, 0), OUT(U, 1), OUT(U, 2), IN(T, 0), space, tiling, {SHAPE});",
    "InPlace": "SoftMax<T>(OUT(T, 0), OUT(U, 1), OUT(U, 2), OUT(T, 0), space, tiling);",
    "Nz": f"SoftMax<T, false, false, true>(OUT(T, 0), OUT(U, 1), OUT(U, 2), IN(T, 0), space, tiling, {SHAPE});",
    "WithoutColumns": f"SoftMax<T>(OUT(T, 0), IN(T, 0), tiling, {SHAPE});",
    "Simple": f"SimpleSoftMax(OUT(T, 0), IN(U, 1), IN(U, 2), IN(T, 0), space, tiling, {SHAPE});",
    "Flash": "SoftmaxFlash(OUT(T, 0), OUT(U, 1), OUT(U, 2), IN(T, 0), OUT(T, 3), IN(U, 1), IN(U, 2), space, tiling, "
    f"number(3) != 0, {SHAPE});",
    # Public kernels name the function behind SoftMaxFlashV2TilingFunc.
    "FlashV2": "const auto own = SoftMaxFlashV2TilingFuncImpl(tiling.srcM, tiling.srcK, sizeof(U), sizeof(T), "
    "space.GetSize() / sizeof(T), false, true); "
    "SoftmaxFlashV2(OUT(T, 0), OUT(U, 1), OUT(U, 2), IN(T, 0), OUT(T, 3), IN(U, 1), IN(U, 2), space, "
    f"own, {SHAPE});",
    "FlashV2Update": "SoftmaxFlashV2<T, true>(OUT(T, 0), OUT(U, 1), OUT(U, 2), IN(T, 0), OUT(T, 3), IN(U, 1), "
    f"IN(U, 2), space, tiling, {SHAPE});",
    "FlashV2List": "SoftmaxFlashV2<T, true, false, false, false, kListConfig>(OUT(T, 0), OUT(U, 1), OUT(U, 2), "
    f"IN(T, 0), OUT(T, 3), IN(U, 1), IN(U, 2), space, tiling, {SHAPE});",
    "Grad": f"SoftmaxGrad<T>(OUT(T, 0), IN(T, 0), IN(T, 1), space, tiling, false, {SHAPE});",
    "GradNz": f"SoftmaxGrad<T, false, true>(OUT(T, 0), IN(T, 0), IN(T, 1), space, tiling, false, {SHAPE});",
    "Front": f"SoftmaxGradFront<T>(OUT(T, 0), IN(T, 0), IN(T, 1), space, tiling, {SHAPE});",
    "Adjust": "const bool found = AdjustSoftMaxRes<T, U>(OUT(T, 0), IN(U, 1), number(3), static_cast<T>(0.5f), "
    f"{SHAPE}); OUT(int32_t, 1).SetValue(0, found ? 1 : 2);",
}
ALIKE = {
    "Log": "LogSoftMaxTiling logarithm; logarithm.srcM = number(0); logarithm.srcK = number(1);"
    "LogSoftMax<T>(OUT(T, 0), OUT(T, 1), OUT(T, 2), IN(T, 0), space, logarithm);",
}
PROLOGUE = """
using T = {0};
using U = {1};
constexpr SoftmaxConfig kListConfig = {{true, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC}};
"""
TILING = "SoftMaxTiling tiling; tiling.srcM = number(0); tiling.srcK = number(1); "
KINDS = {
    "float": (np.float32, np.float32),
    "half": (np.float16, np.float16),
    "mixed": (np.float16, np.float32),
}
NAMES = {np.float32: "float", np.float16: "half"}


class Softmax:
    def __init__(
        self, local_calls: Callable[..., Callable[..., list[np.ndarray]]], kind: str
    ) -> None:
        self.dtype, self.column_dtype = KINDS[kind]
        calls = {name: TILING + text for name, text in {**CALLS, **ALIKE}.items()}
        if kind == "mixed":
            calls.pop("Log")
        names = NAMES[self.dtype], NAMES[self.column_dtype]
        self.calls = local_calls(calls, PROLOGUE.format(*names))
        self.tolerance = 2e-6 if self.dtype == np.float32 else 1.5e-3

    def columns(self, values: np.ndarray, dtype: type | None = None) -> np.ndarray:
        """One data block for each number."""
        kind = dtype or self.column_dtype
        block = 32 // np.dtype(kind).itemsize
        return np.repeat(values.reshape(-1, 1), block, axis=1).astype(kind)

    def blank(self, rows: int, dtype: type | None = None) -> np.ndarray:
        return self.columns(np.full(rows, 77.0), dtype)

    def run(
        self,
        name: str,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        *numbers: int,
        space: int = 32768,
    ) -> list[np.ndarray]:
        return self.calls(name, inputs, outputs, numbers, space)

    def check(self, found: np.ndarray, expected: np.ndarray) -> None:
        np.testing.assert_allclose(
            found.astype(np.float64), expected, rtol=self.tolerance, atol=self.tolerance
        )


@pytest.fixture(scope="module", params=sorted(KINDS))
def softmax(request: pytest.FixtureRequest, local_calls) -> Softmax:
    return Softmax(local_calls, request.param)


def data(softmax: Softmax, rows: int, width: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-6, 6, (rows, width)).astype(softmax.dtype)


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = x.astype(np.float64)
    largest = x.max(axis=1, keepdims=True)
    grown = np.exp(x - largest)
    total = grown.sum(axis=1, keepdims=True)
    return grown / total, total, largest


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("rows", "width", "used", "space"),
    [
        (3, 16, 16, 4096),
        (20, 64, 61, 32768),
        (33, 32, 32, 3072),
        (2, 2048, 2048, 65536),
        (300, 16, 9, 65536),
    ],
)
def test_rows_with_padding_and_in_parts(
    softmax: Softmax, rows: int, width: int, used: int, space: int
) -> None:
    x = data(softmax, rows, width)
    out = [np.full_like(x, 9), softmax.blank(rows), softmax.blank(rows)]
    results, total, largest = softmax.run("SoftMax", [x], out, rows, width, used, space=space)
    expected = reference(x[:, :used])
    softmax.check(results[:, :used], expected[0])
    softmax.check(total, softmax.columns(expected[1]))
    softmax.check(largest, softmax.columns(expected[2]))


def test_forms_without_columns_in_place_and_with_given_columns(softmax: Softmax) -> None:
    x = data(softmax, 12, 48)
    expected, total, largest = reference(x)
    found = softmax.run("WithoutColumns", [x], [np.zeros_like(x)], 12, 48, 48)[0]
    softmax.check(found, expected)
    blank = softmax.blank(12)
    softmax.check(softmax.run("InPlace", [], [x, blank, blank], 12, 48, 48)[0], expected)
    given = [x, softmax.columns(total), softmax.columns(largest)]
    softmax.check(softmax.run("Simple", given, [np.zeros_like(x)], 12, 48, 48)[0], expected)


def fractals(x: np.ndarray) -> np.ndarray:
    """Columns of 16 elements, row behind row."""
    return np.ascontiguousarray(x.reshape(len(x), -1, 16).transpose(1, 0, 2))


@pytest.mark.parametrize(("rows", "width"), [(16, 32), (48, 16), (300, 32)])
def test_fractals(softmax: Softmax, rows: int, width: int) -> None:
    x = data(softmax, rows, width)
    out = [np.zeros_like(fractals(x)), softmax.blank(rows), softmax.blank(rows)]
    results, total, _ = softmax.run("Nz", [fractals(x)], out, rows, width, width)
    expected = reference(x)
    softmax.check(results, fractals(expected[0]))
    softmax.check(total, softmax.columns(expected[1]))
    gradient = data(softmax, rows, width, 4)
    grown = fractals(expected[0].astype(softmax.dtype))
    found = softmax.run("GradNz", [fractals(gradient), grown], [out[0]], rows, width, width)[0]
    softmax.check(found, fractals(gradients(gradient, expected[0].astype(softmax.dtype))[0]))


def test_fractals_of_longer_rows_than_an_instruction_reaches_are_refused(softmax: Softmax) -> None:
    x = data(softmax, 1, 2048)
    out = [np.zeros_like(x), softmax.blank(1), softmax.blank(1)]
    with pytest.raises(KernelFault, match="up to 2040 elements in NZ"):
        softmax.run("Nz", [x], out, 1, 2048, 2048, space=65536)


def gradients(gradient: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gradient, y = gradient.astype(np.float64), y.astype(np.float64)
    front = (gradient * y).sum(axis=1, keepdims=True)
    return (gradient - front) * y, front


def test_gradients(softmax: Softmax) -> None:
    gradient = data(softmax, 20, 64, 4)
    y = reference(data(softmax, 20, 64))[0].astype(softmax.dtype)
    expected, front = gradients(gradient[:, :50], y[:, :50])
    found = softmax.run("Grad", [gradient, y], [np.zeros_like(y)], 20, 64, 50)[0]
    softmax.check(found[:, :50], expected)
    found = softmax.run("Front", [gradient, y], [softmax.blank(20, softmax.dtype)], 20, 64, 50)[0]
    softmax.check(found, softmax.columns(front, softmax.dtype))


def flash(x: np.ndarray, old: tuple[np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, ...]:
    """Exponentials, their sum, the maximum, the factor of earlier sums: FlashAttention-2."""
    x = x.astype(np.float64)
    largest = x.max(axis=1, keepdims=True)
    if old is not None:
        largest = np.maximum(largest, old[1])
    grown = np.exp(x - largest)
    total = grown.sum(axis=1, keepdims=True)
    factor = np.ones_like(total) if old is None else np.exp(old[1] - largest)
    return grown, total if old is None else total + factor * old[0], largest, factor


def test_pieces_of_rows_one_after_the_other(softmax: Softmax) -> None:
    rows, width = 20, 64
    first, second = data(softmax, rows, width, 5), data(softmax, rows, width, 6)
    out = [np.zeros_like(first), softmax.blank(rows), softmax.blank(rows)]
    out.append(softmax.blank(rows, softmax.dtype))
    expected = flash(first, None)
    found = softmax.run("FlashV2", [first], out, rows, width, width)
    softmax.check(found[0], expected[0])
    softmax.check(found[1], softmax.columns(expected[1]))
    np.testing.assert_array_equal(found[3], out[3])  # there is no earlier sum

    old = [found[1], found[2]]
    earlier = tuple(column[:, :1].astype(np.float64) for column in old)
    expected = flash(second, earlier)  # type: ignore[arg-type]
    found = softmax.run("FlashV2Update", [second, *old], out, rows, width, width)
    softmax.check(found[0], expected[0])
    softmax.check(found[1], softmax.columns(expected[1]))
    softmax.check(found[2], softmax.columns(expected[2]))
    softmax.check(found[3], softmax.columns(expected[3], softmax.dtype))

    found = softmax.run("Flash", [second, *old], out, rows, width, width, 1)
    softmax.check(found[0], expected[0] / expected[1])
    factor = expected[3] * earlier[0] / expected[1]
    softmax.check(found[3], softmax.columns(factor, softmax.dtype))

    numbers = [np.ascontiguousarray(column[:, 0]) for column in old]
    lists = [out[0], *numbers, np.zeros(rows, softmax.dtype)]
    found = softmax.run("FlashV2List", [second, *numbers], lists, rows, width, width)
    softmax.check(found[1], expected[1].ravel())
    softmax.check(found[3], expected[3].ravel())


def test_log_softmax_is_a_decimal_logarithm(softmax: Softmax) -> None:
    if softmax.dtype != softmax.column_dtype:
        pytest.skip("LogSoftMax takes one type")
    x = data(softmax, 10, 32)
    blank = softmax.blank(10)
    found = softmax.run("Log", [x], [np.zeros_like(x), blank, blank], 10, 32, 32)[0]
    np.testing.assert_allclose(
        found, np.log10(reference(x)[0]), rtol=2 * softmax.tolerance, atol=1e-6
    )


def test_adjusting_replaces_rows_whose_maximum_has_the_bits(softmax: Softmax) -> None:
    x = data(softmax, 9, 32)
    largest = softmax.columns(np.arange(9.0))
    bits = int(largest[4].view(np.uint16 if largest.itemsize == 2 else np.uint32)[0])
    expected = x.copy()
    expected[4] = 0.5
    for sought, rows, code in [(bits, expected, 1), (12345, x, 2)]:
        found = softmax.run("Adjust", [x, largest], [x, np.zeros(8, np.int32)], 9, 32, 32, sought)
        np.testing.assert_array_equal(found[0], rows)
        assert found[1][0] == code


def test_too_little_temporary_space_is_refused(softmax: Softmax) -> None:
    x = data(softmax, 3, 64)
    out = [np.zeros_like(x), softmax.blank(3), softmax.blank(3)]
    with pytest.raises(KernelFault, match="temporary space is smaller than one row needs"):
        softmax.run("SoftMax", [x], out, 3, 64, 64, space=256)


def test_rows_that_are_no_data_blocks_are_refused(softmax: Softmax) -> None:
    x = data(softmax, 1, 64)
    out = [np.zeros_like(x), softmax.blank(1), softmax.blank(1)]
    with pytest.raises(KernelFault, match="srcK is no multiple of 32 bytes"):
        softmax.run("SoftMax", [x], out, 1, 20, 20)


V3 = {
    name: "SoftMaxTiling tiling; const SoftMaxParams params{number(0), number(1), number(0), number(1), 3, 8, 0.9375f};"
    f"SoftmaxFlashV3<half, float, {update}>(OUT(half, 0), OUT(float, 1), OUT(float, 2), OUT(float, 3), IN(half, 0), "
    "OUT(half, 4), IN(float, 1), IN(float, 2), IN(float, 3), space, tiling, params);"
    for name, update in (("First", "false"), ("Update", "true"))
}


def shifted(x: np.ndarray, old: Sequence[np.ndarray] | None, loops: int = 3) -> list[np.ndarray]:
    """Exponentials, mean, sum, maximum and factor of earlier sums, by the documented steps."""
    x = x.astype(np.float64)
    rows, width = x.shape
    scale = 0.9375 / (1 - 0.9375)
    sums = x[:, :512].reshape(rows, 64, 8).sum(axis=2)
    for at in range(512, width, 64):
        sums = sums + x[:, at : at + 64]
    local = sums.reshape(rows, 8, 8).sum(axis=2) / (width // 8)
    mean_of_row = local.mean(axis=1, keepdims=True)
    x = x - np.repeat((mean_of_row - local) * scale, width // 8, axis=1)
    mean = mean_of_row if old is None else (mean_of_row + old[0] * (loops - 1)) / loops
    shift = (mean_of_row - mean) * scale
    largest = shift + x.max(axis=1, keepdims=True)
    factor = np.ones_like(largest)
    if old is not None:
        earlier = (old[0] - mean) * scale + old[2]
        largest = np.maximum(largest, earlier)
        factor = np.exp(earlier - largest)
    grown = np.exp(x - (largest - shift))
    total = grown.sum(axis=1, keepdims=True)
    return [grown, mean, total if old is None else total + factor * old[1], largest, factor]


@pytest.mark.parametrize("width", [512, 2048])
def test_rows_shifted_by_their_means(local_calls, width: int) -> None:
    run = local_calls(V3)
    rows = 8
    column = np.zeros((rows, 8), np.float32)
    x = np.random.default_rng(8).uniform(0, 3, (rows, width)).astype(np.float16)
    out = [np.zeros_like(x), column, column, column, np.zeros((rows, 16), np.float16)]
    old = [np.full((rows, 1), value) for value in (1.4, 0.5, 2.0)]
    given = [np.repeat(column, 8, axis=1).astype(np.float32) for column in old]
    for name, earlier in (("First", None), ("Update", old)):
        found = run(name, [x, *given], out, [rows, width], 65536)
        expected = shifted(x, earlier)
        np.testing.assert_allclose(found[1], np.repeat(expected[1], 8, axis=1), rtol=1e-5)
        np.testing.assert_allclose(found[3], np.repeat(expected[3], 8, axis=1), rtol=1e-4)
        np.testing.assert_allclose(found[0], expected[0], rtol=2e-3, atol=1e-6)
        np.testing.assert_allclose(found[2], np.repeat(expected[2], 8, axis=1), rtol=1e-4)
        if earlier is not None:
            np.testing.assert_allclose(found[4], np.repeat(expected[4], 16, axis=1), rtol=2e-3)
