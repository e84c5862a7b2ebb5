"""Kernels start on the default device; one kernel can hold many small cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from opkit.sanitizer import Check

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
        """Return what the case, launched under every check, leaves of `z`: shape, dtype and first content are `z`'s."""
        operands = [np.ascontiguousarray(each).view(np.uint8).reshape(-1) for each in inputs]
        operands += [np.zeros(0, np.uint8)] * (3 - len(operands))
        out = np.ascontiguousarray(z).copy()
        sizes = [each.size for each in operands] + [out.nbytes]
        header = np.array([*sizes, space, self._names.index(name), *numbers], np.uint32)
        padded = [each if each.size else np.zeros(1, np.uint8) for each in operands]
        with Check(()) as checks:
            self._kernel(*padded, out.reshape(-1).view(np.uint8), header)
        assert not checks.findings
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


LOCAL_PLACES = 5
"""Inputs, and as many outputs, of functions that write several tensors."""
LOCAL_KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR i0, GM_ADDR i1, GM_ADDR i2, GM_ADDR i3, GM_ADDR i4, GM_ADDR o0,
                                             GM_ADDR o1, GM_ADDR o2, GM_ADDR o3, GM_ADDR o4, GM_ADDR settings) {
  // settings: bytes of inputs, bytes of outputs, bytes of temporary space, which call, and numbers for it.
  GlobalTensor<uint32_t> words;
  words.SetGlobalBuffer((__gm__ uint32_t*)settings, 64);
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  uint32_t total = words.GetValue(10);
  for (uint32_t i = 0; i < 10; ++i) total += (words.GetValue(i) + 31) / 32 * 32;
  pipe.InitBuffer(memory, total);
  LocalTensor<uint8_t> place[10];
  const GM_ADDR outside[10] = {i0, i1, i2, i3, i4, o0, o1, o2, o3, o4};
  uint32_t at = 0;
  for (uint32_t i = 0; i < 10; ++i) {
    const uint32_t bytes = words.GetValue(i);
    place[i] = memory.GetWithOffset<uint8_t>((bytes + 31) / 32 * 32, at);
    at += (bytes + 31) / 32 * 32;
    if (bytes == 0) continue;
    GlobalTensor<uint8_t> global;
    global.SetGlobalBuffer((__gm__ uint8_t*)outside[i], bytes);
    DataCopyPad(place[i], global, DataCopyExtParams{1, bytes, 0, 0, 0},
                DataCopyPadExtParams<uint8_t>{true, 0, static_cast<uint8_t>((32 - bytes % 32) % 32), 0});
  }
  PipeBarrier<PIPE_ALL>();
  const LocalTensor<uint8_t> space = memory.GetWithOffset<uint8_t>(words.GetValue(10), at);
  const auto number = [&](uint32_t i) { return words.GetValue(12 + i); };
  switch (words.GetValue(11)) {
CASES
  }
  PipeBarrier<PIPE_ALL>();
  for (uint32_t i = 5; i < 10; ++i) {
    const uint32_t bytes = words.GetValue(i);
    if (bytes == 0) continue;
    GlobalTensor<uint8_t> global;
    global.SetGlobalBuffer((__gm__ uint8_t*)outside[i], bytes);
    DataCopyPad(global, place[i], DataCopyExtParams{1, bytes, 0, 0, 0});
  }
}
"""


class LocalCalls:
    """Kernels that call functions on local tensors: arrays in, arrays out, one compilation.

    The calls' text has the tensors IN(type, index) and OUT(type, index), the LocalTensor<uint8_t> `space` and
    number(index).
    """

    def __init__(
        self,
        compile_kernel: Callable[..., Callable[..., object]],
        calls: Mapping[str, str],
        prologue: str = "",
    ) -> None:
        self._names = list(calls)
        cases = [f"    case {i}: {{ {text} break; }}" for i, text in enumerate(calls.values())]
        helpers = (
            "#define IN(type, i) place[i].ReinterpretCast<type>()\n"
            "#define OUT(type, i) place[5 + i].ReinterpretCast<type>()\n"
        )
        self._run = compile_kernel(
            helpers + prologue + LOCAL_KERNEL.replace("CASES", "\n".join(cases))
        )

    def __call__(
        self,
        name: str,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        numbers: Sequence[int] = (),
        space: int = 16384,
    ) -> list[np.ndarray]:
        """Return what the outputs hold afterwards; what they hold before is there when the call begins."""
        nothing = np.zeros(32, np.uint8)
        results = [np.ascontiguousarray(array).copy() for array in outputs]
        words = np.zeros(64, np.uint32)
        for i, array in enumerate(inputs):
            words[i] = array.nbytes
        for i, array in enumerate(results):
            words[LOCAL_PLACES + i] = array.nbytes
        words[10], words[11] = space, self._names.index(name)
        words[12 : 12 + len(numbers)] = numbers
        given = [np.ascontiguousarray(array) for array in inputs]
        given += [nothing] * (LOCAL_PLACES - len(given))
        wanted = [*results, *[nothing] * (LOCAL_PLACES - len(results))]
        self._run(*[a.view(np.uint8) for a in given], *[a.view(np.uint8) for a in wanted], words)
        return results


@pytest.fixture(scope="session")
def local_calls(
    compile_kernel: Callable[..., Callable[..., object]],
) -> Callable[[Mapping[str, str], str], LocalCalls]:
    """Return a function that compiles calls of functions on local tensors into one kernel."""

    def compile_calls(calls: Mapping[str, str], prologue: str = "") -> LocalCalls:
        return LocalCalls(compile_kernel, calls, prologue)

    return compile_calls


@pytest.fixture(autouse=True)
def default_device() -> Iterator[None]:
    """Start every test on the default configuration and leave it so."""
    from opkit.emulator import _emulator

    initial = _emulator.configuration()
    yield
    _emulator.configure(**initial)
