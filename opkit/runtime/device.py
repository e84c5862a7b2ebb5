"""The emulated device that operators run on."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

from opkit import emulator
from opkit.errors import SetupError

__all__ = ["Configuration", "configuration", "configure", "load_emulator"]


@dataclass(frozen=True)
class Configuration:
    """What launches run on."""

    chip: str
    """Name of the emulated chip, such as `Ascend910B2`."""
    threads: int
    """Host threads that run blocks; 0 means one for each core of the host."""
    poison: bool
    """Whether local memories, workspaces and outputs start out full of NaN patterns."""
    profile: bool
    """Whether launches are timed by the chip's timing model."""
    seed: int
    """Seed of the order in which the cores of a launch start, and of the byte that their local
    memories and what programs allocate start with; 0: one after the other, and no such byte."""
    chip_bounds: bool = False
    """Whether tensors end where the chip's memories do: local ones with their memory, those of an
    operator's call from Python with the block that PyTorch's allocator gives each (multiples of 512
    bytes, at least 32 behind the tensor). Else local ones end with their buffer, the others with
    what rounds them up to 32 bytes."""
    inaccuracy_seed: int = 0
    """Seed of the errors of Rsqrt and Reciprocal, which are as large as their pages state, 1/1000
    in half and 1/10000 in float; 0 rounds them correctly."""
    allow_raw_writes: bool = True
    """Whether a kernel may change an operator's outputs through raw pointers. Else bytes of theirs
    that change and that no instruction wrote are a fault: nothing models or checks what wrote
    them."""
    timing_only: bool = False
    """With `profile`: whether only what steers kernels runs, and tensors are not computed."""


def configuration() -> Configuration:
    """Return what launches run on now."""
    load_emulator()
    import opkit.emulator._emulator as _emulator

    return Configuration(**_emulator.configuration())


def configure(
    chip: str | None = None,
    *,
    threads: int | None = None,
    poison: bool | None = None,
    profile: bool | None = None,
    seed: int | None = None,
    chip_bounds: bool | None = None,
    inaccuracy_seed: int | None = None,
    allow_raw_writes: bool | None = None,
    timing_only: bool | None = None,
) -> Configuration:
    """Change what later launches of this process run on, and return it; None keeps a setting.

    Raises:
        UsageError: no such chip.
    """
    now = configuration()
    import opkit.emulator._emulator as _emulator

    _emulator.configure(
        chip=now.chip if chip is None else chip,
        threads=now.threads if threads is None else threads,
        poison=now.poison if poison is None else poison,
        profile=now.profile if profile is None else profile,
        seed=now.seed if seed is None else seed,
        chip_bounds=now.chip_bounds if chip_bounds is None else chip_bounds,
        inaccuracy_seed=now.inaccuracy_seed if inaccuracy_seed is None else inaccuracy_seed,
        allow_raw_writes=now.allow_raw_writes if allow_raw_writes is None else allow_raw_writes,
        timing_only=now.timing_only if timing_only is None else timing_only,
    )
    return configuration()


@cache
def load_emulator() -> ctypes.CDLL:
    """Load the emulator library for everything in this process that links it.

    Kernels and binding libraries name it by soname only, so it must be in the process before them.

    Raises:
        SetupError: this installation lacks it, or the host cannot load it.
    """
    path = emulator.library_path()
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        raise SetupError(
            f"the emulator cannot be loaded: {err}",
            help='install opkit again with "pip install --force-reinstall opkit"',
        ) from err
    import opkit.emulator._emulator as _emulator

    _emulator.start_log()
    return library
