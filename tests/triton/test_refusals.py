"""What a Triton program has that no kernel is made of: named at its line."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from opkit.errors import KernelFault  # noqa: E402
from opkit.triton import SlowKernel, TritonError, activate, launch  # noqa: E402

HERE = Path(__file__)


def line_of(kernel: object, text: str) -> str:
    lines, first = inspect.getsourcelines(kernel.fn)  # type: ignore[attr-defined]
    number = next(at for at, line in enumerate(lines) if text in line)
    return f"{HERE}:{first + number}"


@triton.jit
def doubles_kernel(x):
    tl.store(x, tl.load(x) * 2)


@pytest.mark.torch
def test_a_tensor_on_the_host_is_what_triton_itself_says() -> None:
    import torch

    with pytest.raises(
        ValueError, match=r"\(at 0\) cannot be accessed from Triton \(cpu tensor\?\)"
    ):
        launch(doubles_kernel, (1,), torch.zeros(1))


@triton.jit
def large_kernel(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(x + at, tl.exp(value) + value)


@triton.jit
def wrong_kernel(x):
    tl.store(x, x @ x)


@pytest.mark.parametrize(
    ("kernel", "line", "message", "dtype", "options"),
    [
        (doubles_kernel, "tl.load", "float64 is no data type", "float64", {}),
        (large_kernel, "tl.exp", "does not fit", "float32", {"BLOCK": 32768}),
        (wrong_kernel, "x @ x", "MatMult", "float32", {}),
    ],
)
def test_what_is_not_taken_is_named_at_its_line(
    kernel: object, line: str, message: str, dtype: str, options: dict[str, int]
) -> None:
    with pytest.raises(TritonError) as caught:
        launch(kernel, (1,), np.zeros(32768, dtype), **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{line_of(kernel, line)}: ")


def test_an_option_that_nobody_knows_is_told() -> None:
    with pytest.raises(TritonError, match="no_such_option is neither an argument"):
        launch(doubles_kernel, (1,), np.zeros(4, np.float32), no_such_option=1)


@triton.jit
def scattered_kernel(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at * at, at)


def test_what_goes_element_by_element_warns_at_its_line() -> None:
    x = np.zeros(64, np.int32)
    with pytest.warns(SlowKernel, match="goes element by element") as caught:
        launch(scattered_kernel, (1,), x, BLOCK=8)
    assert any(line_of(scattered_kernel, "tl.store") in str(each.message) for each in caught)
    assert [x[at * at] for at in range(8)] == [*range(8)]


@triton.jit
def outside_kernel(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, at)


def test_a_kernel_that_writes_behind_its_array_is_a_fault_at_its_line() -> None:
    with pytest.raises(KernelFault, match="the last 112 of them behind the end") as caught:
        launch(outside_kernel, (1,), np.zeros(100, np.int32), BLOCK=128)
    assert line_of(outside_kernel, "tl.store") in str(caught.value)


def test_kernels_run_by_tritons_own_syntax_once_asked_for() -> None:
    from triton.runtime import driver

    before = driver._active
    try:
        activate()
        x = np.array([1, 2, 3], np.float32)
        doubles_kernel[(1,)](x)
    finally:
        driver._active = before
    assert [*x] == [2, 2, 3]
