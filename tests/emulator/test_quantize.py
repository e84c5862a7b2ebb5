"""AscendDequant, AscendQuant and AscendAntiQuant against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

TYPES = {"half": np.float16, "float": np.float32, "bfloat16_t": np.uint16}


def encode(values: np.ndarray, kind: str) -> np.ndarray:
    """Round to the kernel's type once; bfloat16_t as its bits."""
    if kind != "bfloat16_t":
        return values.astype(TYPES[kind])
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def decode(values: np.ndarray, kind: str) -> np.ndarray:
    if kind != "bfloat16_t":
        return values.astype(np.float32)
    return (values.astype(np.uint32) << 16).view(np.float32)


SHAPE = "DequantParams{number[0], number[1], number[2]}"
DEQUANT_PAIRS = [("half", "uint64_t")] + [
    (to, scale) for to in ("float", "bfloat16_t") for scale in ("float", "bfloat16_t")
]
DEQUANT = {
    f"{to} {scale} {form}": f"AscendDequant(Z({to}), X(int32_t), {arguments});"
    for to, scale in DEQUANT_PAIRS
    for form, arguments in (
        ("vector space", f"Y({scale}), space, {SHAPE}"),
        ("vector", f"Y({scale}), {SHAPE}"),
        ("scalar space", f"Y({scale}).GetValue(0), space, {SHAPE}"),
        ("scalar", f"Y({scale}).GetValue(0), {SHAPE}"),
        ("old space count", f"Y({scale}), space, number[0]"),
        ("old", f"Y({scale})"),
    )
    if scale != "uint64_t" or "scalar" not in form
}
DEQUANT["float float rows"] = (
    "AscendDequant<float, float, DeQuantMode::DEQUANT_WITH_MULTI_ROW>"
    f"(Z(float), X(int32_t), Y(float), space, {SHAPE});"
)


@pytest.fixture(scope="module")
def dequant(compile_cases):
    return compile_cases(DEQUANT)


def scales_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors as the kernel takes them, and as float32."""
    values = (np.random.default_rng(7).random(count) * 0.02 - 0.01).astype(np.float32)
    if kind == "uint64_t":
        control = np.uint64(0xABCD << 46)
        return values.view(np.uint32).astype(np.uint64) | control, values
    given = encode(values, kind)
    return given, decode(given, kind)


@pytest.mark.parametrize(("to", "scale"), DEQUANT_PAIRS)
@pytest.mark.parametrize(
    ("m", "n", "count"), [(4, 8, 6), (3, 1024, 1000), (24, 64, 64), (1, 16, 5)]
)
def test_dequant_multiplies_columns_and_rounds_once(dequant, to, scale, m, n, count) -> None:
    x = np.random.default_rng(1).integers(-100000, 100000, (m, n), np.int32)
    given, factors = scales_of(scale, n)
    row = -(-n // (32 // np.dtype(TYPES[to]).itemsize)) * (32 // np.dtype(TYPES[to]).itemsize)
    z = np.zeros((m, row), TYPES[to])
    forms = (
        ("vector space", "vector")
        if scale == "uint64_t"
        else ("vector space", "vector", "scalar space", "scalar")
    )
    for form in forms:
        used = factors[:1] if "scalar" in form else factors[:count]
        expected = encode(x[:, :count].astype(np.float32) * used, to)
        for space in (2048, 8192):
            actual = dequant(
                f"{to} {scale} {form}", z, x, given, numbers=(m, n, count), space=space
            )
            np.testing.assert_array_equal(actual[:, :count], expected, err_msg=form)


def test_the_documents_example_of_dequant(dequant) -> None:
    x = np.arange(-16, 16, dtype=np.int32).reshape(4, 8)
    scale = np.array([2.2, -2.2, 2.2, -2.2, 2.2, -2.2, 0, 0], np.float32)
    z = dequant(
        "float float vector space", np.zeros((4, 8), np.float32), x, scale, numbers=(4, 8, 6)
    )
    expected = x.astype(np.float32)
    expected[:, :6] *= scale[:6]
    np.testing.assert_array_equal(z, expected)


def test_one_row_of_several_times_the_factors_is_several_rows(dequant) -> None:
    x = np.arange(16, dtype=np.int32)
    scale = np.array([2, 3, 4, 5, 6, 7, 8, 9], np.float32)
    z = dequant("float float vector space", np.zeros(16, np.float32), x, scale, numbers=(1, 16, 8))
    np.testing.assert_array_equal(z, x * np.tile(scale, 2))
    z = dequant("float float rows", np.zeros(16, np.float32), x, scale, numbers=(1, 16, 8))
    np.testing.assert_array_equal(z, x * np.r_[scale, np.ones(8)])


def test_older_forms_of_dequant_repeat_the_factors(dequant) -> None:
    x = np.arange(96, dtype=np.int32)
    for to, scale in DEQUANT_PAIRS:
        given, factors = scales_of(scale, 32)
        z = dequant(f"{to} {scale} old", np.zeros(96, TYPES[to]), x, given)
        expected = encode(x.astype(np.float32) * np.tile(factors, 3), to)
        np.testing.assert_array_equal(z, expected)
        z = dequant(
            f"{to} {scale} old space count", np.zeros(96, TYPES[to]), x, given, numbers=(64,)
        )
        np.testing.assert_array_equal(z[:64], expected[:64])
        assert (z[64:] == 0).all()


def test_dequant_names_what_is_wrong(dequant) -> None:
    x, scale = np.zeros((2, 64), np.int32), np.zeros(128, np.float32)
    z = np.zeros((2, 64), np.float32)
    with pytest.raises(KernelFault, match="calCount 1 to n"):
        dequant("float float vector", z, x, scale, numbers=(2, 64, 65))
    with pytest.raises(KernelFault, match="more than deqScale has"):
        dequant("float float vector", z, x, scale[:8], numbers=(2, 64, 16))
    with pytest.raises(KernelFault, match="temporary space"):
        dequant("bfloat16_t float vector space", z, x, scale, numbers=(2, 64, 64), space=128)


QUANT = {
    f"{kind} {form}": f"AscendQuant(Z(int8_t), X({kind}), {arguments});"
    for kind in ("half", "float")
    for form, arguments in (
        ("tensor space count", "space, Y(float).GetValue(0), W(float).GetValue(0), number[0]"),
        ("tensor space", "space, Y(float).GetValue(0), W(float).GetValue(0)"),
        ("tensor count", "Y(float).GetValue(0), W(float).GetValue(0), number[0]"),
        ("tensor", "Y(float).GetValue(0), W(float).GetValue(0)"),
        ("mixed space count", f"space, Y({kind}), W({kind}).GetValue(0), number[1], number[0]"),
        ("mixed space", f"space, Y({kind}), W({kind}).GetValue(0)"),
        ("mixed count", f"Y({kind}), W({kind}).GetValue(0), number[1], number[0]"),
        ("mixed", f"Y({kind}), W({kind}).GetValue(0)"),
        ("channel space count", f"space, Y({kind}), W({kind}), number[1], number[1], number[0]"),
        ("channel space", f"space, Y({kind}), W({kind})"),
        ("channel count", f"Y({kind}), W({kind}), number[1], number[1], number[0]"),
        ("channel", f"Y({kind}), W({kind})"),
    )
}
QUANT["in place"] = "AscendQuant(Z(int8_t), Z(half), space, 0.5f, 1.0f, number[0]);"
QUANT["constant"] = (
    "static constexpr AscendQuantConfig config = {64, 0, 0, 4096};"
    "AscendQuant<half, false, config>(Z(int8_t), X(half), space, 2.0f, 0.0f, number[0]);"
)


@pytest.fixture(scope="module")
def quant(compile_cases):
    return compile_cases(QUANT)


def quantized(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
    product = (x.astype(np.float16) * scale.astype(np.float16)).astype(np.float16)
    total = (product + offset.astype(np.float16)).astype(np.float16)
    return np.clip(np.rint(total.astype(np.float64)), -128, 127).astype(np.int8)


@pytest.mark.parametrize("kind", ["half", "float"])
@pytest.mark.parametrize(("rows", "columns"), [(4, 64), (3, 1024), (1, 32)])
def test_quant_computes_in_half_and_rounds_to_even(
    quant, kind: str, rows: int, columns: int
) -> None:
    rng = np.random.default_rng(2)
    dtype = TYPES[kind]
    x = (rng.standard_normal((rows, columns)) * 60).astype(dtype)
    scales = (rng.random(columns) + 0.5).astype(dtype)
    offsets = (rng.random(columns) * 8 - 4).astype(dtype)
    z = np.zeros((rows, columns), np.int8)
    one = {"tensor": (scales[:1].astype(np.float32), offsets[:1].astype(np.float32))}
    for form in QUANT:
        if not form.startswith(f"{kind} "):
            continue
        what = form.split()[1]
        given = one.get(what, (scales, offsets))
        expected = quantized(x, given[0], offsets[:1] if what == "mixed" else given[1])
        actual = quant(form, z, x, *given, numbers=(x.size, columns), space=1536)
        np.testing.assert_array_equal(actual, expected, err_msg=form)


def test_quant_in_place_with_a_tail_and_with_a_constant_count(quant) -> None:
    x = np.arange(-500, 500, dtype=np.float16)
    z = quant("in place", x, numbers=(999,), space=1536)
    expected = quantized(x, np.array(0.5), np.array(1.0))
    np.testing.assert_array_equal(z.view(np.int8)[:999], expected[:999])
    z = quant("constant", np.zeros(1000, np.int8), x, numbers=(1000,))
    np.testing.assert_array_equal(z[:64], quantized(x, np.array(2.0), np.array(0.0))[:64])
    assert (z[64:] == 0).all()


@pytest.mark.parametrize("form", ["mixed", "channel"])
def test_quant_names_counts_that_do_not_fit(quant, form: str) -> None:
    x, scale = np.ones((3, 64), np.float16), np.ones(64, np.float16)
    z = np.zeros((3, 64), np.int8)
    for counts in ((100, 64), (192, 96)):
        with pytest.raises(KernelFault, match=r"scaleCount is more than .* or does not divide"):
            quant(f"half {form} count", z, x, scale, scale, numbers=counts)


ANTI_SHAPE = "AntiQuantShapeInfo{number[1], number[2], number[1], number[2]}"
PACKED = {"int8_t": "X(int8_t)", "int4b_t": "X(uint8_t).ReinterpretCast<int4b_t>()"}
ANTI = {
    f"{source} {to} {form}": (
        f"AscendAntiQuant<{source}, {to}, {str(form.startswith('row')).lower()}>"
        f"(Z({to}), {PACKED[source]}, {arguments});"
    )
    for source in ("int8_t", "int4b_t")
    for to in ("half", "bfloat16_t")
    for form, arguments in (
        ("column space", f"Y({to}), W({to}), space, number[0], {ANTI_SHAPE}"),
        ("column", f"Y({to}), W({to}), number[0], {ANTI_SHAPE}"),
        ("column scale", f"W({to}), space, number[0], {ANTI_SHAPE}"),
        ("row space", f"Y({to}), W({to}), space, number[0], {ANTI_SHAPE}"),
        ("row scale", f"W({to}), space, number[0], {ANTI_SHAPE}"),
        ("tensor space", f"Y({to}).GetValue(0), W({to}).GetValue(0), space, number[0]"),
        ("tensor", f"Y({to}).GetValue(0), W({to}).GetValue(0), number[0]"),
        ("tensor scale", f"W({to}).GetValue(0), space, number[0]"),
    )
}


@pytest.fixture(scope="module")
def anti(compile_cases):
    return compile_cases(ANTI)


def packed(x: np.ndarray, source: str) -> np.ndarray:
    if source == "int8_t":
        return x
    nibbles = x.reshape(-1).view(np.uint8) & 15
    return nibbles[::2] | nibbles[1::2] << 4


def anti_quantized(x: np.ndarray, offset: np.ndarray, scale: np.ndarray, to: str) -> np.ndarray:
    if to == "half":
        return ((x.astype(np.float16) + offset) * scale).astype(np.float16)
    return encode((x.astype(np.float32) + decode(offset, to)) * decode(scale, to), to)


@pytest.mark.parametrize("source", ["int8_t", "int4b_t"])
@pytest.mark.parametrize("to", ["half", "bfloat16_t"])
@pytest.mark.parametrize("form", ["column", "row", "tensor"])
@pytest.mark.parametrize(
    ("k", "n", "groups"), [(64, 64, 1), (128, 128, 2), (128, 37, 1), (128, 19, 2)]
)
def test_anti_quant_adds_and_multiplies_by_group(anti, source, to, form, k, n, groups) -> None:
    if form == "column" and n % 64 != 0:
        n = 64
    rng = np.random.default_rng(5)
    shape = (n, k) if form == "row" else (k, n)
    x = (
        rng.integers(-8, 8, shape).astype(np.int8)
        if source == "int4b_t"
        else rng.integers(-128, 128, shape).astype(np.int8)
    )
    counts = {"column": (groups, n), "row": (n, groups), "tensor": (1, 1)}[form]
    offset = encode(rng.standard_normal(counts) * 3, to)
    scale = encode(rng.random(counts) + 0.5, to)
    repeats = (shape[0] // counts[0], shape[1] // counts[1])
    spread = [np.repeat(np.repeat(each, repeats[0], 0), repeats[1], 1) for each in (offset, scale)]
    z = np.zeros(shape, TYPES[to])
    numbers = (k, *counts)
    forms = [name for name in ANTI if name.startswith(f"{source} {to} {form}")]
    for name in forms:
        shift = np.zeros_like(spread[0]) if name.endswith("scale") else spread[0]
        expected = anti_quantized(x, shift, spread[1], to)
        actual = anti(name, z, packed(x, source), offset, scale, numbers=numbers, space=8192)
        np.testing.assert_array_equal(actual, expected, err_msg=name)


def test_anti_quant_names_what_is_wrong(anti) -> None:
    x, scale, z = (
        np.zeros((64, 64), np.int8),
        np.zeros(64, np.float16),
        np.zeros((64, 64), np.float16),
    )
    with pytest.raises(KernelFault, match="src is not k by n"):
        anti("int8_t half column space", z, x, scale, scale, numbers=(63, 1, 64))
    with pytest.raises(KernelFault, match="GetAscendAntiQuantMaxMinTmpSize"):
        anti("int8_t half column space", z, x, scale, scale, numbers=(64, 1, 64), space=256)
