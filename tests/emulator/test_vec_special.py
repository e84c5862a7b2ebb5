"""Cast, Compare, Select, fills and reductions against NumPy and the documents, on every target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from opkit.errors import KernelFault

_emulator = pytest.importorskip("opkit.emulator._emulator")

TYPES = {
    "F16": np.float16,
    "F32": np.float32,
    "S8": np.int8,
    "U8": np.uint8,
    "S16": np.int16,
    "S32": np.int32,
    "S64": np.int64,
}
NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
LT, GT, EQ, LE, GE, NE = range(6)
PLACE = 4096


@pytest.fixture(autouse=True, params=_emulator.lane_targets())
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on one SIMD target."""
    _emulator.set_lane_target(request.param)
    yield request.param
    _emulator.set_lane_target("auto")


def run(
    op: str,
    dst: np.ndarray,
    dst_code: str,
    sources: list[tuple[np.ndarray, str]],
    strides: tuple[int, int] = (1, 8),
    source_strides: tuple[int, int] = (1, 8),
    **arguments: object,
) -> np.ndarray:
    """Return what the destination holds after one instruction; operands lie 4096 bytes apart."""
    memory = np.zeros(PLACE * (1 + len(sources)), dtype=np.uint8)
    memory[: dst.nbytes] = dst.view(np.uint8)
    operands = []
    for i, (array, code) in enumerate(sources, start=1):
        memory[i * PLACE : i * PLACE + array.nbytes] = array.view(np.uint8)
        operands.append((i * PLACE, code, *source_strides))
    _emulator.issue(op, memory, (0, dst_code, *strides), operands, **arguments)
    return memory[: dst.nbytes].copy().view(dst.dtype)


def cast(x: np.ndarray, source: str, destination: str, mode: int) -> np.ndarray:
    dst = np.zeros(x.size, dtype=TYPES[destination])
    return run("Cast", dst, destination, [(x, source)], count=x.size, mode=mode)


INTEGER_ROUNDINGS = {
    RINT: np.rint,
    FLOOR: np.floor,
    CEIL: np.ceil,
    ROUND: lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    TRUNC: np.trunc,
}


@pytest.mark.parametrize("mode", INTEGER_ROUNDINGS)
@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("F16", "S8"),
        ("F16", "U8"),
        ("F16", "S16"),
        ("F16", "S32"),
        ("F32", "S16"),
        ("F32", "S32"),
        ("F32", "S64"),
    ],
)
def test_a_cast_to_an_integer_rounds_by_its_mode_and_saturates(
    source: str, destination: str, mode: int
) -> None:
    values = [
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        0.49,
        -0.51,
        127.5,
        128.5,
        300,
        -300,
        40000,
        -40000,
        65504,
        -0.0,
    ]
    if source == "F32":
        values += [3e9, -3e9, 1e18, -1e18, 1e20, -1e20, np.inf, -np.inf, 2147483520.0, 0.49999997]
    x = np.array(values, dtype=TYPES[source])
    info = np.iinfo(TYPES[destination])
    rounded = [float(v) for v in INTEGER_ROUNDINGS[mode](x.astype(np.float64))]
    expected = [
        info.max if v >= info.max else info.min if v <= info.min else int(v) for v in rounded
    ]
    np.testing.assert_array_equal(cast(x, source, destination, mode), expected)


def test_a_cast_from_float_to_half_rounds_to_the_nearest_even_in_every_case() -> None:
    x = np.random.default_rng(3).integers(0, 2**32, 1000, dtype=np.uint32).view(np.float32)
    y = np.linspace(-1e-7, 1e-7, 24, dtype=np.float32)
    for values in (x, y):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                cast(values, "F32", "F16", RINT), values.astype(np.float16)
            )


@pytest.mark.parametrize("mode", [FLOOR, CEIL, ROUND, TRUNC, ODD])
def test_a_directed_cast_from_float_to_half_takes_the_neighbour_that_its_mode_names(
    mode: int,
) -> None:
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [rng.normal(size=300), rng.normal(size=300) * 1e-6, rng.normal(size=300) * 1e4]
    )
    x = x.astype(np.float32)
    x = x[np.abs(x) < 60000]
    halves = np.sort(np.arange(0x7C00, dtype=np.uint16).view(np.float16)).astype(np.float64)
    grid = np.unique(np.concatenate([-halves, halves]))
    above = np.searchsorted(grid, x.astype(np.float64))
    exact = grid[above] == x
    high, low = grid[above], np.where(exact, grid[above], grid[above - 1])
    away, towards = np.where(x >= 0, high, low), np.where(x >= 0, low, high)
    is_far = np.abs(x - towards) >= np.abs(away - x)
    bits = towards.astype(np.float16).view(np.uint16)
    expected = {
        FLOOR: low,
        CEIL: high,
        TRUNC: towards,
        ROUND: np.where(is_far, away, towards),
        ODD: np.where(exact | (bits % 2 == 1), towards, away),
    }[mode]
    np.testing.assert_array_equal(cast(x, "F32", "F16", mode).astype(np.float64), expected)


@pytest.mark.parametrize(
    ("source", "destination", "values", "expected"),
    [
        ("S32", "S16", [2**31 - 1, -(2**31), 5], [2**15 - 1, -(2**15), 5]),
        ("S64", "S32", [2**31, -(2**40), 7], [2**31 - 1, -(2**31), 7]),
        ("S8", "F16", [-128, 127, -1], [-128, 127, -1]),
        ("U8", "F16", [255, 1, 0], [255, 1, 0]),
        ("S16", "F32", [-32768, 32767, 1], [-32768, 32767, 1]),
        ("S32", "S64", [-5, 2**31 - 1, 0], [-5, 2**31 - 1, 0]),
    ],
)
def test_casts_without_rounding(
    source: str, destination: str, values: list[int], expected: list[int]
) -> None:
    x = np.array(values, dtype=TYPES[source])
    np.testing.assert_array_equal(cast(x, source, destination, NONE), expected)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(RINT, 2**25 + 4), (FLOOR, 2**25), (CEIL, 2**25 + 4), (ROUND, 2**25 + 4), (TRUNC, 2**25)],
)
def test_a_cast_from_int_to_float_follows_the_documents_example(mode: int, expected: int) -> None:
    assert cast(np.array([2**25 + 3], dtype=np.int32), "S32", "F32", mode)[0] == expected


def test_a_cast_that_the_chip_lacks_faults_with_its_types_and_mode() -> None:
    with pytest.raises(KernelFault, match="float to int32_t does not take RoundMode::CAST_NONE"):
        cast(np.zeros(8, dtype=np.float32), "F32", "S32", NONE)


def test_a_cast_counts_lanes_of_the_wider_type() -> None:
    x = np.arange(128, dtype=np.float16)
    dst = np.full(128, -1, dtype=np.float32)
    result = run(
        "Cast",
        dst,
        "F32",
        [(x, "F16")],
        source_strides=(1, 4),
        mask_form="prefix",
        mask=(60, 0),
        repeat=2,
        mode=NONE,
    )
    np.testing.assert_array_equal(result[:60], x[:60])
    np.testing.assert_array_equal(result[64:124], x[64:124])
    assert (result[60:64] == -1).all() and (result[124:] == -1).all()


COMPARISONS = {
    LT: np.less,
    GT: np.greater,
    EQ: np.equal,
    LE: np.less_equal,
    GE: np.greater_equal,
    NE: np.not_equal,
}


@pytest.mark.parametrize("mode", COMPARISONS)
@pytest.mark.parametrize("code", ["F16", "F32"])
def test_compare_packs_a_bit_an_element(code: str, mode: int) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-2, 3, 512).astype(TYPES[code]) for _ in range(2))
    a[3] = np.nan
    bits = np.zeros(64, dtype=np.uint8)
    expected = np.packbits(COMPARISONS[mode](a, b), bitorder="little")
    np.testing.assert_array_equal(
        run("Compare", bits, "U8", [(a, code), (b, code)], count=512, mode=mode), expected
    )
    one = np.ones(1, dtype=TYPES[code])
    scalars = (int(one.view(f"u{one.itemsize}")[0]), 0)
    result = run("CompareScalar", bits, "U8", [(a, code)], count=512, mode=mode, scalars=scalars)
    np.testing.assert_array_equal(result, np.packbits(COMPARISONS[mode](a, one), bitorder="little"))


def test_compare_wants_whole_repeats() -> None:
    a = np.zeros(100, dtype=np.float16)
    with pytest.raises(KernelFault, match="100 elements are not a multiple of 256 bytes"):
        run("Compare", np.zeros(32, dtype=np.uint8), "U8", [(a, "F16"), (a, "F16")], count=100)


@pytest.mark.parametrize("code", ["F16", "F32"])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_select_takes_the_first_source_where_its_bit_is_set(code: str, mode: int) -> None:
    rng = np.random.default_rng(6)
    kind = TYPES[code]
    width = 256 // np.dtype(kind).itemsize
    a, b = (rng.normal(size=300).astype(kind) for _ in range(2))
    bits = rng.integers(0, 256, 64, dtype=np.uint8)
    chosen = np.unpackbits(bits, bitorder="little")[:300].astype(bool)
    if mode == 0:
        chosen = np.resize(chosen[:width], 300)
    two = np.array([2], dtype=kind)
    result = run(
        "Select",
        np.zeros(300, dtype=kind),
        code,
        [(a, code), (b, code), (bits, "U8")],
        count=300,
        mode=mode,
        scalars=(int(two.view(f"u{two.itemsize}")[0]), 0),
    )
    np.testing.assert_array_equal(result, np.where(chosen, a, two if mode == 1 else b))


def tree_sum(values: np.ndarray) -> np.ndarray:
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]


@pytest.mark.parametrize("code", ["F16", "F32"])
@pytest.mark.parametrize("count", [1, 63, 64, 129, 1000])
def test_reduce_sum_is_a_tree_in_each_repeat_and_adds_repeats_in_order(
    code: str, count: int
) -> None:
    kind = TYPES[code]
    width = 256 // np.dtype(kind).itemsize
    x = np.random.default_rng(8).normal(size=count).astype(kind)
    padded = np.zeros(-(-count // width) * width, dtype=kind)
    padded[:count] = x
    sums = tree_sum(padded.reshape(-1, width))
    expected = sums[0]
    for value in sums[1:]:
        expected = expected + value
    result = run("ReduceSum", np.zeros(1, dtype=kind), code, [(x, code), (x, code)], count=count)
    assert result[0] == expected


@pytest.mark.parametrize("code", ["F16", "F32"])
def test_reduce_sum_with_repeats_is_a_tree_over_repeats_too(code: str) -> None:
    kind = TYPES[code]
    width = 256 // np.dtype(kind).itemsize
    x = np.random.default_rng(9).normal(size=(11, width)).astype(kind)
    sums = np.zeros(width, dtype=kind)
    sums[:11] = tree_sum(x)
    result = run(
        "ReduceSum",
        np.zeros(1, dtype=kind),
        code,
        [(x.ravel(), code), (x.ravel(), code)],
        mask_form="prefix",
        mask=(width, 0),
        repeat=11,
    )
    assert result[0] == tree_sum(sums)


@pytest.mark.parametrize("code", ["F16", "F32"])
@pytest.mark.parametrize(("op", "find"), [("ReduceMax", np.argmax), ("ReduceMin", np.argmin)])
def test_the_extreme_comes_with_its_first_index_as_bits(code: str, op: str, find: object) -> None:
    kind = TYPES[code]
    x = np.random.default_rng(10).integers(-50, 50, 700).astype(kind)
    result = run(op, np.zeros(2, dtype=kind), code, [(x, code), (x, code)], count=700, mode=1)
    place = int(find(x))  # type: ignore[operator]
    assert result[0] == x[place]
    assert int(result.view(f"u{result.itemsize}")[1]) == place
    x[300] = np.nan
    x[500] = np.nan
    result = run(op, np.zeros(2, dtype=kind), code, [(x, code), (x, code)], count=700, mode=1)
    assert np.isnan(result[0])
    assert int(result.view(f"u{result.itemsize}")[1]) == 300


@pytest.mark.parametrize("code", ["F16", "F32"])
def test_repeat_block_and_pair_reductions_write_one_result_each(code: str) -> None:
    kind = TYPES[code]
    size = np.dtype(kind).itemsize
    width, block = 256 // size, 32 // size
    x = np.random.default_rng(11).normal(size=(3, width)).astype(kind)
    full = {"mask_form": "prefix", "mask": (width, 0), "repeat": 3, "strides": (1, 1)}
    sources = [(x.ravel(), code)]
    whole = run("WholeReduceSum", np.zeros(3, dtype=kind), code, sources, **full)
    np.testing.assert_array_equal(whole, tree_sum(x))
    blocks = run("BlockReduceSum", np.zeros(24, dtype=kind), code, sources, **full)
    np.testing.assert_array_equal(blocks, tree_sum(x.reshape(24, block)))
    extremes = run("BlockReduceMax", np.zeros(24, dtype=kind), code, sources, **full)
    np.testing.assert_array_equal(extremes, x.reshape(24, block).max(axis=1))
    pairs = run("PairReduceSum", np.zeros(3 * width // 2, dtype=kind), code, sources, **full)
    np.testing.assert_array_equal(pairs, x.ravel()[0::2] + x.ravel()[1::2])
    values = run("WholeReduceMin", np.zeros(6, dtype=kind), code, sources, **full)
    np.testing.assert_array_equal(values[0::2], x.min(axis=1))
    np.testing.assert_array_equal(values.view(f"u{size}")[1::2], x.argmin(axis=1))
    only = run("WholeReduceMax", np.zeros(3, dtype=kind), code, sources, mode=2, **full)
    np.testing.assert_array_equal(only, x.max(axis=1))


def test_a_masked_sum_leaves_out_the_other_lanes() -> None:
    x = np.arange(1, 65, dtype=np.float32)
    bits = 0x8000000000000005
    result = run(
        "WholeReduceSum",
        np.zeros(1, dtype=np.float32),
        "F32",
        [(x, "F32")],
        mask_form="bits",
        mask=(bits, 0),
    )
    assert result[0] == 1 + 3 + 64


def test_fills_write_only_the_lanes_of_their_mask() -> None:
    seven = int(np.float16(7).view(np.uint16))
    ones = np.ones(64, dtype=np.float16)
    result = run("Duplicate", ones, "F16", [], count=50, scalars=(seven, 0))
    assert (result[:50] == 7).all() and (result[50:] == 1).all()
    result = run(
        "Duplicate", ones, "F16", [], mask_form="bits", mask=(0b1010, 0), scalars=(seven, 0)
    )
    np.testing.assert_array_equal(np.flatnonzero(result == 7), [1, 3])
    ramp = run(
        "CreateVecIndex", np.zeros(300, dtype=np.int32), "S32", [], count=300, scalars=(5, 0)
    )
    np.testing.assert_array_equal(ramp, np.arange(5, 305))


def test_brcb_spreads_each_element_over_a_data_block() -> None:
    x = np.arange(16, dtype=np.float32)
    result = run("Brcb", np.zeros(128, dtype=np.float32), "F32", [(x, "F32")], repeat=2)
    np.testing.assert_array_equal(result, np.repeat(x, 8))


def test_gather_reads_at_byte_offsets_and_checks_each() -> None:
    x = np.arange(100, dtype=np.float16)
    places = np.random.default_rng(12).integers(0, 98, 40)
    offsets = (places * 2).astype(np.uint32)
    dst = np.zeros(40, dtype=np.float16)
    result = run("Gather", dst, "F16", [(x, "F16"), (offsets, "U32")], count=40, scalars=(4, 0))
    np.testing.assert_array_equal(result, x[places + 2])
    offsets[7] = 1 << 20
    with pytest.raises(KernelFault, match="Gather reads bytes"):
        run("Gather", dst, "F16", [(x, "F16"), (offsets, "U32")], count=40)
