"""How many cores a launch takes, by the law of launches."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.compiler.codegen import fair_cores
from opkit.emulator import library_path
from opkit.profiling import Profile

CHIP = find_chip(DEFAULT_CHIP)
ALL = CHIP.count("cores.aiv")


class Work(ctypes.Structure):
    """`opkit_core_work`."""

    _fields_ = (
        ("vector_cycles", ctypes.c_double),
        ("read_bytes", ctypes.c_double),
        ("written_bytes", ctypes.c_double),
    )


def test_a_small_launch_takes_the_cores_that_make_it_shortest() -> None:
    # Every launch used to take all cores that had a tile: their launch was longer than the work.
    def timed(choices: oc.Choices | None) -> float:
        kernel = oc.compile(
            lambda x: x.apply("sigmoid"),
            oc.TensorSpec("x", (256, 1024), "float16"),
            choices=choices,
        )
        with Profile(event_limit=0) as session:
            kernel(np.ones((256, 1024), np.float16))
        return session.timelines[0].task_us

    best = min(timed(oc.Choices(cores=cores)) for cores in (6, 8, 12, 16, 24))
    own = timed(None)
    assert own < 1.05 * best
    assert own < 0.7 * timed(oc.Choices(cores=ALL))


@pytest.mark.parametrize("cycles", [0.05, 0.5])
@pytest.mark.parametrize("read", [0, 2, 8])
def test_the_device_and_the_compiler_take_the_same_cores(cycles: float, read: int) -> None:
    library = ctypes.CDLL(str(library_path()))
    for elements in (1, 4096, 1 << 18, 1 << 20, 1 << 23, 1 << 26):
        ours = fair_cores(
            CHIP, elements, ALL, vector_cycles=cycles, read_bytes=read, written_bytes=2
        )
        work = Work(cycles * elements, read * elements, 2 * elements)
        theirs = library.opkit_fair_cores(ctypes.byref(work))
        assert abs(ours - theirs) <= 1
        assert 1 <= ours <= ALL


def test_copies_alone_take_no_more_cores_than_keep_hbm_busy() -> None:
    cores = fair_cores(CHIP, 1 << 26, ALL, vector_cycles=0.01, read_bytes=8, written_bytes=4)
    rate = CHIP.number("timing.mte2.bytes_per_cycle") * CHIP.number("clock.mhz") * 1e6
    busy = CHIP.number("timing.hbm.bytes_per_second") / rate
    assert busy < cores < 1.5 * busy


def test_short_rows_are_copied_by_several_cores() -> None:
    # A row that is no whole blocks is a copy of its own: one core did 1024 of them, 77 us.
    kernel = oc.compile(lambda x: x.apply("softmax"), oc.TensorSpec("x", (1024, 4), "float32"))
    (x,) = oc.random_arrays(kernel.graph, {})
    (launch,) = kernel.launches({})
    assert 8 <= launch.block_dim < ALL
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-5)
    # Rows of whole blocks are one copy.
    wide = oc.compile(lambda x: x.apply("softmax"), oc.TensorSpec("x", (128, 32), "float32"))
    (launch,) = wide.launches({})
    assert launch.block_dim <= 4


def test_few_rows_of_a_table_are_taken_by_few_cores() -> None:
    # A table that UB does not hold: where it does, one core gathers all of them at once.
    specs = (oc.TensorSpec("x", (5000, 16), "float32"), oc.TensorSpec("i", (60,), "int32"))
    kernel = oc.compile(lambda x, i: x.apply("take", i, axis=0), *specs)
    (launch,) = kernel.launches({})
    assert 1 < launch.block_dim < 16
    x, i = np.random.rand(5000, 16).astype("f"), np.random.randint(-5000, 5000, 60, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x, i), x[i])
