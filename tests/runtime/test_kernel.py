"""Launching images: on arrays, on memory that others own, from C++; and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator, runtime, toolchain
from opkit.errors import KernelFault, UsageError

TEXT = """#include "kernel_operator.h"
using namespace AscendC;
struct Numbers { uint32_t count; float by; };
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, Numbers numbers) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 4096);
  GlobalTensor<float> source, target;
  source.SetGlobalBuffer((__gm__ float*)x);
  target.SetGlobalBuffer((__gm__ float*)y);
  auto local = buffer.Get<float>();
  DataCopy(local, source, numbers.count);
  PipeBarrier<PIPE_ALL>();
  Muls(local, local, numbers.by, numbers.count);
  PipeBarrier<PIPE_ALL>();
  DataCopy(target, local, numbers.count);
}
extern "C" __global__ __aicore__ void key(GM_ADDR x) {
  ((__gm__ uint32_t*)x)[0] = TILING_KEY_IS(7) ? 7 : 1;
}
extern "C" __global__ __aicore__ void branches(GM_ADDR x) {
  GlobalTensor<uint32_t> target;
  target.SetGlobalBuffer((__gm__ uint32_t*)x);
  if (TILING_KEY_IS(7)) {
    target.SetValue(0, 7);
  } else if (TILING_KEY_IS(1007)) {
    target.SetValue(0, 1007);
  }
}
"""
NUMBERS = np.array([(64, 3)], np.dtype([("count", np.uint32), ("by", np.float32)]))[0]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> toolchain.KernelImage:
    return toolchain.compile_kernel(TEXT, cache_dir=tmp_path_factory.mktemp("cache"))


def test_arrays_are_written_in_place_and_structs_go_by_value(image: toolchain.KernelImage) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    result = runtime.Kernel(image, "scale").launch([x, y, NUMBERS])
    np.testing.assert_array_equal(y, 3 * x)
    assert (result.kernel, result.block_dim) == ("scale", 1)
    assert result.instructions > 0


def test_memory_that_somebody_else_owns_is_used_where_it_lies(
    image: toolchain.KernelImage,
) -> None:
    memory = np.arange(128, dtype=np.float32)
    x = runtime.DeviceMemory(memory.ctypes.data, 256)
    y = runtime.DeviceMemory(memory.ctypes.data + 256, 256)
    runtime.Kernel(image, "scale").launch([x, y, NUMBERS.tobytes()])
    np.testing.assert_array_equal(memory[64:], 3 * memory[:64])


def test_a_kernel_may_not_touch_more_than_it_is_given(image: toolchain.KernelImage) -> None:
    memory = np.arange(128, dtype=np.float32)
    short = runtime.DeviceMemory(memory.ctypes.data, 128)
    target = runtime.DeviceMemory(memory.ctypes.data + 256, 256)
    with pytest.raises(KernelFault) as caught:
        runtime.Kernel(image, "scale").launch([short, target, NUMBERS])
    assert caught.value.category == "OutOfBounds"


def test_a_tiling_key_reaches_the_kernel(image: toolchain.KernelImage) -> None:
    x = np.zeros(8, np.uint32)
    runtime.Kernel(image, "key").launch([x], tiling_key=7)
    assert x[0] == 7


def test_a_tiling_key_without_a_branch_is_a_fault(image: toolchain.KernelImage) -> None:
    # The outputs stayed as they were, and nothing said so.
    kernel = runtime.Kernel(image, "branches")
    x = np.zeros(8, np.uint32)
    kernel.launch([x], block_dim=3, tiling_key=1007)
    assert x[0] == 1007
    with pytest.raises(
        KernelFault, match=r"no branch for the tiling key 8 .* name 7, 1007"
    ) as told:
        kernel.launch([x], block_dim=3, tiling_key=8)
    assert "let the tiling function set one of these keys" in str(told.value)
    kernel.launch([x], tiling_key=7)
    assert x[0] == 7


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (None, 0, "has several kernels: say which of branches, key, scale"),
        ("missing", 0, 'has no kernel "missing"; it has: scale, key, branches'),
        ("scale", 2, "scale takes 3 arguments, not 2"),
        ("scale", 4, "argument 3 of scale has 8 bytes, not 4"),
        ("scale", 5, "must be C-contiguous"),
    ],
)
def test_a_wrong_call_is_refused(
    image: toolchain.KernelImage, name: str | None, arguments: int, message: str
) -> None:
    x = np.zeros(64, np.float32)
    calls = {2: [x, x], 4: [x, x, np.uint32(1)], 5: [x[::2], x, NUMBERS]}
    with pytest.raises(UsageError, match=message):
        runtime.Kernel(image, name).launch(calls.get(arguments, []))


def test_a_kernel_of_another_instruction_set_is_refused(image: toolchain.KernelImage) -> None:
    runtime.configure("Ascend310P3")
    with pytest.raises(UsageError, match="was compiled for Ascend910B2"):
        runtime.Kernel(image, "key").launch([np.zeros(8, np.uint32)])


def test_programs_launch_by_the_c_functions(image: toolchain.KernelImage, tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text(
        """#include <cstdio>
#include "opkit/kernel_call.h"
int main(int, char** argv) {
  opkit_kernel* kernel = nullptr;
  if (opkit_kernel_open(argv[1], "key", &kernel) != OPKIT_OK) return puts(opkit_last_error()), 1;
  unsigned x[8] = {};
  const opkit_kernel_argument argument = {x, sizeof x, 0};
  if (opkit_kernel_launch(kernel, &argument, 1, 1, 7) != OPKIT_OK) return 1;
  printf("%u\\n", x[0]);
  if (opkit_kernel_launch(kernel, nullptr, 0, 1, 7) != OPKIT_USAGE) return 1;
  return puts(opkit_last_error()), 0;
}
"""
    )
    library = emulator.library_path()
    program = tmp_path / "program"
    compiler = toolchain.find_compiler()
    flags = ["-std=c++17", f"-I{emulator.include_dir()}", f"-L{library.parent}"]
    rpath = f"-Wl,-rpath,{library.parent}"
    subprocess.run(
        [*compiler.argv, *flags, str(source), "-o", str(program), "-lopkit_emulator", rpath],
        check=True,
    )
    done = subprocess.run([program, image.library], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["7", "key takes 1 arguments, not 0"]
