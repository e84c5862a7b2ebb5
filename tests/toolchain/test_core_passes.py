"""Sources that the preprocessor asks for the kind of core: compiled once for each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.chips import all_architectures
from opkit.errors import BuildError
from opkit.toolchain import compile_kernel
from opkit.toolchain.driver import parse_driver_arguments, run_driver
from opkit.toolchain.source.core_passes import core_passes, pass_macros

# Classes of one name, as attention kernels of public libraries have them.
PARTS = """
#include "kernel_operator.h"
#ifdef __DAV_C220_CUBE__
struct Part { static constexpr float kValue = 1; };
#elif __DAV_C220_VEC__
struct Part { static constexpr float kValue = 2; };
#endif
__aicore__ inline void put(GM_ADDR x, int at, float value) {
  AscendC::GlobalTensor<float> t;
  t.SetGlobalBuffer((__gm__ float*)x, 64);
  t.SetValue(at * 16, value);
  AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::SINGLE_CACHE_LINE>(t[at * 16]);
}
"""
BOTH = (
    PARTS
    + """
extern "C" __global__ __mix__(1, 2) void both(GM_ADDR x) {
  if (AscendC::GetSubBlockIdx() == 0) put(x, g_coreType == AscendC::AIV, Part::kValue);
}
"""
)
ONE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void one(GM_ADDR x) {
#if __DAV_C220_VEC__
  AscendC::GlobalTensor<float> t;
  t.SetGlobalBuffer((__gm__ float*)x, 8);
  t.SetValue(0, 42);
  AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::ENTIRE_DATA_CACHE>(t);
#endif
}
"""
PROGRAM = (
    PARTS
    + """
#include <cstdio>
#include "acl/acl.h"
struct Counted { Counted() { std::printf("made\\n"); } };
static Counted counted;
template <typename T> __global__ __mix__(1, 2) void typed(GM_ADDR x, T by) {
  if (AscendC::GetSubBlockIdx() == 0) put(x, g_coreType == AscendC::AIV, Part::kValue * by);
}
static __global__ __mix__(1, 2) void plain(GM_ADDR x) {
  if (AscendC::GetSubBlockIdx() == 0) put(x, 2 + (g_coreType == AscendC::AIV), Part::kValue);
}
int main() {
  float host[64] = {0};
  void* x;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtMalloc(&x, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
  typed<<<1, nullptr, nullptr>>>((uint8_t*)x, 10.0f);
  auto pointer = plain;
  pointer<<<1, nullptr, nullptr>>>((uint8_t*)x);
  if (aclrtSynchronizeStream(nullptr) != ACL_SUCCESS) return 1;
  aclrtMemcpy(host, sizeof host, x, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%g %g %g %g\\n", host[0], host[16], host[32], host[48]);
}
"""
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("void k() {}\n", ()),
        ("// #ifdef __DAV_C220_VEC__\n", ()),
        ("#ifdef __DAV_C310_VEC__\n#endif\n", ()),
        ("#if defined(__DAV_VEC__)\n#endif\n", ("vector",)),
        ("#if A || \\\n  defined(__DAV_C220_CUBE__)\n#endif\n__cube__", ("cube",)),
        ("#ifdef __DAV_C220_CUBE__\n#endif\nKERNEL_TYPE_AIC_ONLY", ("cube",)),
        ("#ifdef __DAV_C220_CUBE__\n#endif\nKERNEL_TYPE_MIX_AIC_1_2", ("vector", "cube")),
        ("#ifdef __DAV_CUBE__\n#endif\nREGIST_MATMUL_OBJ", ("vector", "cube")),
        # A template's task types were no words of its: its cube branches were left out.
        ("#ifdef __DAV_CUBE__\n#endif\nKERNEL_TYPE_SEL(ASCENDC_TPL_AIC_ONLY)", ("cube",)),
        (
            "#ifdef __DAV_CUBE__\n#endif\nASCENDC_TPL_AIC_ONLY ASCENDC_TPL_MIX_AIC_1_2",
            ("vector", "cube"),
        ),
    ],
)
def test_a_text_that_asks_is_compiled_for_the_cores_it_runs_on(
    text: str, passes: tuple[str, ...]
) -> None:
    assert core_passes([text], 2201) == passes
    assert core_passes([text], 2002) == ()


def test_every_macro_is_defined_in_one_pass_only() -> None:
    for arch, row in all_architectures().items():
        kinds = row.core_macros
        for kind, names in kinds.items():
            options = pass_macros(kind, tuple(kinds), arch)
            assert [name for name in names if f"-D{name}=1" in options] == list(names)
            others = {name for other in kinds if other != kind for name in kinds[other]}
            assert not any(f"-D{name}=1" in options for name in others)


def test_a_body_for_the_vector_core_is_there() -> None:
    # It vanished: the kernel ran, wrote nothing, and nobody was told.
    x = np.zeros(8, np.float32)
    runtime.Kernel(compile_kernel(ONE)).launch([x], block_dim=1)
    assert x[0] == 42


def test_each_kind_of_core_runs_what_was_compiled_for_it() -> None:
    x = np.zeros(64, np.float32)
    runtime.Kernel(compile_kernel(BOTH)).launch([x], block_dim=1)
    assert (x[0], x[16]) == (1, 2)


def test_an_error_in_the_text_of_one_kind_is_an_error() -> None:
    text = BOTH.replace("kValue = 1", "kValue = absent")
    with pytest.raises(BuildError) as refused:
        compile_kernel(text)
    assert "absent" in refused.value.diagnostics[0].message


def test_a_program_launches_templates_and_pointers_of_both_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.asc").write_text(PROGRAM)
    run_driver(parse_driver_arguments(["k.asc", "-o", "k", "-MD", "-MF", "k.d"]))
    done = subprocess.run(["./k"], capture_output=True, text=True, check=False)
    # The host's own objects are made once: the text is compiled twice.
    assert done.stdout == "made\n10 20 1 2\n"
    assert done.returncode == 0, done.stderr
    assert Path("k.d").read_text().count("k.asc") >= 2


def test_a_program_whose_kernel_does_nothing_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An empty launch passed for one that worked.
    monkeypatch.chdir(tmp_path)
    text = PROGRAM.replace(
        "__mix__(1, 2) void plain(GM_ADDR x) {", "__vector__ void plain(GM_ADDR x) { return;"
    )
    Path("k.asc").write_text(text)
    run_driver(parse_driver_arguments(["k.asc", "-o", "k"]))
    done = subprocess.run(["./k"], capture_output=True, text=True, check=False)
    assert "warning: pointer has issued no instruction" in done.stderr
    assert "k.asc:" in done.stderr
