"""The least temporary space that host functions name, in bytes, against what the functions of rows take."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

ROWS, WIDTH = 6, 64
# What the host calls, then what the kernel does with rows of 64 floats.
CALLS = {
    "SoftMax": (
        "least = GetSoftMaxMinTmpSize(shape, 4, false);",
        "SoftMaxTiling tiling; SoftMax(OUT(float, 0), OUT(float, 1), OUT(float, 2), IN(float, 0), space, tiling, "
        "SoftMaxShapeInfo{6, 64, 6, 64});",
    ),
    "LogSoftMax": (
        "least = GetLogSoftMaxMinTmpSize(shape, 4, false);",
        "LogSoftMaxTiling tiling; LogSoftMax(OUT(float, 0), OUT(float, 1), OUT(float, 2), IN(float, 0), space, "
        "tiling, SoftMaxShapeInfo{6, 64, 6, 64});",
    ),
    "SoftmaxGrad": (
        "least = GetSoftMaxGradMinTmpSize(shape, 4, false, false);",
        "SoftMaxTiling tiling; SoftmaxGrad(OUT(float, 0), IN(float, 0), IN(float, 0), space, tiling, false, "
        "SoftMaxShapeInfo{6, 64, 6, 64});",
    ),
    "TopK": (
        "GetTopKMaxMinTmpSize(chip, 64, 6, false, false, TopKMode::TOPK_NORMAL, true, 4, most, least);",
        "TopkTiling tiling; TopK<float>(OUT(float, 0), OUT(int32_t, 1), IN(float, 0), IN(int32_t, 1), IN(bool, 1), "
        "space, 4, tiling, TopKInfo{6, 64, 64});",
    ),
    "TopKSmall": (
        "GetTopKMaxMinTmpSize(chip, 32, 12, false, false, TopKMode::TOPK_NSMALL, true, 4, most, least);",
        "TopkTiling tiling; TopK<float, false, false, false, TopKMode::TOPK_NSMALL>(OUT(float, 0), OUT(int32_t, 1), "
        "IN(float, 0), IN(int32_t, 1), IN(bool, 1), space, 4, tiling, TopKInfo{12, 32, 32});",
    ),
    "DropOut": (
        "least = GetDropOutMinTmpSize(shape, 4, false);",
        "DropOutShapeInfo info; info.firstAxis = 6; info.srcLastAxis = 64; info.maskLastAxis = 64; "
        "DropOut<float, false, 2>(OUT(float, 0), IN(float, 0), IN(uint8_t, 0), space, 0.5f, info);",
    ),
    "Select": (
        "least = GetSelectWithBytesMaskMinTmpSize(shape, one, 4, shape, 1, false);",
        "SelectWithBytesMask(OUT(float, 0), 7.0f, IN(float, 0), IN(uint8_t, 0), space, "
        "SelectWithBytesMaskShapeInfo{6, 64, 64});",
    ),
    "Sum": (
        "GetSumMaxMinTmpSize(64, 4, false, most, least);",
        "Sum(OUT(float, 1), IN(float, 0), space, SumParams{6, 64, 64});",
    ),
    "CumSum": (
        "GetCumSumMaxMinTmpSize(shape, 4, true, false, most, least);",
        "CumSum(OUT(float, 0), OUT(float, 1), IN(float, 0), space, CumSumInfo{6, 64});",
    ),
    "RmsNorm": (
        "GetRmsNormMaxMinTmpSize(ge::Shape({1, 6, 64}), 4, most, least, false);",
        "RmsNormTiling tiling; tiling.bLength = 1; tiling.sLength = 6; tiling.hLength = 64; "
        "RmsNorm<float>(OUT(float, 0), IN(float, 0), IN(float, 0), space, 0.001f, tiling);",
    ),
}
CALLS["WelfordFinalize"] = (
    "GetWelfordFinalizeMaxMinTmpSize(ge::Shape({8}), 4, false, most, least);",
    "WelfordFinalizePara para{1, 8, 0, 0, 0, 0, 0, 1.0f / 8, 0}; WelfordFinalize<false>(OUT(float, 1), OUT(float, 2), "
    "IN(float, 0), IN(float, 1), IN(int32_t, 2), space, para);",
)
PROGRAM = """
#include <cstdio>

#include "tiling/tiling_api.h"

using namespace AscendC;

int main() {
  const platform_ascendc::PlatformAscendC chip(nullptr);
  const ge::Shape shape({6, 64}), one({1});
  uint32_t most = 0, least = 0;
  %s
}
"""


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    folder: Path = tmp_path_factory.mktemp("space")
    lines = [
        f'least = 0; {host} std::printf("{name} %u\\n", least);'
        for name, (host, _) in CALLS.items()
    ]
    (folder / "space.cpp").write_text(PROGRAM % "\n  ".join(lines))
    compiler = shutil.which("c++") or "g++"
    command = [compiler, "-std=c++17", "-isystem", str(emulator.include_dir()), "space.cpp"]
    command += ["-o", "space", "-L", str(emulator.library_path().parent), "-lopkit_emulator"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    library_path = {"LD_LIBRARY_PATH": str(emulator.library_path().parent)}
    ran = subprocess.run(
        [folder / "space"], env=library_path, capture_output=True, text=True, check=True
    )
    return {name: int(size) for name, size in (line.split() for line in ran.stdout.splitlines())}


@pytest.fixture(scope="module")
def rows(local_calls: Callable[..., Callable[..., list[np.ndarray]]]) -> Callable[..., object]:
    return local_calls({name: call for name, (_, call) in CALLS.items()})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CALLS)
def test_the_least_bytes_that_the_host_names_are_enough_and_a_quarter_is_not(
    rows: Callable[..., list[np.ndarray]], least: dict[str, int], name: str
) -> None:
    x = np.random.default_rng(1).uniform(-3, 3, (ROWS, WIDTH)).astype(np.float32)
    out = [np.zeros_like(x), np.zeros((ROWS, WIDTH), np.float32), np.zeros((ROWS, 8), np.float32)]
    given = [x, x, np.ones(8, np.int32)]
    plenty = rows(name, given, out, (), 16384)
    tight = rows(name, given, out, (), least[name])
    for one, other in zip(plenty, tight, strict=True):
        np.testing.assert_array_equal(one, other)
    # The host reckons with other types and call forms, too, so for some functions less is enough.
    with pytest.raises(KernelFault, match="temporary space"):
        rows(name, given, out, (), least[name] // 128 * 32)


def test_the_public_sample_of_welford_gives_1024_bytes(
    rows: Callable[..., list[np.ndarray]], least: dict[str, int]
) -> None:
    # It was to have 1280 for eight accumulators.
    assert least["WelfordFinalize"] <= 1024
