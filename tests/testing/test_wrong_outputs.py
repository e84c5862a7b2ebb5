"""Deliberately wrong outputs against every standard: none of the plainly wrong ones passes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from opkit.testing import STANDARDS, compare

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location(
    "wrong_outputs", ROOT / "benchmarks/wrong_outputs.py"
)
assert _spec is not None and _spec.loader is not None
outputs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(outputs)
judge = outputs.judge
PLAINLY_WRONG = [name for name in outputs.WRONG if name not in outputs.ONLY_IN_THE_LAST_PLACE]

DTYPES = ("float16", "float32", "bfloat16")
FLOATING = [name for name in STANDARDS if name not in ("exact", "quant")]
# What bfloat16's published atol of 2^-6 allows by itself: documented in docs/precision.md.
ALLOWED_BY_THE_DOCUMENT = {("mixed", "bfloat16", "1e-4 against 9e-3")}


@pytest.mark.parametrize("standard", FLOATING)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", PLAINLY_WRONG)
def test_no_plainly_wrong_output_passes(standard: str, dtype: str, wrong: str) -> None:
    passes = (standard, dtype, wrong) in ALLOWED_BY_THE_DOCUMENT
    assert judge(wrong, dtype, standard).passed is passes


@pytest.mark.parametrize("standard", FLOATING)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_correctly_rounded_output_passes(standard: str, dtype: str) -> None:
    assert judge("right", dtype, standard).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_ulp_off_is_no_error_but_of_bit_equality(dtype: str) -> None:
    assert not judge("off by one ulp", dtype, "binary").passed
    for name in ("ecosystem", "mixed", "requant", "msopst"):
        assert judge("off by one ulp", dtype, name).passed, name


def test_ten_ulp_off_fails_every_absolute_standard_of_half() -> None:
    for name in ("ecosystem", "mixed", "close", "stat_rel_err", "ulp", "requant", "binary"):
        assert not judge("off by ten ulp", "float16", name).passed, name


def test_whole_numbers_off_by_one_pass_quant_and_off_by_two_do_not() -> None:
    golden = np.arange(100)
    for step, passes in ((1, True), (2, False)):
        actual = (golden + step).astype(np.int8)
        assert compare(actual, golden, standard="quant").passed is passes
        assert not compare(actual, golden, standard="ecosystem").passed


def test_the_document_holds_the_table() -> None:
    document = ROOT / "docs/precision.md"
    assert outputs.table() in document.read_text(encoding="utf-8")
