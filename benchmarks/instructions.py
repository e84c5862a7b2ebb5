"""Throughput of instruction classes on 8 KB tiles, one thread, beside a copy of the same traffic.

python benchmarks/instructions.py

Vector instructions are issued one behind the other without a kernel; DataCopy runs in one, because
only a launch has global memory. Exits 1 when a class is slower than it has to be.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import median_seconds, pin_to_one_core

from opkit import emulator
from opkit.emulator import _emulator
from opkit.toolchain import find_compiler

TILE_BYTES = 8192
UB_BYTES = 12 * TILE_BYTES
TIMES = 2000
SIZES = {"F16": 2, "F32": 4, "U8": 1, "U32": 4}


COPY_KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void copy_loop(GM_ADDR x, GM_ADDR times) {
  GlobalTensor<%(type)s> in;
  in.SetGlobalBuffer((__gm__ %(type)s*)x, %(count)d);
  LocalTensor<%(type)s> tile(TPosition::VECIN, 0, %(count)d);
  const int32_t rounds = *reinterpret_cast<__gm__ int32_t*>(times);
  for (int32_t i = 0; i < rounds; ++i) DataCopy(tile, in, %(count)d);
}
OPKIT_KERNEL_TABLE_AS(copy_loop, Vector)
"""
C_TYPES = {"F16": "half", "F32": "float"}
LEAST_SHARE = 0.5
"""Of the copy's rate, for what only streams."""
LEAST_GELEM = 0.1
"""A second, for everything else but gathering and sorting."""
NCHW_TO_NHWC = 11
CHANNELS = 16


@dataclass(frozen=True)
class Row:
    """One instruction on tiles of one data type."""

    label: str
    op: str
    dtype: str
    sources: tuple[str, ...]
    dst: str
    mode: int = 0
    """RoundMode of Cast, SELMODE of Select, TransposeType of Transpose."""
    scalars: tuple[int, int] = (0, 0)
    least_share: float | None = None
    least_gelem: float | None = None


@dataclass(frozen=True)
class Measured:
    """What one class of instructions reached."""

    label: str
    dtype: str
    seconds: float
    """For one tile."""
    traffic_bytes: int
    """Read and written for one tile."""
    copy_rate: float
    """Of the plain copy just before, so that a host that is busy for a while slows both."""
    least_share: float | None = None
    least_gelem: float | None = None

    @property
    def gelem(self) -> float:
        """Elements a second, in thousands of millions."""
        return TILE_BYTES // SIZES[self.dtype] / self.seconds / 1e9

    @property
    def share(self) -> float:
        """Its traffic a second as a part of the plain copy's."""
        return self.traffic_bytes / self.seconds / self.copy_rate

    def is_enough(self) -> bool:
        """Return whether it reaches what it has to."""
        if self.least_share is not None and self.share < self.least_share:
            return False
        return self.least_gelem is None or self.gelem >= self.least_gelem

    def line(self) -> str:
        wanted = "-"
        if self.least_share is not None:
            wanted = f">= {self.least_share} of copy"
        elif self.least_gelem is not None:
            wanted = f">= {self.least_gelem} Gelem/s"
        if wanted != "-":
            wanted += ": yes" if self.is_enough() else ": no"
        return f"{self.label:20s} {self.dtype:5s} {self.gelem:8.2f} {self.share:8.2f}   {wanted}"


def rows(dtype: str) -> tuple[Row, ...]:
    other = "F32" if dtype == "F16" else "F16"
    plane = TILE_BYTES // SIZES[dtype] // CHANNELS
    sizes = 1 << 48 | CHANNELS << 32 | plane << 16 | 1  # n, c, h, w
    two = (dtype, dtype)
    return (
        Row("Add", "Add", dtype, two, dtype, least_share=LEAST_SHARE),
        Row("Mul", "Mul", dtype, two, dtype, least_share=LEAST_SHARE),
        Row("Exp", "Exp", dtype, (dtype,), dtype, least_gelem=0.8),
        Row(
            f"Cast to {other}",
            "Cast",
            dtype,
            (dtype,),
            other,
            mode=int(dtype == "F32"),
            least_share=LEAST_SHARE,
        ),
        Row("ReduceSum", "ReduceSum", dtype, two, dtype, least_gelem=LEAST_GELEM),
        Row("Compare", "Compare", dtype, two, "U8", least_gelem=LEAST_GELEM),
        Row("Select", "Select", dtype, (*two, "U8"), dtype, mode=2, least_gelem=LEAST_GELEM),
        Row("Gather", "Gather", dtype, (dtype, "U32"), dtype),
        Row(
            "Transpose",
            "Transpose",
            dtype,
            (dtype, "U8"),
            dtype,
            mode=NCHW_TO_NHWC,
            scalars=(sizes, 0),
            least_gelem=LEAST_GELEM,
        ),
        Row(
            "Duplicate",
            "Duplicate",
            dtype,
            (),
            dtype,
            scalars=(bits(dtype, 1.5), 0),
            least_share=LEAST_SHARE,
        ),
    )


def bits(dtype: str, value: float) -> int:
    kind = np.float16 if dtype == "F16" else np.float32
    return int(np.array([value], kind).view(f"u{SIZES[dtype]}")[0])


def seconds_for(row: Row, times: int) -> float:
    memory = np.zeros(UB_BYTES, dtype=np.uint8)
    memory[:] = np.frombuffer(np.float16(0.75).tobytes() * (UB_BYTES // 2), dtype=np.uint8)
    place = 2 * TILE_BYTES  # a destination may be twice as wide as its source
    operands = []
    for i, code in enumerate(row.sources, start=1):
        if code == "U32":
            offsets = np.arange(TILE_BYTES // SIZES[row.dtype], dtype=np.uint32) * SIZES[row.dtype]
            memory[i * place : i * place + offsets.nbytes] = offsets.view(np.uint8)
        operands.append((i * place, code, 1, 8))

    def call() -> None:
        _emulator.issue(
            row.op,
            memory,
            (0, row.dst, 1, 8),
            operands,
            count=TILE_BYTES // SIZES[row.dtype],
            mode=row.mode,
            scalars=row.scalars,
            times=times,
        )

    return median_seconds(call, rounds=9)


def copy_bytes_per_second() -> float:
    """The rate of a plain copy between two buffers, half a megabyte together, both ways counted."""
    source = np.ones(256 * 1024, dtype=np.uint8)
    target = np.empty_like(source)

    def call() -> None:
        for _ in range(100):
            np.copyto(target, source)

    return 100 * 2 * source.nbytes / median_seconds(call, rounds=9)


def measured(row: Row) -> Measured:
    copy_rate = copy_bytes_per_second()
    # Two numbers of repetitions: their difference has no share of what surrounds the instructions.
    seconds = (seconds_for(row, TIMES + 1) - seconds_for(row, 1)) / TIMES
    # The work tensor of Transpose is not looked at.
    used = (row.dtype,) if row.op == "Transpose" else row.sources
    elements = TILE_BYTES // SIZES[row.dtype]
    traffic = sum(elements * SIZES[code] for code in (*used, row.dst))
    return Measured(
        row.label, row.dtype, seconds, traffic, copy_rate, row.least_share, row.least_gelem
    )


def both(first: Measured, second: Measured) -> Measured:
    """Return two instructions on the same tile as one class."""
    return Measured(
        f"{first.label} + {second.label}",
        first.dtype,
        first.seconds + second.seconds,
        first.traffic_bytes + second.traffic_bytes,
        (first.copy_rate + second.copy_rate) / 2,
        least_gelem=LEAST_GELEM,
    )


def measured_copy(dtype: str, folder: Path) -> Measured:
    """Time DataCopy from global memory to UB in a kernel."""
    source, library = folder / f"{dtype}.cpp", folder / f"{dtype}.so"
    count = TILE_BYTES // SIZES[dtype]
    source.write_text(COPY_KERNEL % {"type": C_TYPES[dtype], "count": count})
    command = [
        *(*find_compiler().argv, "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"),
        *("-fno-gnu-unique", "-D__NPU_ARCH__=2201", "-isystem", str(emulator.include_dir())),
        *(str(source), "-o", str(library)),
        *("-L", str(emulator.library_path().parent), "-lopkit_emulator"),
    ]
    subprocess.run(command, check=True)
    tile = np.ones(TILE_BYTES, dtype=np.uint8)

    def seconds(times: int) -> float:
        rounds = np.array([times], dtype=np.int32)
        return median_seconds(
            lambda: _emulator.Kernel(str(library), "copy_loop").launch([tile, rounds], 1, 0),
            rounds=9,
        )

    copies = 10 * TIMES
    copy_rate = copy_bytes_per_second()
    each = (seconds(copies + 1) - seconds(1)) / copies
    return Measured("DataCopy", dtype, each, 2 * TILE_BYTES, copy_rate, least_share=LEAST_SHARE)


def everything(folder: Path) -> Iterator[Measured]:
    for dtype in ("F16", "F32"):
        done = {row.label: measured(row) for row in rows(dtype)}
        yield from done.values()
        yield both(done["Compare"], done["Select"])
        yield measured_copy(dtype, folder)


def main() -> int:
    pin_to_one_core()
    _emulator.configure(**{**_emulator.configuration(), "threads": 1})
    copy_rate = copy_bytes_per_second() / 1e9
    print(f"plain copy: {copy_rate:.1f} GB/s read and written; lanes: {_emulator.lane_target()}")
    print(f"{'instruction':20s} {'type':5s} {'Gelem/s':>8s} {'of copy':>8s}   to reach")
    is_enough = True
    with tempfile.TemporaryDirectory() as folder:
        for result in everything(Path(folder)):
            print(result.line())
            is_enough = is_enough and result.is_enough()
    return 0 if is_enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
