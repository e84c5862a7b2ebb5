"""Functions of the high-level library that are a few vector instructions each, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR z) {
  using T = %(type)s;
  constexpr uint32_t count = %(count)d;
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 32768);
  GlobalTensor<T> source, out;
  source.SetGlobalBuffer((__gm__ T*)x, count);
  out.SetGlobalBuffer((__gm__ T*)z, count);
  LocalTensor<T> a = memory.GetWithOffset<T>(count, 0), c = memory.GetWithOffset<T>(count, 8192);
  LocalTensor<uint8_t> space = memory.GetWithOffset<uint8_t>(%(space)d, 16384);
  DataCopyPad(a, source, {1, count * sizeof(T), 0, 0, 0}, {false, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(out, c, {1, count * sizeof(T), 0, 0, 0});
}
"""
TYPES = {"half": np.float16, "float": np.float32}


def call(compile_kernel, body: str, x: np.ndarray, *, space: int = 2048) -> np.ndarray:
    kind = next(name for name, dtype in {**TYPES, "int32_t": np.int32}.items() if x.dtype == dtype)
    values = {"type": kind, "count": x.size, "body": body, "space": space}
    z = np.zeros_like(x)
    compile_kernel(KERNEL % values)(x, z)
    return z


def away_from_zero(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(0.5, x))


ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Trunc": np.trunc,
    "Round": away_from_zero,
    "Sign": np.sign,
}


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_rounding_and_sign_are_exact_in_every_call_form(compile_kernel, kind: str) -> None:
    smallest = np.finfo(TYPES[kind]).smallest_subnormal
    x = np.concatenate([np.arange(-40, 40) / 4, [smallest, -smallest, np.inf, -np.inf, 0]])
    x = x.astype(TYPES[kind])
    for name, reference in ROUNDINGS.items():
        forms = ["(c, a, space, count)", "(c, a, count)"]
        forms += ["(c, a, space)", "(c, a)"] if name in ("Trunc", "Sign") else []
        # One kernel a function: each form overwrites what the one before has left.
        checked = [
            f"Duplicate(c, (T)9, count); PipeBarrier<PIPE_V>(); {name}{form};" for form in forms
        ]
        for body in (checked[0], "".join(checked)):
            np.testing.assert_array_equal(call(compile_kernel, body, x), reference(x), err_msg=name)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_logarithms_and_sigmoid_are_within_a_few_ulp(compile_kernel, kind: str) -> None:
    x = np.linspace(0.01, 60, 200).astype(TYPES[kind])
    exact = x.astype(np.float64)
    cases = {
        "Log": np.log,
        "Log2": np.log2,
        "Log10": np.log10,
        "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    }
    for name, reference in cases.items():
        found = call(compile_kernel, f"{name}(c, a, count);", x).astype(np.float64)
        expected = reference(exact)
        limit = 4 * np.spacing(np.abs(expected).astype(TYPES[kind])).astype(np.float64)
        assert np.all(np.abs(found - expected) <= np.maximum(limit, 1e-7)), name


def test_small_temporary_space_means_parts_and_less_than_a_repeat_is_refused(
    compile_kernel,
) -> None:
    x = (np.arange(700) / 8).astype(np.float16)
    found = call(compile_kernel, "Floor(c, a, space, count);", x, space=1024)
    np.testing.assert_array_equal(found, np.floor(x))
    with pytest.raises(KernelFault, match="smaller than one repeat"):
        call(compile_kernel, "Floor(c, a, space, count);", x, space=224)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [5, 8, 300])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float16])
def test_arange_counts_up(compile_kernel, dtype: type[np.generic], count: int) -> None:
    x = np.zeros(count, dtype)
    found = call(compile_kernel, "ArithProgression(c, (T)-3, (T)2, count);", x)
    np.testing.assert_array_equal(found, np.arange(count) * 2 - 3)


def test_init_global_memory_fills_what_it_is_given(compile_kernel) -> None:
    text = """
    extern "C" __global__ __aicore__ void kernel(GM_ADDR z) {
      TPipe pipe;
      GlobalTensor<float> out;
      out.SetGlobalBuffer((__gm__ float*)z, 70);
      InitGlobalMemory(out, 65, 2.5f);
    }
    """
    z = np.zeros(70, np.float32)
    compile_kernel(text)(z)
    np.testing.assert_array_equal(z, [2.5] * 65 + [0] * 5)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_a_chip_without_rounding_casts_rounds_by_way_of_integers(
    compile_kernel, default_device: None, kind: str
) -> None:
    from opkit.emulator import _emulator

    _emulator.configure(**{**_emulator.configuration(), "chip": "Ascend310P3"})
    dtype = TYPES[kind]
    # The documents limit this chip to what an int32_t holds.
    largest = 2147483520 if kind == "float" else 65504
    x = np.concatenate([np.arange(-30, 31) / 4, [largest, -largest, 0]]).astype(dtype)
    # This chip has no DataCopyPad.
    text = re.sub(r"DataCopyPad\((\w+), (\w+), [^;]*;", r"DataCopy(\1, \2, count);", KERNEL)
    for name, reference in ROUNDINGS.items():
        body = f"Duplicate(c, (T)9, count); PipeBarrier<PIPE_V>(); {name}(c, a, space, count);"
        z = np.zeros_like(x)
        values = {"type": kind, "count": x.size, "body": body, "space": 2048}
        compile_kernel(text % values, arch=2002)(x, z)
        np.testing.assert_array_equal(z, reference(x), err_msg=name)
