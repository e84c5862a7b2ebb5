"""The data type table against the C++ enumeration and NumPy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opkit.dtypes import DTYPES, DType, dtype_names, find_dtype

TYPES_HEADER = (
    Path(__file__).parents[1] / "opkit" / "emulator" / "include" / "opkit" / "types.h"
).read_text(encoding="utf-8")


def enumerators() -> list[str]:
    body = re.search(r"enum class DType[^{]*\{([^}]*)\}", TYPES_HEADER)
    assert body is not None
    return [name.strip() for name in body.group(1).split(",") if name.strip() != "kCount"]


def header_size(code: str) -> int:
    """Return what `size_bytes` of types.h says, read from its switch."""
    body = TYPES_HEADER.partition("size_bytes(DType type)")[2].partition("\n}")[0]
    asked = False
    for case, default, size in re.findall(r"case DType::(\w+):|(default):|return (\d+);", body):
        asked = asked or case == code or bool(default)
        if size and asked:
            return int(size)
    raise AssertionError(f"types.h gives {code} no size")


def test_every_code_is_an_enumerator_of_the_header() -> None:
    assert {row.code for row in DTYPES} <= set(enumerators())


def test_every_enumerator_but_the_packed_int4_has_a_row() -> None:
    assert set(enumerators()) - {row.code for row in DTYPES} == {"S4"}


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_sizes_agree_with_the_header_and_with_numpy(row: DType) -> None:
    assert header_size(row.code) == row.size_bytes
    assert row.numpy is not None
    assert np.dtype(row.numpy).itemsize == row.size_bytes


@pytest.mark.parametrize("column", ["name", "kernel", "ge", "ge_value", "code"])
def test_a_column_names_each_type_once(column: str) -> None:
    values = [getattr(row, column) for row in DTYPES]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("name", dtype_names())
def test_every_spelling_finds_one_row_in_any_case(name: str) -> None:
    rows = [row for row in DTYPES if name in (row.name, *row.aliases)]
    assert [find_dtype(name), find_dtype(name.upper())] == [rows[0], rows[0]]
    assert len(rows) == 1


def test_an_unknown_name_finds_nothing() -> None:
    assert find_dtype("flaot16") is None
