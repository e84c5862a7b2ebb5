"""Convolutions: patches by two kernels, and kernels of one channel on vector cores."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.chips import find_chip  # noqa: E402
from opkit.graph.backend import opkit, watching  # noqa: E402
from opkit.profiling import Profile  # noqa: E402
from opkit.sanitizer import Check  # noqa: E402

pytestmark = pytest.mark.torch

CORES = find_chip("Ascend910B2").count("cores.aiv")
LIMITS = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def _compiled(given: Any, **settings: Any) -> tuple[Any, Any]:
    """Return what a compiled convolution gives under every check, and its plan."""

    def convolved(x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.conv2d(x, weight, bias, **settings)

    torch._dynamo.reset()
    with watching() as graphs, Check(()) as checks, torch.no_grad():
        found = torch.compile(convolved, backend=opkit, dynamic=False)(*given)
    assert not checks.findings, checks.findings[0]
    (segment,) = (segment for graph in graphs for segment in graph.segments)
    limit = LIMITS[found.dtype]
    expected = convolved(*(each.double() for each in given)).to(found.dtype)
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit)
    return found, segment.plan


def _given(shape: Any, outputs: int, kernel: Any, groups: int, dtype: Any) -> Any:
    weight = torch.randn(outputs, shape[1] // groups, *kernel, dtype=dtype)
    return torch.randn(shape, dtype=dtype), weight, torch.randn(outputs, dtype=dtype)


@pytest.mark.parametrize(
    ("shape", "kernel", "dtype", "settings"),
    [
        ((2, 5, 9, 13), (3, 3), torch.float32, {"padding": 1}),
        ((1, 4, 10, 12), (5, 3), torch.bfloat16, {"padding": (2, 1), "stride": 2}),
        ((3, 3, 11, 9), (3, 2), torch.float16, {"padding": (0, 1), "dilation": (2, 1)}),
        ((2, 6, 7, 7), (1, 3), torch.float32, {"stride": (2, 1)}),
    ],
    ids=["3x3", "stride", "dilation", "one row"],
)
def test_a_kernel_for_each_channel_is_one_launch_without_products(
    shape: Any, kernel: Any, dtype: Any, settings: Any
) -> None:
    # It was nine movements behind eight barriers, a launch of products and one of the bias.
    given = _given(shape, shape[1], kernel, shape[1], dtype)
    _, plan = _compiled(given, groups=shape[1], **settings)
    (launch,) = plan.launches
    kernel_text = plan.kernels[launch.kernel].source
    assert "Mmad" not in kernel_text and "matmul" not in kernel_text
    # Columns that lie apart are framed and brought together first.
    is_apart = settings.get("stride", 1) == 2
    assert kernel_text.count("SyncAll();") <= (5 if is_apart else 3)
    # What few rows gain by more cores is less than these add to the launch.
    assert launch.block_dim < CORES


def test_patches_of_a_padded_image_are_two_movements() -> None:
    given = _given((2, 3, 9, 10), 4, (3, 3), 1, torch.float32)
    _, plan = _compiled(given, padding=1)
    moves = [kernel for kernel in plan.kernels if "concat_slices" in kernel.operators]
    assert [each.operators for each in moves] == [("concat_slices", "concat_slices")]
    assert moves[0].source.count("SyncAll();") == 1


def test_groups_of_several_channels_are_products() -> None:
    given = _given((2, 6, 8, 8), 6, (3, 3), 3, torch.float16)
    _, plan = _compiled(given, padding=1, groups=3)
    assert any("matmul" in kernel.operators for kernel in plan.kernels)


@pytest.mark.parametrize(("size", "kernel"), [((56, 56), 3), ((23, 23), 5)])
def test_taps_that_step_over_columns_are_not_copied_one_by_one(size: Any, kernel: int) -> None:
    # 32 channels of 56 x 56 took 1,388 us in the model, of 1 us for their bytes.
    given = _given((1, 32, *size), 32, (kernel, kernel), 32, torch.float16)
    with Profile() as profiled:
        _compiled(given, groups=32, stride=2, padding=kernel // 2)
    assert 5 < sum(timeline.task_us for timeline in profiled.timelines) < 100
