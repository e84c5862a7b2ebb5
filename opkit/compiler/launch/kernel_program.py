"""A compiled program's kernels: each compiled at its first use and kept."""

from __future__ import annotations

from ..calls import ProgramCalls
from ..codegen import NativeKernel, compile_text, without_numbers
from ..ir import Location
from ..stages import Stages
from .launch import Code

__all__ = ["KernelProgram"]


class KernelProgram(ProgramCalls):
    """A program in the stages of its compilation, with the kernels that were compiled so far."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self._loaded: dict[tuple[str, Location | None], NativeKernel] = {}
        # Rounds of a loop share their kernels.
        self._alike: dict[tuple[str, str | None], NativeKernel] = {}

    def native(self, code: Code) -> NativeKernel:
        """Return a kernel, compiled from its text at its first use; one that several lines of a
        program use is compiled for each of them, kernels of one text once."""
        key = (code.name, code.location)
        if key not in self._loaded:
            text = code.text()
            alike = (without_numbers(text, self.lowered.graph.name), code.mode)
            if alike not in self._alike:
                self._alike[alike] = compile_text(code.name, text, self.stages.chip, mode=code.mode)
            self._loaded[key] = self._alike[alike]
        return self._loaded[key]
