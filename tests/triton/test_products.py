"""Products of Triton kernels on the cube cores, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from opkit.triton import launch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


@triton.jit
def product_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inner = tl.arange(0, BK)
    left = a + rows * K + inner[None, :]
    right = b + inner[:, None] * N + columns
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(left, mask=(rows < M) & (inner[None, :] < K - start), other=0)
        y = tl.load(right, mask=(inner[:, None] < K - start) & (columns < N), other=0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * N
    tl.store(c + rows * N + columns, total, mask=(rows < M) & (columns < N))


@pytest.mark.parametrize(
    ("dtype", "extents"),
    [
        ("float16", (37, 70, 45)),
        pytest.param("float32", (20, 9, 33), marks=pytest.mark.slow),
    ],
)
def test_products_of_blocks(
    rng: np.random.Generator, dtype: str, extents: tuple[int, int, int]
) -> None:
    m, n, k = extents
    x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    out = np.zeros((m, n), np.float32)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 32))
    launch(product_kernel, grid, x, y, out, m, n, k, BM=16, BN=32, BK=20)
    np.testing.assert_allclose(out, x.astype(float) @ y.astype(float), rtol=1e-5, atol=1e-5)


@triton.jit
def attention_kernel(q, k, v, out, S, scale, B: tl.constexpr, D: tl.constexpr):
    first = tl.program_id(0) * B
    queries = tl.load(tl.make_block_ptr(q, (S, D), (D, 1), (first, 0), (B, D), (1, 0)))
    keys = tl.make_block_ptr(k, (D, S), (1, D), (0, 0), (D, B), (0, 1))
    values = tl.make_block_ptr(v, (S, D), (D, 1), (0, 0), (B, D), (1, 0))
    greatest = tl.full((B,), -float("inf"), tl.float32)
    weight = tl.zeros((B,), tl.float32)
    total = tl.zeros((B, D), tl.float32)
    for _ in range(0, S, B):
        scores = tl.dot(queries, tl.load(keys)) * scale
        more = tl.maximum(greatest, tl.max(scores, 1))
        scores = tl.exp(scores - more[:, None])
        shrink = tl.exp(greatest - more)
        weight = weight * shrink + tl.sum(scores, 1)
        total = total * shrink[:, None] + tl.dot(scores.to(tl.float16), tl.load(values))
        greatest = more
        keys = tl.advance(keys, (0, B))
        values = tl.advance(values, (B, 0))
    target = tl.make_block_ptr(out, (S, D), (D, 1), (first, 0), (B, D), (1, 0))
    tl.store(target, (total / weight[:, None]).to(tl.float16))


@pytest.mark.slow
def test_attention_by_blocks(rng: np.random.Generator) -> None:
    length, width = 64, 16
    q, k, v = (rng.normal(size=(length, width)).astype(np.float16) for _ in range(3))
    out = np.zeros((length, width), np.float16)
    launch(attention_kernel, (2,), q, k, v, out, length, 0.25, B=32, D=width)
    scores = q.astype(float) @ k.T.astype(float) * 0.25
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(float)
    np.testing.assert_allclose(out, expected, atol=2e-3)
