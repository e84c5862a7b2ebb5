"""Kernels with words of the vendor's compiler, and where their lines are."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import BuildError
from opkit.toolchain import build, compile_kernel, load_project
from opkit.toolchain.building.imports import undefined_names
from opkit.toolchain.source.included import source_files
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


def test_headers_of_a_text_are_edited_as_those_of_a_project(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Only the text itself was: this compiled by opkit build and not at run time. And a plain printf
    # of <cstdio> printed as a kernel's does by opkit cc alone, else as the host's, with no core.
    head = "  if constexpr (TILING_KEY_IS(3)) {"
    body = KEYED.replace("#include", "#pragma once\n#include <cstdio>\n#include")
    (tmp_path / "keyed.h").write_text(body.replace(head, f'  printf("key %d\\n", 7);\n{head}'))
    image = compile_kernel('#include "keyed.h"\n', kernels=["kernel"], include_dirs=[tmp_path])
    x = np.zeros(8, dtype=np.int32)
    runtime.Kernel(image).launch([x, None], tiling_key=3)
    assert x[0] == 30
    assert "key 7" in capfd.readouterr().out
    assert "_ZN5opkit12is_in_kernelEv" in undefined_names(image.library.read_bytes())


def test_a_name_in_angle_brackets_is_looked_for_in_the_folders_alone(tmp_path: Path) -> None:
    # A file called as a header of the language, beside a kernel, took that header's place.
    write(tmp_path, k_cpp="#include <vector.h>\n", vector_h="#define __aicore__ [aicore]\n")
    assert kernel_source(tmp_path / "k.cpp", tmp_path, ()) == '#include "k.cpp"\n'
    assert "vector.h" in kernel_source(tmp_path / "k.cpp", tmp_path, (tmp_path,))


def test_a_name_behind_a_link_leads_where_the_compiler_goes(tmp_path: Path) -> None:
    write(tmp_path, far__deep__a_h='#include "../b.h"\n', far__b_h="int b;\n", k_cpp="")
    (tmp_path / "near").symlink_to(tmp_path / "far" / "deep")
    (tmp_path / "k.cpp").write_text('#include "near/../b.h"\n')
    ((_, source), (found, _)) = source_files(tmp_path / "k.cpp", ()).items()
    assert found == (tmp_path / "far" / "b.h").resolve()
    assert source.includes[0].name == "near/../b.h"


def test_a_header_that_cannot_be_read_is_an_error_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, k_cpp='#include "k.h"\n', k_h="int x;\n")
    read = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path.name == "k.h":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(BuildError, match=r"k\.h: cannot be read: Permission denied"):
        kernel_source(tmp_path / "k.cpp", tmp_path, ())


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
