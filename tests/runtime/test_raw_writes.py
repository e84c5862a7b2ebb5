"""Outputs that change through raw pointers: which bytes, and when that is a fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import KernelFault
from opkit.sanitizer import Check

X = np.arange(64, dtype=np.float32)

HEAD = """
#include "kernel_operator.h"
using namespace AscendC;

struct TilingData {
  uint32_t length;
  float scale;
};

extern "C" __global__ __aicore__ void scale_add(
    GM_ADDR x, GM_ADDR z, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(TilingData);
  GET_TILING_DATA(data, tiling);
"""

# What the attribute says is done: 1: SetValue, 2: references, 3: copies, 4: copies and a raw store,
# 5: half of it and no more, 6: strided rows and a raw store between them, 7: the second half, and
# raw stores of the first, 8: GetValue of all and raw stores, 9: raw stores into UB and a copy out,
# 10: SetValue and references in UB.
KERNEL = (
    HEAD
    + """\
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  (void)z, (void)workspace;
  if (GetBlockIdx() != 0) return;
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), data.length);
  out.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), data.length);
  auto* raw = reinterpret_cast<__gm__ float*>(y);
  const int mode = static_cast<int>(data.scale);
  LocalTensor<float> tile(TPosition::VECCALC, 0, 64);
  DataCopy(tile, in, 64);
  if (mode == 1) for (uint32_t i = 0; i < 64; ++i) out.SetValue(i, in.GetValue(i));
  if (mode == 2) for (uint32_t i = 0; i < 64; ++i) out(i) = in(i);
  PipeBarrier<PIPE_ALL>();
  auto* local = reinterpret_cast<float*>(tile.GetPhyAddr());
  if (mode == 9) for (uint32_t i = 0; i < 64; ++i) local[i] = 1.0f;
  if (mode == 10) for (uint32_t i = 0; i < 64; ++i) tile.SetValue(i, 1.0f), tile(i) += 1.0f;
  PipeBarrier<PIPE_ALL>();
  if (mode >= 9) DataCopy(out, tile, 64);
  if (mode == 3 || mode == 4) DataCopy(out, tile, 64);
  if (mode == 4) raw[5] = -1.0f;
  if (mode == 5) DataCopy(out, tile, 32);
  if (mode == 6) {
    for (uint32_t row = 0; row < 4; ++row) DataCopy(out[16 * row], tile[16 * row], 8);
    raw[20] = 7.0f;
    raw[28] = 7.0f;
  }
  float read = 0.0f;
  if (mode == 8) for (uint32_t i = 0; i < 64; ++i) read += out.GetValue(i);
  if (mode == 8) for (uint32_t i = 0; i < 64; ++i) raw[i] = read == 0.0f ? 1.0f : 2.0f;
  if (mode == 7) DataCopy(out[32], tile, 32);
  if (mode == 7) for (uint32_t i = 0; i < 32; ++i) raw[i] = 1.0f;
}
OPKIT_KERNEL_TABLE(scale_add)
"""
)

# Sums of two ones and two twos: 16 products a row, two rows, 16 floats of each 32 in memory.
CUBE_KERNEL = (
    HEAD
    + """\
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  (void)x, (void)z, (void)workspace;
  if (GetBlockIdx() != 0) return;
  GlobalTensor<float> out;
  out.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), data.length);
  LocalTensor<half> left(TPosition::A2, 0, 256), right(TPosition::B2, 0, 256);
  LocalTensor<float> sums(TPosition::CO1, 0, 256);
  InitConstValue(left, InitConstValueParams<half>(1, 1, 0, half(1)));
  InitConstValue(right, InitConstValueParams<half>(1, 1, 0, half(2)));
  PipeBarrier<PIPE_ALL>();
  Mmad(sums, left, right, MmadParams(2, 16, 16, 0, false, true));
  PipeBarrier<PIPE_ALL>();
  Fixpipe(out, sums, FixpipeParamsV220(16, 2, 16, 32, false));
  if (data.scale == 2) reinterpret_cast<__gm__ float*>(y)[20] = 7.0f;
}
OPKIT_KERNEL_TABLE(scale_add)
"""
)


@pytest.fixture(autouse=True)
def refused() -> Iterator[None]:
    before = runtime.configuration()
    runtime.configure(poison=True, allow_raw_writes=False)
    yield
    runtime.configure(poison=before.poison, allow_raw_writes=before.allow_raw_writes)


@pytest.fixture(scope="module")
def modes(build_artifact) -> Path:
    names = {"scale_add.dav-2201.float32-float32-float32.so": "float"}
    return build_artifact(kernel=KERNEL, variants=names)


def run(folder: Path, mode: float) -> np.ndarray:
    (y,) = runtime.open(folder).run("ScaleAdd", [X], {"scale": mode})
    return y


def test_a_kernel_that_computes_through_raw_pointers_faults(scale_add: Path) -> None:
    # It used to pass, and to take no time on the modelled chip.
    with pytest.raises(
        KernelFault, match="raw pointers have changed 256 bytes of output y"
    ) as info:
        run(scale_add, 2.0)
    assert (info.value.category, info.value.id) == ("RawWrite", "MEM-RAW")
    assert "--allow-raw-writes" in str(info.value)


def test_raw_writes_that_are_meant_are_taken(scale_add: Path) -> None:
    runtime.configure(allow_raw_writes=True)
    np.testing.assert_array_equal(run(scale_add, 2.0), 2 * X)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_what_instructions_write_is_no_raw_write(modes: Path, mode: int) -> None:
    np.testing.assert_array_equal(run(modes, mode), X)


def test_bytes_that_nobody_writes_are_none_either(modes: Path) -> None:
    y = run(modes, 5)
    np.testing.assert_array_equal(y[:32], X[:32])
    assert np.isnan(y[32:]).all()


# Whoever copied anything to an output could then store what it liked.
def test_a_store_over_what_an_instruction_wrote_is_a_raw_write(modes: Path) -> None:
    with pytest.raises(KernelFault, match="from byte 22 on, after an instruction wrote them"):
        run(modes, 4)


# GetValue of an output opened its bytes: all of it could be computed by raw pointers.
def test_what_is_read_is_not_written(modes: Path) -> None:
    with pytest.raises(KernelFault, match="256 bytes of output y"):
        run(modes, 8)


@pytest.mark.parametrize(
    ("mode", "where"),
    [(6, "4 bytes of output y, from byte 112 on"), (7, "128 bytes of output y, from byte 0 on")],
)
def test_only_bytes_without_an_instruction_count(modes: Path, mode: int, where: str) -> None:
    with pytest.raises(KernelFault, match=where):
        run(modes, mode)


@pytest.fixture(scope="module")
def products(build_artifact) -> Path:
    names = {"scale_add.dav-2201.float32-float32-float32.so": "float"}
    return build_artifact(kernel=CUBE_KERNEL, variants=names)


def test_what_fixpipe_writes_is_no_raw_write(products: Path) -> None:
    # It used to be: no product that goes straight to an output passed `opkit test`.
    y = run(products, 1)
    rows = y.reshape(2, 32)
    assert (rows[:, :16] == 32).all() and np.isnan(rows[:, 16:]).all()


def test_a_raw_write_between_rows_of_fixpipe_is_found(products: Path) -> None:
    with pytest.raises(KernelFault, match="4 bytes of output y, from byte 80 on"):
        run(products, 2)


@pytest.mark.parametrize(("mode", "found"), [(9, ["MEM-RAW"]), (10, [])])
def test_the_judge_sees_what_raw_pointers_have_computed_in_ub(
    modes: Path, mode: int, found: list[str]
) -> None:
    # A kernel that computed in C++ between two copies was accepted, and the fastest of all.
    with Check(raw=True) as session:
        run(modes, mode)
    assert [each.id for each in session.findings] == found
    if found:
        assert "of UB have changed in front of this PipeBarrier" in session.findings[0].message
    with Check() as session:
        run(modes, mode)
    assert not session.findings
