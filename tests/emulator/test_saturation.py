"""The saturation modes that a kernel can choose, and what they change."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  using S = %(source)s;
  using D = %(destination)s;
  GlobalTensor<S> in;
  GlobalTensor<D> out;
  in.SetGlobalBuffer((__gm__ S*)x, 64);
  out.SetGlobalBuffer((__gm__ D*)y, 64);
  LocalTensor<S> a(TPosition::VECIN, 0, 64), work(TPosition::VECCALC, 4096, 64);
  LocalTensor<D> c(TPosition::VECOUT, 8192, 64);
  DataCopy(a, in, 64);
  Duplicate(c.template ReinterpretCast<uint32_t>(), (uint32_t)0, 64 * sizeof(D) / 4);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, 64);
}
"""
TYPES = {
    "half": np.float16,
    "float": np.float32,
    "int16_t": np.int16,
    "int32_t": np.int32,
    "int64_t": np.int64,
}
LARGEST = np.float16(65504)


def run(compile_kernel, source: str, destination: str, body: str, x: list[float]) -> np.ndarray:
    text = KERNEL % {"source": source, "destination": destination, "body": body}
    values = np.zeros(64, TYPES[source])
    values[: len(x)] = x
    result = np.zeros(64, TYPES[destination])
    compile_kernel(text)(values, result)
    return result[: len(x)]


SOURCES = [60000.0, -60000.0, np.inf, np.nan, 3.0]
SATURATED = [LARGEST, -LARGEST, LARGEST, 0.0, 6.0]
INFINITE = [np.inf, -np.inf, np.inf, np.nan, 6.0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("", INFINITE),
        ("SetSaturationFlag<SaturationMode::FLOAT>(true);", SATURATED),
        ("SetSaturationFlag<SaturationMode::FLOAT>(false);", INFINITE),
        ("AscendCUtils::SetOverflow(0);", SATURATED),
        ("AscendCUtils::SetOverflow(0); SetCtrlSpr<48, 48>(1);", INFINITE),
    ],
)
def test_a_half_result_saturates_only_while_its_mode_is_on(
    compile_kernel, switch: str, expected: list[float]
) -> None:
    body = f"{switch} Muls(c, a, (half)2, 64);"
    np.testing.assert_array_equal(run(compile_kernel, "half", "half", body, SOURCES), expected)


def test_masks_and_casts_saturate_alike(compile_kernel) -> None:
    body = """
      SetSaturationFlag<SaturationMode::FLOAT>(true);
      uint64_t odd[2] = {0xaaaaaaaaaaaaaaaaull, 0};
      Cast(c, a, RoundMode::CAST_NONE, odd, 1, {1, 1, 4, 8});
    """
    actual = run(compile_kernel, "float", "half", body, [1e6, 1e6, -1e6, -1e6, 1.0, 1.5])
    np.testing.assert_array_equal(actual, [0, LARGEST, 0, -LARGEST, 0, 1.5])


def test_the_modes_can_be_read_back(compile_kernel) -> None:
    body = """
      c.SetValue(0, GetCtrlSpr<48, 48>());
      c.SetValue(1, GetSaturationFlag<SaturationMode::FLOAT>());
      c.SetValue(2, GetSaturationFlag<SaturationMode::CAST>());
      AscendCUtils::SetOverflow(0);
      SetSaturationFlag<SaturationMode::CAST>(false);
      c.SetValue(3, GetCtrlSpr<48, 48>());
      c.SetValue(4, GetSaturationFlag<SaturationMode::FLOAT>());
      c.SetValue(5, GetSaturationFlag<SaturationMode::CAST>());
    """
    actual = run(compile_kernel, "int32_t", "int32_t", body, [0] * 6)
    np.testing.assert_array_equal(actual, [1, 0, 1, 0, 1, 0])


CAST_OFF = "SetSaturationFlag<SaturationMode::CAST>(false);"


@pytest.mark.parametrize(
    ("source", "values", "mode"),
    [
        ("float", [70000.0, -70000.4, 1e9, 5.5, -1.5], "CAST_RINT"),
        ("half", [65504.0, -40000.0, 32768.0, 2.5, -2.5], "CAST_FLOOR"),
        ("int32_t", [70000, -70000, 2**31 - 1, -(2**31), 5], "CAST_NONE"),
    ],
)
def test_without_saturation_a_cast_keeps_the_low_bits(
    compile_kernel, source: str, values: list[float], mode: str
) -> None:
    body = f"{CAST_OFF} Cast(c, a, RoundMode::{mode}, 64);"
    actual = run(compile_kernel, source, "int16_t", body, values)
    rounding = np.floor if mode == "CAST_FLOOR" else np.rint
    whole = rounding(np.array(values, dtype=TYPES[source]).astype(np.float64)).astype(np.int64)
    np.testing.assert_array_equal(actual, whole.astype(np.int16))


def test_what_the_documents_leave_open_without_saturation_faults(compile_kernel) -> None:
    body = f"{CAST_OFF} Cast(c, a, RoundMode::CAST_RINT, 64);"
    with pytest.raises(KernelFault, match="which bits are left of inf") as caught:
        run(compile_kernel, "float", "int16_t", body, [np.inf])
    assert caught.value.category == "Unspecified"


def test_a_sum_of_halves_that_saturates_is_refused(compile_kernel) -> None:
    body = "AscendCUtils::SetOverflow(0); ReduceSum(c, a, work, 64);"
    with pytest.raises(KernelFault, match="ReduceSum of half while results saturate"):
        run(compile_kernel, "half", "half", body, [1.0])
