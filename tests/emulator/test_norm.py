"""Normalisations of the high-level library against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from opkit.errors import BuildError, KernelFault
from opkit.sanitizer import Check

EPSILON = 1e-3
# Data of type T, gamma and beta of type U. Numbers: rows, width, width without padding.
SHAPE = (
    "tiling.bLength = 1; tiling.sLength = number(0); tiling.hLength = number(1); "
    "tiling.originalHLength = number(2); "
)
SAME = {
    "LayerNorm": "LayerNormTiling tiling; "
    + SHAPE
    + "LayerNorm<T, false>(OUT(T, 0), OUT(T, 1), OUT(T, 2), IN(T, 0), "
    "IN(T, 1), IN(T, 2), space, static_cast<T>(0.001f), tiling);",
    "InPlace": "LayerNormTiling tiling; "
    + SHAPE
    + "LayerNorm(OUT(T, 0), OUT(T, 1), OUT(T, 2), OUT(T, 0), IN(T, 1), "
    "IN(T, 2), static_cast<T>(0.001f), tiling);",
    "RmsNorm": "RmsNormTiling tiling; "
    + SHAPE
    + "RmsNorm<T>(OUT(T, 0), IN(T, 0), IN(T, 1), space, "
    "static_cast<T>(0.001f), tiling);",
    "RmsNormBlocks": "RmsNormTiling tiling; "
    + SHAPE
    + "RmsNorm<T, true>(OUT(T, 0), IN(T, 0), IN(T, 1), space, "
    "static_cast<T>(0.001f), tiling);",
    "RmsNormShared": "RmsNormTiling tiling; "
    + SHAPE
    + "RmsNorm<T>(OUT(T, 0), IN(T, 0), OUT(T, 0)[number(1)], space, "
    "static_cast<T>(0.001f), tiling);",
    "DeepNormBlocks": "DeepNormTiling tiling; "
    + SHAPE
    + "DeepNorm<T, false, true>(OUT(T, 0), OUT(T, 1), OUT(T, 2), IN(T, 0), IN(T, 3), "
    "IN(T, 2), IN(T, 1), space, static_cast<T>(1.5f), static_cast<T>(0.001f), tiling);",
    "DeepNorm": "DeepNormTiling tiling; "
    + SHAPE
    + "DeepNorm<T>(OUT(T, 0), OUT(T, 1), OUT(T, 2), IN(T, 0), IN(T, 3), "
    "IN(T, 2), IN(T, 1), space, static_cast<T>(1.5f), static_cast<T>(0.001f), tiling);",
    "Grad": "LayerNormGradTiling tiling; "
    + SHAPE
    + "LayerNormGrad<T>(OUT(T, 0), OUT(T, 1), IN(T, 0), IN(T, 1), "
    "IN(T, 2), IN(T, 3), IN(T, 4), space, static_cast<T>(0.001f), tiling);",
    "GradBeta": "LayerNormGradBetaTiling tiling; "
    + SHAPE
    + "LayerNormGradBeta<T>(OUT(T, 0), OUT(T, 1), IN(T, 0), "
    "IN(T, 1), space, tiling);",
}
SEPARATE = {
    "Separate": "LayerNormSeparateTiling tiling; LayerNorm<U, T>(OUT(T, 0), OUT(float, 1), OUT(float, 2), IN(T, 0), "
    "IN(U, 1), IN(U, 2), 0.001f, space, LayerNormPara{number(0), number(2), number(1)}, tiling);",
    "Plain": "LayerNormSeparateTiling tiling; LayerNorm<U, T, false, kPlain>(OUT(T, 0), OUT(float, 1), OUT(float, 2), "
    "IN(T, 0), IN(U, 1), IN(U, 2), 0.001f, LayerNormPara{number(0), number(2), number(1)}, tiling);",
    "Normalize": "Normalize<U, T>(OUT(T, 0), OUT(float, 1), IN(float, 3), IN(float, 4), IN(T, 0), IN(U, 1), IN(U, 2), "
    "space, 0.001f, NormalizePara{number(0), number(2), number(1)});",
    "Update": "WelfordUpdate<T, float>(OUT(float, 0), OUT(float, 1), IN(float, 1), IN(float, 2), IN(T, 0), space, "
    "WelfordUpdateParam{1, number(1), number(1), 1.0f / number(0)});",
    "UpdateSome": "static constexpr WelfordUpdateConfig kKeeps = {true}; WelfordUpdate<T, float, false, kKeeps>("
    "OUT(float, 0), OUT(float, 1), IN(float, 1), IN(float, 2), IN(T, 0), space, "
    "WelfordUpdateParam{1, number(1), number(2), 1.0f / number(0)});",
}
FLOATS = {
    "Finalize": "WelfordFinalizePara para{number(0), number(1), number(2), number(3), number(4), number(1) - number(3), "
    "0, 1.0f / number(5), 0}; WelfordFinalize<false>(OUT(float, 0), OUT(float, 1), IN(float, 0), IN(float, 1), space, "
    "para);",
    "Counted": "WelfordFinalizePara para{number(0), number(1), 0, 0, 0, 0, 0, 1.0f / number(5), 0}; "
    "WelfordFinalize<false>(OUT(float, 0), OUT(float, 1), IN(float, 0), IN(float, 1), IN(int32_t, 2), para);",
}
PROLOGUE = """
using T = {0};
using U = {1};
constexpr LayerNormConfig kPlain = {{true, true, false, false}};
"""
NAMES = {np.float32: "float", np.float16: "half"}
Calls = Callable[..., list[np.ndarray]]


class Norms:
    def __init__(self, local_calls: Callable[..., Calls], dtype: type, scale_dtype: type) -> None:
        self.dtype, self.scale_dtype = dtype, scale_dtype
        calls = {**SEPARATE, **(SAME if dtype is scale_dtype else {}), **FLOATS}
        self.run: Calls = local_calls(calls, PROLOGUE.format(NAMES[dtype], NAMES[scale_dtype]))
        self.tolerance = 4e-6 if dtype is np.float32 else 2e-3

    def random(self, *shape: int, seed: int = 1, dtype: type | None = None) -> np.ndarray:
        values = np.random.default_rng(seed).uniform(-3, 3, shape)
        return values.astype(dtype or self.dtype)

    def check(self, found: np.ndarray, expected: np.ndarray, factor: float = 1.0) -> None:
        limit = self.tolerance * factor
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=limit, atol=limit)


@pytest.fixture(scope="module", params=["float", "half", "mixed"])
def norms(request: pytest.FixtureRequest, local_calls: Callable[..., Calls]) -> Norms:
    kinds = {
        "float": (np.float32, np.float32),
        "half": (np.float16, np.float16),
        "mixed": (np.float16, np.float32),
    }
    return Norms(local_calls, *kinds[request.param])


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = x.astype(np.float64)
    return x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    mean, variance = moments(x)
    return (x.astype(np.float64) - mean) / np.sqrt(variance + EPSILON) * gamma + beta


SHAPES = [(3, 32, 32, 4096), (37, 64, 50, 8192), (2, 1024, 1024, 32768), (21, 16, 16, 1792)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("rows", "width", "used", "space"), SHAPES)
def test_layer_norm_rms_norm_and_deep_norm(
    norms: Norms, rows: int, width: int, used: int, space: int
) -> None:
    if norms.dtype is not norms.scale_dtype:
        pytest.skip("these take one type")
    x, gx = norms.random(rows, width), norms.random(rows, width, seed=2)
    gamma, beta = norms.random(width, seed=3), norms.random(width, seed=4)
    blank = [np.zeros_like(x), norms.random(rows, seed=5), norms.random(rows, seed=5)]
    scale = gamma[:used].astype(np.float64), beta[:used].astype(np.float64)
    numbers = [rows, width, used]

    found = norms.run("LayerNorm", [x, gamma, beta], blank, numbers, space)
    mean, variance = moments(x[:, :used])
    norms.check(found[0][:, :used], layer_norm(x[:, :used], *scale), 3)
    norms.check(found[1], mean.ravel())
    norms.check(found[2], variance.ravel())

    combined = 1.5 * x.astype(np.float64) + gx
    found = norms.run("DeepNorm", [x, gamma, beta, gx], blank, numbers, space)
    norms.check(found[0][:, :used], layer_norm(combined[:, :used], *scale), 3)
    norms.check(found[1], combined[:, :used].mean(axis=1))

    found = norms.run("RmsNorm", [x, gamma], blank[:1], numbers, space)
    squares = (x[:, :used].astype(np.float64) ** 2).mean(axis=1, keepdims=True)
    norms.check(found[0][:, :used], x[:, :used] / np.sqrt(squares + EPSILON) * scale[0], 3)

    found = norms.run("InPlace", [gx, gamma, beta], [x, *blank[1:]], numbers, space)
    norms.check(found[0][:, :used], layer_norm(x[:, :used], *scale), 3)


@pytest.mark.parametrize(("rows", "width", "used", "space"), SHAPES)
def test_layer_norm_with_the_deviation_and_normalize(
    norms: Norms, rows: int, width: int, used: int, space: int
) -> None:
    x = norms.random(rows, width)
    gamma = norms.random(width, seed=3, dtype=norms.scale_dtype)
    beta = norms.random(width, seed=4, dtype=norms.scale_dtype)
    lists = [np.zeros(rows, np.float32), np.zeros(rows, np.float32)]
    scale = gamma[:used].astype(np.float64), beta[:used].astype(np.float64)
    numbers = [rows, width, used]
    mean, variance = moments(x[:, :used])
    deviation = 1 / np.sqrt(variance + EPSILON)

    found = norms.run("Separate", [x, gamma, beta], [np.zeros_like(x), *lists], numbers, space)
    norms.check(found[0][:, :used], layer_norm(x[:, :used], *scale), 3)
    norms.check(found[1], mean.ravel())
    norms.check(found[2], deviation.ravel())

    found = norms.run("Plain", [x, gamma, beta], [np.zeros_like(x), *lists], numbers, space)
    norms.check(found[0][:, :used], (x[:, :used] - mean) * deviation, 3)
    norms.check(found[2], variance.ravel())

    given = [x, gamma, beta, mean.ravel().astype(np.float32), variance.ravel().astype(np.float32)]
    found = norms.run("Normalize", given, [np.zeros_like(x), lists[0]], numbers, space)
    norms.check(found[0][:, :used], layer_norm(x[:, :used], *scale), 3)
    norms.check(found[1], deviation.ravel())


@pytest.mark.parametrize(("rows", "width", "used"), [(3, 32, 32), (19, 64, 50)])
def test_gradients_are_those_of_the_documented_formulas(
    norms: Norms, rows: int, width: int, used: int
) -> None:
    if norms.dtype is not norms.scale_dtype:
        pytest.skip("these take one type")
    dy, x = norms.random(rows, width, seed=6), norms.random(rows, width)
    gamma = norms.random(width, seed=3)
    mean, variance = (m.ravel().astype(norms.dtype) for m in moments(x[:, :used]))
    blank = [np.zeros_like(x), np.zeros_like(x)]
    numbers = [rows, width, used]
    with Check() as session:
        found = norms.run("Grad", [dy, x, variance, mean, gamma], blank, numbers, 32768)
    assert session.findings == ()

    x1 = (dy.astype(np.float64) * gamma)[:, :used]
    x2 = (x.astype(np.float64) - mean[:, None])[:, :used]
    factor = (variance[:, None].astype(np.float64) + EPSILON) ** -0.5
    by_variance = (-0.5 * x1 * x2 * factor**3).sum(axis=1, keepdims=True)
    by_mean = (-x1 * factor).sum(axis=1, keepdims=True)
    by_mean += by_variance / used * (-2 * x2).sum(axis=1, keepdims=True)
    norms.check(found[0][:, :used], x1 * factor + by_variance * 2 / used * x2 + by_mean / used, 5)
    norms.check(found[1][:, :used], x2 * factor, 3)

    sums = norms.run("GradBeta", [x, dy], [gamma, gamma], numbers, 32768)
    norms.check(sums[0], (x.astype(np.float64) * dy).sum(axis=0), 10)
    norms.check(sums[1], dy.astype(np.float64).sum(axis=0), 10)


def test_welford_gives_the_moments_of_all_samples(norms: Norms) -> None:
    width, pieces = 80, 5
    samples = norms.random(pieces, width)
    mean, variance = np.zeros(width, np.float32), np.zeros(width, np.float32)
    for i, piece in enumerate(samples):
        given: Sequence[np.ndarray] = [piece, mean, variance]
        mean, variance = norms.run("Update", given, [mean, variance], [i + 1, width], 768)
    exact = samples.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(variance, exact.var(axis=0) * pieces, rtol=1e-5)

    # The accumulators of the first 48 elements have seen one sample more.
    counts = np.where(np.arange(width) < 48, pieces, pieces - 1).astype(np.int32)
    total = int(counts.sum())
    mean = np.where(counts == pieces, exact.mean(axis=0), exact[:-1].mean(axis=0))
    variance = np.where(counts == pieces, exact.var(axis=0) * 5, exact[:-1].var(axis=0) * 4)
    seen = np.concatenate([exact[:-1].ravel(), exact[-1, :48]])
    out = [np.zeros(8, np.float32), np.zeros(8, np.float32)]
    given = [mean.astype(np.float32), variance.astype(np.float32), counts]
    numbers = [pieces, width, pieces, 48, pieces - 1, total]
    for name in ("Finalize", "Counted"):
        found = norms.run(name, given[: 2 if name == "Finalize" else 3], out, numbers, 8192)
        np.testing.assert_allclose(found[0][0], seen.mean(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[1][0], seen.var(), rtol=1e-5)


def test_behind_what_welford_computes_the_results_are_what_was_given(norms: Norms) -> None:
    # They were left as they were before.
    x, mean = norms.random(64), norms.random(64, seed=2, dtype=np.float32)
    variance = np.abs(norms.random(64, seed=3, dtype=np.float32))
    out = [np.full(64, 9, np.float32), np.full(64, 9, np.float32)]
    every = norms.run("Update", [x, mean, variance], out, [4, 64], 768)
    some = norms.run("UpdateSome", [x, mean, variance], out, [4, 64, 35], 768)
    for found, whole, given in zip(some, every, (mean, variance), strict=True):
        np.testing.assert_array_equal(found[:35], whole[:35])
        np.testing.assert_array_equal(found[35:], given[35:])


def test_a_length_of_welford_that_is_no_data_block_is_refused(norms: Norms) -> None:
    x, mean = norms.random(12), np.zeros(12, np.float32)
    with pytest.raises(KernelFault, match="WelfordUpdate: abLength is no multiple of 32 bytes"):
        norms.run("Update", [x, mean, mean], [mean, mean], [1, 12], 768)


def test_too_little_temporary_space_is_refused(norms: Norms) -> None:
    x = norms.random(4, 64)
    gamma = norms.random(64, seed=3, dtype=norms.scale_dtype)
    lists = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
    with pytest.raises(KernelFault, match="temporary space is smaller than one row needs"):
        norms.run("Separate", [x, gamma, gamma], [x, *lists], [4, 64, 64], 512)


def test_rows_that_the_pages_exclude_are_refused(norms: Norms) -> None:
    x = norms.random(8, 64)
    column = np.zeros(8, np.float32)
    for name in ("Finalize", "Counted"):
        with pytest.raises(KernelFault, match="abLength is no multiple of 32 bytes"):
            norms.run(
                name,
                [column, column, column.astype(np.int32)],
                [column] * 2,
                [1, 4, 1, 4, 1, 4],
                4096,
            )
    if norms.dtype is not norms.scale_dtype:
        return
    out = [np.zeros_like(x), np.zeros(16, norms.dtype), np.zeros(16, norms.dtype)]
    blocks = [x, x[0], x[0], x]
    for name, rows, width, message in (
        ("RmsNormBlocks", 7, 64, "isBasicBlock"),
        ("RmsNormBlocks", 8, 48, "isBasicBlock"),
        ("DeepNormBlocks", 7, 64, "isBasicBlock"),
        ("DeepNorm", 1, 2048, "more than 2040 elements"),
        ("RmsNormShared", 8, 64, "share memory"),
    ):
        with pytest.raises(KernelFault, match=message):
            norms.run(name, blocks, out, [rows, width, width], 16384)
    for name in ("RmsNormBlocks", "DeepNormBlocks"):
        plain = norms.run(name.removesuffix("Blocks"), blocks, out, [8, 64, 64], 16384)
        whole = norms.run(name, blocks, out, [8, 64, 64], 16384)
        np.testing.assert_array_equal(whole[0], plain[0])


def test_scales_of_less_precision_than_the_data_do_not_compile(local_calls) -> None:
    prologue = PROLOGUE.format("float", "half")
    with pytest.raises(BuildError) as refused:
        local_calls({"Normalize": SEPARATE["Normalize"]}, prologue)
    assert "gamma and beta are no less precise than inputX" in str(refused.value.diagnostics)
