"""Kernels that a program compiles or loads while it runs: aclrtc, aclrtBinaryLoad, aclrtLaunchKernel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.errors import SetupError
from opkit.toolchain import find_home, home_variables, parse_driver_arguments, run_driver

KERNELS = """
#include "kernel_operator.h"
#include "amount.h"
struct Step { int32_t add; int64_t times; };
extern "C" __global__ __vector__ void step(GM_ADDR data, int8_t only, Step s) {
  AscendC::GlobalTensor<int32_t> values;
  values.SetGlobalBuffer((__gm__ int32_t*)data);
  if (AscendC::GetBlockIdx() == only) values.SetValue(only, values.GetValue(only) * s.times + s.add);
}
namespace inner {
template <typename T, int N>
__global__ __mix__(1, 2) void fill(GM_ADDR data) {
  AscendC::GlobalTensor<T> values;
  values.SetGlobalBuffer((__gm__ T*)data);
  if ASCEND_IS_AIV { values.SetValue(AscendC::GetBlockIdx(), N + AMOUNT); }
}
__global__ __vector__ void hello() { printf("hello %d\\n", 7); }
}
"""

PROGRAM = """
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
#include "acl/acl.h"
#include "acl/acl_rt_compile.h"

#define SHOW(call) std::printf("%s: %d\\n", #call, static_cast<int>(call))
struct Step { int32_t add; int64_t times; };

int main(int, char** argv) {
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  const std::string source = text.str();
  const char* header = "constexpr int AMOUNT = 100;";
  const char* header_name = "amount.h";
  aclrtcProg program;
  if (aclrtcCreateProg(&program, source.c_str(), "kernels.asc", 1, &header, &header_name)) return 1;
  const char* expression = "inner::fill<int32_t, 5>";
  const char* name = nullptr;
  SHOW(aclrtcGetLoweredName(program, expression, &name));
  if (aclrtcAddNameExpr(program, expression)) return 2;
  const char* options[] = {"--npu-arch=dav-2201"};
  if (aclrtcCompileProg(program, 1, options)) return 3;
  SHOW(aclrtcAddNameExpr(program, "late"));
  size_t size = 0;
  if (aclrtcGetBinDataSize(program, &size)) return 4;
  std::vector<char> data(size);
  if (aclrtcGetBinData(program, data.data())) return 5;
  if (aclrtcGetLoweredName(program, expression, &name)) return 6;
  const char* spelled = nullptr;
  SHOW(aclrtcGetLoweredName(program, "inner::fill<int32_t,5>", &spelled));
  std::printf("lowered: %s\\n", name);

  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  void* device = nullptr;
  aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(device, 64, 0, 64);
  aclrtBinHandle binary, again;
  if (aclrtBinaryLoadFromData(data.data(), size, nullptr, &binary)) return 7;
  if (aclrtBinaryLoadFromData(data.data(), size, nullptr, &again)) return 8;
  std::printf("different libraries: %d\\n", binary != again);
  aclrtFuncHandle step, fill, hello;
  SHOW(aclrtBinaryGetFunction(binary, "no_such", &step));
  if (aclrtBinaryGetFunction(binary, "step", &step)) return 9;
  if (aclrtBinaryGetFunction(again, name, &fill)) return 10;
  if (aclrtBinaryGetFunction(again, "_ZN5inner5helloEv", &hello)) return 11;

  void* fill_arguments[] = {&device};
  if (aclrtLaunchKernelWithArgsArray(fill, 2, stream, nullptr, fill_arguments)) return 12;
  int8_t only = 1;
  Step values = {3, 10};
  aclrtArgsHandle list;
  aclrtParamHandle parameter;
  aclrtKernelArgsInit(step, &list);
  aclrtKernelArgsAppend(list, &device, 8, nullptr);
  SHOW(aclrtKernelArgsAppend(list, &values, sizeof(values), nullptr));
  aclrtKernelArgsAppend(list, &only, 1, nullptr);
  Step wrong = {0, 0};
  aclrtKernelArgsAppend(list, &wrong, sizeof(wrong), &parameter);
  aclrtKernelArgsParaUpdate(list, parameter, &values, sizeof(values));
  SHOW(aclrtLaunchKernelWithConfig(step, 2, stream, nullptr, list, nullptr));
  aclrtKernelArgsFinalize(list);
  if (aclrtLaunchKernelWithConfig(step, 2, stream, nullptr, list, nullptr)) return 13;
  // The launch has copied its arguments.
  values = {9, 9};
  struct { void* data; int8_t only; Step s; } packed = {device, 0, {7, 2}};
  void* packed_device = nullptr;
  aclrtMalloc(&packed_device, sizeof(packed), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(packed_device, sizeof(packed), &packed, sizeof(packed), ACL_MEMCPY_HOST_TO_DEVICE);
  if (aclrtLaunchKernel(step, 1, packed_device, sizeof(packed), stream)) return 14;
  SHOW(aclrtLaunchKernel(step, 1, &packed, sizeof(packed), stream));
  SHOW(aclrtLaunchKernel(step, 1, packed_device, sizeof(packed) - 8, stream));
  if (aclrtLaunchKernelWithArgsArray(hello, 1, stream, nullptr, nullptr)) return 15;
  if (aclrtSynchronizeStream(stream)) return 16;
  int32_t out[4];
  aclrtMemcpy(out, sizeof(out), device, sizeof(out), ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("values: %d %d %d %d\\n", out[0], out[1], out[2], out[3]);
  if (aclrtBinaryUnLoad(again)) return 17;
  SHOW(aclrtLaunchKernelWithArgsArray(fill, 2, stream, nullptr, fill_arguments));
  if (aclrtBinaryUnLoad(binary)) return 18;
  if (aclrtcDestroyProg(&program)) return 19;

  SHOW(aclrtcCreateProg(&program, "", nullptr, -1, nullptr, nullptr));
  if (aclrtcCreateProg(&program, "__global__ void broken( {", nullptr, 0, nullptr, nullptr)) return 20;
  SHOW(aclrtcCompileProg(program, 0, nullptr));
  aclrtcGetCompileLogSize(program, &size);
  std::string log(size, ' ');
  aclrtcGetCompileLog(program, log.data());
  std::printf("log names its place: %d\\n", log.find("default_program:1") != std::string::npos);
  return 0;
}
"""

EXPECTED = """\
aclrtcGetLoweredName(program, expression, &name): 176006
aclrtcAddNameExpr(program, "late"): 176005
aclrtcGetLoweredName(program, "inner::fill<int32_t,5>", &spelled): 176007
lowered: _ZN5inner4fillIiLi5EEEvPh
different libraries: 1
aclrtBinaryGetFunction(binary, "no_such", &step): 107000
aclrtKernelArgsAppend(list, &values, sizeof(values), nullptr): 107000
aclrtLaunchKernelWithConfig(step, 2, stream, nullptr, list, nullptr): 107000
aclrtLaunchKernel(step, 1, &packed, sizeof(packed), stream): 107000
aclrtLaunchKernel(step, 1, packed_device, sizeof(packed) - 8, stream): 107000
[AIV Block 0/1] hello 7
values: 217 1053 105 105
aclrtLaunchKernelWithArgsArray(fill, 2, stream, nullptr, fill_arguments): 107000
aclrtcCreateProg(&program, "", nullptr, -1, nullptr, nullptr): 176001
aclrtcCompileProg(program, 0, nullptr): 176003
log names its place: 1
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    try:
        emulator.library_path()
    except SetupError:
        pytest.skip("the emulator is not built")
    home = find_home(cache_dir=tmp_path_factory.mktemp("cache"))
    return {**os.environ, **home_variables(home, os.environ)}


def build(folder: Path, text: str) -> Path:
    source, program = folder / "main.cpp", folder / "demo"
    source.write_text(text)
    run_driver(parse_driver_arguments([str(source), "-O0", "-o", str(program)]))
    return program


def test_kernels_compiled_at_run_time_launch_in_every_way(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "kernels.asc").write_text(KERNELS)
    program = build(tmp_path, PROGRAM)
    done = subprocess.run(
        [str(program), str(tmp_path / "kernels.asc")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXPECTED
    assert 'there is no kernel "no_such"; there is:' in done.stderr
    assert "argument 2 of step has 1 bytes, and 16 are given" in done.stderr
    assert "the arguments of step take 32 bytes, and there are 24" in done.stderr


LOADS_A_FILE = """
#include <cstdio>
#include "acl/acl.h"
int main(int, char** argv) {
  aclrtSetDevice(0);
  aclrtBinHandle binary;
  if (const aclError error = aclrtBinaryLoadFromFile(argv[1], nullptr, &binary)) return error != 107000;
  aclrtFuncHandle function;
  if (aclrtBinaryGetFunction(binary, "hello", &function)) return 2;
  if (aclrtLaunchKernelWithArgsArray(function, 3, nullptr, nullptr, nullptr)) return 3;
  return aclrtSynchronizeStream(nullptr);
}
"""


def test_a_kernel_library_is_built_by_the_driver_and_loaded_by_its_name(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "k.asc").write_text(
        '#include <cstdio>\n#include "kernel_operator.h"\n'
        'extern "C" __global__ __cube__ void hello() { printf("on a cube core\\n"); }\n'
    )
    words = ["--kernel-library", str(tmp_path / "k.asc"), "-o", str(tmp_path / "k.so")]
    run_driver(parse_driver_arguments(words))
    program = build(tmp_path, LOADS_A_FILE)
    done = subprocess.run(
        [str(program), "k.so"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # <cstdio> declares a printf too: the kernel's is meant.
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"[AIC Block {block}/3] on a cube core" for block in range(3)]
    wrong = subprocess.run(
        [str(program), str(emulator.library_path())], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 0
    assert 'build it with "opkit cc --kernel-library"' in wrong.stderr
