"""Compiler flags, each said once: what builds, programs and single kernels are compiled with."""

from __future__ import annotations

from collections.abc import Iterable

from opkit.chips import Chip
from opkit.toolchain.compiler import Compiler
from opkit.toolchain.toolkit import Toolkit

__all__ = [
    "AUTO_SYNC",
    "KERNEL_OPTIMISE",
    "chip_macros",
    "common_flags",
    "generated_flags",
    "kernel_flags",
    "link_flags",
    "sync_macros",
]

AUTO_SYNC = "--cce-auto-sync"
"""The option of the vendor's compiler that has it put synchronisation into kernels: on, or off."""

KERNEL_OPTIMISE = "-O2"
"""How kernels are optimised: most of their time is spent in the library."""


def common_flags(compiler: Compiler, toolkit: Toolkit, *, optimise: str) -> tuple[str, ...]:
    """Return what every unit is compiled with: kernels, host code and bindings."""
    gcc_only = ("-fno-gnu-unique",) if compiler.family == "gcc" else ()
    return (
        "-std=c++17",
        optimise,
        "-fPIC",
        "-fvisibility=hidden",
        # One rounding an operation, as on the chip.
        "-ffp-contract=off",
        # Kernels copy tiling structs word by word, through pointers of another type.
        "-fno-strict-aliasing",
        *gcc_only,
        "-Wall",
        # Position, message and nothing else: we print the source line ourselves.
        "-fmessage-length=0",
        "-fno-diagnostics-show-caret" if compiler.family == "gcc" else "-fno-caret-diagnostics",
        # System headers: their warnings are not the user's.
        "-isystem",
        str(toolkit.include_dir),
    )


def chip_macros(chip: Chip) -> tuple[str, ...]:
    """Return the macros by which kernel source tells chips apart.

    Raises:
        UsageError: kernels cannot be compiled for this chip yet.
    """
    arch = chip.architecture
    # Source: programming guide, built-in keywords (__NPU_ARCH__).
    return (
        "-D__CCE__=1",
        f"-D__CCE_AICORE__={arch.traits['cce_aicore']}",
        f"-D__NPU_ARCH__={arch.number}",
        *(f"-D{name}=1" for name in arch.macros),
    )


def kernel_flags(compiler: Compiler, toolkit: Toolkit, chip: Chip) -> tuple[str, ...]:
    """Return what every kernel is compiled with, whoever asks for it; libraries come behind it.

    Raises:
        UsageError: kernels cannot be compiled for this chip yet.
    """
    return (*common_flags(compiler, toolkit, optimise=KERNEL_OPTIMISE), "-s", *chip_macros(chip))


def generated_flags(compiler: Compiler) -> tuple[str, ...]:
    """Return what texts that opkit's compiler wrote are compiled with besides: half of the time."""
    basic = "-DOPKIT_BASIC_API_ONLY"
    if compiler.family != "gcc":
        return (basic,)
    # What -O2 adds is for code that computes; instructions are filled in field by field, which
    # these two make few stores.
    return (basic, "-O1", "-fstore-merging", "-ftree-slp-vectorize")


def link_flags(toolkit: Toolkit, *, strict: bool) -> tuple[str, ...]:
    """Return what links a unit to the emulator.

    Args:
        strict: refuse undefined symbols.
    """
    # No rpath: Python loads the emulator first, and its soname then answers for it, so an artifact
    # holds no path of the machine it was built on.
    if toolkit.library is None:
        return ()
    name = toolkit.library.name.removeprefix("lib").removesuffix(".so")
    undefined = ("-Wl,--no-undefined",) if strict else ()
    return (*undefined, f"-L{toolkit.library.parent}", f"-l{name}")


def sync_macros(words: Iterable[str]) -> tuple[str, ...]:
    """Return the macro of a kernel that the vendor's compiler puts no synchronisation into.

    Args:
        words: options of that compiler: the last of --cce-auto-sync=on and =off counts.
    """
    said = [word for word in words if word.partition("=")[0] == AUTO_SYNC]
    is_off = bool(said) and said[-1].partition("=")[2].lower() in ("off", "false")
    return ("-DOPKIT_NO_AUTO_SYNC",) if is_off else ()
