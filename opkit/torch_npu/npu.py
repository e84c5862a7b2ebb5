"""`torch.npu`: devices, streams, random numbers, memory, and which kernel ran what.

PyTorch looks its own names up here (`_lazy_init`, `get_rng_state`, `get_amp_supported_dtype`, ...).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from opkit.runtime import load_emulator
from opkit.torch_npu import amp
from opkit.torch_npu.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_dump_snapshot,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    record_memory_history,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_allocator_settings,
    set_per_process_memory_fraction,
)
from opkit.torch_npu.native import device_count, device_index, library, load

__all__ = [
    "DeviceProperties",
    "Event",
    "Fallback",
    "Products",
    "Settings",
    "Stream",
    "amp",
    "config",
    "conv",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "fallbacks",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "kernel_calls",
    "manual_seed",
    "manual_seed_all",
    "matmul",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_dump_snapshot",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "record_memory_history",
    "reset_accumulated_memory_stats",
    "reset_fallbacks",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_allocator_settings",
    "set_compile_mode",
    "set_device",
    "set_option",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "use_compatible_impl",
    "which",
]


def _lazy_init() -> None:
    load()
    if "all" in _seeds:
        manual_seed_all(_seeds.pop("all"))


def _is_in_bad_fork() -> bool:
    # The emulator starts threads of its own in a child: nothing of the device is lost by a fork.
    return False


def init() -> None:
    """Load the device now rather than at its first use."""
    load()


def is_initialized() -> bool:
    """Whether the device's library is loaded."""
    from opkit.torch_npu import native

    return native._loaded is not None


def __getattr__(name: str) -> Any:
    # As torch.cuda's: torch.utils.checkpoint keeps the state of random numbers where it is true.
    if name == "_initialized":
        return is_initialized()
    # torch.compile keeps and restores the state of what draws by chance through it.
    if name == "default_generators":
        return tuple(_generator(index) for index in range(device_count()))
    # The vendor's module has the functions of devices a second time.
    if name == "utils":
        return sys.modules[__name__]
    raise AttributeError(f"module 'torch.npu' has no attribute '{name}'")


def is_available() -> bool:
    """Whether there is a device."""
    return device_count() > 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the chip computes in bfloat16."""
    return True


def current_device() -> int:
    """Return the number of this thread's device."""
    load()
    return torch._C._accelerator_hooks_get_current_device()


def set_device(device: Any) -> None:
    """Make a device this thread's."""
    load()
    torch._C._accelerator_hooks_set_current_device(device_index(device))


class device:
    """Makes a device the thread's inside a `with` block."""

    def __init__(self, device: Any) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        set_device(self.idx)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        set_device(self.prev_idx)


def synchronize(device: Any = None) -> None:
    """Wait for the device: at once, because every launch has ended when its call returns.

    Raises:
        RuntimeError: a kernel's fault that was kept, with `ASCEND_LAUNCH_BLOCKING=0`.
    """
    load()
    torch._C._accelerator_synchronizeDevice(device_index(device))


@dataclass(frozen=True)
class DeviceProperties:
    """What is known of the emulated chip."""

    name: str
    total_memory: int
    """Bytes."""
    cube_core_num: int
    vector_core_num: int

    @property
    def multi_processor_count(self) -> int:
        """Cores that kernels run on."""
        return self.vector_core_num

    # What code for CUDA asks before it takes kernels of Triton and the like.
    @property
    def major(self) -> int:
        """0: an Ascend chip has no such number."""
        return 0

    @property
    def minor(self) -> int:
        """0: an Ascend chip has no such number."""
        return 0


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Return name, memory and cores of the emulated chip."""
    found = load()
    total = mem_get_info(device_index(device))[1]
    cube, vector = found.opkit_npu_cores(0), found.opkit_npu_cores(1)
    return DeviceProperties(get_device_name(device), total, cube, vector)


def get_device_name(device: Any = None) -> str:
    """Return the name of the emulated chip, such as `Ascend910B2`."""
    name: bytes = load().opkit_npu_chip()
    return name.decode()


@dataclass
class Settings:
    """Switches of torch_npu that programs set; what they choose between is one here."""

    allow_internal_format: bool = False
    """Tensors of the emulated device are ND whatever it says."""


config = Settings()


@dataclass
class Products:
    """How products of matrices may be computed."""

    allow_hf32: bool = False
    """Taken, and without effect: the emulated cube multiplies float32 as it is."""


conv = Products()
matmul = Products()


def set_option(option: Mapping[str, object]) -> None:
    """Take torch_npu's options of the vendor's compiler and dump: none of them is here."""


def set_compile_mode(jit_compile: bool = False) -> None:
    """Take either mode of torch_npu: kernels of the emulated device are compiled ahead."""


def use_compatible_impl(is_enable: bool) -> None:
    """Take either mode of torch_npu: operators of the emulated device give PyTorch's results."""


def get_device_capability(device: Any = None) -> None:
    """Return None: an Ascend chip has no such number."""


class Stream(torch.Stream):
    """A queue of launches on a device; a new one each time."""

    def __new__(cls, device: Any = None, priority: int = 0, **known: int) -> Stream:
        load()
        if known:
            old: Stream = super().__new__(cls, device_type=_DEVICE_TYPE, **known)
            return old
        new: Stream = super().__new__(
            cls, torch.device("npu", device_index(device)), priority=priority
        )
        return new

    @property
    def npu_stream(self) -> int:
        """The aclrtStream of the device's C API that launches on this stream go to."""
        emulator = load_emulator()
        emulator.opkit_device_stream.restype = ctypes.c_void_p
        return int(emulator.opkit_device_stream(ctypes.c_int64(self.stream_id)) or 0)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Note the point that the stream has come to, in a new event if none is given."""
        noted = Event() if event is None else event
        noted.record(self)
        return noted

    def wait_event(self, event: torch.Event) -> None:
        """Have the stream wait for the point that an event notes."""
        event.wait(self)


_DEVICE_TYPE = 20  # PrivateUse1 among PyTorch's types of devices
_event_numbers = itertools.count(1)


def current_stream(device: Any = None) -> Stream:
    """Return the stream that this thread's launches go to."""
    load()
    index = device_index(device)
    return Stream(stream_id=library().opkit_npu_current_stream(index), device_index=index)


def default_stream(device: Any = None) -> Stream:
    """Return the stream that a device starts with."""
    return Stream(stream_id=0, device_index=device_index(device))


def set_stream(stream: torch.Stream) -> None:
    """Make a stream this thread's."""
    library().opkit_npu_set_stream(stream.device_index, stream.stream_id)


@contextlib.contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """Make a stream the thread's inside a `with` block."""
    if stream is None:
        yield
        return
    before = current_stream(stream.device_index)
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before)


class Event(torch.Event):
    """A point in a stream. `elapsed_time` is in milliseconds of the chip's timing model.

    Launches are modelled from the first event with `enable_timing` on. Operators that the CPU
    served take no modelled time: `torch.npu.fallbacks()` lists them.
    """

    _number: int

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Event:
        load()
        event: Event = super().__new__(cls, "npu", enable_timing=enable_timing)
        event._number = next(_event_numbers)
        return event

    def record(self, stream: torch.Stream | None = None) -> None:
        """Note the point that a stream has come to."""
        target = current_stream() if stream is None else stream
        self._tell(0, target)
        super().record(target)

    def wait(self, stream: torch.Stream | None = None) -> None:
        """Have a stream wait for the point."""
        target = current_stream() if stream is None else stream
        self._tell(1, target)
        super().wait(target)

    def elapsed_time(self, end: torch.Event) -> float:
        """Return the modelled milliseconds from this event to `end`."""
        return float(torch.ops.opkit_npu.elapsed_ms(self.event_id, end.event_id))

    def _tell(self, action: int, stream: torch.Stream) -> None:
        # Here and not below: PyTorch drops waits for events that were never recorded.
        from opkit.emulator import _emulator

        number = (stream.device_index + 1) << 48 | stream.stream_id
        _emulator.tell_streams(action, number, self._number)


def _generator(device: Any = None) -> torch.Generator:
    load()
    generator: torch.Generator = torch.ops.opkit_npu.default_generator(device_index(device))
    return generator


def _get_generator(device: torch.device) -> torch.Generator:
    # PyTorch's name for it.
    return _generator(device)


def manual_seed(seed: int) -> None:
    """Seed this device's random numbers."""
    if is_initialized():
        _generator().manual_seed(int(seed))
    else:
        _seeds["all"] = int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all devices."""
    if not is_initialized():
        _seeds["all"] = int(seed)
        return
    for index in range(device_count()):
        _generator(index).manual_seed(int(seed))


_seeds: dict[str, int] = {}


def seed() -> None:
    """Seed this device's random numbers with a number of chance."""
    _generator().seed()


def seed_all() -> None:
    """Seed the random numbers of all devices with a number of chance."""
    manual_seed_all(_generator(0).seed())


def initial_seed() -> int:
    """Return the seed of this device's random numbers."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "npu") -> torch.Tensor:
    """Return the state of a device's random numbers, a tensor of bytes on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
    """Set the state of a device's random numbers."""
    _generator(device).set_state(new_state.cpu())


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' random numbers."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Set the states of all devices' random numbers."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return what `torch.autocast("npu")` can compute in."""
    return [torch.float16, torch.bfloat16, torch.float32]


@dataclass(frozen=True)
class Fallback:
    """How often one operator ran where."""

    operator: str
    native: int
    """Calls that a kernel on the emulated chip served."""
    fallback: int
    """Calls that the CPU served, on the device's memory."""
    fallback_us: float
    """What those took on this machine; they have no modelled time."""
    reasons: dict[str, int]


class Table(list[Fallback]):
    """Rows that print as a table."""

    def __str__(self) -> str:
        lines = [f"{'operator':44} {'native':>8} {'cpu':>8} {'cpu us':>10}  why"]
        for row in self:
            why = "; ".join(row.reasons)
            lines.append(
                f"{row.operator:44} {row.native:8} {row.fallback:8} {row.fallback_us:10.0f}  {why}"
            )
        return "\n".join(lines)


def kernel_calls() -> Table:
    """Return every operator that was called: how often natively, how often on the CPU."""
    rows = json.loads(load().opkit_npu_counts())
    return Table(Fallback(**row) for row in rows)


def fallbacks() -> Table:
    """Return the operators that the CPU served, the most frequent first, with the reasons."""
    rows = [row for row in kernel_calls() if row.fallback]
    return Table(sorted(rows, key=lambda row: -row.fallback))


def reset_fallbacks() -> None:
    """Start counting anew."""
    load().opkit_npu_reset_counts()


def which(op: Any, *args: Any, **kwargs: Any) -> str:
    """Say which kernel would serve a call and why; nothing is computed on the tensors given.

    Args:
        op: an operator such as `torch.ops.aten.add.Tensor` or `torch.add`.
        args: the call's arguments; tensors of the device.
    """
    moved = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.detach().clone(), (args, kwargs)
    )
    before = {row.operator: row for row in kernel_calls()}
    given = torch.utils._pytree.tree_leaves(moved)
    first = next((leaf.dtype for leaf in given if isinstance(leaf, torch.Tensor)), None)
    op(*moved[0], **moved[1])
    lines = []
    for row in kernel_calls():
        old = before.get(row.operator, Fallback(row.operator, 0, 0, 0.0, {}))
        if row.native > old.native:
            lines.append(f"{row.operator}: {_kernels_of(row.operator, first)}")
        if row.fallback > old.fallback:
            why = [r for r, count in row.reasons.items() if count > old.reasons.get(r, 0)]
            lines.append(f"{row.operator}: the CPU, because: {'; '.join(why)}")
    return "\n".join(lines)


# Of c10::ScalarType, for the types that an operator may have kernels of its own for.
_SCALAR_TYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
}


def _kernels_of(operator: str, dtype: torch.dtype | None) -> str:
    number = -1 if dtype is None else _SCALAR_TYPES.get(dtype, -1)
    rows = json.loads(load().opkit_npu_which(operator.encode(), number))
    names = [f"{row['kernel']} ({row['table']} table, priority {row['priority']})" for row in rows]
    return f"kernel {', '.join(names)}" if names else "a kernel"
