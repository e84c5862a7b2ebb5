"""Sparse products: every strategy against NumPy, the choice between them, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.optimisers import (
    ARTICLE_THRESHOLDS,
    SparseMatMulOptimizer,
    SparseMatrix,
    structured_matmul,
)
from opkit.profiling import Profile
from opkit.sanitizer import Check


def scattered(rows: int, columns: int, density: float, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(rows, columns))
    return np.where(generator.random((rows, columns)) < density, values, 0).astype(np.float16)


def in_blocks(rows: int, columns: int, density: float, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    is_there = generator.random((rows // 64, columns // 64)) < density
    values = generator.normal(size=(rows, columns)) + 3
    return (values * np.kron(is_there, np.ones((64, 64)))).astype(np.float16)


def right(columns: int, n: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(columns, n)).astype(np.float16)


def is_close(result: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    expected = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    return bool((np.abs(result - expected) <= 1e-3 * scale + 1e-3).all())


@pytest.mark.parametrize("strategy", ["direct", "blocks", "dense"])
@pytest.mark.parametrize(("rows", "columns", "n"), [(64, 64, 16), (200, 192, 272), (130, 320, 512)])
def test_every_strategy_multiplies(strategy: str, rows: int, columns: int, n: int) -> None:
    a, b = scattered(rows, columns, 0.1), right(columns, n)
    a[64:128] = 0  # rows without an element are zeros of the product
    with Check(()) as checks:
        result = SparseMatMulOptimizer().sparse_matmul(
            a, b, strategy=strategy, strip_direct_below=0
        )
    assert not checks.findings
    assert is_close(result, a, b)


def test_thin_strips_of_blocks_are_computed_directly() -> None:
    a, b = in_blocks(256, 256, 0.5), right(256, 64)
    a[64:128] = scattered(64, 256, 0.05)
    with Profile(event_limit=0) as session:
        result = SparseMatMulOptimizer().sparse_matmul(
            a, b, strategy="blocks", strip_direct_below=0.15
        )
    assert [timeline.kernel for timeline in session.timelines] == ["block_sparse", "sparse_direct"]
    assert is_close(result, a, b)


def test_the_article_chooses_by_density_alone() -> None:
    optimizer = SparseMatMulOptimizer()
    for density, strategy in ((0.05, "direct"), (0.2, "blocks"), (0.5, "dense")):
        assert optimizer.choose(scattered(128, 128, density), 64, by="article") == strategy
    assert (ARTICLE_THRESHOLDS.direct_below, ARTICLE_THRESHOLDS.blocks_below) == (0.10, 0.30)
    assert ARTICLE_THRESHOLDS.strip_direct_below == 0.15


def test_the_model_chooses_what_it_times_as_fastest() -> None:
    optimizer = SparseMatMulOptimizer()
    for a in (in_blocks(1024, 1024, 0.1), scattered(1024, 1024, 0.3), scattered(1024, 1024, 0.002)):
        b = right(1024, 1024)
        chosen = optimizer.choose(a, 1024)
        times = {}
        for strategy in ("direct", "blocks", "dense"):
            if strategy == "direct" and optimizer.analyze_sparsity(a).density > 0.1:
                continue  # takes long here, and there by the model too
            with Profile(event_limit=0) as session:
                optimizer.sparse_matmul(a, b, strategy=strategy, strip_direct_below=0)
            times[strategy] = sum(timeline.task_us for timeline in session.timelines)
        assert times[chosen] <= 1.1 * min(times.values())


def test_costs_foretell_the_kernels_times() -> None:
    optimizer = SparseMatMulOptimizer()
    a, b = scattered(512, 512, 0.03), right(512, 512)
    costs = optimizer.costs(a, 512)
    with Profile(event_limit=0) as session:
        optimizer.sparse_matmul(a, b, strategy="direct")
    assert costs.direct_us == pytest.approx(session.timelines[0].task_us, rel=0.2)
    assert 0 <= costs.thresholds.direct_below <= 1
    assert 0 <= costs.thresholds.blocks_below <= 1


def test_timing_for_the_choice_leaves_no_launches_in_a_profile() -> None:
    optimizer = SparseMatMulOptimizer()
    a, b = scattered(192, 128, 0.1), right(128, 48)
    optimizer.choose(a, 48)
    with Profile(event_limit=0) as session:
        optimizer.sparse_matmul(a, b)
    assert len(session.timelines) in (1, 2)


def test_scipy_matrices_of_any_format() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a, b = in_blocks(128, 128, 0.5), right(128, 32)
    wide = a.astype(np.float32)
    for matrix in (
        scipy_sparse.csr_matrix(wide),
        scipy_sparse.coo_array(wide),
        scipy_sparse.bsr_matrix(wide, blocksize=(64, 64)),
    ):
        converted = SparseMatrix.of(matrix)
        assert np.array_equal(converted.values, SparseMatrix.of(a).values)
        assert is_close(SparseMatMulOptimizer().sparse_matmul(matrix, b, strategy="direct"), a, b)


@pytest.mark.torch
def test_torch_tensors_of_any_layout() -> None:
    import torch

    a = in_blocks(128, 128, 0.5)
    dense = torch.from_numpy(a)
    expected = SparseMatrix.of(a)
    for tensor in (
        dense.float().to_sparse_csr(),
        dense.to_sparse_coo(),
        dense.float().to_sparse_bsr((64, 64)),
        dense,
    ):
        converted = SparseMatrix.of(tensor)
        assert np.array_equal(converted.row_starts, expected.row_starts)
        assert np.array_equal(converted.columns, expected.columns)
        assert np.array_equal(converted.values, expected.values)


def test_wrong_matrices_are_refused_by_what_is_wrong() -> None:
    optimizer = SparseMatMulOptimizer()
    a, b = scattered(64, 64, 0.1), right(64, 16)
    with pytest.raises(UsageError, match="the matrix is float64, expected float16"):
        optimizer.sparse_matmul(a.astype(np.float64), b)
    with pytest.raises(UsageError, match=r"expected float16 of \(64, n\)"):
        optimizer.sparse_matmul(a, right(32, 16))
    with pytest.raises(UsageError, match="list is no matrix that is known"):
        optimizer.sparse_matmul([[1.0]], b)
    with pytest.raises(UsageError, match="columns are a multiple of 64"):
        optimizer.sparse_matmul(a[:, :60], b[:60], strategy="blocks")
    with pytest.raises(UsageError, match='"clever" is no strategy'):
        optimizer.sparse_matmul(a, b, strategy="clever")
    whole = SparseMatrix.of(a)
    broken = SparseMatrix(whole.shape, whole.row_starts, whole.columns + 64, whole.values)
    with pytest.raises(UsageError, match=r"has the column \d+ of 64"):
        optimizer.sparse_matmul(broken, b, strategy="direct")


def four_to_two(n: int, k: int) -> np.ndarray:
    generator = np.random.default_rng(3)
    weights = generator.integers(-8, 9, (n, k // 4, 4)).astype(np.int8)
    order = generator.random((n, k // 4, 4)).argsort(axis=2)
    np.put_along_axis(weights, order[..., :2], 0, axis=2)
    return weights.reshape(n, k)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 64), (200, 144, 192)])
def test_structured_weights_by_the_chips_instruction(m: int, n: int, k: int) -> None:
    x = np.random.default_rng(1).integers(-8, 9, (m, k)).astype(np.int8)
    w = four_to_two(n, k)
    with Profile(event_limit=0) as session:
        result = structured_matmul(x, w)
    assert np.array_equal(result, x.astype(np.int32) @ w.astype(np.int32).T)
    assert any(line.instruction == "MmadWithSparse" for line in session.timelines[0].lines)


def test_structured_weights_of_other_types_or_patterns_are_refused() -> None:
    x = np.ones((16, 64), np.int8)
    w = four_to_two(16, 64)
    with pytest.raises(UsageError, match="MmadWithSparse, takes int8 only"):
        structured_matmul(x.astype(np.float16), w)  # type: ignore[arg-type]
    w[3, 8:11] = 1
    with pytest.raises(UsageError, match="row 3 of w has more than two weights at 8 to 11"):
        structured_matmul(x, w)
    with pytest.raises(UsageError, match="k must be a multiple of 64"):
        structured_matmul(x[:, :32].copy(), w[:, :32].copy())
