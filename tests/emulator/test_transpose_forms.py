"""Transpose by a tiling, of the high-level library, against NumPy; its sizes on the host."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

FORMS = {
    1: "NZ2ND_0213",
    2: "NZ2NZ_0213",
    3: "NZ2NZ_012_WITH_N",
    4: "NZ2ND_012_WITH_N",
    5: "NZ2ND_012_WITHOUT_N",
    6: "NZ2NZ_012_WITHOUT_N",
    7: "ND2ND_ONLY",
}
TILING = "ConfusionTransposeTiling tiling; " + "".join(
    f"tiling.param{i} = number({i - 1}); " for i in range(1, 5)
)
CALLS = {
    f"{form}_{kind}": f"{TILING} Transpose(OUT({kind}, 0), IN({kind}, 0), space, "
    f"TransposeType::TRANSPOSE_{name}, tiling);"
    for form, name in FORMS.items()
    for kind in ("half", "float")
}
CALLS["old"] = (
    f"{TILING} ConfusionTranspose(OUT(half, 0), IN(half, 0), TransposeType::TRANSPOSE_ND2ND_ONLY, "
    "tiling);"
)
Calls = Callable[..., list[np.ndarray]]


@pytest.fixture(scope="module")
def transpose(local_calls: Callable[..., Calls]) -> Calls:
    return local_calls(CALLS)


def to_nz(x: np.ndarray) -> np.ndarray:
    """[..., rows, columns] as [..., columns/16, rows/16, 16, 16], filled up with zeros."""
    *outer, rows, columns = x.shape
    x = np.pad(x, [(0, 0)] * len(outer) + [(0, -rows % 16), (0, -columns % 16)])
    blocks = x.reshape(*outer, -(-rows // 16), 16, -(-columns // 16), 16)
    return np.ascontiguousarray(np.moveaxis(blocks, -2, -4))


def result_of(form: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The source as it lies in UB, and the result, of x = [B, N, S, H/N]."""
    b, n, s, head = x.shape
    whole = x.transpose(0, 2, 1, 3).reshape(b, s, n * head)
    source = to_nz(whole) if form in (3, 4) else to_nz(x)
    nd = {1: x.transpose(0, 2, 1, 3), 2: x.transpose(0, 2, 1, 3)}.get(
        form, x if form in (3, 4) else whole
    )
    if form in (2, 3, 6):
        return source, to_nz(nd)
    return source, np.pad(nd, [(0, 0)] * (nd.ndim - 1) + [(0, -nd.shape[-1] % 16)])


@pytest.mark.parametrize(
    "shape", [(1, 2, 64, 32), (2, 3, 16, 16), (1, 2, 32, 8), (1, 2, 16, 24), (1, 16, 16, 48)]
)
@pytest.mark.parametrize("kind", ["half", "float"])
@pytest.mark.parametrize("form", range(1, 7))
def test_heads(transpose: Calls, form: int, kind: str, shape: tuple[int, ...]) -> None:
    _, _, s, head = shape
    if form < 3 and head % 16:
        pytest.skip("H/N is whole fractals where axes are swapped")
    dtype = {"half": np.float16, "float": np.float32}[kind]
    x = np.random.default_rng(1).uniform(-9, 9, shape).astype(dtype)
    source, expected = result_of(form, x)
    space = (16 if form < 3 else 32) * s * x.itemsize
    found = transpose(f"{form}_{kind}", [source], [np.zeros_like(expected)], shape, space)[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(16, 16), (48, 32), (16, 272)])
@pytest.mark.parametrize("name", ["7_half", "7_float", "old"])
def test_matrices(transpose: Calls, name: str, shape: tuple[int, int]) -> None:
    dtype = np.float32 if name == "7_float" else np.float16
    x = np.random.default_rng(1).uniform(-9, 9, shape).astype(dtype)
    found = transpose(name, [x], [np.zeros(shape[::-1], dtype)], [*shape, 0, 0], 32)[0]
    np.testing.assert_array_equal(found, x.T)


def test_too_little_temporary_space_is_refused(transpose: Calls) -> None:
    x = np.zeros((1, 1, 1, 16, 16), np.float16)
    with pytest.raises(KernelFault, match="temporary space is smaller than its tiling"):
        transpose("3_half", [x], [x], [1, 1, 16, 16], 512)


HOST = """
#include <cstdio>

#include "tiling/tiling_api.h"

int main() {
  uint32_t most = 0, least = 0;
  const ge::Shape heads({1, 2, 64, 32}), matrix({48, 32});
  AscendC::GetTransposeMaxMinTmpSize(heads, 2, 1, most, least);
  std::printf("%u ", least);
  AscendC::GetConfusionTransposeMaxMinTmpSize(heads, 4, 6, most, least);
  std::printf("%u ", least);
  optiling::ConfusionTransposeTiling tiling;
  AscendC::GetTransposeTilingInfo(heads, least, 2, 1, tiling);
  std::printf("%u %u %zu ", tiling.get_param3(), tiling.get_param4(), tiling.GetDataSize());
  AscendC::GetConfusionTransposeOnlyTilingInfo(matrix, 0, 4, tiling);
  std::printf("%u %u", tiling.get_param1(), tiling.get_param2());
}
"""


def test_the_host_names_space_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "host.cpp").write_text(HOST)
    library = emulator.library_path().parent
    compiler = shutil.which("c++") or "g++"
    headers = ("-std=c++17", "-isystem", str(emulator.include_dir()))
    linked = ("-L", str(library), "-lopkit_emulator", f"-Wl,-rpath,{library}")
    subprocess.run(
        [compiler, *headers, "host.cpp", "-o", "host", *linked], cwd=tmp_path, check=True
    )
    ran = subprocess.run([tmp_path / "host"], capture_output=True, text=True, check=True)
    # 16 and 32 columns of 64 rows; 18 words, as public samples size the struct.
    assert ran.stdout.split() == ["2048", "8192", "64", "32", "72", "48", "32"]
