"""One launch of a kernel as a value: which kernel, on which operands, with which numbers, on how
many cores.

It is worked out for known sizes without touching memory or compiling anything. A run from Python
(`compiled.py`), the plan of a model (`graph/planning.py`) and the explanation read the same value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from opkit.dtypes import find_dtype

from ..codegen import KernelClass, Spread
from ..ir import Location, evaluate
from ..stages import Stages

__all__ = ["Argument", "Code", "Draw", "Launch", "Room", "Sized", "TensorArgument", "sized"]

_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Code:
    """The kernel that is launched: the compiler's own, or a function of the device's library."""

    name: str
    """Name of its entry point."""
    text: Callable[[], str] = field(repr=False, compare=False)
    """Returns its Ascend C."""
    mode: str | None = None
    """Where the text does not say on which cores it runs."""
    location: Location | None = None
    """The line that asks for it, where several lines use the same text: faults name theirs."""
    part: Callable[[], KernelClass] | None = field(default=None, repr=False, compare=False)
    """Returns its class, where it may share a launch with others: see `share_launch`."""


@dataclass(frozen=True)
class TensorArgument:
    """A tensor of the program."""

    name: str
    spread: Spread | None = None
    """How the host lays it out anew before, where the kernel does not take it as it lies."""


@dataclass(frozen=True)
class Room:
    """Workspace of one launch: what its cores hand over to each other there."""

    elements: int
    dtype: str

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Draw:
    """The tiling numbers of random numbers: how many, and from which stream of a seed."""

    count: int
    seed: int
    stream: int

    def packed(self) -> bytes:
        """Return them as the kernel takes them: `opkit::kernels::RandomPlan`."""
        return struct.pack("=qQQ", self.count, self.seed & _WORD, self.stream & _WORD)


Argument: TypeAlias = "TensorArgument | Room | Draw | bytes"
"""Bytes are tiling data, with the numbers that come with the launch."""


@dataclass(frozen=True)
class Launch:
    """One launch."""

    code: Code
    arguments: tuple[Argument, ...]
    block_dim: int


@dataclass(frozen=True)
class Sized:
    """A tensor of the program at known sizes."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        row = find_dtype(self.dtype)
        assert row is not None
        return row.size_bytes

    @property
    def operand(self) -> TensorArgument:
        """It as an argument of a launch."""
        return TensorArgument(self.name)


def sized(stages: Stages, name: str, sizes: Mapping[str, int]) -> Sized:
    """Return a tensor of a program for named sizes."""
    tensor = stages.graph.tensors[name]
    return Sized(name, tuple(evaluate(extent, sizes) for extent in tensor.shape), tensor.dtype)
