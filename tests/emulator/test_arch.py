"""What kernels are told of an architecture when they are compiled is what its chips say."""

from __future__ import annotations

import pytest

from opkit.chips import Chip, all_architectures, all_chips

_emulator = pytest.importorskip("opkit.emulator._emulator")


@pytest.mark.parametrize("chip", all_chips(), ids=lambda chip: chip.name)
@pytest.mark.parametrize("size", ["ub_bytes", "l1_bytes", "l0c_bytes", "reserved_bytes"])
def test_the_sizes_of_an_architecture_are_those_of_its_chips(chip: Chip, size: str) -> None:
    key = f"memory.{size}"
    in_chip = chip.count(key) if key in chip.numbers else 0
    assert chip.architecture.traits.get(size, 0) == in_chip


def test_python_reads_of_architectures_what_is_compiled() -> None:
    names = {f"dav-{number}" for number in all_architectures()}
    for row in _emulator.isa_table():
        assert row["dtypes"].keys() == names
    rows = {row["name"]: row["dtypes"] for row in _emulator.isa_table()}
    for number, arch in all_architectures().items():
        assert arch.lacks <= rows.keys()
        assert not any(rows[name][f"dav-{number}"] for name in arch.lacks)
    assert "DataCopyPad" in all_architectures()[2002].lacks


def test_a_trait_that_an_architecture_does_not_say_is_none() -> None:
    assert all_architectures()[2201].traits["ub_bytes"] == 192 * 1024
    assert "is_coupled" not in all_architectures()[2201].traits
    assert all_architectures()[2002].traits["is_coupled"] == 1
