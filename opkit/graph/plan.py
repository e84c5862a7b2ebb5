"""What a compiled graph does, as data: launches of kernels over buffers. Runs without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opkit.compiler import Draw
from opkit.dtypes import find_dtype
from opkit.errors import UsageError

__all__ = ["Copy", "Drawn", "Launch", "Place", "Plan", "PlanKernel", "PlanTensor"]

SPACES = ("input", "output", "constant", "arena")


@dataclass(frozen=True)
class Place:
    """Where an argument of a launch lies."""

    space: str
    """`input`, `output`, `constant` or `arena`, the memory that intermediate results share."""
    index: int
    """Which input, output or constant; 0 in the arena."""
    offset: int
    """Bytes before it."""
    size_bytes: int


@dataclass(frozen=True)
class Drawn:
    """What the kernel of random numbers is told: how many there are. Seed and stream are those of
    the device's generator in each run."""

    count: int

    def told(self, seed: int, stream: int) -> bytes:
        """Return the argument of one launch."""
        return Draw(self.count, seed, stream).packed()


_MOST_BLOCKS = 65535
"""What a launch takes."""


@dataclass(frozen=True)
class PlanTensor:
    """An input, output or constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    size_bytes: int


@dataclass(frozen=True)
class PlanKernel:
    """One kernel, launched once or several times."""

    name: str
    operators: tuple[str, ...]
    """What it computes, in the compiler's operators."""
    source: str = field(repr=False, default="")
    """Ascend C, from which it was or will be compiled; empty where a file brought it."""
    mode: str | None = None


@dataclass(frozen=True)
class Launch:
    """One launch."""

    kernel: int
    block_dim: int
    arguments: tuple[Place | bytes | Drawn, ...]
    nodes: tuple[str, ...] = ()
    """The tensors of the graph that it computes, by name."""


@dataclass(frozen=True)
class Copy:
    """Bytes that are an output and something else as well, or a number that nobody computes."""

    source: Place | bytes
    target: Place


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs but the kernels' machine code and the constants' values."""

    inputs: tuple[PlanTensor, ...]
    outputs: tuple[PlanTensor, ...]
    constants: tuple[PlanTensor, ...]
    kernels: tuple[PlanKernel, ...]
    launches: tuple[Launch, ...]
    copies: tuple[Copy, ...]
    arena_bytes: int
    """Memory for intermediate results, shared by those that do not live at the same time."""
    unshared_bytes: int
    """What they would take if none shared."""

    @property
    def draws(self) -> bool:
        """Whether it needs random numbers."""
        return any(isinstance(a, Drawn) for launch in self.launches for a in launch.arguments)

    def to_json(self, files: Sequence[str]) -> dict[str, Any]:
        """Return it as JSON; `files` name each kernel's shared object. It draws nothing."""
        return {
            "inputs": [vars(tensor) for tensor in self.inputs],
            "outputs": [vars(tensor) for tensor in self.outputs],
            "constants": [vars(tensor) for tensor in self.constants],
            "kernels": [
                {"name": kernel.name, "operators": kernel.operators, "file": file}
                for kernel, file in zip(self.kernels, files, strict=True)
            ],
            "launches": [
                {
                    "kernel": launch.kernel,
                    "block_dim": launch.block_dim,
                    "arguments": [_argument_json(each) for each in launch.arguments],
                    "nodes": launch.nodes,
                }
                for launch in self.launches
            ],
            "copies": [[_argument_json(c.source), _place_json(c.target)] for c in self.copies],
            "arena_bytes": self.arena_bytes,
            "unshared_bytes": self.unshared_bytes,
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Plan:
        """Return the plan of a document that `to_json` made.

        Raises:
            UsageError: a place lies outside of its buffer, or there is no such kernel.
            KeyError, TypeError, ValueError: it is no such document.
        """
        plan = Plan(
            _tensors(document["inputs"]),
            _tensors(document["outputs"]),
            _tensors(document["constants"]),
            tuple(PlanKernel(str(k["name"]), tuple(k["operators"])) for k in document["kernels"]),
            tuple(
                Launch(
                    int(each["kernel"]),
                    int(each["block_dim"]),
                    tuple(_argument(a) for a in each["arguments"]),
                    tuple(each["nodes"]),
                )
                for each in document["launches"]
            ),
            tuple(Copy(_argument(a), _place(b)) for a, b in document["copies"]),
            int(document["arena_bytes"]),
            int(document["unshared_bytes"]),
        )
        plan.check()
        return plan

    def check(self) -> None:
        """Raise UsageError where a launch would leave its buffers."""
        for tensor in (*self.inputs, *self.outputs, *self.constants):
            row = find_dtype(tensor.dtype)
            if row is None or math.prod(tensor.shape) * row.size_bytes != tensor.size_bytes:
                raise UsageError(f"the plan's {tensor.name} has another size than its shape says")
        for launch in self.launches:
            if not 0 <= launch.kernel < len(self.kernels):
                raise UsageError(
                    f"the plan launches kernel {launch.kernel}, which it does not have"
                )
            if not 1 <= launch.block_dim <= _MOST_BLOCKS:
                raise UsageError(f"the plan launches a kernel with {launch.block_dim} blocks")
            for argument in launch.arguments:
                if isinstance(argument, Place):
                    self._check_place(argument)
        for copy in self.copies:
            size = len(copy.source) if isinstance(copy.source, bytes) else copy.source.size_bytes
            if isinstance(copy.source, Place):
                self._check_place(copy.source)
            self._check_place(copy.target)
            if size != copy.target.size_bytes:
                raise UsageError("the plan copies between places of different sizes")

    def _check_place(self, place: Place) -> None:
        if place.space == "arena":
            sizes = [self.arena_bytes]
        else:
            tensors = {"input": self.inputs, "output": self.outputs, "constant": self.constants}
            sizes = [tensor.size_bytes for tensor in tensors.get(place.space, ())]
        if not 0 <= place.index < len(sizes):
            raise UsageError(f"the plan names {place.space} {place.index}, which it does not have")
        if min(place.offset, place.size_bytes) < 0 or (
            place.offset + place.size_bytes > sizes[place.index]
        ):
            raise UsageError(
                f"the plan reaches bytes {place.offset} to {place.offset + place.size_bytes} of"
                f" {place.space} {place.index}, which has {sizes[place.index]}"
            )


def _tensors(documents: Sequence[Mapping[str, Any]]) -> tuple[PlanTensor, ...]:
    return tuple(
        PlanTensor(
            str(d["name"]), tuple(int(e) for e in d["shape"]), str(d["dtype"]), int(d["size_bytes"])
        )
        for d in documents
    )


def _place_json(place: Place) -> list[object]:
    return [place.space, place.index, place.offset, place.size_bytes]


def _argument_json(argument: Place | bytes | Drawn) -> object:
    assert not isinstance(argument, Drawn)
    return argument.hex() if isinstance(argument, bytes) else _place_json(argument)


def _place(value: Sequence[Any]) -> Place:
    space, index, offset, size = value
    return Place(str(space), int(index), int(offset), int(size))


def _argument(value: Any) -> Place | bytes:
    return bytes.fromhex(value) if isinstance(value, str) else _place(value)
