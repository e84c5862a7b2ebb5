"""The SPM buffer: what UB has no room for waits in a workspace, or in L1 on Ascend310P."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.emulator import _emulator
from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR workspace, GM_ADDR y) {
  GlobalTensor<half> in, out, spill;
  in.SetGlobalBuffer((__gm__ half*)x, 256);
  out.SetGlobalBuffer((__gm__ half*)y, 256);
  spill.SetGlobalBuffer((__gm__ half*)workspace, 256);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 512);
  LocalTensor<half> local = buffer.Get<half>();
  %(init)s
  DataCopy(local, in, 256);
  PipeBarrier<PIPE_ALL>();
  %(write)s
  PipeBarrier<PIPE_ALL>();
  Duplicate(local, half(0), 256);
  PipeBarrier<PIPE_ALL>();
  %(read)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, local, 256);
}
"""
IN_WORKSPACE = "pipe.InitSpmBuffer(spill, 512);"
IN_L1 = "pipe.InitSpmBuffer(512);"
BLOCKS = "DataCopyParams(2, 2, 1, 1), 192"


def run(compile_kernel, arch: int, init: str, write: str, read: str) -> np.ndarray:
    x, workspace, y = np.arange(256).astype(np.float16), *np.zeros((2, 256), np.float16)
    text = KERNEL % {"init": init, "write": write, "read": read}
    compile_kernel(text, arch=arch)(x, workspace, y)
    return y


@pytest.fixture
def on_310p() -> None:
    _emulator.configure(**{**_emulator.configuration(), "chip": "Ascend310P3"})


def check_both_forms(compile_kernel, arch: int, init: str) -> None:
    calls = "pipe.%sSpmBuffer(local, 64, 32); pipe.%sSpmBuffer(local[128], %s);"
    y = run(
        compile_kernel,
        arch,
        init,
        calls % ("Write", "Write", BLOCKS),
        calls % ("Read", "Read", BLOCKS),
    )
    expected = np.zeros(256, np.float16)
    expected[:64] = np.arange(64)
    for first in (128, 176):  # two runs of two blocks, a block apart
        expected[first : first + 32] = np.arange(first, first + 32)
    np.testing.assert_array_equal(y, expected)


def test_what_is_written_to_a_workspace_is_read_back(compile_kernel) -> None:
    check_both_forms(compile_kernel, 2201, IN_WORKSPACE)


@pytest.mark.usefixtures("on_310p")
def test_what_is_written_to_l1_is_read_back(compile_kernel) -> None:
    check_both_forms(compile_kernel, 2002, IN_L1)


@pytest.mark.parametrize(
    ("init", "write", "text"),
    [
        (IN_L1, "", "on this chip it takes a workspace"),
        ("", "pipe.WriteSpmBuffer(local, 64);", "call InitSpmBuffer before"),
        (IN_WORKSPACE, "pipe.WriteSpmBuffer(local, 64, 400);", "reaches behind what InitSpmBuffer"),
        (IN_WORKSPACE, "pipe.WriteSpmBuffer(local, 64, -32);", "reaches behind what InitSpmBuffer"),
    ],
)
def test_a_buffer_used_outside_its_rules_faults(compile_kernel, init, write, text) -> None:
    with pytest.raises(KernelFault, match=text):
        run(compile_kernel, 2201, init, write, "")
