"""Kernels with words of the vendor's compiler, and where their lines are."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from opkit import runtime
from opkit.toolchain import build, compile_kernel, load_project
from opkit.toolchain.source.kernel_unit import kernel_source

WEIGHTED = Path(__file__).parent / "data" / "weighted"
KEYED = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR tiling) {
  if constexpr (TILING_KEY_IS(3)) {
    *(__gm__ int32_t*)x = 30;
  } else if constexpr (TILING_KEY_IS(4) || TILING_KEY_LIST(5, 6)) {
    *(__gm__ int32_t*)x = 40;
  } else if constexpr (sizeof(int) == 4) {
    AscendC::GlobalTensor<int32_t> target;
    target.SetGlobalBuffer((__gm__ int32_t*)x);
    target.SetValue(0, 1);
  }
}
"""


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_h", ".h").replace("_cpp", ".cpp")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_branches_by_the_tiling_key_may_be_constexpr(tmp_path: Path) -> None:
    # Each key is an image of its own for the vendor, and the condition a constant.
    kernel = runtime.Kernel(compile_kernel(KEYED, cache_dir=tmp_path))
    x = np.zeros(8, dtype=np.int32)
    found = []
    for key in (3, 4, 6, 9):
        kernel.launch([x, None], tiling_key=key)
        found.append(int(x[0]))
    assert found == [30, 40, 40, 1]


def test_a_source_that_says_nothing_special_is_included(tmp_path: Path) -> None:
    write(tmp_path, op_kernel__k_cpp='#include "k.h"\n', op_kernel__k_h="int x;\n")
    source = tmp_path / "op_kernel" / "k.cpp"
    assert kernel_source(source, tmp_path, ()) == '#include "op_kernel/k.cpp"\n'


def test_an_edited_header_stands_in_the_place_of_its_directive(tmp_path: Path) -> None:
    write(
        tmp_path,
        op_kernel__k_cpp='#include "near.h"\n#include "../common/a.h" // both\nint last;\n',
        op_kernel__near_h="int near;\n",
        common__a_h='#pragma once\n#include "b.h"\n#include <far.h>\n',
        common__b_h="#define __aicore__ [aicore]\n",
        far__far_h='#include "../common/a.h"\n',
    )
    source = tmp_path / "op_kernel" / "k.cpp"
    text = kernel_source(source, tmp_path, (tmp_path / "far",))
    # far.h includes what includes it.
    assert text.split("\n") == [
        '#line 1 "op_kernel/k.cpp"',
        '#include "op_kernel/near.h"',
        "#ifndef OPKIT_ONCE_0",
        "#define OPKIT_ONCE_0",
        '#line 1 "common/a.h"',
        "",
        '#line 1 "common/b.h"',
        "#define __aicore__  ",
        "",
        '#line 2 "common/a.h"',
        "",
        '#line 1 "far/far.h"',
        "",
        "",
        '#line 3 "common/a.h"',
        "",
        "",
        "#endif",
        "",
        '#line 2 "op_kernel/k.cpp"',
        " // both",
        "int last;",
        "",
        '#line 1 "behind op_kernel/k.cpp"',
        "",
    ]


def test_a_header_may_define_the_word_before_device_functions_anew(tmp_path: Path) -> None:
    # Everything behind the macro was "expected unqualified-id before '['".
    root = tmp_path / "weighted"
    shutil.copytree(WEIGHTED, root)
    kernel = root / "op_kernel" / "weighted_sum.cpp"
    text = kernel.read_text().replace("float sum =", "float sum = shifted(0.0f) - 1 +")
    kernel.write_text(text.replace('"kernel_operator.h"', '"shift.h"'))
    (kernel.parent / "shift.h").write_text(
        '#ifndef SHIFT_H\n#define SHIFT_H\n#include "kernel_operator.h"\n'
        "#define __aicore__ [aicore]\n"
        "__aicore__ inline float shifted(float x) { return x + 1; }\n#endif\n"
    )
    parts = [np.arange(6, dtype=np.float32), np.full(6, 10, dtype=np.float32)]
    library = runtime.open(build(load_project(root)).folder)
    (result,) = library.run("WeightedSum", [parts], {"factor": 0.5, "offsets": [[7]]})
    np.testing.assert_array_equal(result, 0.5 * (parts[0] + parts[1]) + 7)


def test_a_function_template_is_found_where_its_arguments_are_declared(tmp_path: Path) -> None:
    # Clang finds it in C++17 too, and GCC said that it was not declared.
    root = tmp_path / "weighted"
    shutil.copytree(WEIGHTED, root)
    kernel = root / "op_kernel" / "weighted_sum.cpp"
    text = kernel.read_text().replace("float sum =", "float sum = shifted<false>(far::One{}) - 1 +")
    far = "namespace far { struct One {}; template <bool B> float shifted(One) { return 1; } }\n"
    using = "using namespace AscendC;\n"
    kernel.write_text(text.replace(using, using + far))
    parts = [np.arange(6, dtype=np.float32), np.full(6, 10, dtype=np.float32)]
    library = runtime.open(build(load_project(root)).folder)
    (result,) = library.run("WeightedSum", [parts], {"factor": 0.5, "offsets": [[7]]})
    np.testing.assert_array_equal(result, 0.5 * (parts[0] + parts[1]) + 7)
