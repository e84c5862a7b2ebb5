"""Instructions that wait to run together leave the bits that they leave one by one, as under an observer."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.emulator import _emulator
from opkit.sanitizer import Check

UB_FLOATS = 40960
TWO_SOURCES = (
    *("Add", "Sub", "Mul", "Div", "Max", "Min", "AddRelu", "SubRelu"),
    *("MulAddDst", "FusedMulAdd", "MulAddRelu"),
)
ONE_SOURCE = ("Abs", "Exp", "Ln", "Sqrt", "Rsqrt", "Reciprocal", "Relu")
SCALAR = ("Adds", "Muls", "Maxs", "Mins", "LeakyRelu", "Axpy")
CASTS = ("FromHalf", "ToHalf", "FromBfloat16", "ToBfloat16", "RoundToHalf", "ToHalfAndBack")
OTHERS = ("PipeBarrier", "Duplicate", "GetValue", "ReduceSum", "Repeats")
NAMES = (*TWO_SOURCES, *ONE_SOURCE, *SCALAR, *CASTS, *OTHERS)
CASES = {
    **{name: f"{name}(dst, a, b, count);" for name in TWO_SOURCES},
    **{name: f"{name}(dst, a, count);" for name in ONE_SOURCE},
    **{name: f"{name}(dst, a, scalar, count);" for name in SCALAR},
    "FromHalf": "Cast(dst, a.ReinterpretCast<half>(), RoundMode::CAST_NONE, count);",
    "ToHalf": "Cast(dst.ReinterpretCast<half>(), a, RoundMode::CAST_NONE, count);",
    "FromBfloat16": "Cast(dst, a.ReinterpretCast<bfloat16_t>(), RoundMode::CAST_NONE, count);",
    "ToBfloat16": "Cast(dst.ReinterpretCast<bfloat16_t>(), a, RoundMode::CAST_RINT, count);",
    "RoundToHalf": "Cast(dst.ReinterpretCast<half>(), a, RoundMode::CAST_ODD, count);",
    "ToHalfAndBack": "Cast(dst.ReinterpretCast<half>(), a, RoundMode::CAST_NONE, count);"
    " Cast(a, dst.ReinterpretCast<half>(), RoundMode::CAST_NONE, count);",
    "PipeBarrier": "PipeBarrier<PIPE_V>();",
    "Duplicate": "Duplicate(dst, scalar, count);",
    "GetValue": "Adds(dst, a, a.GetValue(count - 1), count);",
    "ReduceSum": "WholeReduceSum(dst, a, 64, count / 64, 1, 1, 8);",
    "Repeats": "Mul(dst, a, b, 64, count / 64, {1, 1, 1, 8, 8, 8});",
}
TEXT = """
struct Step { uint32_t op, dst, a, b, count; float scalar; };
extern "C" __global__ __aicore__ void kernel(GM_ADDR memory, GM_ADDR program, GM_ADDR steps) {
  LocalTensor<float> ub(TPosition::VECCALC, 0, %(floats)d);
  GlobalTensor<float> global;
  global.SetGlobalBuffer((__gm__ float*)memory, %(floats)d);
  DataCopy(ub, global, %(floats)d);
  PipeBarrier<PIPE_ALL>();
  const uint32_t count_of_steps = *reinterpret_cast<const uint32_t*>(steps);
  for (uint32_t i = 0; i < count_of_steps; ++i) {
    const Step& step = reinterpret_cast<const Step*>(program)[i];
    const LocalTensor<float> dst = ub[step.dst], a = ub[step.a], b = ub[step.b];
    const float scalar = step.scalar;
    const int32_t count = step.count;
    switch (step.op) {
%(cases)s
    }
  }
  PipeBarrier<PIPE_ALL>();
  DataCopy(global, ub, %(floats)d);
}
"""
ROWS = "\n".join(f"      case {i}: {CASES[name]} break;" for i, name in enumerate(NAMES))
KERNEL = TEXT % {"floats": UB_FLOATS, "cases": ROWS}
STEP = np.dtype([(field, "u4") for field in ("op", "dst", "a", "b", "count")] + [("scalar", "f4")])


def random_program(rng: np.random.Generator, waits_only: bool) -> np.ndarray:
    """Return steps, most of them on a few places of one size, as kernels have them."""
    size = int(rng.choice([512, 640, 1000, 1111, 2000]))
    apart = -(-size // 8) * 8
    places = rng.permutation(UB_FLOATS // apart)[: rng.integers(3, 16)] * apart
    steps = np.zeros(rng.integers(2, 90), STEP)
    last = places[0]
    for step in steps:
        if waits_only or rng.random() < 0.85:
            name = rng.choice(NAMES[: -len(OTHERS)])
        else:
            name = rng.choice(OTHERS, p=(0.4, 0.2, 0.02, 0.18, 0.2))
        step["op"] = NAMES.index(name)
        step["dst"], step["a"], step["b"] = rng.choice(places, 3)
        if rng.random() < 0.5:
            step["a"] = step["dst"] = last
        elif rng.random() < 0.3:
            step["b"] = last
        if rng.random() < 0.05 and not waits_only:
            step["dst"] += 8 * rng.integers(-1, 2) if step["dst"] >= 8 else 8
        step["count"] = size if rng.random() < 0.95 else size // 2
        step["dst"] = min(step["dst"], UB_FLOATS - 2 * apart)
        step["scalar"] = rng.choice([0.5, -1.0, 1.25, 0.0, -0.0, 3e38, np.nan])
        last = step["dst"]
    return steps


@pytest.fixture(scope="module")
def memory() -> np.ndarray:
    values = np.random.default_rng(1).normal(size=UB_FLOATS).astype(np.float32)
    strange = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, -1e38, 100.0], np.float32)
    values[::97] = np.resize(strange, values[::97].size)
    return values


def outcomes(kernel: object, memory: np.ndarray, program: np.ndarray) -> list[np.ndarray]:
    """Return what UB holds after the program: as it is, and with everything watched."""
    found = []
    for is_watched in (False, True):
        given = memory.copy()
        arguments = (given, program.view(np.uint8), np.array([len(program)], np.uint32))
        if is_watched:
            with Check(()):
                kernel(*arguments)
        else:
            kernel(*arguments)
        found.append(given.view(np.uint32))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", _emulator.lane_targets())
@pytest.mark.parametrize("waits_only", [True, False])
def test_random_programs_leave_the_same_bits(compile_kernel, memory, target, waits_only) -> None:
    kernel = compile_kernel(KERNEL)
    _emulator.set_lane_target(target)
    try:
        for seed in range(40):
            program = random_program(np.random.default_rng(seed), waits_only)
            alone, watched = outcomes(kernel, memory, program)
            np.testing.assert_array_equal(alone, watched, err_msg=f"seed {seed}")
    finally:
        _emulator.set_lane_target("auto")


def test_every_elementwise_instruction_on_floats_is_among_them() -> None:
    families = ("vec_unary", "vec_binary", "vec_binary_scalar")
    rows = [row for row in _emulator.isa_table() if row["family"] in families]
    assert {row["name"] for row in rows if "F32" in row["dtypes"]["dav-2201"]} <= set(NAMES)
