"""A C++ program that links td's classes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.emulator import include_dir, library_path
from opkit.toolchain import find_compiler
from opkit.toolchain.flags import chip_macros

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def linked(source: Path, target: Path, *options: str) -> Path:
    """Compile a source against td and link it to the emulator."""
    library = library_path()
    argv = [*find_compiler().argv, "-std=c++17", "-g", "-Wall", "-Wextra", "-Werror", *options]
    argv += [str(source), "-I", str(include_dir()), "-o", str(target), str(library)]
    subprocess.run([*argv, f"-Wl,-rpath,{library.parent}"], check=True)
    return target


@pytest.mark.slow
def test_a_program_uses_every_class(tmp_path: Path) -> None:
    program = linked(HERE / "program.cpp", tmp_path / "program")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("right\n"), done.stdout + done.stderr
    if shutil.which("addr2line"):
        place = r"copy waits for event \d at \S*program.cpp:\d+, which compute"
        assert re.search(place, done.stdout)


SHARED = """
#include "td/operator_registry.h"
struct Sum : td::NpuOpImpl {
  std::string refuse(const td::TensorArgs& inputs) const override {
    return inputs.size() == 2 && inputs[0].rank == 1 ? "" : "it takes two vectors";
  }
  void execute(const td::TensorArgs& in, const td::TensorArgs& out,
               const td::OpAttributes& attrs) override {
    const double alpha = static_cast<double>(attrs.find("alpha")->int_value);
    for (int64_t i = 0; i < in[0].shape[0]; ++i) {
      static_cast<float*>(out[0].data)[i] = static_cast<float>(
          static_cast<float*>(in[0].data)[i] + alpha * static_cast<float*>(in[1].data)[i] + 1000);
    }
  }
};
REGISTER_OPERATOR("aten::add.out", Sum, 0, "", 0);
"""

SCRIPT = """
import ctypes, sys, torch
from opkit.torch_npu.build import kernel_library
from opkit.torch_npu.native import load
load().opkit_npu_kernels(str(kernel_library()).encode())
x = torch.ones(4, device="npu")
assert (x + x).cpu().tolist() == [2.0] * 4
ctypes.CDLL(sys.argv[1])
assert torch.add(x, x, alpha=3).cpu().tolist() == [1004.0] * 4
assert "Sum (type table" in torch.npu.which(torch.add, x, x)
assert (x.half() + x.half()).cpu().tolist() == [2.0] * 4  # of another type
y = torch.ones(2, 2, device="npu")
assert (y + y).cpu().tolist() == [[2.0, 2.0], [2.0, 2.0]]  # refused: two dims
from opkit.optimisers import registered_operators
rows = registered_operators("aten::add.out")
assert [row.name for row in rows][0] == "Sum" and rows[0].file.endswith("shared.cpp"), rows
assert len(rows) == 2
"""


@pytest.mark.torch
def test_torch_calls_what_a_program_registers(tmp_path: Path) -> None:
    import sys

    source = tmp_path / "shared.cpp"
    source.write_text(SHARED, encoding="utf-8")
    library = linked(source, tmp_path / "libshared.so", "-shared", "-fPIC")
    argv = [sys.executable, "-c", SCRIPT, str(library)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_shipped_kernels_are_compiled_as_the_toolchain_compiles() -> None:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    for macro in chip_macros(find_chip(DEFAULT_CHIP)):
        assert macro.removeprefix("-D") in text
    options = re.search(r"target_compile_options\(\${target} PRIVATE (.*?)\)", text)
    assert options is not None
    assert set(options[1].split()) == {"-O2", "-ffp-contract=off", "-fno-strict-aliasing", "-Wall"}
