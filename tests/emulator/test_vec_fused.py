"""Fused casts, dequantisation, registers, Copy in counter mode, Select by the compare register."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  using S = %(source)s;
  using D = %(destination)s;
  GlobalTensor<S> in0, in1;
  GlobalTensor<D> out;
  in0.SetGlobalBuffer((__gm__ S*)x, 512);
  in1.SetGlobalBuffer((__gm__ S*)y, 512);
  out.SetGlobalBuffer((__gm__ D*)z, 1024);
  LocalTensor<S> a(TPosition::VECIN, 0, 512), b(TPosition::VECIN, 4096, 512);
  LocalTensor<D> c(TPosition::VECOUT, 8192, 1024);
  LocalTensor<S> work(TPosition::VECCALC, 12288, 512);
  LocalTensor<uint64_t> scales(TPosition::VECCALC, 16384, 16);
  uint64_t some[2] = {0x5555555555555555ull, 0x0f0f0f0f0f0f0f0full};
  DataCopy(a, in0, 512);
  DataCopy(b, in1, 512);
  Duplicate(c.template ReinterpretCast<uint32_t>(), (uint32_t)0, 1024 * sizeof(D) / 4);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, 1024);
}
"""
TYPES = {
    "half": np.float16,
    "float": np.float32,
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int16_t": np.int16,
    "int32_t": np.int32,
}


def run(compile_kernel, body: str, source: str, destination: str, x, y) -> np.ndarray:
    kernel = compile_kernel(KERNEL % {"source": source, "destination": destination, "body": body})
    z = np.zeros(1024, dtype=TYPES[destination])
    kernel(x, y, z)
    return z


def operands(kind: str, scale: float = 40.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    x, y = (rng.normal(size=512) * scale for _ in range(2))
    x[:4], y[:4] = (0.5, 1.5, 2.5, 100.5), (1.0, 1.0, 1.0, 1.0)
    return x.astype(TYPES[kind]), y.astype(TYPES[kind])


def to_type(values: np.ndarray, kind: str) -> np.ndarray:
    """Round to nearest even and saturate: Cast's CAST_NONE."""
    dtype = np.dtype(TYPES[kind])
    if dtype.kind == "f":
        return values.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.rint(values.astype(np.float64)), info.min, info.max).astype(dtype)


FORMULAS = {
    "AddReluCast": lambda x, y: np.maximum(x + y, 0).astype(x.dtype),
    "SubReluCast": lambda x, y: np.maximum(x - y, 0).astype(x.dtype),
    "MulCast": lambda x, y: x * y,
}
PAIRS = [
    *(
        (name, *pair)
        for name in ("AddReluCast", "SubReluCast")
        for pair in (("half", "int8_t"), ("int16_t", "int8_t"), ("float", "half"))
    ),
    ("MulCast", "half", "int8_t"),
    ("MulCast", "half", "uint8_t"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "source", "destination"), PAIRS)
def test_fused_casts_compute_then_convert_in_every_call_form(
    compile_kernel, name: str, source: str, destination: str
) -> None:
    x, y = operands(source)
    expected = to_type(FORMULAS[name](x, y), destination)
    lanes = 256 // x.itemsize
    stride = lanes * np.dtype(TYPES[destination]).itemsize // 32
    body = f"{name}(c, a, b, 300); {name}(c[512], a, b, some, 2, {{1, 1, 1, {stride}, 8, 8}});"
    z = run(compile_kernel, body, source, destination, x, y)
    np.testing.assert_array_equal(z[:300], expected[:300])
    assert not z[300:512].any()
    bits = np.unpackbits(
        np.array([0x5555555555555555, 0x0F0F0F0F0F0F0F0F], dtype=np.uint64).view(np.uint8),
        bitorder="little",
    )[:lanes]
    active = np.tile(bits, 2).astype(bool)
    got = z[512 : 512 + 2 * lanes]
    np.testing.assert_array_equal(got[active], expected[: 2 * lanes][active])
    assert not got[~active].any()


def test_add_deq_relu_scales_the_sum(compile_kernel) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-5000, 5000, 512).astype(np.int32) for _ in range(2))
    body = "SetDeqScale((half)0.125); AddDeqRelu(c, a, b, 512);"
    z = run(compile_kernel, body, "int32_t", "half", x, y)
    expected = np.maximum(((x + y).astype(np.float64) * 0.125).astype(np.float16), 0)
    np.testing.assert_array_equal(z[:512], expected)


@pytest.mark.parametrize("destination", ["int8_t", "uint8_t"])
@pytest.mark.parametrize("half_block", ["true", "false"])
def test_cast_dequant_fills_one_half_of_each_data_block(
    compile_kernel, destination: str, half_block: str
) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-300, 300, 512).astype(np.int16)
    sign = "true" if destination == "int8_t" else "false"
    body = f"SetDeqScale(0.25f, -3, {sign});CastDequant<D, S, false, {half_block}>(c, a, 500);"
    z = run(compile_kernel, body, "int16_t", destination, x, x)
    expected = np.zeros((32, 2, 16), dtype=TYPES[destination])
    values = to_type(x[:500] * 0.25 - 3, destination)
    expected[:, 1 if half_block == "true" else 0] = np.pad(values, (0, 12)).reshape(32, 16)
    np.testing.assert_array_equal(z.reshape(32, 2, 16), expected)


def test_cast_dequant_by_lane_takes_sixteen_parameters(compile_kernel) -> None:
    x = np.arange(-256, 256, dtype=np.int16)
    body = """float scale[16]; int16_t offset[16]; bool sign[16];
      for (int i = 0; i < 16; ++i) { scale[i] = 0.5f * i; offset[i] = i - 8; sign[i] = true; }
      SetDeqScale(scales, VdeqInfo(scale, offset, sign));
      CastDequant<D, S, true, true, true>(c, a, 128, 4, {1, 1, 8, 8});"""
    z = run(compile_kernel, body, "int16_t", "int8_t", x, x)
    lane = np.arange(512) % 16
    expected = to_type(x * (0.5 * lane) + lane - 8, "int8_t").reshape(32, 16)
    np.testing.assert_array_equal(z.reshape(32, 2, 16)[:, 1], expected)


def test_cast_dequant_of_int32_gives_halves(compile_kernel) -> None:
    x = np.arange(-256, 256, dtype=np.int32)
    body = "SetDeqScale((half)0.5); CastDequant(c, a, 512);"
    z = run(compile_kernel, body, "int32_t", "half", x, x)
    np.testing.assert_array_equal(z[:512], (x * 0.5).astype(np.float16))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("CastDequant<D, S, false, true>(c, a, 64);", "needs SetDeqScale"),
        ("SetDeqScale((half)1.0); CastDequant<D, S, false, true>(c, a, 64);", "needs SetDeqScale"),
        (
            "SetDeqScale(1.0f, 0, false); CastDequant<D, S, false, true>(c, a, 64);",
            "signMode does not match",
        ),
    ],
)
def test_cast_dequant_without_its_own_parameters_faults(compile_kernel, body, text) -> None:
    x = np.zeros(512, dtype=np.int16)
    with pytest.raises(KernelFault, match=text) as caught:
        run(compile_kernel, body, "int16_t", "int8_t", x, x)
    assert caught.value.category == "IllegalOperand"


def test_registers_hold_what_reductions_gave(compile_kernel) -> None:
    x, y = operands("float")
    x[77] = 1e6
    body = """ReduceSum(c, a, work, 512);
      c.SetValue(8, GetReduceRepeatSumSpr<float>());
      c.SetValue(9, GetAccVal<float>());
      uint64_t bits = GetAccVal();
      c.SetValue(13, *reinterpret_cast<float*>(&bits));
      float value = 0, index = 0;
      ReduceRepeat<ReduceType::MAX>(c[64], a, 64, 8, 1, 1, 8);
      GetReduceRepeatMaxMinSpr<float>(value, index);
      c.SetValue(10, value);
      c.SetValue(11, *reinterpret_cast<uint32_t*>(&index));
      ReduceMin(c[128], a, work, 512);
      GetReduceMaxMinCount<float>(value, index);
      c.SetValue(12, value);"""
    z = run(compile_kernel, body, "float", "float", x, y)
    assert z[8] == z[9] == z[13] == z[0]
    assert (z[10], z[11], z[12]) == (1e6, 77, x.min())


def test_copy_in_counter_mode_counts_in_each_repeat(compile_kernel) -> None:
    x, y = operands("float")
    body = "SetMaskCount(); Copy(c, a, (uint64_t)20, 3, {1, 1, 8, 4}); SetMaskNorm();"
    z = run(compile_kernel, body, "float", "float", x, y)
    expected = np.zeros(192, dtype=np.float32)
    for repeat in range(3):
        expected[64 * repeat : 64 * repeat + 20] = x[32 * repeat : 32 * repeat + 20]
    np.testing.assert_array_equal(z[:192], expected)


@pytest.mark.parametrize("kind", ["half", "float"])
@pytest.mark.parametrize("mode", ["scalar", "tensor"])
def test_select_finds_its_operands_through_the_compare_register(
    compile_kernel, kind: str, mode: str
) -> None:
    x, y = operands(kind)
    lanes = 256 // x.itemsize
    start = """LocalTensor<uint16_t> bits(TPosition::VECCALC, 20480, 32);
      Compare(bits, a, b, CMPMODE::LT, 512);"""
    body = {
        "scalar": """Duplicate(work, (S)3.0f, 64);
          SetCmpMask(work);
          SetVectorMask<S>(256 / sizeof(S));
          Select(c, bits, a, 512 * sizeof(S) / 256, {1, 1, 1, 8, 8, 8});""",
        "tensor": """LocalTensor<int64_t> address = work.template ReinterpretCast<int64_t>();
          address.SetValue(0, (int64_t)bits.GetPhyAddr());
          SetCmpMask(address);
          SetVectorMask<S>(256 / sizeof(S));
          BinaryRepeatParams params(1, 1, 1, 8, 8, 8);
          Select<S, SELMODE::VSEL_TENSOR_TENSOR_MODE>(c, a, b, 512 * sizeof(S) / 256, params);""",
    }
    z = run(compile_kernel, start + body[mode], kind, kind, x, y)
    assert lanes in (64, 128)
    np.testing.assert_array_equal(z[:512], np.where(x < y, x, y if mode == "tensor" else 3))


def test_the_standard_librarys_names_compile_in_kernels(compile_kernel) -> None:
    x, y = operands("float")
    body = """static_assert(Std::is_same<S, float>::value && !Std::is_same_v<S, int>, "");
      c.SetValue(0, (float)Std::min(3, 4) + 10 * Std::max(5, 6));
      c.SetValue(1, Std::get<1>(Std::make_tuple(1.0f, 2.0f)));"""
    z = run(compile_kernel, body, "float", "float", x, y)
    assert list(z[:2]) == [63, 2]


def test_functions_on_scalars(compile_kernel) -> None:
    x, y = operands("float")
    body = """int k = 0;
      c.SetValue(k++, CountLeadingZero(0x0100000000000020ull));
      c.SetValue(k++, ScalarCountLeadingZero(0));
      c.SetValue(k++, CountBitsCntSameAsSignBit(0x0100000000000020ll));
      c.SetValue(k++, GetBitCount<1>(0xf0) + 100 * ScalarGetCountOfValue<0>(0xf0));
      c.SetValue(k++, GetSFFValue<1>(0x1000000000000100ull) + 10 * GetSFFValue<0>(~0ull));
      c.SetValue(k++, ScalarCast<float, int32_t, RoundMode::CAST_RINT>(2.5f));
      c.SetValue(k++, ScalarCast<float, int32_t, RoundMode::CAST_ROUND>(-2.5f));
      c.SetValue(k++, ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(-2.1f));
      c.SetValue(k++, ScalarCast<float, int32_t, RoundMode::CAST_CEIL>(-2.9f));
      c.SetValue(k++, Cast<float, half, RoundMode::CAST_ODD>(2049.5f));
      c.SetValue(k++, Cast<float, half, RoundMode::CAST_ODD>(1e6f));
      c.SetValue(k++, Cast((bfloat16_t)1.5f) + ToFloat(Cast(2.0f)));"""
    z = run(compile_kernel, body, "float", "float", x, y)
    assert list(z[:12]) == [7, 64, 6, 4 + 6000, 8 - 10, 2, -3, -3, -2, 2050, 65504, 3.5]
