"""Lightning on the device: `import opkit.torch_npu.lightning` registers the accelerator `npu`.

Lightning registers accelerators of others, then takes the CPU where one device is asked for,
`autocast("cuda")` for mixed precision and gloo between processes, whatever the accelerator is. For
this one those choices are made here; "auto" takes it where Lightning finds no other, and "gpu" and
"cuda" do where `torch_npu.contrib.transfer_to_npu` leads `torch.cuda` there.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import Any

import torch

__all__ = ("register",)

_PACKAGES = ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric")
_NAME = "npu"
_LEADS = "torch_npu.contrib.transfer_to_npu"


def register() -> None:
    """Register the accelerator with Lightning's packages that are imported; else with the first
    that is installed.

    Raises:
        ModuleNotFoundError: there is none.
    """
    found = [name for name in _PACKAGES if name in sys.modules]
    for name in found or [_first_installed()]:
        package = importlib.import_module(name)
        if not hasattr(package, "_opkit_npu"):
            package._opkit_npu = _register(name)  # type: ignore[attr-defined]


def _first_installed() -> str:
    for name in _PACKAGES:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            return name
    raise ModuleNotFoundError("Lightning is not installed: pip install lightning")


def _register(package: str) -> type:
    """Register with one package; return the accelerator's class."""
    accelerators = importlib.import_module(f"{package}.accelerators")
    strategies = importlib.import_module(f"{package}.strategies")
    is_fabric = package.endswith("fabric")
    where = "connector" if is_fabric else "trainer.connectors.accelerator_connector"
    connectors = importlib.import_module(f"{package}.{where}")
    connector = connectors._Connector if is_fabric else connectors._AcceleratorConnector
    made = _accelerator(accelerators.Accelerator)
    registry = connectors.ACCELERATOR_REGISTRY if is_fabric else accelerators.AcceleratorRegistry
    registry.register(_NAME, made, description="opkit's emulated device npu")
    _choose(connector, made, strategies.SingleDeviceStrategy)
    return made


def _accelerator(base: type) -> type:
    class NpuAccelerator(base):  # type: ignore[misc]
        """The device `npu`."""

        def setup_device(self, device: torch.device) -> None:
            torch.accelerator.set_device_index(device)

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return torch.accelerator.memory_stats(device)

        def teardown(self) -> None:
            torch.accelerator.empty_cache()

        @staticmethod
        def parse_devices(devices: Any) -> list[int]:
            return _numbers(devices)

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device(_NAME, index) for index in devices]

        @staticmethod
        def auto_device_count() -> int:
            return torch.accelerator.device_count()

        @staticmethod
        def is_available() -> bool:
            return torch.accelerator.device_count() > 0

        @staticmethod
        def name() -> str:
            return _NAME

    return NpuAccelerator


def _numbers(devices: Any) -> list[int]:
    """Return the devices that are meant by their number, a list of them, or either as text."""
    if isinstance(devices, str):
        given = [int(each) for each in devices.split(",") if each.strip()]
        devices = given if "," in devices else given[0]
    count = torch.accelerator.device_count()
    if isinstance(devices, int):
        devices = range(count if devices == -1 else devices)
    found = list(devices)
    if any(not 0 <= each < count for each in found):
        raise ValueError(f"devices={found}: there are {count}; OPKIT_NPU_COUNT says how many")
    return found


def _choose(connector: Any, accelerator: type, single: Any) -> None:
    """Have Lightning choose for the accelerator what it chooses for those of its own."""
    real_auto = connector._choose_auto_accelerator
    real_strategy = connector._choose_strategy
    real_init = connector._init_strategy
    real_devices = connector._set_parallel_devices_and_init_accelerator
    real_precision = connector._check_and_init_precision

    @functools.wraps(real_auto)
    def choose_auto_accelerator(*args: Any) -> str:
        chosen = str(real_auto(*args))
        return _NAME if chosen == "cpu" else chosen

    @functools.wraps(real_devices)
    def init_accelerator(self: Any) -> None:
        # By name, for a script that says "gpu", or has said nothing.
        if self._accelerator_flag == "cuda" and _LEADS in sys.modules:
            self._accelerator_flag = _NAME
        real_devices(self)

    @functools.wraps(real_strategy)
    def choose_strategy(self: Any) -> Any:
        chosen = real_strategy(self)
        if isinstance(self.accelerator, accelerator) and isinstance(chosen, single):
            return single(device=self._parallel_devices[0])
        return chosen

    @functools.wraps(real_init)
    def init_strategy(self: Any) -> None:
        real_init(self)
        if isinstance(self.accelerator, accelerator):
            backend = getattr(self.strategy, "_process_group_backend", "its own")
            if backend is None:
                self.strategy._process_group_backend = "hccl"

    @functools.wraps(real_precision)
    def check_and_init_precision(self: Any) -> Any:
        found = real_precision(self)
        is_ours = isinstance(self.accelerator, accelerator)
        if is_ours and getattr(found, "device", None) == "cuda":
            return type(found)(found.precision, _NAME)
        return found

    is_static = isinstance(vars(connector)["_choose_auto_accelerator"], staticmethod)
    connector._choose_auto_accelerator = (
        staticmethod(choose_auto_accelerator) if is_static else choose_auto_accelerator
    )
    connector._choose_strategy = choose_strategy
    connector._init_strategy = init_strategy
    connector._set_parallel_devices_and_init_accelerator = init_accelerator
    connector._check_and_init_precision = check_and_init_precision


register()
