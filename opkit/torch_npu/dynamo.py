"""What `torch._dynamo` knows of the device, told to it when it is imported.

Importing it for that would double the time of `import torch`.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from opkit.torch_npu import npu
from opkit.torch_npu.native import device_count, load

__all__ = ["register_interface"]

_MODULE = "torch._dynamo.device_interface"
_STREAMS = "torch._dynamo.variables.streams"


def register_interface() -> None:
    """Register the device with `torch._dynamo`: now if that is there, else when it is imported.

    Source: torch._dynamo.device_interface.register_interface_for_device.
    """
    for name, tell in ((_MODULE, _register), (_STREAMS, _leave_device_alone)):
        imported = sys.modules.get(name)
        if imported is not None:
            tell(imported)
        else:
            sys.meta_path.insert(0, _Watcher(name, tell))


class _Watcher:
    """Finds no module, and lets one of them be followed by what is to be told to it."""

    def __init__(self, module: str, tell: Callable[[Any], None]) -> None:
        self._module = module
        self._tell = tell

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            self._tell(module)

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def _leave_device_alone(streams: Any) -> None:
    """Have a graph be traced without the device's current stream while the device is not loaded.

    The tracer asks every accelerator for it, and asking would load, and first build, the device for
    graphs that are the CPU's alone. Source: torch._dynamo.variables.streams.SymbolicStreamState.
    """
    state = streams.SymbolicStreamState
    begin = state.__init__

    def begin_without(self: Any) -> None:
        if npu.is_initialized():
            begin(self)
        else:
            self.cur_stream_stack = collections.deque()

    state.__init__ = begin_without


def _register(interfaces: Any) -> None:
    interface = _interface(interfaces.DeviceInterface)
    for name in ("npu", *(f"npu:{index}" for index in range(device_count()))):
        interfaces.register_interface_for_device(name, interface)


def _interface(base: Any) -> type:
    """Return the device as a subclass of torch's `DeviceInterface`."""

    class Worker:
        set_device = staticmethod(npu.set_device)
        current_device = staticmethod(npu.current_device)
        get_device_properties = staticmethod(npu.get_device_properties)

    class NpuInterface(base):  # type: ignore[misc]
        """The device `npu`. There is no Triton that compiles for it."""

        device = npu.device
        Event = npu.Event
        Stream = npu.Stream
        current_device = staticmethod(npu.current_device)
        set_device = staticmethod(npu.set_device)
        device_count = staticmethod(npu.device_count)
        is_available = staticmethod(npu.is_available)
        stream = staticmethod(npu.stream)
        current_stream = staticmethod(npu.current_stream)
        set_stream = staticmethod(npu.set_stream)
        synchronize = staticmethod(npu.synchronize)
        get_compute_capability = staticmethod(npu.get_device_name)
        is_bf16_supported = staticmethod(npu.is_bf16_supported)
        memory_allocated = staticmethod(npu.memory_allocated)

        @staticmethod
        def exchange_device(device: int) -> int:
            before = npu.current_device()
            if device >= 0:
                npu.set_device(device)
            return before

        maybe_exchange_device = exchange_device

        @staticmethod
        def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
            load().opkit_npu_set_stream(device_index, stream_id)

        @staticmethod
        def get_raw_stream(device_idx: int) -> int:
            return int(load().opkit_npu_current_stream(device_idx))

    NpuInterface.Worker = Worker
    return NpuInterface
