"""The temporary space that the host names for quantisation and Broadcast is enough, and its least is the least."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

PROGRAM = """
#include <cstdio>

#include "tiling/broadcast/broadcast_tiling.h"

using namespace AscendC;

int main() {
  uint32_t most = 0, least = 0;
  const TensorShape matrix({24, 224}), line({224}), column({24, 1}), odd({24, 70});
  const auto& platform = *platform_ascendc::PlatformAscendCManager::GetInstance("Ascend910B2");
  GetAscendDequantMaxMinTmpSize(matrix, 4, most, least);
  std::printf("dequant %u %u\\n", most, least);
  GetAscendQuantMaxMinTmpSize(matrix, 4, most, least);
  std::printf("quant %u %u\\n", most, least);
  GetAscendAntiQuantMaxMinTmpSize(matrix, line, false, ge::DT_INT8, ge::DT_FLOAT16, most, least);
  std::printf("anti %u %u\\n", most, least);
  GetAscendAntiQuantMaxMinTmpSize(matrix, line, false, ge::DT_INT8, ge::DT_BF16, most, least);
  std::printf("anti_wide %u %u\\n", most, least);
  GetBroadCastMaxMinTmpSize(platform, column, odd, 4, false, most, least);
  std::printf("broadcast %u %u\\n", most, least);
  GetBroadCastMaxMinTmpSize(platform, column, odd, 1, false, most, least);
  std::printf("broadcast_bytes %u %u\\n", most, least);
}
"""
BROADCAST = (
    "const uint32_t to[2] = {{24, 70}}, from[2] = {{24, 1}};"
    "Broadcast<{0}, 2, 1>(Z({0}), X({0}), to, from, space);"
)
CASES = {
    "dequant": "AscendDequant(Z(bfloat16_t), X(int32_t), Y(bfloat16_t), space, {24, 224, 224});",
    "quant": "AscendQuant(Z(int8_t), X(float), space, 0.5f, 1.0f);",
    "anti": "AscendAntiQuant<int8_t, half, false>(Z(half), X(int8_t), Y(half), Y(half), space, 24, {1, 224, 1, 224});",
    "anti_wide": (
        "AscendAntiQuant<int8_t, bfloat16_t, false>"
        "(Z(bfloat16_t), X(int8_t), Y(bfloat16_t), Y(bfloat16_t), space, 24, {1, 224, 1, 224});"
    ),
    "broadcast": BROADCAST.format("float"),
    "broadcast_bytes": BROADCAST.format("uint8_t"),
}
MATRIX = np.arange(24 * 224).reshape(24, 224) % 100
OPERANDS = {
    "dequant": (
        np.zeros((24, 224), np.uint16),
        MATRIX.astype(np.int32),
        np.full(224, 0x3F80, np.uint16),
    ),
    "quant": (np.zeros((24, 224), np.int8), MATRIX.astype(np.float32)),
    "anti": (np.zeros((24, 224), np.float16), MATRIX.astype(np.int8), np.ones(224, np.float16)),
    "anti_wide": (
        np.zeros((24, 224), np.uint16),
        MATRIX.astype(np.int8),
        np.full(224, 0x3F80, np.uint16),
    ),
    "broadcast": (np.zeros((24, 70), np.float32), np.arange(24, dtype=np.float32)),
    "broadcast_bytes": (np.zeros((24, 70), np.uint8), np.arange(24, dtype=np.uint8)),
}


@pytest.fixture(scope="module")
def call(compile_cases):
    return compile_cases(CASES)


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int]]:
    """The most and the least that the host names."""
    folder: Path = tmp_path_factory.mktemp("spaces")
    (folder / "spaces.cpp").write_text(PROGRAM)
    library = emulator.library_path().parent
    command = [
        *(shutil.which("c++") or "g++", "-std=c++17", "-isystem", str(emulator.include_dir())),
        *(
            "spaces.cpp",
            "-o",
            "spaces",
            "-L",
            str(library),
            "-lopkit_emulator",
            f"-Wl,-rpath,{library}",
        ),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([folder / "spaces"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in ran.stdout.splitlines()]
    return {name: (int(most), int(least)) for name, most, least in rows}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_the_least_space_that_the_host_names_is_enough_and_no_more(call, spaces, name: str) -> None:
    most, least = spaces[name]
    z, *inputs = OPERANDS[name]
    whole = call(name, z, *inputs, space=32768)
    np.testing.assert_array_equal(call(name, z, *inputs, space=least), whole)
    np.testing.assert_array_equal(call(name, z, *inputs, space=most), whole)
    assert least <= most
    with pytest.raises(KernelFault, match="temporary space"):
        call(name, z, *inputs, space=least - 32)
