"""Matrix products by Matmul objects: run once on the emulator, timed as often as asked."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from traces import Traces

SOURCE = Path(__file__).with_name("products.cpp")

NORM_TURNED, NORM, MDL, PRELOAD, KNOWN, UNITS, REORDERED = range(7)
"""What `form` means to the kernel: how the Matmul object is configured."""

_DEFINES = {"Cube": (), "Mix12": ("ON_REQUEST",)}


@dataclass(frozen=True)
class Product:
    """One launch of products.cpp."""

    m: int
    n: int
    k: int
    base: tuple[int, int, int]
    cores: int
    single: tuple[int, int, int]
    """Of a core, or with `Mix12` of a vector core."""
    form: int
    fields: dict[str, int] = field(default_factory=dict)
    """More of TCubeTiling's fields."""
    mode: str = "Cube"
    slots: int = 0
    """Blocks handed over to vector cores before the first must be done; 0: none are."""

    def recorded(self, traces: Traces) -> Any:
        """Return the launch; from `traces` where it has run before."""
        return traces.launch(repr(self), self.run, [Path(__file__)])

    def run(self) -> Any:
        """Return the launch, to time it again."""
        import opkit.emulator._emulator as emulator

        from opkit.profiling import Profile

        element = np.int8 if self.slots else np.float16
        copies = self.cores if self.slots else 1
        a, b = np.zeros((self.m, self.k), element), np.zeros((self.k, self.n * copies), element)
        half = self.slots or self.form == NORM_TURNED
        c = np.zeros((self.m, self.n), np.float16 if half else np.float32)
        workspace = np.zeros(max(self.slots, 1) * self.cores * 128 * 256, np.int32)
        with Profile(event_limit=0):
            emulator.timing_options(0, keeps_instructions=True)
            arguments = [a, b, c, workspace, self._tiling(), self._form()]
            kernel = emulator.Kernel(str(_library(self.mode, self.slots > 0)), "kernel")
            kernel.launch(arguments, self.cores)
            (launch,) = emulator.take_kept_launches()
            emulator.timing_options(0)
        return launch

    def _form(self) -> bytes:
        return (self.slots or self.form).to_bytes(4, "little")

    def _tiling(self) -> np.ndarray:
        values = dict.fromkeys(_fields(), 0)
        values.update(usedCoreNum=self.cores, M=self.m, N=self.n, Ka=self.k, Kb=self.k)
        values.update(zip(("singleCoreM", "singleCoreN", "singleCoreK"), self.single, strict=True))
        values.update(zip(("baseM", "baseN", "baseK"), self.base, strict=True))
        values.update(depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1, stepKb=1)
        values.update(dbL0A=2, dbL0B=2, dbL0C=1)
        values.update(self.fields)
        return np.array(list(values.values()), np.int32)


@cache
def _fields() -> tuple[str, ...]:
    from opkit import emulator

    table = emulator.include_dir() / "opkit/host/cube_tiling_fields.inc"
    rows = table.read_text("utf-8").splitlines()
    return tuple(row.split("(")[1].split(")")[0] for row in rows if row.startswith("CUBE_TILING"))


@cache
def _library(mode: str, hands_over: bool) -> Path:
    from opkit import emulator

    text = SOURCE.read_text("utf-8") + f"\nOPKIT_KERNEL_TABLE_AS(kernel, {mode})\n"
    defines = ("HAND_OVER",) if hands_over else _DEFINES[mode]
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise SystemExit("no C++ compiler is on PATH")
    folder = Path(tempfile.mkdtemp(prefix="opkit-timing-"))
    stem = hashlib.sha256(f"{mode}{defines}".encode()).hexdigest()[:12]
    source, library = folder / f"{stem}.cpp", folder / f"{stem}.so"
    source.write_text(text, encoding="utf-8")
    command = [
        *(compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"),
        *("-fno-gnu-unique", "-D__NPU_ARCH__=2201", *(f"-D{name}" for name in defines)),
        *("-isystem", str(emulator.include_dir()), str(source), "-o", str(library)),
        *("-L", str(emulator.library_path().parent), "-lopkit_emulator"),
    ]
    subprocess.run(command, check=True)
    return library
