"""How many vector cores a launch is worth: each adds to the launch's own time, and takes its share
of the work."""

from __future__ import annotations

from typing import Any

from opkit.chips import Chip

from .launch_numbers import Number, Term, divide_up, least, most, named, whole_root

__all__ = ["PARTIAL_CYCLES", "fair_cores"]

PARTIAL_CYCLES = 70
"""Cycles for a row that is no whole blocks of 32 bytes, on its way out."""

_FEMTOSECONDS = 1_000_000_000
"""A microsecond in units that are whole for one element."""
_SATURATION_PERCENT = 135
"""Cores that read as fast as HBM gives, in hundredths of those that could if none ever waited."""


def fair_cores(
    chip: Chip,
    elements: Number,
    cores: Number,
    *,
    vector_cycles: float,
    read_bytes: Any,
    written_bytes: Any,
    partial_rows: Any = 0,
    columns: Any = 1,
) -> Any:
    """Return how many vector cores make a launch the shortest, one at least.

    A task takes launch + work / cores, of which the launch grows by the same time with each core:
    the sum is least at the root of the work over that time. Cores beyond those that keep HBM busy
    bring nothing, unless their vector units have more to do.

    Args:
        elements: of the whole launch.
        cores: at most.
        vector_cycles: of one element.
        read_bytes: from global memory, of one element.
        written_bytes: to global memory, of one element.
        partial_rows: that are copied one by one, as they are no whole blocks, for each row.
        columns: elements of a row, one at least.
    Source: docs/profile.md, the laws of launches, copies and HBM; `opkit_fair_cores` has the same.
    """
    clock = chip.number("clock.mhz")

    def byte(bytes_per_us: float) -> int:
        return round(_FEMTOSECONDS / bytes_per_us)

    vector = round(_FEMTOSECONDS * vector_cycles / clock)
    read = read_bytes * byte(chip.number("timing.mte2.bytes_per_cycle") * clock)
    written = written_bytes * byte(chip.number("timing.mte3.bytes_per_cycle") * clock)
    from_hbm = read_bytes * byte(chip.number("timing.hbm.bytes_per_second") / 1e6)
    times = [vector, read, written]
    if isinstance(partial_rows, Term) or partial_rows:
        times.append(partial_rows * round(_FEMTOSECONDS * PARTIAL_CYCLES / clock) // columns)
    work = named("elementTime", most(*times))
    saturated = divide_up(work * _SATURATION_PERCENT, most(1, from_hbm * 100))
    a_core = round(_FEMTOSECONDS * chip.core_launch_us())
    worth = whole_root(elements * work // most(1, a_core))
    return named("fairCores", least(cores, most(1, least(worth, saturated))))
