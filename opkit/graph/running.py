"""Plans on the emulated chip."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from opkit.chips import Chip
from opkit.graph.plan import Drawn, Place, Plan

if TYPE_CHECKING:
    from opkit.runtime import Kernel
    from opkit.toolchain import KernelImage

__all__ = ["Runner", "compile_plan"]


def compile_plan(plan: Plan, chip: Chip) -> list[KernelImage]:
    """Return the images of a plan's kernels, compiled side by side or found in the cache.

    Raises:
        BuildError: the compiler rejected one.
        SetupError: there is no compiler.
    """
    from opkit.toolchain import compile_kernel

    def image(index: int) -> KernelImage:
        kernel = plan.kernels[index]
        return compile_kernel(
            kernel.source,
            chip,
            kernels=[kernel.name],
            mode=kernel.mode,
            name=f"{kernel.name}.cpp",
            is_generated=True,
        )

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(image, range(len(plan.kernels))))


class Runner:
    """A plan with its kernels loaded; any number of threads may run it, each with its own arena."""

    def __init__(self, plan: Plan, images: Sequence[KernelImage]) -> None:
        from opkit.runtime import Kernel

        self.plan = plan
        self._kernels: list[Kernel] = [
            Kernel(image, kernel.name) for kernel, image in zip(plan.kernels, images, strict=True)
        ]

    def run(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        constants: Sequence[int],
        arena: int,
        draw: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        """Launch every kernel in order, on memory given by addresses.

        Args:
            draw: gives the seed and the stream of the next random numbers, for a plan that draws.
        Raises:
            KernelFault: a kernel did what the chip does not allow.
        """
        from opkit.runtime import DeviceMemory

        bases = {"input": inputs, "output": outputs, "constant": constants, "arena": (arena,)}
        for launch in self.plan.launches:
            self._kernels[launch.kernel].launch(
                [
                    DeviceMemory(bases[each.space][each.index] + each.offset, each.size_bytes)
                    if isinstance(each, Place)
                    else _told(each, draw)
                    for each in launch.arguments
                ],
                launch.block_dim,
            )
        for copy in self.plan.copies:
            target = bases[copy.target.space][copy.target.index] + copy.target.offset
            source: int | bytes
            if isinstance(copy.source, Place):
                source = bases[copy.source.space][copy.source.index] + copy.source.offset
            else:
                source = copy.source
            ctypes.memmove(target, source, copy.target.size_bytes)


def _told(argument: bytes | Drawn, draw: Callable[[], tuple[int, int]] | None) -> bytes:
    if isinstance(argument, bytes):
        return argument
    assert draw is not None
    return argument.told(*draw())
