"""Reductions of repeats that are found many at a time: the same as one after the other, on every target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from opkit.emulator import _emulator

BLOCK, REPEAT = 32, 256
TYPES = {"F16": np.float16, "F32": np.float32}
NAMES = [
    *(f"{group}Reduce{kind}" for group in ("Whole", "Block") for kind in ("Sum", "Max", "Min")),
    "PairReduceSum",
]
ONLY_VALUE = 2


@pytest.fixture(params=_emulator.lane_targets(), autouse=True)
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    _emulator.set_lane_target(request.param)
    yield request.param
    _emulator.set_lane_target("auto")


def reduce_one(name: str, lanes: np.ndarray) -> np.ndarray:
    """Return what one repeat gives, neighbours first; of equal zeros the one behind."""
    group = lanes.size
    if name.startswith("Block"):
        group = BLOCK // lanes.itemsize
    elif name.startswith("Pair"):
        group = 2
    values = lanes.reshape(-1, group)
    while values.shape[1] > 1:
        a, b = values[:, 0::2], values[:, 1::2]
        if name.endswith("Sum"):
            values = (a + b).astype(lanes.dtype)
        else:
            wins = a > b if name.endswith("Max") else a < b
            values = np.where(wins | np.isnan(a), a, b)
    return values[:, 0]


def run(
    name: str,
    code: str,
    memory: np.ndarray,
    places: tuple[int, int],
    strides: tuple[int, int],
    repeat: int,
) -> np.ndarray:
    changed = memory.copy()
    kind = TYPES[code]
    _emulator.issue(
        name,
        changed.view(np.uint8),
        (places[0], code, 1, strides[0]),
        [(places[1], code, 1, strides[1])],
        mask_form="prefix",
        mask=(REPEAT // np.dtype(kind).itemsize, 0),
        repeat=repeat,
        mode=0 if name.endswith("Sum") or name.startswith("Block") else ONLY_VALUE,
    )
    return changed


def expected(
    name: str, memory: np.ndarray, places: tuple[int, int], strides: tuple[int, int], repeat: int
) -> np.ndarray:
    result = memory.copy()
    size = memory.itemsize
    for i in range(repeat):
        first = (places[1] + i * strides[1] * BLOCK) // size
        values = reduce_one(name, result[first : first + REPEAT // size])
        to = places[0] // size + i * strides[0] * values.size
        result[to : to + values.size] = values
    return result


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("places", "strides", "repeat"),
    [
        ((0, 16384), (1, 8), 37),
        ((0, 16384), (2, 8), 21),
        ((0, 16384), (1, 11), 19),
        ((0, 16384), (1, 2), 35),
        ((16384, 16384), (1, 8), 20),  # results over what is read: the repeats come in order
        ((16384 + 1024, 16384), (1, 8), 20),
    ],
)
def test_repeats_are_reduced_one_after_the_other(
    name: str, code: str, places: tuple[int, int], strides: tuple[int, int], repeat: int
) -> None:
    rng = np.random.default_rng(3)
    memory = rng.normal(0, 3, 65536 // np.dtype(TYPES[code]).itemsize).astype(TYPES[code])
    memory[rng.integers(0, memory.size, 200)] = np.inf
    np.testing.assert_array_equal(
        run(name, code, memory, places, strides, repeat),
        expected(name, memory, places, strides, repeat),
    )


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("Sum")])
def test_of_zeros_of_both_signs_the_last_one_is_the_extreme(name: str, code: str) -> None:
    rng = np.random.default_rng(5)
    memory = np.zeros(32768 // np.dtype(TYPES[code]).itemsize, TYPES[code])
    memory[rng.random(memory.size) < 0.5] *= -1.0
    if name.endswith("Max"):
        memory[::3] = -1
    else:
        memory[::3] = 1
    for strides in ((1, 8), (1, 9)):
        found = run(name, code, memory, (0, 8192), strides, 20)
        np.testing.assert_array_equal(
            np.signbit(found), np.signbit(expected(name, memory, (0, 8192), strides, 20))
        )


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("name", ["WholeReduceMax", "BlockReduceMax", "WholeReduceMin"])
def test_a_nan_is_the_extreme_of_its_lanes_and_of_no_others(name: str, code: str) -> None:
    memory = np.ones(32768 // np.dtype(TYPES[code]).itemsize, TYPES[code])
    lanes = REPEAT // memory.itemsize
    memory[8192 // memory.itemsize + 17 * lanes + 5] = np.nan
    results = run(name, code, memory, (0, 8192), (1, 8), 20)[
        : 20 * (8 if name.startswith("Block") else 1)
    ]
    where = np.flatnonzero(np.isnan(results))
    assert where.tolist() == [17 * (8 if name.startswith("Block") else 1)]
