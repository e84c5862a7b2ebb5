"""Kernel text to something that runs on the emulated chip, by way of the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from opkit import emulator
from opkit.chips import Chip
from opkit.errors import BuildError
from opkit.toolchain import default_cache_dir, find_compiler

__all__ = ["NativeKernel", "compile_text"]


class NativeKernel:
    """One compiled kernel."""

    def __init__(self, library: Path, name: str) -> None:
        self.library = library
        self.name = name

    def launch(self, arguments: list[object], block_dim: int) -> None:
        """Run it: arrays are global memory, bytes are values."""
        from opkit import runtime

        runtime.load_emulator()
        import opkit.emulator._emulator as emulator_module

        emulator_module.launch(str(self.library), self.name, arguments, block_dim, 0)


def compile_text(name: str, source: str, chip: Chip, *, mode: str = "Vector") -> NativeKernel:
    """Return a kernel compiled from its text; from the cache where the same was compiled before."""
    text = f"{source}\nOPKIT_KERNEL_TABLE_AS({name}, {mode})\n"
    include = emulator.include_dir()
    library = emulator.library_path()
    stamp = f"{library.stat().st_mtime_ns}"
    key = hashlib.sha256(f"{stamp}\0{chip.npu_arch}\0{text}".encode()).hexdigest()[:24]
    folder = default_cache_dir() / "compiled"
    folder.mkdir(parents=True, exist_ok=True)
    built = folder / f"{key}.so"
    if not built.exists():
        source_file = folder / f"{key}.cpp"
        source_file.write_text(text, encoding="utf-8")
        handle, target = tempfile.mkstemp(suffix=".so", dir=folder)
        os.close(handle)
        command = [
            *find_compiler().argv,
            *("-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique"),
            f"-D__NPU_ARCH__={chip.npu_arch_number}",
            *("-isystem", str(include), str(source_file), "-o", target),
            *("-L", str(library.parent), "-lopkit_emulator"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"the generated kernel {name} does not compile", log=done.stderr)
        Path(target).replace(built)
    return NativeKernel(built, name)
