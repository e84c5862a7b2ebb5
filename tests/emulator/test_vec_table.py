"""Every other vector instruction x data type of the table against NumPy; a new row fails until it has a line here.

test_vec_elementwise.py does so for the elementwise rows. How many pairs of instruction and type
the two of them run:

    pytest tests/emulator/test_vec_table.py -k counted -s
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from opkit import emulator
from opkit.dtypes import DTYPES
from opkit.errors import KernelFault

from .architectures import CHIPS

_emulator = pytest.importorskip("opkit.emulator._emulator")

PLACE = 16384
"""Bytes from one operand to the next; the destination comes first."""
TYPES = {row.code: np.dtype(row.numpy) for row in DTYPES if row.numpy is not None}
"""bfloat16_t is carried as its bits: the rows that take it move elements only."""
LANES_BYTES = 256
BLOCK_BYTES = 32

Sources = list[tuple[np.ndarray, str]]


def run(op: str, dst: np.ndarray, code: str, sources: Sources, **arguments: object) -> np.ndarray:
    """Return the destination after one instruction; everything lies contiguous."""
    memory = np.zeros(PLACE * (1 + len(sources)), dtype=np.uint8)
    operands = []
    for i, (array, source_code) in enumerate(sources, start=1):
        memory[i * PLACE : i * PLACE + array.nbytes] = array.view(np.uint8)
        operands.append((i * PLACE, source_code, 1, 8))
    repeat_stride = arguments.pop("dst_repeat_stride", 8)
    _emulator.begin_checks(detectors="init", auto_sync=False, only_block=-1, witness=False)
    try:
        _emulator.issue(op, memory, (0, code, 1, repeat_stride), operands, **arguments)
    finally:
        findings = json.loads(_emulator.end_checks())
    check_reads(op, sources, findings)
    return memory[: dst.nbytes].copy().view(dst.dtype)


def check_reads(op: str, sources: Sources, findings: list[dict[str, int]]) -> None:
    """Compare the read that the checks report with the sources, of which nothing was written."""
    for finding in findings:
        place = finding["begin"] // PLACE
        assert place > 0, f"{op} reads its destination"
        size = -(-sources[place - 1][0].nbytes // BLOCK_BYTES) * BLOCK_BYTES
        assert finding["end"] <= place * PLACE + size, f"{op} reads behind source {place}"
    assert findings or not sources, f"{op} reads nothing"


def whole(code: str, count: int = 512) -> np.ndarray:
    """Return small whole numbers, which every type holds and sums exactly; bits for BF16."""
    kind = TYPES[code]
    low = 0 if kind.kind == "u" else -9
    return np.random.default_rng(5).integers(low, 9, count).astype(kind)


def lanes_of(code: str) -> int:
    return LANES_BYTES // TYPES[code].itemsize


def bits_of(value: object, code: str) -> int:
    kind = TYPES[code]
    return int(np.array([value]).astype(kind).view(f"u{kind.itemsize}")[0])


def two_repeats(code: str) -> dict[str, object]:
    return {"mask_form": "prefix", "mask": (lanes_of(code), 0), "repeat": 2}


def fill(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    dst = np.zeros(300, TYPES[code])
    actual = run(op, dst, code, [], count=300, scalars=(bits_of(7, code), 0))
    ramp = np.arange(300) if op == "CreateVecIndex" else np.zeros(300)
    return actual, (7 + ramp).astype(TYPES[code])


def copy(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code, 2 * lanes_of(code))
    return run(op, np.zeros_like(x), code, [(x, code)], **two_repeats(code)), x


def spread(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x, per_block = whole(code, 16), BLOCK_BYTES // TYPES[code].itemsize
    dst = np.zeros(16 * per_block, TYPES[code])
    return run(op, dst, code, [(x, code)], repeat=2), np.repeat(x, per_block)


def gather(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code)
    places = np.random.default_rng(6).permutation(x.size)[:100]
    offsets = (places * x.itemsize).astype(np.uint32)
    dst = np.zeros(100, x.dtype)
    return run(op, dst, code, [(x, code), (offsets, "U32")], count=100), x[places]


def scatter(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code, 100)
    places = np.random.default_rng(6).permutation(x.size)
    offsets = (places * x.itemsize).astype(np.uint32)
    expected = np.zeros_like(x)
    expected[places] = x
    dst = np.zeros_like(x)
    return run(op, dst, code, [(x, code), (offsets, "U32")], count=100), expected


def gather_blocks(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code)
    blocks = x.reshape(-1, BLOCK_BYTES // x.itemsize)
    places = np.random.default_rng(6).permutation(len(blocks))[:16]
    offsets = (places * BLOCK_BYTES).astype(np.uint32)
    dst = np.zeros(blocks[places].size, x.dtype)
    arguments = two_repeats(code)
    return run(op, dst, code, [(x, code), (offsets, "U32")], **arguments), blocks[places].ravel()


def gather_mask(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code, lanes_of(code))
    every_fourth = 3 << 1  # the first of four; the lowest bit says how to read the mask
    arguments = {"mask_form": "prefix", "mask": (x.size, 0), "mode": every_fourth}
    return run(op, np.zeros(x.size // 4, x.dtype), code, [(x, code)], **arguments), x[::4]


def reduce(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code, 500)
    actual = run(op, np.zeros(1, x.dtype), code, [(x, code), (x, code)], count=500)
    return actual, np.array([{"Sum": np.sum, "Max": np.max, "Min": np.min}[op[-3:]](x)], x.dtype)


def reduce_groups(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code, 2 * lanes_of(code))
    size = {"Whole": lanes_of(code), "Block": BLOCK_BYTES // x.itemsize, "Pair": 2}
    groups = x.reshape(-1, size[re.match("Whole|Block|Pair", op)[0]])  # type: ignore[index]
    expected = {"Sum": np.sum, "Max": np.max, "Min": np.min}[op[-3:]](groups, axis=1)
    arguments = {**two_repeats(code), "dst_repeat_stride": 1}  # in units of one repeat's results
    has_index = op in ("WholeReduceMax", "WholeReduceMin")  # behind each value
    dst = np.zeros(len(groups) * (2 if has_index else 1), x.dtype)
    return run(op, dst, code, [(x, code)], **arguments)[:: 2 if has_index else 1], expected


def compare(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = whole(code), whole(code)[::-1].copy()
    equal = 2
    arguments = {"count": 512, "mode": equal}
    if op == "CompareScalar":
        scalars = (bits_of(3, code), 0)
        actual = run(op, np.zeros(64, np.uint8), "U8", [(x, code)], scalars=scalars, **arguments)
        return actual, np.packbits(x == 3, bitorder="little")
    actual = run(op, np.zeros(64, np.uint8), "U8", [(x, code), (y, code)], **arguments)
    return actual, np.packbits(x == y, bitorder="little")


def select(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = whole(code), whole(code)[::-1].copy()
    chosen = np.random.default_rng(7).integers(0, 2, 512).astype(bool)
    bits = np.packbits(chosen, bitorder="little")
    sources = [(x, code), (y, code), (bits, "U8")]
    actual = run(op, np.zeros_like(x), code, sources, count=512, mode=2)
    return actual, np.where(chosen, x, y)


def transpose(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code)
    sizes = 1 << 48 | 8 << 32 | 8 << 16 | 8  # n, c, h, w
    nchw_to_nhwc = 11
    arguments = {"mode": nchw_to_nhwc, "scalars": (sizes, 0)}
    sources = [(x, code), (np.zeros(1, np.uint8), "U8")]
    return run(op, np.zeros_like(x), code, sources, **arguments), x.reshape(8, 64).T.ravel()


def sort(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x, indices = whole(code, 64), np.arange(64, dtype=np.uint32)
    actual = run(op, np.zeros(128, np.uint32), code, [(x, code), (indices, "U32")], repeat=2)
    order = [32 * r + np.argsort(-x[32 * r :][:32], kind="stable") for r in range(2)]
    return actual[1::2], np.concatenate(order).astype(np.uint32)


def sort_proposals(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code, 32 * 8).reshape(2, 16, 8)
    order = np.argsort(-x[:, :, 4], axis=1, kind="stable")
    expected = np.take_along_axis(x, order[:, :, None], axis=1).ravel()
    return run(op, np.zeros_like(expected), code, [(x.ravel(), code)], repeat=2), expected


def proposals(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    score = 4
    if op == "ProposalExtract":
        x = whole(code, 32 * 8)
        actual = run(op, np.zeros(32, x.dtype), code, [(x, code)], repeat=2, mode=score)
        return actual, x[score::8]
    x = whole(code, 32)
    expected = np.zeros(32 * 8, x.dtype)
    expected[score::8] = x
    return run(op, np.zeros_like(expected), code, [(x, code)], repeat=2, mode=score), expected


def fused_cast(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = whole(code), whole(code)[::-1].copy()
    to = {"F16": "S8", "S16": "S8", "F32": "F16"}[code]
    actual = run(op, np.zeros(512, TYPES[to]), to, [(x, code), (y, code)], count=512)
    if op == "MulCast":
        return actual, (x * y).astype(TYPES[to])
    return actual, np.maximum(x + y if op.startswith("Add") else x - y, 0).astype(TYPES[to])


def pad(op: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    x = whole(code)
    mirrored = 1
    actual = run(op, np.zeros_like(x), code, [(x, code)], count=512, mode=mirrored)
    return actual, x.reshape(-1, BLOCK_BYTES // x.itemsize)[:, ::-1].ravel()


FORMULAS: dict[str, Callable[[str, str], tuple[np.ndarray, np.ndarray]]] = {
    "Duplicate": fill,
    "CreateVecIndex": fill,
    "Copy": copy,
    "Brcb": spread,
    "Gather": gather,
    "Scatter": scatter,
    "Gatherb": gather_blocks,
    "GatherMask": gather_mask,
    "Compare": compare,
    "CompareScalar": compare,
    "Select": select,
    "Transpose": transpose,
    "Sort32": sort,
    "RpSort16": sort_proposals,
    "ProposalConcat": proposals,
    "ProposalExtract": proposals,
    "VectorPadding": pad,
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin"), reduce),
    **dict.fromkeys(("WholeReduceSum", "WholeReduceMax", "WholeReduceMin"), reduce_groups),
    **dict.fromkeys(("BlockReduceSum", "BlockReduceMax", "BlockReduceMin"), reduce_groups),
    "PairReduceSum": reduce_groups,
    **dict.fromkeys(("AddReluCast", "SubReluCast", "MulCast"), fused_cast),
}
ELSEWHERE = {
    "Cast": "test_vec_special.py and below, by pairs of types",
    "CompareRegister": "test_vec_fused.py: it needs the compare register",
    "GetCmpMask": "test_vec_fused.py",
    "SetCmpMask": "test_vec_fused.py",
    "AddDeqRelu": "test_vec_fused.py: it needs SetDeqScale",
    "CastDequant": "test_vec_fused.py: it needs SetDeqScale",
    "TransDataTo5HD": "test_vec_transpose.py: it takes lists",
    "MrgSort": "test_vec_sort.py: it takes lists",
    "MrgSort4": "test_vec_inference.py: it takes lists",
}
"""Rows whose instructions take more than operands, and where they are tested."""

SPECIAL = [row for row in _emulator.isa_table() if row["family"] == "vec_special"]
PAIRS = [
    (row["name"], code, arch)
    for row in SPECIAL
    for arch in CHIPS
    for code in row["dtypes"].get(arch, [])
    if row["name"] in FORMULAS
]


@pytest.fixture
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    _emulator.configure(**{**_emulator.configuration(), "chip": CHIPS[request.param]})
    yield


@pytest.mark.parametrize(("name", "code", "chip"), PAIRS, indirect=["chip"])
def test_an_instruction_does_to_each_type_what_numpy_does(name: str, code: str, chip: None) -> None:
    for target in _emulator.lane_targets():
        _emulator.set_lane_target(target)
        actual, expected = FORMULAS[name](name, code)
        np.testing.assert_array_equal(actual, expected, err_msg=target)
    _emulator.set_lane_target("auto")


def test_every_row_has_its_test() -> None:
    names = {row["name"] for row in SPECIAL}
    assert names == {*FORMULAS, *ELSEWHERE}


CASTS = [
    (source, destination)
    for source, destination in re.findall(
        r"^CAST\((\w+), +(\w+),",
        (emulator.include_dir() / "opkit" / "isa" / "vec_cast.inc").read_text(),
        re.MULTILINE,
    )
    if "S4" not in (source, destination)  # test_cast_int4.py
]


@pytest.mark.parametrize(("source", "destination"), CASTS)
def test_a_cast_keeps_whole_numbers_that_both_types_hold(source: str, destination: str) -> None:
    kinds = {code: np.dtype(np.float32) if code == "BF16" else TYPES[code] for code in TYPES}
    values = np.arange(100 if "U8" in (source, destination) else 120)
    if not {"U8", "U16"} & {source, destination}:
        values = values - 60

    def stored(code: str) -> np.ndarray:
        numbers = values.astype(kinds[code])
        return (numbers.view(np.uint32) >> 16).astype(np.uint16) if code == "BF16" else numbers

    for mode in (1, 0):  # CAST_RINT or, where it is not offered, CAST_NONE
        try:
            dst = np.zeros(len(values), TYPES[destination])
            sources = [(stored(source), source)]
            actual = run("Cast", dst, destination, sources, count=len(values), mode=mode)
            break
        except KernelFault:
            continue
    if (source, destination) == ("S32", "F16"):
        return  # multiplied by what SetDeqScale was given: test_vec_special.py
    np.testing.assert_array_equal(actual, stored(destination))


def test_pairs_of_instruction_and_type_are_counted() -> None:
    families = ("vec_unary", "vec_binary", "vec_binary_scalar")  # test_vec_elementwise.py
    elementwise = {
        (row["name"], code)
        for row in _emulator.isa_table()
        if row["family"] in families
        for code in row["dtypes"]["dav-2201"]
    }
    others = {(name, code) for name, code, _ in PAIRS}
    names = {name for name, _ in elementwise | others}
    total = len(elementwise) + len(others) + len(CASTS)
    print(
        f"\n{total} pairs of vector instruction and type against NumPy: "
        f"{len(elementwise)} elementwise, {len(others)} others, {len(CASTS)} of Cast; "
        f"{len(names) + 1} instructions"
    )
    assert elementwise and others and CASTS
