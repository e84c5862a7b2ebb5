"""A kernel, and the Python function that launches it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ir import Dimension
from ...passes import FusedGraph
from .expressions import TritonWriter, dtype_text

__all__ = ["Schedule", "TritonFunction", "indented", "launcher"]


@dataclass(frozen=True)
class Schedule:
    """Constants of a kernel, and how Triton compiles it with them."""

    constants: Mapping[str, int]
    warps: int = 4
    stages: int = 3
    """Iterations of a loop that a GPU has under way."""

    @property
    def options(self) -> dict[str, int]:
        """What a launch gives Triton itself."""
        return {"num_warps": self.warps, "num_stages": self.stages}


@dataclass(frozen=True)
class TritonFunction:
    """One function of the file that takes tensors and returns tensors."""

    name: str
    text: str
    """Its kernel, if it has one, and itself."""
    inputs: tuple[str, ...]
    """The tensors of the program that it is called with."""
    outputs: tuple[str, ...]
    """Those that it returns."""
    sizes: tuple[Dimension, ...] = ()
    """Sizes that it is called with, behind the tensors."""
    scalars: tuple[str, ...] = ()
    """Numbers that it is called with, behind the sizes."""
    helpers: frozenset[str] = frozenset()
    """The names of `HELPERS` that its kernel calls."""
    schedules: tuple[Schedule, ...] = ()
    """What its kernel is launched with: the first one, or which of them is fastest."""


def indented(lines: Sequence[str], levels: int = 1) -> list[str]:
    """Return lines further to the right."""
    return [f"{'    ' * levels}{line}" if line else "" for line in lines]


def launcher(
    name: str,
    fused: FusedGraph,
    writer: TritonWriter,
    *,
    kernel: Sequence[str],
    inputs: Sequence[str],
    blocks: Sequence[str],
    schedules: Sequence[Schedule],
    before: Sequence[str] = (),
    turned: str = "",
) -> TritonFunction:
    """Return a kernel with the function that makes its outputs and launches it.

    Args:
        name: the kernel's.
        fused: the program.
        writer: what wrote the kernel's lines: its names.
        kernel: the lines of the kernel's body.
        inputs: the tensors that the function takes.
        blocks: factors of the number of programs, as Python. The grid has one axis: a GPU takes
            65,535 programs along the others.
        schedules: what the kernel may be launched with. Of several, Triton takes the fastest on the
            machine; its interpreter takes the first.
        before: lines of the function before the launch.
        turned: the output that the kernel writes with rows behind heads, and that the function
            returns with heads behind rows.
    """
    outputs = tuple(writer.outputs)
    for tensor in (*inputs, *outputs):
        writer.stem(tensor)
    shapes = {}
    for tensor in outputs:
        shape = [writer.size(extent) for extent in fused.graph.tensors[tensor].shape]
        if tensor == turned:
            shape[-3:-1] = shape[-2:-4:-1]
        shapes[tensor] = ", ".join(shape)
    stems = [writer.stem(tensor) for tensor in (*inputs, *outputs)]
    numbers = [
        *(writer.size_name(at) for at in range(len(writer.sizes))),
        *(f"number_{at}" for at in range(len(writer.scalars))),
    ]
    translated = [f"{key}: tl.constexpr" for key in schedules[0].constants]
    given = [writer.stem(tensor) for tensor in inputs]
    results = [writer.stem(tensor) for tensor in outputs]
    returned = [
        f"{writer.stem(tensor)}{'.transpose(-3, -2).contiguous()' if tensor == turned else ''}"
        for tensor in outputs
    ]
    made = [
        f"{writer.stem(tensor)} = torch.empty(({shape}{',' if shape else ''}),"
        f" dtype={dtype_text(fused.graph, tensor)}, device={given[0] if given else 'DEVICE'}"
        f"{'.device' if given else ''})"
        for tensor, shape in shapes.items()
    ]
    first = schedules[0]
    grid = re.sub(rf"\b({'|'.join(first.constants)})\b", r'meta["\1"]', " * ".join(blocks))
    is_tuned = len(schedules) > 1
    chosen = [] if is_tuned else [*_named(first.constants), *_named(first.options)]
    arguments = [*stems, *numbers, *chosen]
    text = [
        *(_tuned(schedules) if is_tuned else ()),
        "@triton.jit",
        f"def {name}_kernel({', '.join([*stems, *numbers, *translated])}):",
        *indented(kernel),
        "",
        "",
        f"def run_{name}({', '.join([*given, *numbers])}):",
        *indented(
            [
                *made,
                f"if {results[0]}.numel():",
                *indented(
                    [
                        *before,
                        f"{name}_kernel[lambda meta: ({grid},)](",
                        *indented([f"{', '.join(arguments)}"]),
                        ")",
                    ]
                ),
                f"return {', '.join(returned)}",
            ]
        ),
    ]
    return TritonFunction(
        f"run_{name}",
        "\n".join(text),
        tuple(inputs),
        outputs,
        tuple(writer.sizes),
        tuple(writer.scalars),
        frozenset(writer.helpers),
        tuple(schedules),
    )


def _named(numbers: Mapping[str, int]) -> list[str]:
    return [f"{key}={number}" for key, number in numbers.items()]


def _tuned(schedules: Sequence[Schedule]) -> list[str]:
    """Return the lines that have Triton choose a schedule when the kernel first runs."""
    configs = [
        f"triton.Config(dict({', '.join(_named(each.constants))}),"
        f" {', '.join(_named(each.options))}),"
        for each in schedules
    ]
    # A key of sizes would measure again whenever a call has others.
    return [
        "@triton.autotune(",
        *indented(["[", *indented(configs), "][: 1 if INTERPRETED.value else None],", "key=[],"]),
        ")",
    ]
