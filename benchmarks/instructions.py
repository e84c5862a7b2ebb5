"""Throughput of instruction classes on 8 KB tiles, one thread, beside a copy of the same traffic.

python benchmarks/instructions.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from measure import median_seconds, pin_to_one_core

from opkit.emulator import _emulator

TILE_BYTES = 8192
UB_BYTES = 12 * TILE_BYTES
TIMES = 2000
SIZES = {"F16": 2, "F32": 4, "U8": 1, "U32": 4}


@dataclass(frozen=True)
class Row:
    """One instruction on tiles of one data type."""

    label: str
    op: str
    dtype: str
    sources: tuple[str, ...]
    dst: str
    mode: int = 0
    """RoundMode of Cast, SELMODE of Select."""
    scalar: float | None = None
    least_share: float | None = None
    """Of the copy's rate, for the streaming ones."""
    least_gelem: float | None = None


def rows(dtype: str) -> tuple[Row, ...]:
    other = "F32" if dtype == "F16" else "F16"
    return (
        Row("Add", "Add", dtype, (dtype, dtype), dtype, least_share=0.5),
        Row("Mul", "Mul", dtype, (dtype, dtype), dtype, least_share=0.5),
        Row("Exp", "Exp", dtype, (dtype,), dtype, least_gelem=0.8),
        Row(
            f"Cast to {other}",
            "Cast",
            dtype,
            (dtype,),
            other,
            mode=int(dtype == "F32"),
            least_share=0.5,
        ),
        Row("ReduceSum", "ReduceSum", dtype, (dtype, dtype), dtype, least_gelem=0.1),
        Row("Compare", "Compare", dtype, (dtype, dtype), "U8", least_gelem=0.1),
        Row("Select", "Select", dtype, ("U8", dtype, dtype), dtype, mode=2, least_gelem=0.1),
        Row("Gather", "Gather", dtype, (dtype, "U32"), dtype),
        Row("Duplicate", "Duplicate", dtype, (), dtype, scalar=1.5, least_share=0.5),
    )


def bits(dtype: str, value: float | None) -> int:
    if value is None:
        return 0
    kind = np.float16 if dtype == "F16" else np.float32
    return int(np.array([value], kind).view(f"u{SIZES[dtype]}")[0])


def seconds_for(row: Row, times: int) -> float:
    memory = np.zeros(UB_BYTES, dtype=np.uint8)
    memory[:] = np.frombuffer(np.float16(0.75).tobytes() * (UB_BYTES // 2), dtype=np.uint8)
    place = 2 * TILE_BYTES
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
            scalars=(bits(row.dtype, row.scalar), 0),
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


def main() -> None:
    pin_to_one_core()
    _emulator.configure(**{**_emulator.configuration(), "threads": 1})
    copy_rate = copy_bytes_per_second()
    lanes = _emulator.lane_target()
    print(f"plain copy: {copy_rate / 1e9:.1f} GB/s read and written; lanes: {lanes}")
    print(f"{'instruction':20s} {'type':5s} {'Gelem/s':>8s} {'of copy':>8s}   to reach")
    for dtype in ("F16", "F32"):
        for row in rows(dtype):
            seconds = (seconds_for(row, TIMES + 1) - seconds_for(row, 1)) / TIMES
            elements = TILE_BYTES // SIZES[dtype]
            traffic = sum(
                TILE_BYTES * SIZES[code] // SIZES[dtype] for code in (*row.sources, row.dst)
            )
            gelem, share = elements / seconds / 1e9, traffic / seconds / copy_rate
            wanted = "-"
            if row.least_share is not None:
                reached = "yes" if share >= row.least_share else "no"
                wanted = f">= {row.least_share} of copy: {reached}"
            elif row.least_gelem is not None:
                reached = "yes" if gelem >= row.least_gelem else "no"
                wanted = f">= {row.least_gelem} Gelem/s: {reached}"
            print(f"{row.label:20s} {dtype:5s} {gelem:8.2f} {share:8.2f}   {wanted}")


if __name__ == "__main__":
    main()
