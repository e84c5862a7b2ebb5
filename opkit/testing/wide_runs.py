"""Launches with a wider run of the same instructions beside them, and what that computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from opkit import runtime
from opkit.testing.numbers import Array

__all__ = ["Wide", "WideOutput", "beside_wide", "wide_outputs"]


@dataclass(frozen=True)
class WideOutput:
    """One output of a launch, each array of the output's shape."""

    values: Array
    """What the kernel wrote."""
    wide: Array
    """The same in the wider type; of no meaning where no core wrote it."""
    cores: Array
    """Which core wrote each element; -1: none."""
    stores: Array
    """How many copies to global memory that core had made before."""


@dataclass(frozen=True)
class Wide:
    """What the wider run of a launch computed."""

    outputs: tuple[WideOutput, ...]
    unfollowed: tuple[str, ...]
    """Instructions whose results count as exact, because their wider form is not known."""


@contextmanager
def beside_wide(*, is_double: bool, core: int = -1) -> Iterator[None]:
    """Compute every float instruction a second time, in single or double precision.

    Args:
        core: whose instructions are kept one by one; -1: none.
    """
    import opkit.emulator._emulator as emulator

    before = runtime.configuration()
    # The wider run is one host thread's: its memory has no locks.
    runtime.configure(threads=1)
    emulator.begin_wide(is_double=is_double, traced_core=core)
    try:
        yield
    finally:
        emulator.end_wide()
        runtime.configure(threads=before.threads)


def wide_outputs(outputs: Sequence[Array]) -> Wide:
    """Return what the wider run, which is not over yet, made of a launch's outputs."""
    import opkit.emulator._emulator as emulator

    found = [
        WideOutput(
            output,
            *(np.asarray(part).reshape(output.shape) for part in emulator.wide_values(output)),
        )
        for output in outputs
    ]
    lines = (f"{one['op']} at {one['file']}:{one['line']}" for one in emulator.wide_unfollowed())
    return Wide(tuple(found), tuple(lines))
