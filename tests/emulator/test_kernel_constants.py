"""Headers of host code in a kernel's translation unit, which begins with the constants of the preprocessor."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.toolchain import find_compiler

KERNEL = """
#include "{header}"
#include "register/tilingdata_base.h"
#include "kernel_operator.h"
#if DT_FLOAT16 != 1 || !defined(FORMAT_ND)
#error "the constants are gone"
#endif
struct Tiling {{ int64_t length = 0; }};
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {{ AscendC::PipeBarrier<PIPE_ALL>(); }}
"""


@pytest.mark.parametrize(
    "header", ["register/op_impl_registry.h", "register/op_def_registry.h", "tiling/tiling_api.h"]
)
def test_a_header_that_registers_declares_nothing_in_a_kernel(tmp_path: Path, header: str) -> None:
    """Its enumerations of data types met the constants of the same names: nothing compiled."""
    source = tmp_path / "kernel.cpp"
    source.write_text('#include "opkit/kernel_constants.h"\n' + KERNEL.format(header=header))
    flags = ["-std=c++17", "-fsyntax-only", "-D__CCE_AICORE__=220"]
    command = [*find_compiler().argv, *flags, "-I", str(emulator.include_dir()), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_half_has_its_name_before_any_header_of_the_kernels(tmp_path: Path) -> None:
    # Public kernels name types in a header that includes nothing, before they include the API.
    source = tmp_path / "kernel.cpp"
    source.write_text(
        '#include "opkit/kernel_constants.h"\n'
        "using Fast = half;\nusing Wide = bfloat16_t;\n"
        '#include "kernel_operator.h"\n'
        "using AscendC::ONE_FOURTH_DEFAULT_REPEAT_STRIDE, AscendC::HALF_DEFAULT_REPEAT_STRIDE;\n"
        "static_assert(ONE_FOURTH_DEFAULT_REPEAT_STRIDE == 2 && HALF_DEFAULT_REPEAT_STRIDE == 4);\n"
        "static_assert(AscendC::UFMode2 == 2 && AscendC::UFMode3 == 3);\n"
        "static_assert(sizeof(Fast) == 2 && sizeof(Wide) == 2);\n"
    )
    flags = ["-std=c++17", "-fsyntax-only", "-D__CCE_AICORE__=220"]
    command = [*find_compiler().argv, *flags, "-I", str(emulator.include_dir()), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
