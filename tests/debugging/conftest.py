"""A small kernel, recorded once, whole and with bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit.debugging import Debugger, Session, Target, recording
from opkit.errors import KernelFault
from opkit.sanitizer import Check

TILE = 64
ADD = """
template <typename T>
class AddKernel {{
 public:
  __aicore__ void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z) {{
    xGlobal.SetGlobalBuffer((__gm__ T*)x);
    yGlobal.SetGlobalBuffer((__gm__ T*)y);
    zGlobal.SetGlobalBuffer((__gm__ T*)z);
    pipe.InitBuffer(xQueue, 2, 64 * sizeof(T));
    pipe.InitBuffer(yQueue, 2, 64 * sizeof(T));
    pipe.InitBuffer(zQueue, 2, 64 * sizeof(T));
  }}
  __aicore__ void Process() {{
    for (int tile = 0; tile < 4; ++tile) {{
      const int offset = (GetBlockIdx() * 4 + tile) * 64;
      CopyIn(offset);
      Compute();
      CopyOut(offset);
    }}
  }}

 private:
  __aicore__ void CopyIn(int offset) {{
    LocalTensor<T> xLocal = xQueue.AllocTensor<T>();
    LocalTensor<T> yLocal = yQueue.AllocTensor<T>();
    DataCopy(xLocal, xGlobal[offset{shift_in}], {count_in});
    DataCopy(yLocal, yGlobal[offset], 64);
    {enque}
    yQueue.EnQue(yLocal);
  }}
  __aicore__ void Compute() {{
    LocalTensor<T> xLocal = xQueue.DeQue<T>();
    LocalTensor<T> yLocal = yQueue.DeQue<T>();
    LocalTensor<T> zLocal = zQueue.AllocTensor<T>();
    Add(zLocal, xLocal, yLocal, 64);
    Muls(zLocal, zLocal, (T)2, 64);
    zQueue.EnQue(zLocal);
    {free}
    yQueue.FreeTensor(yLocal);
  }}
  __aicore__ void CopyOut(int offset) {{
    LocalTensor<T> zLocal = zQueue.DeQue<T>();
    DataCopy(zGlobal[offset], zLocal, {count_out});
    zQueue.FreeTensor(zLocal);
  }}

  TPipe pipe;
  TQue<TPosition::VECIN, 2> xQueue, yQueue;
  TQue<TPosition::VECOUT, 2> zQueue;
  GlobalTensor<T> xGlobal, yGlobal, zGlobal;
}};

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z) {{
  AddKernel<float> op;
  op.Init(x, y, z);
  op.Process();
}}
"""
WHOLE = {
    "shift_in": "",
    "count_in": "64",
    "enque": "xQueue.EnQue(xLocal);",
    "free": "xQueue.FreeTensor(xLocal);",
    "count_out": "64",
}
BLOCKS = 2
COUNT = BLOCKS * 4 * TILE


@pytest.fixture(scope="session")
def record(compile_kernel: Callable[..., Any]) -> Callable[..., Debugger]:
    """Return a function that launches the kernel with a bug and gives a debugger for it."""

    def launch(**changes: str) -> Debugger:
        kernel = compile_kernel(ADD.format(**{**WHOLE, **changes}))
        x = np.arange(COUNT, dtype=np.float32)
        y = np.ones(COUNT, np.float32)
        z = np.zeros(COUNT, np.float32)
        watch = Check()
        with recording() as recorder:
            try:
                with watch:
                    kernel(x, y, z, block_dim=BLOCKS)
            except KernelFault:
                pass
        session = Session(recorder.launches[0])
        session.findings = watch.findings
        debugger = Debugger(Target("add", session, ()))
        debugger.z = z  # type: ignore[attr-defined]
        debugger.source = kernel.source  # type: ignore[attr-defined]
        return debugger

    return launch


@pytest.fixture
def debugger(record: Callable[..., Debugger]) -> Debugger:
    """The kernel without a bug."""
    return record()


@pytest.fixture
def line_of() -> Callable[[Debugger, str], int]:
    """Return a function that gives the source line with a text."""

    def find(debugger: Debugger, text: str) -> int:
        lines = debugger.source.read_text().splitlines()  # type: ignore[attr-defined]
        return next(number for number, line in enumerate(lines, 1) if text in line)

    return find
