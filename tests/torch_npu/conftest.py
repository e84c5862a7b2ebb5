"""One device for all tests of this folder, with its kernels compiled."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def device() -> None:
    """Have the device's libraries there before the first test."""
    torch = pytest.importorskip("torch")
    from opkit.torch_npu.autoload import autoload
    from opkit.torch_npu.build import kernel_library
    from opkit.torch_npu.native import load

    if not hasattr(torch, "npu"):
        autoload()
    path = kernel_library()
    load().opkit_npu_kernels(str(path).encode())
