"""Kernel text to something that runs on the emulated chip, by way of the cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opkit.chips import Chip
from opkit.toolchain import KernelImage, compile_kernel

from .text import identifier, upper

if TYPE_CHECKING:
    from opkit.runtime import Kernel

__all__ = ["NativeKernel", "compile_text", "generated_source", "without_numbers"]

# What this process has compiled, by the name that messages and the debugger know it by.
_sources: dict[str, str] = {}


class NativeKernel:
    """One compiled kernel."""

    def __init__(self, image: KernelImage, name: str) -> None:
        self.image = image
        self.name = name
        self._kernel: Kernel | None = None

    def launch(self, arguments: Sequence[Any], block_dim: int) -> None:
        """Run it: arrays are global memory, bytes are values."""
        if self._kernel is None:
            # What runs kernels loads the emulator: only where one is launched.
            from opkit import runtime

            self._kernel = runtime.Kernel(self.image, self.name)
        self._kernel.launch(arguments, block_dim)


def compile_text(name: str, source: str, chip: Chip, *, mode: str | None = None) -> NativeKernel:
    """Return a kernel compiled from its text; from the cache where the same was compiled before."""
    _sources[f"{name}.cpp"] = source
    image = compile_kernel(
        source, chip, kernels=[name], mode=mode, name=f"{name}.cpp", is_generated=True
    )
    return NativeKernel(image, name)


def generated_source(name: str) -> str | None:
    """Return the text that this process has compiled last under a name; None for another's."""
    return _sources.get(name)


def without_numbers(source: str, program: str) -> str:
    """Return a kernel's text with the numbers of a program's kernels and tensors in the order in
    which they appear: texts that are then equal do the same with their arguments."""
    stems = {f"{program}_", upper(identifier(program)), program.title().replace("_", "")}
    # Tensors that the program gives no name, alone or behind the number of an operand.
    numbered = rf"(?:{'|'.join(map(re.escape, stems))})\d+|(?<![A-Za-z_])t\d+|(?<=\d)T\d+"
    order: dict[str, int] = {}

    def replaced(match: re.Match[str]) -> str:
        stem = match[0].rstrip("0123456789")
        number = match[0][len(stem) :]
        kind = "tensor" if stem in ("t", "T") else "kernel"
        return f"{stem}${order.setdefault(f'{kind} {number}', len(order))}"

    # Comments stand in a column, further right behind a longer number.
    return re.sub(" +//", " //", re.sub(numbered, replaced, source))
