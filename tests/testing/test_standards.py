"""The table of precision standards."""

from __future__ import annotations

import re

import pytest

from opkit import emulator
from opkit.dtypes import DTYPES, find_dtype
from opkit.errors import UsageError
from opkit.testing import STANDARDS, find_standard

# Formats that the documents have numbers for and no tensor here holds.
NO_TENSORS = {"hifloat32", "float8_e4m3", "float8_e5m2"}


@pytest.mark.parametrize("name", STANDARDS)
def test_every_standard_names_its_document_and_measures_something(name: str) -> None:
    row = STANDARDS[name]
    assert row.name == name
    assert row.source
    assert row.measures
    for measure in row.measures:
        assert measure.gather in {"mean", "max", "rms", "count"}


@pytest.mark.parametrize("name", STANDARDS)
def test_every_number_belongs_to_a_known_dtype_and_gives_a_limit(name: str) -> None:
    row = STANDARDS[name]
    for dtype_name, numbers in row.numbers.items():
        dtype = find_dtype(dtype_name)
        if dtype is None:
            assert dtype_name in NO_TENSORS
        else:
            assert dtype.name == dtype_name
        assert all(measure.limit(numbers) >= 0 for measure in row.measures)


@pytest.mark.parametrize(
    ("dtype", "threshold"), [("float16", 2**-10), ("bfloat16", 2**-7), ("float32", 2**-13)]
)
def test_the_ecosystem_standard_has_its_documents_limits(dtype: str, threshold: float) -> None:
    row = find_standard("ecosystem")
    limits = {measure.name: measure.limit(row.numbers[dtype]) for measure in row.measures}
    assert limits == {"MERE": threshold, "MARE": 10 * threshold}


def test_the_generated_cpp_test_has_the_same_numbers() -> None:
    # It once had another rule than opkit test: one passed where the other failed.
    header = emulator.include_dir() / "opkit" / "extension" / "kernel_test.h"
    row = r"case (\w+): threshold = (\S+), smallest = (\S+); break;"
    found = re.findall(row, header.read_text(encoding="utf-8"))
    ge_names = {dtype.ge: dtype.name for dtype in DTYPES}
    assert {
        ge_names[ge]: {"T": float.fromhex(threshold), "smallest": float.fromhex(smallest)}
        for ge, threshold, smallest in found
    } == {
        dtype.name: {key: numbers[key] for key in ("T", "smallest")}
        for dtype in DTYPES
        if dtype.name in find_standard("ecosystem").numbers
        for numbers in [find_standard("ecosystem").numbers_for(dtype)]
    }


def test_an_unknown_standard_names_the_nearest() -> None:
    with pytest.raises(UsageError, match='did you mean "ecosystem"'):
        find_standard("ecosytem")


def test_a_dtype_without_limits_is_refused() -> None:
    dtype = find_dtype("float64")
    assert dtype is not None
    with pytest.raises(UsageError, match="no limits for float64"):
        find_standard("ecosystem").numbers_for(dtype)
