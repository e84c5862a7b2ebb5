"""Tensors for tests, and decorators that leave tests out."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

__all__ = [
    "SkipIfNotGteCANNVersion",
    "SupportedDevices",
    "create_common_tensor",
    "create_dtype_tensor",
    "skipIfUnsupportMultiNPU",
    "test_2args_broadcast",
]

Test = TypeVar("Test", bound=Callable[..., Any])
Pair = tuple[torch.Tensor, torch.Tensor]


def create_common_tensor(
    item: Sequence[Any],
    minValue: float,
    maxValue: float,
    device: Any = None,
) -> Pair:
    """Return random values between two bounds, on the CPU and on the device.

    Args:
        item: NumPy's data type, the number of a format, which the emulated device takes as ND, and
            the shape.
    """
    dtype, _, shape = item[:3]
    values = np.random.uniform(minValue, maxValue, shape).astype(dtype)
    on_the_host = torch.from_numpy(values)
    return on_the_host, on_the_host.to("npu" if device is None else device)


def create_dtype_tensor(
    shape: Sequence[int],
    dtype: torch.dtype,
    npu_format: int = -1,
    min_value: float = -5,
    max_value: float = 5,
    no_zero: bool = False,
    device: Any = None,
) -> Pair:
    """Return random values of one of torch's types, on the CPU and on the device."""
    if dtype == torch.bool:
        values = torch.randint(0, 2, tuple(shape)).bool()
    else:
        low = max(min_value, 0) if dtype == torch.uint8 else min_value
        values = torch.empty(tuple(shape)).uniform_(low, max_value).to(dtype)
    if no_zero:
        values = torch.where(values == 0, torch.ones_like(values), values)
    return values, values.to("npu" if device is None else device)


def test_2args_broadcast(function: Callable[..., torch.Tensor]) -> list[Pair]:
    """Call a function of two tensors with shapes that broadcast; return results on both devices."""
    shapes = (((1, 2, 3), (3,)), ((4, 1, 5), (4, 3, 5)), ((2, 3), ()), ((5, 1), (1, 6)))
    results = []
    for shape, other in shapes:
        (x, x_npu), (y, y_npu) = (
            create_dtype_tensor(each, torch.float32, no_zero=True) for each in (shape, other)
        )
        results.append((function(x, y), function(x_npu, y_npu).cpu()))
    return results


def SupportedDevices(supported_list: Sequence[str] | str) -> Callable[[Test], Test]:
    """Leave a test out where it names no kind of the emulated chip."""
    names = [supported_list] if isinstance(supported_list, str) else list(supported_list)
    chip = getattr(torch, "npu").get_device_name()  # noqa: B009
    is_named = any(chip.startswith(name) for name in names)
    return _skip_unless(is_named, f"for {', '.join(names)}, and this is {chip}")


def SkipIfNotGteCANNVersion(version: str) -> Callable[[Test], Test]:
    """Leave a test out that wants a release of the vendor's software: none is here."""
    return _skip_unless(False, f"wants the vendor's software {version} or newer")


def skipIfUnsupportMultiNPU(count: int) -> Callable[[Test], Test]:
    """Leave a test out that wants more devices; OPKIT_NPU_COUNT sets how many there are."""
    there = getattr(torch, "npu").device_count()  # noqa: B009
    return _skip_unless(there >= count, f"wants {count} devices, and there are {there}")


def _skip_unless(is_run: bool, reason: str) -> Callable[[Test], Test]:
    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not is_run:
                raise unittest.SkipTest(reason)
            return test(*args, **kwargs)

        return test if isinstance(test, type) and is_run else call  # type: ignore[return-value]

    return decorate


# pytest would collect it in files that import it.
test_2args_broadcast.__test__ = False  # type: ignore[attr-defined]
