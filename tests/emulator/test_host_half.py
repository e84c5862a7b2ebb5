"""Half precision values of host code: what references on the host are written with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.toolchain import find_compiler

PROGRAM = r"""
#include <cstdio>
#include <HEADER>

using NAME;

int main() {
  const fp16_t zero_point = 0.1, scale = 1.5, three = 3;
  for (int i = -8; i < 8; i++) {
    const fp16_t value = i;
    const float results[] = {
        (value + zero_point) * scale, (value - zero_point) / three, (value + 0.1f) * 1.5f, -value * 2};
    fp16_t sum = value;
    sum += zero_point;
    sum *= scale;
    std::printf("%.9g %.9g %.9g %.9g %.9g\n", results[0], results[1], results[2], results[3], float(sum));
  }
  return three == 3 && scale < three && three > 1 ? 0 : 1;
}
"""


@pytest.mark.parametrize(
    ("header", "name"), [("opdev/fp16_t.h", "op::fp16_t"), ("util/fp16.h", "Ops::Base::fp16_t")]
)
def test_every_operation_of_two_halves_is_rounded(tmp_path: Path, header: str, name: str) -> None:
    # They widened to float: a reference for vector instructions on halves then differed from them.
    (tmp_path / "half.cpp").write_text(PROGRAM.replace("HEADER", header).replace("NAME", name))
    program = tmp_path / "half"
    argv = [*find_compiler().argv, "-std=c++17", "-I", str(emulator.include_dir())]
    subprocess.run([*argv, str(tmp_path / "half.cpp"), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    got = np.array([line.split() for line in done.stdout.splitlines()], np.float32)

    value = np.arange(-8, 8).astype(np.float16)
    zero_point, scale, three = np.float16(0.1), np.float16(1.5), np.float16(3)
    rounded = ((value + zero_point) * scale).astype(np.float32)
    wide = (value.astype(np.float32) + np.float32(0.1)) * np.float32(1.5)
    assert (rounded != wide).any()
    columns = [rounded, (value - zero_point) / three, wide, -value * 2, rounded]
    for column, expected in zip(got.T, columns, strict=True):
        np.testing.assert_array_equal(column, expected.astype(np.float32))
