"""The space that ReduceMax works in, of the documents' formula."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

# The work tensor has one data block.
LARGEST = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float*)x);
  out.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), work(TPosition::VECCALC, 256, 8);
  LocalTensor<float> found(TPosition::VECCALC, 288, 8);
  DataCopy(a, in, 64);
  PipeBarrier<PIPE_ALL>();
  ReduceMax(found, a, work, %d, true);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, found, 8);
}
"""


def test_less_than_a_repeat_takes_one_block(compile_kernel) -> None:
    # It was to take the two rounds' space that more elements take.
    x, y = np.arange(64, dtype=np.float32) % 7, np.zeros(8, np.float32)
    compile_kernel(LARGEST % 63)(x, y)
    assert y[0] == 6 and y.view(np.uint32)[1] == 6
    with pytest.raises(
        KernelFault, match=r"ReduceMax writes bytes 0\.\.64 of a buffer that has 32"
    ):
        compile_kernel(LARGEST % 64)(x, y)


# On the host a row's space is asked for by the pattern of one axis, which was no name here.
PATTERNS = """
#include <cstdio>

#include "tiling/tiling_api.h"

int main() {
  uint32_t most = 0, least = 0;
  const ge::Shape row({1000}), rows({3, 1000});
  AscendC::GetReduceSumMaxMinTmpSize(rows, ge::DT_FLOAT, AscendC::ReducePattern::AR, true, false, most, least);
  std::printf("%u\\n", least);
  AscendC::GetReduceSumMaxMinTmpSize(row, ge::DT_FLOAT, AscendC::ReducePattern::R, true, false, most, least);
  std::printf("%u\\n", least);
  AscendC::GetReduceSumMaxMinTmpSize(rows, ge::DT_FLOAT, AscendC::ReducePattern::RAR, true, false, most, least);
  std::printf("%u\\n", least);
}
"""


def test_the_host_names_the_space_of_a_row_and_none_for_axes_that_nothing_reduces(
    tmp_path: Path,
) -> None:
    (tmp_path / "patterns.cpp").write_text(PATTERNS)
    library = emulator.library_path().parent
    compiler = shutil.which("c++") or "g++"
    headers = ("-std=c++17", "-isystem", str(emulator.include_dir()))
    linked = ("-L", str(library), "-lopkit_emulator", f"-Wl,-rpath,{library}")
    subprocess.run(
        [compiler, *headers, "patterns.cpp", "-o", "patterns", *linked], cwd=tmp_path, check=True
    )
    ran = subprocess.run([tmp_path / "patterns"], capture_output=True, text=True, check=True)
    of_rows, of_row, of_others = map(int, ran.stdout.split())
    assert of_row == of_rows > 0
    assert of_others == 0
