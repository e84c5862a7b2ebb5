"""Every row that works lane by lane x data type x chip x call form x SIMD target against NumPy.

The rows come from the instruction table, so a new row is tested the day it is written: without a
formula below it fails. How many combinations that is:

    pytest tests/emulator/test_vec_elementwise.py -k counted -s
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from opkit.errors import KernelFault

from .architectures import CHIPS, cast_rows

_emulator = pytest.importorskip("opkit.emulator._emulator")

BLOCK_BYTES = 32
REPEAT_BYTES = 256
ALL_ONES = 2**64 - 1

NUMPY_TYPES = {
    "F16": np.dtype(np.float16),
    "F32": np.dtype(np.float32),
    "S8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "S16": np.dtype(np.int16),
    "U16": np.dtype(np.uint16),
    "S32": np.dtype(np.int32),
    "U32": np.dtype(np.uint32),
    "S64": np.dtype(np.int64),
}


@dataclass(frozen=True)
class Form:
    """One way to say which lanes take part."""

    name: str
    """For the test's id."""
    mask_form: str
    """count, prefix, bits or register."""
    count: int = 0
    """Elements, for mask_form count."""
    repeat: int = 1
    """Repeat times."""
    mask: tuple[int, int] = (0, 0)
    """Leading lanes, or bits."""
    vector_mask: tuple[int, int] = (ALL_ONES, ALL_ONES)
    """The mask register."""
    is_counter: bool = False
    """Counter mode: a mask counts the elements of the whole call."""
    strides: tuple[tuple[int, int], ...] = ((1, 8), (1, 8), (1, 8))
    """Block and repeat stride of the destination and each source."""
    in_place: int = 0
    """The source that lies where the destination does; 0: none."""

    def lanes(self, element_bytes: int) -> list[tuple[int, int]]:
        """Return (repeat, lane) of each lane that takes part, in order."""
        width = REPEAT_BYTES // element_bytes
        if self.mask_form == "count":
            return [divmod(i, width) for i in range(self.count)]
        mask = self.vector_mask if self.mask_form == "register" else self.mask
        if self.is_counter:
            return [divmod(i, width) for i in range(mask[0])]
        if self.mask_form == "prefix":
            chosen = list(range(min(mask[0], width)))
        else:
            bits = mask[0] | mask[1] << 64
            chosen = [lane for lane in range(width) if bits >> lane & 1]
        return [(repeat, lane) for repeat in range(self.repeat) for lane in chosen]

    def indices(
        self, operand: int, element_bytes: int, lane_bytes: int | None = None
    ) -> np.ndarray:
        """Return each lane's element index in an operand; `lane_bytes` is the widest element's."""
        per_block = BLOCK_BYTES // element_bytes
        width = REPEAT_BYTES // (lane_bytes or element_bytes)
        result = []
        for repeat, lane in self.lanes(lane_bytes or element_bytes):
            if self.mask_form == "count":
                result.append(repeat * width + lane)
                continue
            block_stride, repeat_stride = self.strides[operand]
            block = repeat * repeat_stride + lane // per_block * block_stride
            result.append(block * per_block + lane % per_block)
        return np.array(result, dtype=np.int64)


GAPS = ((2, 17), (3, 25), (1, 9))
FORMS = (
    Form("one element", "count", count=1),
    Form("a tail", "count", count=333),
    Form("whole repeats", "count", count=512),
    Form("first lanes", "prefix", repeat=3, mask=(37, 0)),
    Form("more lanes than there are", "prefix", repeat=2, mask=(200, 0)),
    Form("first lanes with gaps", "prefix", repeat=3, mask=(50, 0), strides=GAPS),
    Form(
        "one block read again", "prefix", repeat=2, mask=(64, 0), strides=((1, 8), (0, 0), (1, 0))
    ),
    Form(
        "one block read by many repeats",
        "prefix",
        repeat=7,
        mask=(200, 0),
        strides=((1, 8), (0, 0), (1, 0)),
    ),
    Form(
        "counter mode with one repeat read again",
        "prefix",
        repeat=1,
        mask=(333, 0),
        is_counter=True,
        strides=((1, 8), (1, 8), (1, 0)),
    ),
    Form("bits", "bits", repeat=2, mask=(0x69A569A569A569A5, 0xF00F)),
    Form("bits with gaps", "bits", repeat=3, mask=(0x8000000000000001, 0x1), strides=GAPS),
    Form("mask register", "register", repeat=2, vector_mask=(0xFF0F, 0)),
    Form(
        "counter mode with gaps", "prefix", repeat=1, mask=(130, 0), is_counter=True, strides=GAPS
    ),
    Form("counter mode register", "register", vector_mask=(130, 0), is_counter=True),
    Form("no lane", "prefix", repeat=2, mask=(0, 0)),
    Form("no repeat", "prefix", repeat=0, mask=(64, 0)),
    Form("in place of the first source", "count", count=333, in_place=1),
    Form("in place of the second source", "bits", repeat=2, mask=(ALL_ONES, 0xF), in_place=2),
)

Compute = Callable[..., np.ndarray]


def _relu(a: np.ndarray) -> np.ndarray:
    return np.where(a <= 0, np.zeros_like(a), a)


def _shift_left(a: np.ndarray, s: np.ndarray) -> np.ndarray:
    kind = a.dtype
    if kind.kind == "u":
        return np.left_shift(a, s)
    sign = np.array(np.iinfo(kind).min, dtype=kind)
    return (a & sign) | (np.left_shift(a, s) & ~sign)


# a, b: sources; s: the scalar; d: the destination's old value. Halves come and go as float32.
UNARY: dict[str, Compute] = {
    "Abs": np.abs,
    "Exp": lambda a: np.exp(a.astype(np.float64)),
    "Ln": lambda a: np.log(a.astype(np.float64)),
    "Sqrt": np.sqrt,
    "Rsqrt": lambda a: 1 / np.sqrt(a.astype(np.float64)),
    "Reciprocal": lambda a: np.float32(1) / a,
    "Relu": _relu,
    "Not": np.invert,
}
BINARY: dict[str, Compute] = {
    "Add": lambda a, b, d: a + b,
    "Sub": lambda a, b, d: a - b,
    "Mul": lambda a, b, d: a * b,
    "Div": lambda a, b, d: a / b,
    "Max": lambda a, b, d: np.maximum(a, b),
    "Min": lambda a, b, d: np.minimum(a, b),
    "And": lambda a, b, d: a & b,
    "Or": lambda a, b, d: a | b,
    "AddRelu": lambda a, b, d: _relu(a + b),
    "SubRelu": lambda a, b, d: _relu(a - b),
    "MulAddDst": lambda a, b, d: a * b + d,
    "FusedMulAdd": lambda a, b, d: a * d + b,
    "MulAddRelu": lambda a, b, d: _relu(a * d + b),
}
SCALAR: dict[str, Compute] = {
    "Adds": lambda a, s, d: a + s,
    "Muls": lambda a, s, d: a * s,
    "Maxs": lambda a, s, d: np.maximum(a, s),
    "Mins": lambda a, s, d: np.minimum(a, s),
    "LeakyRelu": lambda a, s, d: np.where(a >= 0, a, a * s),
    "ShiftLeft": lambda a, s, d: _shift_left(a, s),
    "ShiftRight": lambda a, s, d: np.right_shift(a, s),
    "Axpy": lambda a, s, d: a * s + d,
}
APPROXIMATE = {"Exp", "Ln"}
"""Rows that may be 1 ulp from the true value; all others are exact."""


def ulp_distance(a: np.ndarray, b: np.ndarray) -> int:
    """Return the largest distance in units in the last place; two NaNs are 0 apart."""
    kind = np.int16 if a.dtype == np.float16 else np.int32

    def ordered(x: np.ndarray) -> np.ndarray:
        bits = x.view(kind).astype(np.int64)
        return np.where(bits < 0, np.iinfo(kind).min - bits, bits)

    distance = np.abs(ordered(a) - ordered(b))
    distance[np.isnan(a) & np.isnan(b)] = 0
    return int(distance.max(initial=0))


OPERAND_BYTES = 8192
REFERENCES = {"vec_unary": UNARY, "vec_binary": BINARY, "vec_binary_scalar": SCALAR}
TABLE = {row["name"]: row for row in _emulator.isa_table()}
ROWS = [
    (row["name"], row["family"], code, arch)
    for row in TABLE.values()
    if row["family"] in REFERENCES
    for arch in CHIPS
    for code in row["dtypes"].get(arch, [])
]


@pytest.fixture
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    _emulator.configure(**{**_emulator.configuration(), "chip": CHIPS[request.param]})
    yield


def forms_for(source_count: int) -> list[Form]:
    return [form for form in FORMS if form.in_place <= source_count]


def random_values(kind: np.dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    if kind.kind == "f":
        values = rng.normal(scale=4, size=count).astype(kind)
        values[rng.integers(0, count, 40)] = [0.0, -0.0, np.inf, -np.inf, np.nan] * 8
        return values
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, size=count, endpoint=True, dtype=kind)


def expected_values(
    family: str, name: str, operands: list[np.ndarray], scalar: np.ndarray
) -> np.ndarray:
    kind = operands[0].dtype
    wide = [x.astype(np.float32) if kind == np.float16 else x for x in operands]
    d, a, b = wide
    with np.errstate(all="ignore"):
        if family == "vec_unary":
            result = UNARY[name](a)
        elif family == "vec_binary":
            result = BINARY[name](a, b, d)
        else:
            result = SCALAR[name](a, scalar.astype(a.dtype)[0], d)
        return np.asarray(result).astype(kind)


@pytest.mark.parametrize("target", _emulator.lane_targets())
@pytest.mark.parametrize(("name", "family", "code", "chip"), ROWS, indirect=["chip"])
def test_a_row_computes_what_its_formula_says(
    name: str, family: str, code: str, chip: None, target: str
) -> None:
    _emulator.set_lane_target(target)
    kind = NUMPY_TYPES[code]
    rng = np.random.default_rng(7)
    per_operand = OPERAND_BYTES // kind.itemsize
    scalar = np.array([3 if name.startswith("Shift") else 1.5 if kind.kind == "f" else -7]).astype(
        kind
    )
    scalar_bits = int(scalar.view(f"u{kind.itemsize}")[0])
    source_count = 2 if family == "vec_binary" else 1
    for form in forms_for(source_count):
        operands = [random_values(kind, per_operand, rng) for _ in range(3)]
        memory = np.concatenate(operands).view(np.uint8)
        if form.in_place:
            operands[form.in_place] = operands[0]
        places = [form.indices(i, kind.itemsize) for i in range(3)]
        expected = operands[0].copy()
        values = [x[place] for x, place in zip(operands, places, strict=True)]
        expected[places[0]] = expected_values(family, name, values, scalar)
        issue(name, code, memory, source_count, form, scalar_bits)
        actual = memory.view(kind)[:per_operand]
        if kind.kind == "f":
            limit = 1 if name in APPROXIMATE else 0
            assert ulp_distance(actual, expected) <= limit, (
                f"{form.name}: {actual[:8]} {expected[:8]}"
            )
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=form.name)
    _emulator.set_lane_target("auto")


def issue(
    name: str,
    code: str,
    memory: np.ndarray,
    source_count: int,
    form: Form,
    scalar_bits: int = 0,
    mode: int = 0,
) -> None:
    operands = [(i * OPERAND_BYTES, code, *form.strides[i]) for i in range(3)]
    if form.in_place:
        operands[form.in_place] = operands[0]
    _emulator.issue(
        name,
        memory,
        operands[0],
        operands[1 : 1 + source_count],
        mask_form=form.mask_form,
        count=form.count,
        repeat=form.repeat,
        mask=form.mask,
        scalars=(scalar_bits, 0),
        mode=mode,
        is_counter=form.is_counter,
        vector_mask=form.vector_mask,
    )


def test_exp_of_every_half_is_within_one_unit_of_the_true_value_on_every_target() -> None:
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    results = []
    for target in _emulator.lane_targets():
        _emulator.set_lane_target(target)
        parts = []
        for part in np.split(x, 2):
            memory = np.concatenate([np.zeros_like(part), part]).view(np.uint8)
            size = part.nbytes
            _emulator.issue("Exp", memory, (0, "F16", 1, 8), [(size, "F16", 1, 8)], count=part.size)
            parts.append(memory[:size].copy().view(np.float16))
        results.append(np.concatenate(parts))
    _emulator.set_lane_target("auto")
    with np.errstate(all="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float16)
    assert ulp_distance(results[0], expected) <= 1
    is_number = ~np.isnan(expected)
    assert np.count_nonzero(results[0][is_number] != expected[is_number]) <= 2  # nearly ties
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].view(np.uint16), other.view(np.uint16))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 2064}, "writes bytes 0..4128 of a buffer that has 4096 bytes in UB"),
        ({"mask_form": "prefix", "mask": (128, 0), "repeat": 17}, "writes bytes 0..4352"),
        ({"mask_form": "prefix", "mask": (128, 0), "repeat": 256}, "repeat times 256 is over 255"),
    ],
)
def test_an_instruction_that_leaves_its_tensor_faults(
    arguments: dict[str, object], message: str
) -> None:
    memory = np.zeros(4096, dtype=np.uint8)
    operand = (0, "F16", 1, 8)
    with pytest.raises(KernelFault, match=message):
        _emulator.issue("Add", memory, operand, [operand, operand], **arguments)


def test_an_address_that_is_no_multiple_of_a_block_faults() -> None:
    memory = np.zeros(4096, dtype=np.uint8)
    with pytest.raises(KernelFault, match="src1 address 16 in UB is not a multiple of 32 bytes"):
        _emulator.issue(
            "Add", memory, (0, "F16", 1, 8), [(0, "F16", 1, 8), (16, "F16", 1, 8)], count=16
        )


def test_a_destination_read_by_the_next_repeat_accumulates() -> None:
    x = np.arange(4 * 64, dtype=np.float32)
    memory = np.concatenate([np.zeros(64, dtype=np.float32), x]).view(np.uint8)
    _emulator.issue(
        "Add",
        memory,
        (0, "F32", 1, 0),
        [(256, "F32", 1, 8), (0, "F32", 1, 0)],
        mask_form="prefix",
        mask=(64, 0),
        repeat=4,
    )
    np.testing.assert_array_equal(memory.view(np.float32)[:64], x.reshape(4, 64).sum(axis=0))


def test_a_block_that_every_repeat_reads_changes_when_a_repeat_writes_it() -> None:
    x = np.arange(5 * 64, dtype=np.float32)
    memory = np.concatenate([x, np.zeros(64, dtype=np.float32)]).view(np.uint8)
    _emulator.issue(
        "Add",
        memory,
        (0, "F32", 1, 8),
        [(0, "F32", 1, 8), (128 * 4, "F32", 0, 0)],
        mask_form="prefix",
        mask=(64, 0),
        repeat=5,
    )
    expected = x.copy()
    for repeat in range(5):
        block = np.tile(expected[128:136], 8)
        expected[repeat * 64 : repeat * 64 + 64] += block
    np.testing.assert_array_equal(memory.view(np.float32)[: 5 * 64], expected)


def test_half_sources_widen_into_a_float_destination() -> None:
    a, b = (np.random.default_rng(i).normal(size=100).astype(np.float16) for i in range(2))
    d = np.linspace(-1, 1, 100, dtype=np.float32)
    memory = np.zeros(3 * 1024, dtype=np.uint8)
    memory[:400], memory[1024:1224], memory[2048:2248] = (x.view(np.uint8) for x in (d, a, b))
    _emulator.issue(
        "MulAddDst", memory, (0, "F32", 1, 8), [(1024, "F16", 1, 4), (2048, "F16", 1, 4)], count=100
    )
    np.testing.assert_array_equal(
        memory[:400].view(np.float32), a.astype(np.float32) * b.astype(np.float32) + d
    )


# Rows that are more than one expression: their operands may differ in type, or lanes meet.

WIDTHS = {**NUMPY_TYPES, "BF16": np.dtype(np.uint16), "U64": np.dtype(np.uint64)}
"""Whole numbers of bfloat16 are carried as bits."""
SELECTED = np.random.default_rng(11).integers(0, 256, OPERAND_BYTES).astype(np.uint8)


def whole_numbers(code: str, count: int) -> np.ndarray:
    """Return numbers that every type holds and every conversion and sum keeps exact."""
    unsigned = code.startswith("U")
    numbers = np.random.default_rng(12).integers(0 if unsigned else -9, 10, count)
    if code == "BF16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype(WIDTHS[code])


def as_float(values: np.ndarray, code: str) -> np.ndarray:
    if code == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


def stored(values: np.ndarray, code: str) -> np.ndarray:
    if code == "BF16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(WIDTHS[code])


@dataclass(frozen=True)
class Lanes:
    """An instruction whose lanes are computed one by one."""

    name: str
    codes: tuple[str, ...]
    """Types of the destination and the sources."""
    compute: Callable[..., np.ndarray]
    """Of the sources' values and `index`, the place of each lane as if nothing were left out."""
    mode: int = 0
    scalar: int = 0
    extra: np.ndarray | None = None
    """A source that has no strides, behind the others."""

    def run(self, form: Form) -> tuple[np.ndarray, np.ndarray]:
        """Return the destination and what it should be."""
        sizes = [WIDTHS[code].itemsize for code in self.codes]
        lane_bytes = max(sizes)
        # A repeat of a narrower operand has fewer data blocks.
        strides = [
            (1, 8 * size // lane_bytes) if stride == (1, 8) else stride
            for stride, size in zip(form.strides, sizes, strict=False)
        ]
        form = replace(form, strides=tuple(strides))
        operands = [
            whole_numbers(code, OPERAND_BYTES // size)
            for code, size in zip(self.codes, sizes, strict=True)
        ]
        parts = [*operands, *([] if self.extra is None else [self.extra])]
        memory = np.concatenate([part.view(np.uint8) for part in parts])
        places = [form.indices(i, size, lane_bytes) for i, size in enumerate(sizes)]
        width = REPEAT_BYTES // lane_bytes
        lanes = form.lanes(lane_bytes)
        index = np.array([repeat * width + lane for repeat, lane in lanes], dtype=np.int64)
        taken = zip(operands, places, self.codes, strict=True)
        values = [as_float(operand[place], code) for operand, place, code in taken][1:]
        expected = operands[0].copy()
        expected[places[0]] = stored(self.compute(*values, index=index), self.codes[0])
        bits = stored(np.array([self.scalar]), self.codes[0])
        sources = [(i * OPERAND_BYTES, code, *strides[i]) for i, code in enumerate(self.codes)][1:]
        if self.extra is not None:
            sources.append((len(operands) * OPERAND_BYTES, "U8", 1, 8))
        call(form, self.name, memory, (0, self.codes[0], *strides[0]), sources, bits, self.mode)
        return memory[:OPERAND_BYTES].view(operands[0].dtype), expected


def call(
    form: Form,
    name: str,
    memory: np.ndarray,
    dst: tuple[int, str, int, int],
    sources: list[tuple[int, str, int, int]],
    scalar: np.ndarray,
    mode: int = 0,
) -> None:
    _emulator.issue(
        name,
        memory,
        dst,
        sources,
        mask_form=form.mask_form,
        count=form.count,
        repeat=form.repeat,
        mask=form.mask,
        scalars=(int(scalar.view(f"u{scalar.itemsize}")[0]), 0),
        mode=mode,
        is_counter=form.is_counter,
        vector_mask=form.vector_mask,
    )


def chosen(index: np.ndarray) -> np.ndarray:
    return np.unpackbits(SELECTED, bitorder="little")[index].astype(bool)


def lanes_of(name: str, code: str) -> list[Lanes]:
    """Return what an instruction does to a type; empty where its lanes meet."""
    converted = {"F16": "S8", "S16": "S8", "F32": "F16"}.get(code, code)
    rows = {
        "Duplicate": Lanes(name, (code,), lambda index: np.full(index.size, 7), scalar=7),
        "CreateVecIndex": Lanes(name, (code,), lambda index: index + 7, scalar=7),
        "Copy": Lanes(name, (code, code), lambda a, index: a),
        "AddReluCast": Lanes(
            name, (converted, code, code), lambda a, b, index: np.maximum(a + b, 0)
        ),
        "SubReluCast": Lanes(
            name, (converted, code, code), lambda a, b, index: np.maximum(a - b, 0)
        ),
        "MulCast": Lanes(name, (converted, code, code), lambda a, b, index: a * b),
    }
    if name == "Select":
        two = Lanes(
            name, (code,) * 3, lambda a, b, index: np.where(chosen(index), a, b), 2, 0, SELECTED
        )
        one = Lanes(
            name, (code,) * 3, lambda a, b, index: np.where(chosen(index), a, -7), 1, -7, SELECTED
        )
        return [two, one]
    return [rows[name]] if name in rows else []


CAST_PAIRS = [
    (source, destination, arch)
    for arch in CHIPS
    for source, destination, _ in cast_rows(arch)
    # test_cast_int4.py; and what SetDeqScale multiplies: test_vec_special.py
    if "S4" not in (source, destination) and (source, destination) != ("S32", "F16")
]
LANE_ROWS = [
    (name, code, arch)
    for name, row in TABLE.items()
    if row["family"] == "vec_special"
    for arch in CHIPS
    for code in row["dtypes"].get(arch, [])
    if lanes_of(name, code)
]


def check_lanes(row: Lanes) -> None:
    for target in _emulator.lane_targets():
        _emulator.set_lane_target(target)
        for form in forms_for(0):
            if form.is_counter and row.name == "Copy":
                continue  # it counts in each repeat: test_vec_fused.py
            actual, expected = row.run(form)
            np.testing.assert_array_equal(actual, expected, err_msg=f"{form.name} {target}")
    _emulator.set_lane_target("auto")


@pytest.mark.parametrize(("name", "code", "chip"), LANE_ROWS, indirect=["chip"])
def test_lanes_of_more_than_an_expression_follow_the_mask_and_the_strides(
    name: str, code: str, chip: None
) -> None:
    for row in lanes_of(name, code):
        check_lanes(row)


@pytest.mark.parametrize(("source", "destination", "chip"), CAST_PAIRS, indirect=["chip"])
def test_a_cast_follows_the_mask_and_the_strides(source: str, destination: str, chip: None) -> None:
    least = 0 if "U8" in (source, destination) else -9  # it saturates
    for mode in (1, 0):  # CAST_RINT or, where it is not offered, CAST_NONE
        row = Lanes("Cast", (destination, source), lambda a, index: np.maximum(a, least), mode)
        try:
            row.run(FORMS[0])
        except KernelFault:
            continue
        return check_lanes(row)
    raise AssertionError("no mode is accepted")


REDUCE = {"Sum": np.sum, "Max": np.max, "Min": np.min}
REDUCTIONS = [
    (name, code, arch)
    for name, row in TABLE.items()
    if re.match("(Whole|Block|Pair)?Reduce", name)
    for arch in CHIPS
    for code in row["dtypes"][arch]
]


def results_of(name: str, form: Form, x: np.ndarray) -> dict[int, np.ndarray]:
    """Return the reduced values by their place in the destination, whose repeats adjoin."""
    size = x.itemsize
    width = REPEAT_BYTES // size
    groups = {"Whole": width, "Block": BLOCK_BYTES // size, "Pair": 2, "": 255 * width}
    group = groups[name[: name.index("Reduce")]]
    step = 2 if name in ("WholeReduceMax", "WholeReduceMin") else 1  # an index behind each value
    members: dict[int, list[np.ndarray]] = {}
    for (repeat, lane), place in zip(form.lanes(size), form.indices(1, size), strict=True):
        members.setdefault((repeat * width + lane) // group * step, []).append(x[place])
    return {place: REDUCE[name[-3:]](values) for place, values in members.items()}


@pytest.mark.parametrize(("name", "code", "chip"), REDUCTIONS, indirect=["chip"])
def test_a_reduction_joins_the_lanes_of_the_mask(name: str, code: str, chip: None) -> None:
    kind = NUMPY_TYPES[code]
    is_whole = name.startswith("Reduce")  # of all lanes, not of each repeat
    for form in forms_for(0):
        if form.mask_form == "count" and not is_whole:
            continue
        x = whole_numbers(code, OPERAND_BYTES // kind.itemsize)
        untouched = np.full_like(x, -99)
        memory = np.concatenate([untouched, x, untouched]).view(np.uint8)
        sources = [(OPERAND_BYTES, code, *form.strides[1])]
        if is_whole:
            sources.append((2 * OPERAND_BYTES, code, 1, 8))
        call(form, name, memory, (0, code, 1, 1), sources, np.zeros(1, kind))
        actual = memory[:OPERAND_BYTES].view(kind)
        for place, value in results_of(name, form, x).items():
            assert actual[place] == value, f"{form.name}: {place}"
        if not form.lanes(kind.itemsize):
            np.testing.assert_array_equal(actual, untouched, err_msg=form.name)


INDEXED = [
    (name, code, arch)
    for name in ("Gather", "Scatter")
    for arch in CHIPS
    for code in TABLE[name]["dtypes"].get(arch, [])
]


@pytest.mark.parametrize(("name", "code", "chip"), INDEXED, indirect=["chip"])
def test_gather_and_scatter_move_the_lanes_of_the_mask(name: str, code: str, chip: None) -> None:
    kind = WIDTHS[code]
    count = OPERAND_BYTES // kind.itemsize
    places = np.random.default_rng(13).permutation(count)[: OPERAND_BYTES // 4]
    for form in forms_for(0):
        lanes = form.lanes(kind.itemsize)
        if form.strides[0] != (1, 8) or form.strides[1] != (1, 8):
            continue  # neither has strides of blocks
        width = REPEAT_BYTES // kind.itemsize
        index = np.array([repeat * width + lane for repeat, lane in lanes], dtype=np.int64)
        old, x = whole_numbers(code, count)[::-1].copy(), whole_numbers(code, count)
        offsets = (places * kind.itemsize).astype(np.uint32)
        memory = np.concatenate([part.view(np.uint8) for part in (old, x, offsets)])
        expected = old.copy()
        if name == "Gather":
            expected[index] = x[places[index]]
        else:
            expected[places[index]] = x[index]
        sources = [(OPERAND_BYTES, code, 1, 8), (2 * OPERAND_BYTES, "U32", 1, 8)]
        call(form, name, memory, (0, code, 1, 8), sources, np.zeros(1, np.uint32))
        np.testing.assert_array_equal(
            memory[:OPERAND_BYTES].view(kind), expected, err_msg=form.name
        )


def test_combinations_are_counted() -> None:
    rows = len(ROWS) * (len(FORMS) - 2)
    rows += sum(
        form.in_place <= (2 if family == "vec_binary" else 1)
        for _, family, *_ in ROWS
        for form in FORMS[-2:]
    )
    lanes = (len(LANE_ROWS) + len(CAST_PAIRS)) * len(forms_for(0))
    masked = [form for form in forms_for(0) if form.mask_form != "count"]
    reductions = sum(
        len(forms_for(0) if name.startswith("Reduce") else masked) for name, *_ in REDUCTIONS
    )
    plain = [form for form in forms_for(0) if form.strides[:2] == ((1, 8), (1, 8))]
    indexed = len(INDEXED) * len(plain)
    total = rows + lanes + reductions + indexed
    instructions = {name for name, *_ in [*ROWS, *LANE_ROWS, *REDUCTIONS, *INDEXED]} | {"Cast"}
    print(
        f"\n{total} combinations of instruction, type, chip and call form against NumPy: {rows} of "
        f"expressions, {lanes} of other lanes and Cast, {reductions} of reductions, {indexed} of "
        f"Gather and Scatter; {len(instructions)} instructions"
    )
    assert total > 4000
