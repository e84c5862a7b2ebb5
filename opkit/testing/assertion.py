"""The assertion that an operator project's own tests use."""

from __future__ import annotations

from opkit.dtypes import DType
from opkit.errors import PrecisionError
from opkit.testing.arrays import Array
from opkit.testing.comparison import compare
from opkit.testing.standards import Standard

__all__ = ["assert_close"]


def assert_close(
    actual: Array,
    golden: Array,
    *,
    dtype: DType | str | None = None,
    standard: Standard | str = "ecosystem",
    second: Array | None = None,
) -> None:
    """Raise unless `actual` meets the precision standard against `golden`.

    Args:
        actual: what the operator wrote; bfloat16 is uint16 with `dtype` given.
        golden: the reference in float64 or whole numbers, same shape.
        second: a result of the operator's own precision in float64, for the standards that measure
            by one; see `compare`.
    Raises:
        PrecisionError: it does not; also an AssertionError.
        UsageError: as `compare`.
    """
    result = compare(actual, golden, dtype=dtype, standard=standard, second=second)
    if result.passed:
        return
    worst = f"\n  worst {result.worst}" if result.worst else ""
    raise PrecisionError(
        f"the result misses the {result.standard} standard for {result.dtype}: {result}{worst}"
    )
