"""Products of a sparse matrix with a dense one, computed the way that its pattern asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opkit.errors import UsageError
from opkit.optimisers.native import native

__all__ = [
    "ARTICLE_THRESHOLDS",
    "Costs",
    "SparseMatMulOptimizer",
    "SparseMatrix",
    "SparsityAnalysis",
    "Thresholds",
]

Halves = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Thresholds:
    """Densities below which a strategy is taken."""

    direct_below: float
    """Share of elements below which vector cores work row by row."""
    blocks_below: float
    """Share of elements (article) or of 64 x 64 blocks (model) below which cubes take blocks."""
    strip_direct_below: float
    """Share in 64 rows inside `blocks` below which they go row by row; 0: a launch costs more."""


ARTICLE_THRESHOLDS = Thresholds(0.10, 0.30, 0.15)
"""What article 002 takes for every shape."""


@dataclass(frozen=True)
class SparsityAnalysis:
    """What a matrix looks like to the three strategies."""

    density: float
    """Elements that are there."""
    block_density: float
    """Blocks of 64 x 64 with an element."""
    block_fill: float
    """Elements that are there of those in such blocks."""
    blocks: int


@dataclass(frozen=True)
class Costs:
    """What the timing model says for one shape, from launches of the kernels."""

    dense_us: float
    direct_us: float
    """At the matrix's density."""
    blocks_us: float
    """At the matrix's density of blocks."""
    thresholds: Thresholds


@dataclass(frozen=True)
class SparseMatrix:
    """A float16 matrix by rows (CSR); made of SciPy's and torch's sparse matrices as they are."""

    shape: tuple[int, int]
    row_starts: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    values: Halves

    @classmethod
    def of(cls, matrix: Any) -> SparseMatrix:
        """Return what any of these is: NumPy, SciPy (csr, bsr, coo, ...), torch (CSR, BSR, COO).

        Raises:
            UsageError: it is no matrix of float16, or the type is none of these.
        """
        if isinstance(matrix, SparseMatrix):
            return matrix
        if isinstance(matrix, np.ndarray):
            return cls._dense(matrix)
        if hasattr(matrix, "tocsr"):
            return cls._scipy(matrix)
        if hasattr(matrix, "layout") and hasattr(matrix, "to_dense"):
            return cls._torch(matrix)
        raise UsageError(
            f"[SparseMatMul] {type(matrix).__name__} is no matrix that is known",
            help="give a NumPy array, a SciPy sparse matrix or a torch sparse tensor",
        )

    @classmethod
    def _dense(cls, matrix: npt.NDArray[Any]) -> SparseMatrix:
        _check(matrix.shape, str(matrix.dtype))
        rows, columns = np.nonzero(matrix)
        starts = np.searchsorted(rows, np.arange(matrix.shape[0] + 1)).astype(np.int32)
        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        return cls(shape, starts, columns.astype(np.int32), matrix[rows, columns])

    @classmethod
    def _scipy(cls, matrix: Any) -> SparseMatrix:
        # SciPy keeps float16 in a matrix that somebody put it into, and converts it in none.
        wide = matrix if str(matrix.dtype) != "float16" else matrix.astype(np.float32)
        _check(matrix.shape, str(matrix.dtype), also=("float32",))
        rows = wide.tocsr().copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        rows.sort_indices()
        return cls(
            (int(rows.shape[0]), int(rows.shape[1])),
            rows.indptr.astype(np.int32),
            rows.indices.astype(np.int32),
            _narrowed(rows.data),
        )

    @classmethod
    def _torch(cls, matrix: Any) -> SparseMatrix:
        _check(tuple(matrix.shape), str(matrix.dtype).removeprefix("torch."), also=("float32",))
        wide = matrix.detach().cpu().float()
        layout = str(matrix.layout)
        if layout == "torch.sparse_csr":
            starts, columns, values = wide.crow_indices(), wide.col_indices(), wide.values()
        elif layout == "torch.sparse_coo":
            whole = wide.coalesce()
            rows, columns = whole.indices()
            values = whole.values()
            counts = np.bincount(rows.numpy(), minlength=matrix.shape[0])
            starts_array = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            return cls(
                (int(matrix.shape[0]), int(matrix.shape[1])),
                starts_array,
                columns.numpy().astype(np.int32),
                _narrowed(values.numpy()),
            )
        else:
            return cls._dense(_narrowed(wide.to_dense().numpy()))
        return cls(
            (int(matrix.shape[0]), int(matrix.shape[1])),
            starts.numpy().astype(np.int32),
            columns.numpy().astype(np.int32),
            _narrowed(values.numpy()),
        )


def _check(shape: tuple[int, ...], dtype: str, also: tuple[str, ...] = ()) -> None:
    if len(shape) != 2:
        raise UsageError(f"[SparseMatMul] the matrix has the shape {shape}, expected two axes")
    if dtype not in ("float16", *also):
        raise UsageError(
            f"[SparseMatMul] the matrix is {dtype}, expected float16",
            help="convert it: the kernels multiply float16 and sum in float32",
        )


def _narrowed(values: npt.NDArray[Any]) -> Halves:
    narrow = np.ascontiguousarray(values, dtype=np.float16)
    if not np.array_equal(narrow.astype(np.float32), values):
        raise UsageError(
            "[SparseMatMul] the matrix is float32, and its values do not fit float16",
            help="round them first: matrix.astype(numpy.float16)",
        )
    return narrow


class SparseMatMulOptimizer:
    """`a @ b` for a sparse `a` and a dense `b`; `include/td/sparse_matmul.h` in C++."""

    def __init__(self) -> None:
        self._native = native().SparseMatMulOptimizer()

    def analyze_sparsity(self, a: Any) -> SparsityAnalysis:
        """Return what a matrix looks like to the strategies."""
        found = self._native.analyze(self._tensor(SparseMatrix.of(a)))
        return SparsityAnalysis(found.density, found.block_density, found.block_fill, found.blocks)

    def costs(self, a: Any, n: int) -> Costs:
        """Return what the timing model says for `a` times a matrix of `n` columns.

        The kernels are launched once for each shape.
        """
        matrix = SparseMatrix.of(a)
        analysis = self._native.analyze(self._tensor(matrix))
        found = self._native.costs(*matrix.shape, n)
        return Costs(
            dense_us=found.dense_us,
            direct_us=found.direct_us(analysis.density),
            blocks_us=found.blocks_us(analysis.block_density),
            thresholds=Thresholds(
                found.direct_below,
                found.blocks_below,
                self._native.strip_direct_below(analysis, found),
            ),
        )

    def choose(self, a: Any, n: int, *, by: str = "model") -> str:
        """Return the strategy for `a` times `n` columns: `direct`, `blocks` or `dense`.

        Args:
            by: `model`, the least modelled time, or `article`, the article's densities.
        """
        matrix = SparseMatrix.of(a)
        analysis = self._native.analyze(self._tensor(matrix))
        if by == "article":
            return str(self._native.choose_by_article(analysis))
        if by != "model":
            raise UsageError(f'by is "{by}", expected "model" or "article"')
        costs = self._native.costs(*matrix.shape, n)
        return str(self._native.choose_by_model(analysis, costs))

    def sparse_matmul(
        self,
        a: Any,
        b: Halves,
        *,
        strategy: str | None = None,
        strip_direct_below: float | None = None,
    ) -> Halves:
        """Return `a @ b`, float16 with sums in float32.

        Args:
            a: (rows, columns), whatever `SparseMatrix.of` takes.
            b: (columns, n) float16, n a multiple of 16; columns of 64 on the cube cores.
            strategy: `direct`, `blocks` or `dense`; the model's choice when None.
            strip_direct_below: with `blocks`: 64 rows of less density are computed directly; what
                the model says when None.
        Raises:
            UsageError: shapes or types do not fit, or the strategy does not take the shape.
        """
        matrix = SparseMatrix.of(a)
        if b.dtype != np.float16 or b.ndim != 2 or b.shape[0] != matrix.shape[1]:
            raise UsageError(
                f"[SparseMatMul] b is {b.dtype} of {b.shape},"
                f" expected float16 of ({matrix.shape[1]}, n)"
            )
        n = int(b.shape[1])
        chosen = self.choose(matrix, n) if strategy is None else strategy
        tensor = self._tensor(matrix)
        analysis = self._native.analyze(tensor)
        strip = strip_direct_below
        if strip is None:
            strip = self.costs(matrix, n).thresholds.strip_direct_below if chosen == "blocks" else 0
        c = np.zeros((matrix.shape[0], n), np.float16)
        self._native.run(chosen, tensor, analysis, np.ascontiguousarray(b), c, n, strip)
        return c

    def direct_on(self, a: Any, b: Halves, blocks: int, *, is_even: bool = False) -> Halves:
        """Return `a @ b`, row by row on so many blocks, by equal or by balanced partition."""
        matrix = SparseMatrix.of(a)
        c = np.zeros((matrix.shape[0], b.shape[1]), np.float16)
        self._native.run_direct(self._tensor(matrix), b, c, b.shape[1], blocks, is_even)
        return c

    @staticmethod
    def _tensor(matrix: SparseMatrix) -> Any:
        return native().SparseTensor(
            *matrix.shape, matrix.row_starts, matrix.columns, matrix.values
        )
