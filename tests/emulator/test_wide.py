"""The wider run beside a kernel's own: values, traces, what is not followed; and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkit.dtypes import find_dtype
from opkit.schema import OpSpec, TensorSpec
from opkit.testing import (
    explain_case,
    explanation_text,
    find_reference,
    find_standard,
    make_case,
    make_inputs,
)

COUNT = 256
KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  using T = %(type)s;
  GlobalTensor<T> in, out;
  in.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * 128, 128);
  out.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * 128, 128);
  LocalTensor<T> a(TPosition::VECIN, 0, 128), b(TPosition::VECOUT, 4096, 128);
  LocalTensor<T> c(TPosition::VECCALC, 8192, 128), work(TPosition::VECCALC, 16384, 128);
  DataCopy(a, in, 128);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, b, 128);
}
"""
TYPES = {"half": np.float16, "float": np.float32}


@contextmanager
def wide(is_double: bool = True, core: int = -1) -> Iterator[Any]:
    from opkit.emulator import _emulator

    settings = _emulator.configuration()
    _emulator.configure(**{**settings, "threads": 1})
    _emulator.begin_wide(is_double=is_double, traced_core=core)
    try:
        yield _emulator
    finally:
        _emulator.end_wide()
        _emulator.configure(**settings)


def run(
    compile_kernel: Callable[..., Any], body: str, x: np.ndarray, *, is_double: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the result and its wider form, of two blocks of 128 elements each."""
    kind = {np.dtype(np.float16): "half", np.dtype(np.float32): "float"}[x.dtype]
    kernel = compile_kernel(KERNEL % {"type": kind, "body": body})
    y = np.zeros_like(x)
    with wide(is_double) as emulator:
        kernel(x, y, block_dim=2)
        values, cores, stores = emulator.wide_values(y)
    assert cores.tolist() == [0] * 128 + [1] * 128
    assert set(stores.tolist()) == {0}
    return y, np.asarray(values)


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 2, COUNT).astype(np.float16)


# Rows of every kind, and the moves: what the kernel does, the same in float64.
BODIES = {
    "binary": ("Mul(b, a, a, 128);", lambda x: x * x),
    "unary": ("Exp(b, a, 128);", np.exp),
    "scalar": ("Adds(b, a, (T)1000, 128);", lambda x: x + 1000),
    "three steps": (
        "Mul(b, a, a, 128); Adds(b, b, (T)1000, 128); Adds(b, b, (T)-1000, 128);",
        lambda x: x * x,
    ),
    "old value": ("Mul(b, a, a, 128); MulAddDst(b, a, a, 128);", lambda x: 2 * x * x),
    "a mask": (
        "Duplicate(b, (T)0, 128); Exp(b, a, (uint64_t)16, 1, {1, 1, 8, 8});",
        lambda x: np.where(np.arange(COUNT) % 128 < 16, np.exp(x), 0),
    ),
    # Each repeat adds to what the one before wrote.
    "a sum of repeats": (
        "Duplicate(b, (T)0, 128); Add(b, a, b, (uint64_t)64, 2, {1, 1, 1, 0, 4, 0});",
        lambda x: np.where(
            np.arange(COUNT) % 128 < 64, x.reshape(2, 2, 64).sum(1).repeat(2, 0).reshape(-1), 0
        ),
    ),
    "a copy on the chip": ("Exp(c, a, 128); DataCopy(b, c, 128);", np.exp),
    "a selection": (
        "Exp(c, a, 128); Duplicate(work, (T)0, 128);"
        "CompareScalar(work.template ReinterpretCast<uint8_t>(), a, (T)1, CMPMODE::GT, 128);"
        "Select(b, work.template ReinterpretCast<uint8_t>(), c, a,"
        " SELMODE::VSEL_TENSOR_TENSOR_MODE, 128);",
        lambda x: np.where(x > 1, np.exp(x), x),
    ),
    "a sum": (
        "Duplicate(b, (T)0, 128); Exp(c, a, 128); ReduceSum(b, c, work, 128);",
        lambda x: np.where(
            np.arange(COUNT) % 128 == 0, np.exp(x.reshape(2, 128)).sum(1).repeat(128), 0
        ),
    ),
    # Each repeat writes over the sum of the one before; the wider value was the sum of both.
    "a sum over another": (
        "Duplicate(b, (T)0, 128); Exp(c, a, 128); WholeReduceSum(b, c, 64, 2, 0, 1, 4);",
        lambda x: np.where(
            np.arange(COUNT) % 128 == 0, np.exp(x.reshape(2, 2, 64))[:, 1].sum(1).repeat(128), 0
        ),
    ),
    "a largest": (
        "Duplicate(b, (T)0, 128); Exp(c, a, 128); ReduceMax(b, c, work, 128, false);",
        lambda x: np.where(
            np.arange(COUNT) % 128 == 0, np.exp(x.reshape(2, 128)).max(1).repeat(128), 0
        ),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BODIES)
def test_the_wider_values_are_those_of_float64(
    compile_kernel: Callable[..., Any], x: np.ndarray, name: str
) -> None:
    body, expected = BODIES[name]
    result, values = run(compile_kernel, body, x)
    right = expected(x.astype(np.float64))
    np.testing.assert_allclose(values, right, rtol=1e-12)
    # The run itself stays as it is: in half.
    assert np.abs(result.astype(np.float64) - right).max() > 1e-6 or name == "a largest"


def test_single_precision_lies_between(compile_kernel: Callable[..., Any], x: np.ndarray) -> None:
    body, expected = BODIES["three steps"]
    right = expected(x.astype(np.float64))
    half, single = run(compile_kernel, body, x, is_double=False)
    error = np.abs(single - right).max()
    assert 1e-6 < error < 1e-3 < np.abs(half - right).max()


def test_a_write_that_nothing_tells_of_voids_the_wider_value(
    compile_kernel: Callable[..., Any], x: np.ndarray
) -> None:
    body = "Exp(b, a, 128); PipeBarrier<PIPE_ALL>(); b.SetValue(3, (T)7); PipeBarrier<PIPE_ALL>();"
    _, values = run(compile_kernel, body, x)
    assert values[3] == 7 and values[4] == pytest.approx(np.exp(float(x[4])), rel=1e-12)


def test_a_trace_has_the_instructions_that_led_to_an_element(
    compile_kernel: Callable[..., Any], x: np.ndarray
) -> None:
    kernel = compile_kernel(KERNEL % {"type": "half", "body": BODIES["three steps"][0]})
    y = np.zeros_like(x)
    with wide(core=1) as emulator:
        kernel(x, y, block_dim=2)
        steps = emulator.wide_trace(y, 130)
        assert emulator.wide_trace(y, 2) == []
    assert [step["op"] for step in steps] == ["DataCopy", "Mul", "Adds", "Adds"]
    assert steps[0]["gm_address"] == x.ctypes.data + 2 * 130
    assert steps[1]["operands"] == [float(x[130])] * 2
    assert [step["scalar"] for step in steps] == [None, None, 1000.0, -1000.0]
    assert [step["instruction"] for step in steps] == sorted(step["instruction"] for step in steps)


def test_a_trace_goes_through_the_repeats_of_an_instruction(
    compile_kernel: Callable[..., Any], x: np.ndarray
) -> None:
    kernel = compile_kernel(KERNEL % {"type": "half", "body": BODIES["a sum of repeats"][0]})
    y = np.zeros_like(x)
    with wide(core=0) as emulator:
        kernel(x, y, block_dim=2)
        steps = emulator.wide_trace(y, 3)
    assert [step["op"] for step in steps if step["op"] != "DataCopy"] == ["Duplicate", "Add", "Add"]
    assert {step["gm_address"] - x.ctypes.data for step in steps if step["gm_address"]} == {6, 134}
    first, second = (step for step in steps if step["op"] == "Add")
    assert first["operands"] == [float(x[3]), 0.0] and first["actual"] == float(x[3])
    assert second["operands"] == [float(x[67]), float(x[3])]


def test_what_is_not_followed_is_named(compile_kernel: Callable[..., Any], x: np.ndarray) -> None:
    kernel = compile_kernel(
        KERNEL
        % {
            "type": "half",
            "body": "Exp(c, a, 128); PipeBarrier<PIPE_ALL>();"
            "const float first = c.GetValue(0); Adds(b, a, (T)(first * 2.f), 128);",
        }
    )
    y = np.zeros_like(x)
    with wide() as emulator:
        kernel(x, y, block_dim=2)
        (one,) = emulator.wide_unfollowed()
    assert (one["op"], one["count"]) == ("GetValue", 2)


class KernelLibrary:
    """An operator library of one kernel."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def run(self, op_type: str, inputs: Sequence[Any], attrs: Any, **given: Any) -> list[Any]:
        y = np.zeros_like(inputs[0])
        self.kernel(inputs[0], y, block_dim=2)
        return [y]


def explain(compile_kernel: Callable[..., Any], body: str, formula: Any) -> Any:
    half = find_dtype("float16")
    assert half is not None
    tensor = TensorSpec("x", "required", (half,), ("ND",))
    spec = OpSpec("Op", "op", (tensor,), (replace(tensor, name="y"),), (), Path("op.json"))
    golden: Any = SimpleNamespace(
        path=Path("golden.py"),
        has=lambda kernel: True,
        reference=lambda kernel, inputs, attrs: (formula(inputs[0]),),
    )
    case = replace(make_case(spec, (COUNT,)), distribution="uniform")
    reference = find_reference(case, spec, golden, wants_second=False)
    assert reference is not None and make_inputs(case)
    kernel = compile_kernel(KERNEL % {"type": "half", "body": body})
    return explain_case(reference, KernelLibrary(kernel), find_standard("ecosystem"))


def test_too_low_a_precision_is_told_with_the_instruction(
    compile_kernel: Callable[..., Any],
) -> None:
    (found,) = explain(compile_kernel, BODIES["three steps"][0], lambda x: x * x)
    assert found.verdict == "precision"
    # float32 holds 1000 + x to six digits, more than the standard asks of a half.
    assert found.double.passed and found.single.passed
    assert found.culprit is not None
    # The sum with 1000 is off by half of its last place; once 1000 is gone that is all of it.
    assert (found.culprit.op, found.culprit.scalar) == ("Adds", -1000.0)
    text = explanation_text(found)
    assert (
        "The same instructions in single precision meet" in text
        and "first exceeds its share" in text
    )
    assert "x[" in text


def test_a_wrong_algorithm_is_told_apart(compile_kernel: Callable[..., Any]) -> None:
    (found,) = explain(compile_kernel, BODIES["binary"][0], lambda x: x * x * 1.5)
    assert found.verdict == "algorithm"
    assert found.culprit is None
    assert "the algorithm is wrong" in explanation_text(found)


def test_elements_that_nothing_wrote_are_told(compile_kernel: Callable[..., Any]) -> None:
    body = "Exp(b, a, 128); PipeBarrier<PIPE_ALL>(); if (GetBlockIdx() == 1) return;"
    (found,) = explain(compile_kernel, body, np.exp)
    assert (found.verdict, found.unwritten) == ("unwritten", 128)
    assert "nothing wrote 128 of its elements" in explanation_text(found)


def test_a_right_result_needs_no_explanation(compile_kernel: Callable[..., Any]) -> None:
    assert explain(compile_kernel, "Muls(b, a, (T)2, 128);", lambda x: 2 * x) == ()
