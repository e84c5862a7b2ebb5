"""The tensor program as a value: operators over tensors, each computed once, each with its line."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from opkit.errors import UsageError

from .dimensions import Dimension, Shape, product, shape_text
from .setting_values import Settings

__all__ = [
    "MISTAKES",
    "Attribute",
    "Graph",
    "GraphError",
    "Location",
    "Node",
    "Tensor",
    "here",
    "raised_at",
]

MISTAKES = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(OSError, RuntimeError, TypeError, ValueError),
)
"""What Python raises where a program is wrong."""
_HERE = str(Path(__file__).parents[1])
_OPKIT = str(Path(__file__).parents[2])


@dataclass(frozen=True)
class Location:
    """A line of the user's program."""

    file: str
    line: int
    text: str = ""
    """What stands there, of programs that are one line: it names the place in place of both."""

    def __str__(self) -> str:
        if self.text:
            return self.text
        return f"{Path(self.file).name}:{self.line}"


def here() -> Location | None:
    """Return the line of the user's program that is running: the nearest frame outside this
    package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        # A block that `with` opens is entered by contextlib.
        is_ours = name.startswith((_HERE, "<frozen")) or name.endswith("/contextlib.py")
        if not is_ours:
            return Location(name, frame.f_lineno)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def raised_at(error: BaseException, file: str | None = None) -> Location | None:
    """Return the line that raised an error, the nearest one of `file` where it has any; None where
    a line of opkit's raised it."""
    frames = [
        Location(frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if not frames or frames[-1].file.startswith(_OPKIT):
        return None
    return next((each for each in reversed(frames) if each.file == file), frames[-1])


class GraphError(UsageError):
    """A tensor program is wrong at one line of the user's."""

    def __init__(self, message: str, *, location: Location | None, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.location = location

    def __str__(self) -> str:
        place = f"{self.location.file}:{self.location.line}: " if self.location else ""
        text = f"{place}{self.message}"
        return f"{text}\n  help: {self.help}" if self.help else text


@dataclass(frozen=True)
class Attribute:
    """A number that is given with each launch."""

    name: str
    kind: str = "float"
    """`float`, `int` or `bool`."""
    default: float | int | bool | None = None
    is_fixed: bool = False
    """The program has been made for its default: a size, an axis or a count follows from it."""


@dataclass(frozen=True)
class Tensor:
    """An array of one data type."""

    name: str
    shape: Shape
    dtype: str
    """A name of `opkit.dtypes`."""
    strides: tuple[Dimension, ...] | None = None
    """Elements from one index to the next, axis by axis; None where it is contiguous."""
    offset: Dimension = 0
    """Elements before its first one in its buffer."""
    is_constant: bool = False
    """The same in every launch."""

    @property
    def size(self) -> Dimension:
        """The number of elements."""
        return product(self.shape)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{shape_text(self.shape)}"


@dataclass(frozen=True)
class Node:
    """One operator, applied to whole tensors."""

    operator: str
    """A name of `operators.OPERATORS`."""
    inputs: tuple[str, ...]
    output: Tensor
    attributes: tuple[tuple[str, object], ...] = ()
    location: Location | None = field(default=None, compare=False)

    @cached_property
    def settings(self) -> Settings:
        """The attributes by name."""
        return Settings(self.attributes)

    def __str__(self) -> str:
        arguments = [*self.inputs, *(f"{name}={value}" for name, value in self.attributes)]
        place = f"    # {self.location}" if self.location else ""
        return f"{self.output} = {self.operator}({', '.join(arguments)}){place}"


@dataclass(frozen=True)
class Graph:
    """A program in static single assignment: every tensor is an input or one node's output."""

    name: str
    inputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, str], ...]
    """Name of each output, and the tensor that it is."""
    attributes: tuple[Attribute, ...] = ()

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """Every tensor by name."""
        found = {tensor.name: tensor for tensor in self.inputs}
        found |= {node.output.name: node.output for node in self.nodes}
        return found

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that computes each tensor; inputs have none."""
        return {node.output.name: node for node in self.nodes}

    @cached_property
    def users(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes that read each tensor."""
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def output_tensors(self) -> tuple[tuple[str, Tensor], ...]:
        """Each output's name and tensor."""
        return tuple((name, self.tensors[tensor]) for name, tensor in self.outputs)

    def inputs_of(self, node: Node) -> tuple[Tensor, ...]:
        """Return the tensors that a node reads, in order."""
        return tuple(self.tensors[name] for name in node.inputs)

    def live_nodes(self) -> Iterator[Node]:
        """Yield the nodes that some output depends on, in order."""
        wanted = {tensor for _, tensor in self.outputs}
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if node.output.name in wanted:
                wanted.update(node.inputs)
                kept.append(node)
        return reversed(kept)

    def __str__(self) -> str:
        attributes = [f"{a.name}: {a.kind} = {a.default}" for a in self.attributes]
        head = ", ".join([*(str(tensor) for tensor in self.inputs), *attributes])
        lines = [f"graph {self.name}({head})"]
        lines += [f"    {node}" for node in self.nodes]
        returned = ", ".join(n if n == t else f"{n} = {t}" for n, t in self.outputs)
        return "\n".join([*lines, f"    return {returned}"])
