"""Launching a compiled image on arrays, or on memory that somebody else owns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opkit.errors import UsageError
from opkit.runtime.device import configuration, load_emulator
from opkit.toolchain import KernelImage

__all__ = ["DeviceMemory", "Kernel", "LaunchResult", "launches_go_to"]


class DeviceMemory(NamedTuple):
    """Memory that a kernel works on where it lies, such as a tensor's own."""

    address: int
    """What `tensor.data_ptr()` gives."""
    size_bytes: int
    """How much of it the kernel may touch."""


Argument: TypeAlias = npt.NDArray[np.generic] | np.generic | DeviceMemory | bytes | None


@dataclass(frozen=True)
class LaunchResult:
    """What a launch tells of itself; times are in `opkit.profiling`."""

    kernel: str
    block_dim: int
    instructions: int


Recorder: TypeAlias = Callable[[KernelImage, Sequence[Argument], int], None]
_recorder: Recorder | None = None


def launches_go_to(recorder: Recorder) -> None:
    """From now on have this process's kernels neither loaded nor run, but their launches told.

    Args:
        recorder: takes the image, the arguments and the number of blocks.
    """
    global _recorder
    _recorder = recorder


class Kernel:
    """One kernel of an image, loaded; launching it looks nothing up."""

    def __init__(self, image: KernelImage, name: str | None = None) -> None:
        """Load a kernel.

        Args:
            name: which of the image's kernels; None where it has one.
        Raises:
            UsageError: there is no such kernel, or there are several.
            SetupError: the image was made by another version of opkit.
        """
        self.image = image
        if _recorder is not None:
            self.name = name or ""
            return
        load_emulator()
        import opkit.emulator._emulator as _emulator

        if name is None and not image.kernels and image.templates:
            template = image.templates[0]
            raise UsageError(
                f"{image.source}: {template} is a template",
                help=f'name an instance: compile_kernel(..., kernels=["{template}<...>"])',
            )
        self._native = _emulator.Kernel(str(image.library), name)
        self.name = name or image.kernels[0].name

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}, {self.image.chip.name})"

    def launch(
        self, arguments: Sequence[Argument], block_dim: int = 1, *, tiling_key: int = 0
    ) -> LaunchResult:
        """Run the kernel to its end on the configured device.

        Args:
            arguments: one a parameter. Global memory: a C-contiguous array, written in place, or
                `DeviceMemory`; None is a null address. Values: `bytes`, NumPy scalars. Nothing is
                copied.
            block_dim: how many blocks.
            tiling_key: what the kernel's TILING_KEY_IS asks.
        Raises:
            UsageError: wrong number, size or layout of arguments, or the wrong kind of chip.
            KernelFault: the kernel did what the chip does not allow.
        """
        if _recorder is not None:
            _recorder(self.image, arguments, block_dim)
            return LaunchResult(self.name, block_dim, 0)
        chip = configuration().chip
        if chip != self.image.chip.name:
            self._check_chip(chip)
        given = [
            argument.tobytes() if isinstance(argument, np.generic) else argument
            for argument in arguments
        ]
        count = self._native.launch(given, block_dim, tiling_key)
        return LaunchResult(self.name, block_dim, count)

    def _check_chip(self, name: str) -> None:
        from opkit.chips import find_chip

        chip = find_chip(name)
        if chip.npu_arch != self.image.chip.npu_arch:
            raise UsageError(
                f"{self.name} was compiled for {self.image.chip.name} ({self.image.chip.npu_arch}),"
                f" and the device is an {name} ({chip.npu_arch})",
                help=f'compile it for {name}, or runtime.configure("{self.image.chip.name}")',
            )
