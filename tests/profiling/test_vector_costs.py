"""What the model charges for a repeat of each vector instruction, against what is published.

vector_costs.tsv has one row for an instruction and the type of its first source: the bytes of a
repeat; elements a cycle by the programming guide's summary of theoretical performance; cycles a
repeat as msKPP measured them back to back on a 910B1; and which of the two the model goes by.
Where they differ the measured one is taken, but for two tensors that plain arithmetic reads: msKPP
measured those in one bank group, which the model charges where a kernel has it. Sibling: another
type of the instruction was measured. Sorting goes by the summary, as msKPP's repeats of it are of
another length, and so do gathered blocks.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from opkit.chips import find_chip
from opkit.dtypes import find_dtype
from opkit.profiling import Timeline

TABLE = Path(__file__).with_name("vector_costs.tsv")
STARTUP = find_chip("Ascend910B2").number("timing.vector.startup_cycles")
REPEATS = 10
_CODES = ("float16", "bfloat16", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32")
"""In the order of the emulator's types."""
NOTHING_PUBLISHED = {
    *("AddDeqRelu", "ReduceSum", "ReduceMax", "ReduceMin"),  # several instructions each on the chip
    *("GetCmpMask", "SetCmpMask", "Cast", "ProposalConcat", "ProposalExtract"),
    *("RpSort16", "MrgSort4", "Scatter", "VectorPadding"),
}
"""Cast is charged one cycle a repeat of the wider type, as every conversion was measured."""


@cache
def rows() -> tuple[dict[str, str], ...]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file, delimiter="\t"))


def element_bytes(row: dict[str, str]) -> int:
    dtype = find_dtype(row["type"])
    assert dtype is not None
    return dtype.size_bytes


def sibling(row: dict[str, str]) -> dict[str, str]:
    """Return the measured row of another type of the instruction, of the same width if there is."""
    found = [
        other
        for other in rows()
        if other["instruction"] == row["instruction"] and other["from"] == "measured"
    ]
    return min(found, key=lambda other: element_bytes(other) != element_bytes(row))


def published(row: dict[str, str]) -> int:
    """Return the cycles that a repeat takes."""
    if row["from"] == "summary":
        elements, _, cycles = row["summary"].partition("/")
        rate = Fraction(int(elements), int(cycles or 1))
        return round(Fraction(int(row["bytes"]), element_bytes(row)) / rate)
    return round(float((sibling(row) if row["from"] == "sibling" else row)["measured"]))


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['instruction']}-{row['type']}")
def test_a_repeat_costs_what_is_published(
    time_streams: Callable[..., Timeline], row: dict[str, str]
) -> None:
    dtype = _CODES.index(row["type"])
    instruction = {
        "op": row["instruction"],
        "repeat": REPEATS,
        "dst": {"dtype": dtype, "address": 0x20000},
        "src": [{"dtype": dtype, "address": 0}],
    }
    busy = time_streams([instruction]).cores[0].busy_cycles["V"]
    assert busy == STARTUP + REPEATS * published(row)


def test_every_vector_instruction_has_a_row() -> None:
    import opkit.emulator._emulator as emulator

    names = {
        row["name"]
        for row in emulator.isa_table()
        if row["cost"].startswith("vec_") and row["dtypes"].get("dav-2201")
    }
    assert names - {row["instruction"] for row in rows()} - NOTHING_PUBLISHED == set()
    assert {row["instruction"] for row in rows()} <= names
