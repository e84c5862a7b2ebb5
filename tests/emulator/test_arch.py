"""What kernels are told of an architecture when they are compiled is what its chips say."""

from __future__ import annotations

import re

import pytest

from opkit import emulator
from opkit.chips import Chip, all_chips

ROW = re.compile(r"^ +\{(\d+), (\d+) \* 1024, (\d+) \* 1024, (\d+) \* 1024,", re.MULTILINE)


def rows() -> dict[int, tuple[int, ...]]:
    """Return the sizes of UB, L1 and L0C in bytes by the number of the architecture."""
    text = (emulator.include_dir() / "opkit" / "arch.h").read_text(encoding="utf-8")
    return {
        int(number): tuple(1024 * int(size) for size in sizes)
        for number, *sizes in ROW.findall(text)
    }


@pytest.mark.parametrize("chip", all_chips(), ids=lambda chip: chip.name)
def test_the_sizes_of_an_architecture_are_those_of_its_chips(chip: Chip) -> None:
    keys = ("memory.ub_bytes", "memory.l1_bytes", "memory.l0c_bytes")
    assert rows()[chip.npu_arch_number] == tuple(chip.count(key) for key in keys)
