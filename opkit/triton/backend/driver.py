"""Triton's driver: which device there is, and that its kernels are opkit's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from triton.backends.driver import DriverBase

from opkit.triton.redirect import install, install_when_there, is_active

__all__ = ["OpkitDriver"]


class _Properties:
    """What programs ask of a device to choose their blocks."""

    def get_device_properties(self, device: object) -> dict[str, Any]:
        """Return the counts of cores and the size of UB, by the names of the chip's Triton."""
        del device
        from opkit.chips import find_chip
        from opkit.runtime import configuration

        chip = find_chip(configuration().chip)
        return {
            "max_shared_mem": chip.count("memory.ub_bytes"),
            "num_aicore": chip.count("cores.aic"),
            "num_vectorcore": chip.count("cores.aiv"),
            "multiprocessor_count": chip.count("cores.aiv"),
            "warpSize": 1,
        }

    def get_aicore_num(self) -> int:
        """Return how many cube cores there are."""
        return int(self.get_device_properties(None)["num_aicore"])

    def get_aivector_core_num(self) -> int:
        """Return how many vector cores there are."""
        return int(self.get_device_properties(None)["num_vectorcore"])


class OpkitDriver(DriverBase):  # type: ignore[misc]
    """The emulated device."""

    runs_kernels_of = "opkit"

    def __init__(self) -> None:
        super().__init__()
        install()
        self.utils = _Properties()

    @classmethod
    def is_active(cls) -> bool:
        """Only where it was asked for: a GPU of this machine stays Triton's own."""
        return is_active()

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the C++ type of an argument."""
        kinds = {"fp32": "float", "fp16": "float", "bf16": "float", "i1": "bool"}
        return "GM_ADDR" if ty.startswith("*") else kinds.get(ty, f"int{ty[1:]}_t")

    def get_current_target(self) -> Any:
        """Return the emulated chip as a target."""
        from triton.backends.compiler import GPUTarget

        from opkit.runtime import configuration

        return GPUTarget("opkit", configuration().chip, 1)

    def get_active_torch_device(self) -> Any:
        """Return torch's device."""
        torch = _torch()
        return torch.device("npu", torch.npu.current_device())

    def get_device_interface(self) -> Any:
        """Return torch's module of the device."""
        return _torch().npu

    def get_current_device(self) -> int:
        """Return the device's number."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int) -> int:
        """Return the stream that launches go to."""
        del device
        return 0

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return what autotune measures with: seconds of this machine, as milliseconds."""
        return _measure

    def get_empty_cache_for_benchmark(self) -> Any:
        """Return memory that is written between measurements: none is cached here."""
        torch = _torch()
        return torch.empty(1, dtype=torch.int32, device="npu")

    def clear_cache(self, cache: Any) -> None:
        """Write it."""
        cache.zero_()


def _torch() -> Any:
    # Who asks for a device of torch has imported it.
    return sys.modules["torch"]


def _measure(call: Callable[[], object], *, quantiles: Any = None, **options: Any) -> Any:
    del options
    begin = time.perf_counter()
    call()
    taken = (time.perf_counter() - begin) * 1000
    return [taken] * len(quantiles) if quantiles is not None else taken


if is_active():
    install_when_there()
