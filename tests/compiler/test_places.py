"""Elements that are picked, put and added where tensors say, under every check."""

from __future__ import annotations

import ctypes
import subprocess
from itertools import accumulate
from math import prod
from pathlib import Path

import numpy as np
import pytest

from opkit import compiler as oc
from opkit import kernels
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.launch.placed_moves import MOST_AXES, PlacedAxis, PlacedMove
from opkit.errors import KernelFault
from opkit.sanitizer import Check
from opkit.toolchain import find_compiler

RANDOM = np.random.default_rng(5)

PICKED = {
    "each element its own place": ((6, 50), (12, 50), 0, "float16"),
    "places along the last axis": ((30, 4, 9), (30, 4, 7), -1, "int8"),
    "whole rows, by one place each": ((7, 3, 20), (1, 5, 1), 1, "float32"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if at == 0 else pytest.mark.slow)
        for at, name in enumerate(PICKED)
    ],
)
def test_what_is_picked_along_an_axis_is_what_numpy_picks(name: str) -> None:
    shape, places, axis, dtype = PICKED[name]
    kernel = oc.compile(
        lambda x, index: x.apply("take_along", index, axis=axis),
        *(Spec("x", shape, dtype), Spec("index", places, "int32")),
    )
    x = RANDOM.integers(-99, 99, shape).astype(dtype)
    index = RANDOM.integers(-shape[axis], shape[axis], places).astype(np.int32)
    with Check(()) as checks:
        actual = kernel(x, index)
    assert not checks.findings, checks.findings[0]
    np.testing.assert_array_equal(actual, np.take_along_axis(x, index, axis))


@pytest.mark.parametrize(
    ("dtype", "axis", "is_added"),
    [
        ("float32", 0, True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("float16", 0, False), ("int32", 1, True), ("float16", 1, True))
        ),
    ],
)
def test_what_is_put_or_added_is_what_numpy_gives(dtype: str, axis: int, is_added: bool) -> None:
    kernel = _put(dtype, axis, is_added)
    x = RANDOM.integers(-9, 9, (6, 8) if axis == 0 else (150, 8)).astype(dtype)
    source = RANDOM.integers(-9, 9, (4, 8) if axis == 0 else (150, 4)).astype(dtype)
    # Each place once where elements replace others: which one is last is not said.
    index = np.array([4, 0, 2, 5] if not is_added else [4, 0, 4, -1], np.int32)
    index = index.reshape(4, 1) if axis == 0 else np.tile(index, (150, 1))
    with Check(()) as checks:
        actual = kernel(x, index, source)
    assert not checks.findings, checks.findings[0]
    expected = x.copy()
    for at in range(4):
        for other in range(source.shape[1 - axis]):
            here = (at, other) if axis == 0 else (other, at)
            place = index[at, 0] if axis == 0 else index[other, at]
            there = (place, other) if axis == 0 else (other, place)
            expected[there] = expected[there] * is_added + source[here]
    np.testing.assert_array_equal(actual, expected)


def _put(dtype: str, axis: int, is_added: bool) -> oc.Compiled:
    return oc.compile(
        lambda x, index, source: x.apply("put_along", index, source, axis=axis, add=is_added),
        Spec("x", (6, 8) if axis == 0 else (150, 8), dtype),
        Spec("index", (4, 1) if axis == 0 else (150, 4), "int32"),
        Spec("source", (4, 8) if axis == 0 else (150, 4), dtype),
    )


@pytest.mark.slow
def test_gradients_go_where_elements_came_from() -> None:
    graph = oc.gradient(oc.trace(lambda x: x.topk(3, axis=1)[0], [Spec("x", (4, 10))]))
    x = RANDOM.permutation(40).astype(np.float32).reshape(4, 10)
    given = {"x": x, "grad_y": RANDOM.normal(size=(4, 3)).astype(np.float32)}
    actual = oc.compile(graph)(*(given[tensor.name] for tensor in graph.inputs))
    expected = np.zeros((4, 10), np.float32)
    np.put_along_axis(expected, np.argsort(-x, axis=1)[:, :3], given["grad_y"], axis=1)
    np.testing.assert_array_equal(actual, expected)


def test_places_that_are_no_places_are_refused() -> None:
    with pytest.raises(oc.GraphError, match="indices are int8, expected int32"):
        oc.trace(
            lambda x, i: x.apply("take_along", i, axis=0),
            [Spec("x", (4,)), Spec("i", (2,), "int8")],
        )
    with pytest.raises(oc.GraphError, match=r"indices of \[3, 2\] do not lie along axis 0"):
        oc.trace(
            lambda x, i: x.apply("take_along", i, axis=0),
            [Spec("x", (4, 5)), Spec("i", (3, 2), "int32")],
        )


@pytest.mark.slow
def test_a_place_outside_of_the_tensor_is_a_fault_at_the_users_line() -> None:
    kernel = oc.compile(
        lambda x, i: x.apply("take_along", i, axis=0), Spec("x", (4,)), Spec("i", (2,), "int32")
    )
    with pytest.raises(KernelFault, match="MEM-BOUNDS") as fault:
        kernel(np.zeros(4, np.float32), np.array([1, 999], np.int32))
    assert __file__ in str(fault.value)


# Columns of which a core has all places; lines; batches; a width that no block of 32 bytes divides.
BLOCKS = (((60, 70), (33, 70), 0), ((50, 300), (50, 101), 1), ((2, 60, 35), (2, 33, 35), 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(("shape", "picked", "axis"), BLOCKS)
def test_blocks_of_a_table_are_picked_and_put(
    shape: tuple[int, ...], picked: tuple[int, ...], axis: int, dtype: str
) -> None:
    # The scalar unit went to global memory for each; what was put along another axis had one core.
    rng = np.random.default_rng(4)
    x, source = rng.integers(0, 99, shape).astype(dtype), rng.integers(0, 99, picked).astype(dtype)
    places = rng.integers(-shape[axis], shape[axis], picked).astype(np.int32)
    specs = (Spec("x", shape, dtype), Spec("i", picked, "int32"), Spec("s", picked, dtype))
    take = oc.compile(lambda x, i: x.apply("take_along", i, axis=axis), *specs[:2], name="take")
    put = oc.compile(
        lambda x, i, s: x.apply("put_along", i, s, axis=axis), *specs, name="put_in_order"
    )
    with Check(()) as checks:
        taken, there = take(x, places), put(x, places, source)
    assert not checks.findings, checks.findings[0]
    np.testing.assert_array_equal(taken, np.take_along_axis(x, places, axis))
    expected = x.copy()
    for at in np.ndindex(*picked):
        to = list(at)
        to[axis] = int(places[at])
        expected[tuple(to)] = source[at]
    np.testing.assert_array_equal(there, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_added_at_one_place_is_summed_in_its_block(dtype: str) -> None:
    x, source = np.ones((8, 40), dtype), np.full((30, 40), 2, dtype)
    places = np.zeros((30, 40), np.int32)
    kernel = oc.compile(
        lambda x, i, s: x.apply("put_along", i, s, axis=0, add=True),
        *(
            Spec("x", x.shape, dtype),
            Spec("i", places.shape, "int32"),
            Spec("s", source.shape, dtype),
        ),
        name="added_in_blocks",
    )
    np.testing.assert_array_equal(kernel(x, places, source)[:2, 0], [61, 1])


@pytest.mark.parametrize("place", [60, -61])
def test_a_place_beyond_a_block_is_a_fault(place: int) -> None:
    places = np.zeros((33, 70), np.int32)
    places[20, 69] = place
    kernel = oc.compile(
        lambda x, i: x.apply("take_along", i, axis=0),
        *(Spec("x", (60, 70)), Spec("i", places.shape, "int32")),
        name="take",
    )
    with pytest.raises(KernelFault):
        kernel(np.zeros((60, 70), np.float32), places)


DIMS = ctypes.c_int64 * MOST_AXES
KINDS = {"float32": 0, "float16": 1, "bfloat16": 2, "int32": 3, "int16": 4, "int8": 5, "int64": 8}


class Indices(ctypes.Structure):
    """`ElementsPlan::indices` of opkit/kernels/plans.h."""

    _fields_ = (("strides", DIMS), ("size", ctypes.c_int64), ("table_stride", ctypes.c_int64))


class ElementsPlan(ctypes.Structure):
    """As opkit/kernels/plans.h has it; the library says whether its size is right."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("element_bytes", "action", "kind", "index_count")),
        *((name, ctypes.c_uint32) for name in ("index_bytes", "has_rows", "cores")),
        *((name, ctypes.c_uint32) for name in ("rows_together", "width", "reserved")),
        ("table_offset", ctypes.c_int64),
        *((name, DIMS) for name in ("sizes", "plain_strides", "table_strides")),
        ("indices", Indices * 4),
    )


@pytest.fixture(scope="module")
def of_device(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("block_width")
    source, library = folder / "width.cpp", folder / "width.so"
    source.write_text(
        '#include "block_width.h"\nusing namespace opkit::kernels;\n'
        'extern "C" uint32_t plan_bytes() { return sizeof(ElementsPlan); }\n'
        'extern "C" uint32_t width(const ElementsPlan* p, int64_t cores, int64_t* units) {\n'
        "  return block_width(*p, cores, *units);\n}\n"
    )
    flags = ["-std=c++17", "-shared", "-fPIC", "-I", str(Path(kernels.folder()))]
    subprocess.run([*find_compiler().argv, *flags, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def steps(shape: tuple[int, ...]) -> list[int]:
    """Return the steps of a contiguous tensor, the innermost first."""
    return list(accumulate((1, *shape[::-1]), lambda a, b: a * b))[:-1]


def test_the_compiler_and_the_device_cut_tables_alike(of_device: ctypes.CDLL) -> None:
    # One rule stands in Python and in C++, and nothing held them together.
    assert of_device.plan_bytes() == ctypes.sizeof(ElementsPlan)
    random = np.random.default_rng(11)
    widths = set()
    for _ in range(4000):
        rank = int(random.integers(1, MOST_AXES + 1))
        plain = tuple(int(n) for n in random.choice([1, 2, 3, 8, 33, 64, 100, 2048], rank))
        axis = int(random.integers(rank))
        places = int(random.choice([1, 5, 64, 1000, 30000, 60000]))
        table = (*plain[:axis], places, *plain[axis + 1 :])
        table_steps = steps(table)
        table_steps[rank - 1 - axis] = 0
        index_steps = [0] * rank if random.random() < 0.1 else steps(plain)
        rows = zip(plain[::-1], steps(plain), table_steps, index_steps, strict=True)
        dtype = str(random.choice(list(KINDS)))
        size = {"bfloat16": 2}.get(dtype) or np.dtype(dtype).itemsize
        move = PlacedMove(
            action=int(random.integers(3)),
            axes=tuple(map(PlacedAxis._make, rows)),
            has_rows=bool(random.random() < 0.1),
            most_cores=0,
            rows_together=1,
            places=places,
            place_step=prod(table[axis + 1 :]),
        )
        cores = int(random.integers(1, 49))
        plan = ElementsPlan(size, move.action, KINDS[dtype], 1, 4, move.has_rows)
        plan.sizes[:] = [*plain[::-1], *[1] * (MOST_AXES - rank)]
        for at, each in enumerate(move.axes):
            plan.plain_strides[at], plan.table_strides[at] = each.plain_step, each.table_step
            plan.indices[0].strides[at] = each.index_step
        plan.indices[0].size, plan.indices[0].table_stride = move.places, move.place_step
        units = ctypes.c_int64(0)
        width = of_device.width(ctypes.byref(plan), ctypes.c_int64(cores), ctypes.byref(units))
        expected = move.block_width(size, dtype, cores)
        assert (width, units.value if width else 0) == expected, (move, dtype, cores)
        widths.add(width)
    assert len(widths) > 20
