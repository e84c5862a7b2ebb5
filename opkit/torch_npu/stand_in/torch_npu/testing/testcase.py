"""A test case whose comparisons take tensors, arrays and numbers."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import torch

__all__ = ["TestCase", "run_tests"]

run_tests = unittest.main


class TestCase(unittest.TestCase):
    """`unittest.TestCase` with `assertRtolEqual`, and `assertEqual` for tensors."""

    def assertRtolEqual(
        self,
        x: Any,
        y: Any,
        prec: float = 1e-4,
        prec16: float = 1e-3,
        auto_trans_dtype: bool = False,
        message: str | None = None,
    ) -> None:
        """Fail where values differ by more than a precision, both absolutely and relatively.

        Args:
            prec: of float32 and wider; up to this share of the elements may miss it.
            prec16: the same for half types.
            auto_trans_dtype: compare values of different types, as float32.
        """
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            self.assertEqual(len(x), len(y), message)
            for one, other in zip(x, y, strict=True):
                self.assertRtolEqual(one, other, prec, prec16, auto_trans_dtype, message)
            return
        if isinstance(x, str) or isinstance(y, str):
            self.assertEqual(x, y, message)
            return
        expected, is_half_expected = _values(x)
        actual, is_half_actual = _values(y)
        self.assertEqual(expected.shape, actual.shape, message or "the shapes differ")
        if not auto_trans_dtype and is_half_expected != is_half_actual:
            self.fail(message or f"the types differ: {_dtype(x)} and {_dtype(y)}")
        limit = prec16 if is_half_actual else prec
        wrong = _misses(expected, actual, limit)
        if wrong.sum() > wrong.size * limit:
            place = tuple(np.argwhere(wrong)[0].tolist())
            self.fail(
                message
                or f"{int(wrong.sum())} of {wrong.size} elements differ by more than {limit}: "
                f"at {list(place)} {expected[place]} and {actual[place]}"
            )

    def assertEqual(self, first: Any, second: Any, msg: Any = None, **options: Any) -> None:
        """Compare; tensors and arrays by `torch.testing.assert_close`, on whichever devices."""
        kinds = (torch.Tensor, np.ndarray)
        if not isinstance(first, kinds) and not isinstance(second, kinds):
            super().assertEqual(first, second, msg)
            return
        chosen = {key: options[key] for key in ("rtol", "atol") if options.get(key) is not None}
        first, second = (
            each if torch.is_tensor(each) else torch.tensor(each) for each in (first, second)
        )
        torch.testing.assert_close(
            first, second, equal_nan=True, check_device=False, check_dtype=False, msg=msg, **chosen
        )


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__))


def _values(value: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """Return values as float64, or complex128, and whether they are of a half type."""
    if isinstance(value, torch.Tensor):
        is_half = value.dtype in (torch.float16, torch.bfloat16)
        kept = value.detach().cpu().resolve_conj()
        array = kept.float().numpy() if is_half else kept.numpy()
    else:
        array = np.asarray(value)
        is_half = array.dtype == np.float16
    wide = np.complex128 if np.iscomplexobj(array) else np.float64
    return array.astype(wide), is_half


def _misses(
    expected: np.ndarray[Any, Any], actual: np.ndarray[Any, Any], limit: float
) -> np.ndarray[Any, Any]:
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(actual - expected)
        near = error <= limit * np.maximum(1, np.maximum(np.abs(expected), np.abs(actual)))
    same: np.ndarray[Any, Any] = (
        near | (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    )
    return ~same
