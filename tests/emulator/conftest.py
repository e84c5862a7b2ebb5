"""Kernels start on the default device; one kernel can hold many small cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

AREA = 32768
"""Bytes of UB for each operand of a case."""

KERNEL = """
template <typename T> LocalTensor<T> operand(uint32_t index, uint32_t bytes) {
  auto tensor = LocalTensor<uint8_t>(TPosition::VECCALC, index * %(area)d, %(area)d).ReinterpretCast<T>();
  tensor.SetSize(bytes / sizeof(T));
  return tensor;
}
#define X(T) operand<T>(0, n[0])
#define Y(T) operand<T>(1, n[1])
#define W(T) operand<T>(2, n[2])
#define Z(T) operand<T>(3, n[3])
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR w, GM_ADDR z, GM_ADDR numbers) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 5 * %(area)d);
  const auto* n = reinterpret_cast<const uint32_t*>(numbers);
  GM_ADDR global[4] = {x, y, w, z};
  for (uint32_t i = 0; i < 4; ++i) {
    GlobalTensor<uint8_t> source;
    source.SetGlobalBuffer(global[i], n[i]);
    if (n[i] > 0) DataCopyPad(operand<uint8_t>(i, n[i]), source, {1, n[i], 0, 0, 0}, {false, 0, 0, 0});
  }
  PipeBarrier<PIPE_ALL>();
  LocalTensor<uint8_t> space(TPosition::VECCALC, 4 * %(area)d, n[4]);
  const uint32_t* number = n + 6;
  (void)number;
  switch (n[5]) {
%(cases)s
  }
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<uint8_t> out;
  out.SetGlobalBuffer(z, n[3]);
  DataCopyPad(out, operand<uint8_t>(3, n[3]), {1, n[3], 0, 0, 0});
}
"""


class Cases:
    """Calls the cases of one compiled kernel by name."""

    def __init__(self, kernel: Callable[..., object], names: list[str]) -> None:
        self._kernel = kernel
        self._names = names

    def __call__(
        self,
        name: str,
        z: np.ndarray,
        *inputs: np.ndarray,
        space: int = 4096,
        numbers: tuple[int, ...] = (),
    ) -> np.ndarray:
        """Return what the case leaves of `z`: shape and dtype as `z`, whose content it starts with."""
        operands = [np.ascontiguousarray(each).view(np.uint8).reshape(-1) for each in inputs]
        operands += [np.zeros(0, np.uint8)] * (3 - len(operands))
        out = np.ascontiguousarray(z).copy()
        sizes = [each.size for each in operands] + [out.nbytes]
        header = np.array([*sizes, space, self._names.index(name), *numbers], np.uint32)
        padded = [each if each.size else np.zeros(1, np.uint8) for each in operands]
        self._kernel(*padded, out.reshape(-1).view(np.uint8), header)
        return out


@pytest.fixture(scope="session")
def compile_cases(
    compile_kernel: Callable[..., Callable[..., object]],
) -> Callable[[Mapping[str, str]], Cases]:
    """Return a function that compiles the statements of many cases into one kernel.

    The statements see the operands in UB as X(type), Y(type), W(type) and Z(type), the result; `space`, temporary
    bytes of UB; and number[i], what the call gives as `numbers`.
    """

    def compile_text(cases: Mapping[str, str]) -> Cases:
        text = "\n".join(
            f"    case {i}: {{ {body} break; }}" for i, body in enumerate(cases.values())
        )
        return Cases(compile_kernel(KERNEL % {"area": AREA, "cases": text}), list(cases))

    return compile_text


@pytest.fixture(autouse=True)
def default_device() -> Iterator[None]:
    """Start every test on the default configuration and leave it so."""
    from opkit.emulator import _emulator

    initial = _emulator.configuration()
    yield
    _emulator.configure(**initial)
