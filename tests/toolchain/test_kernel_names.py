"""Kernels that share their name with a function of the C library, or of the device beside them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.toolchain import compile_kernel
from opkit.toolchain.driver import parse_driver_arguments, run_driver
from opkit.toolchain.source.kernel_names import linkage_edits, mark_overloaded
from opkit.toolchain.source.launch_rewrite import apply_edits, scan_kernels

SET = """
#include "kernel_operator.h"
__aicore__ inline void scale(AscendC::GlobalTensor<float> x, float by) { x.SetValue(0, by); }
%s __global__ %s void %s(GM_ADDR x) {
  AscendC::GlobalTensor<float> t;
  t.SetGlobalBuffer((__gm__ float*)x, 8);
  scale(t, 42.0f);
  AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::ENTIRE_DATA_CACHE>(t);
}
"""
PROGRAM = """
#include <cstdio>
#include "acl/acl.h"
int main() {
  float host[8] = {1};
  void* x;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtMalloc(&x, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
  pow<<<1, nullptr, nullptr>>>((uint8_t*)x);
  aclrtSynchronizeStream(nullptr);
  aclrtMemcpy(host, sizeof host, x, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%%g\\n", host[0]);
  scale<<<1, nullptr, nullptr>>>((uint8_t*)x);
  return aclrtSynchronizeStream(nullptr);
}
"""


def linked(text: str) -> str:
    return apply_edits(text, linkage_edits(text), file=Path("k.cpp")).text.partition("\n")[2]


def test_a_kernel_named_as_a_c_function_gets_the_linkage_of_cpp() -> None:
    assert linked('extern "C" __global__ void pow(GM_ADDR x) {}').startswith('extern "C++" __glob')
    assert linked('extern "C" {\n__global__ void exp(GM_ADDR x) {}\n}') == (
        'extern "C" {\nextern "C++" __global__ void exp(GM_ADDR x) {}\n}'
    )
    text = 'extern "C" __global__ void power(GM_ADDR x) {}'
    assert linked(text) == text


def test_a_kernel_beside_a_function_of_its_name_is_overloaded() -> None:
    text = SET % ("", "__vector__", "scale")
    (kernel,) = mark_overloaded(scan_kernels(text), [text])
    assert kernel.cast == "static_cast<void (*)(GM_ADDR x)>"
    called = "__global__ void add(GM_ADDR x) {}\nvoid host() { return add(1); }"
    (kernel,) = mark_overloaded(scan_kernels(called), [called])
    assert kernel.cast == ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["scale", "pow", "exp", "div", "fmax", "asinh", "round", "read"])
def test_such_a_kernel_is_compiled_and_found_in_its_table(name: str) -> None:
    # "conflicting declaration of C function", or a kernel that was taken for a template.
    linkage = "" if name == "scale" else 'extern "C"'
    x = np.zeros(8, np.float32)
    image = compile_kernel(SET % (linkage, "__aicore__", name))
    runtime.Kernel(image, name).launch([x], block_dim=1)
    assert x[0] == 42


def test_such_kernels_are_launched_by_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SET % ('extern "C"', "__vector__", "pow")
    kernel = "__global__ __vector__ void scale(GM_ADDR x) {}\n"
    Path("k.asc").write_text(text + kernel + PROGRAM % ())
    run_driver(parse_driver_arguments(["k.asc", "-o", "k"]))
    done = subprocess.run(["./k"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
