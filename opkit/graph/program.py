"""A compiled sub-graph, called with torch's tensors."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from opkit.chips import Chip
from opkit.graph.aten import LARGEST
from opkit.graph.plan import Plan
from opkit.graph.planning import plan_of
from opkit.graph.running import Runner, compile_plan
from opkit.graph.translation import Translation
from opkit.torch_npu import StreamTime

__all__ = ["CompiledSegment"]


class CompiledSegment(torch.nn.Module):
    """Runs a sub-graph's kernels on the memory of its tensors, on `npu` or on the CPU."""

    def __init__(self, name: str, translation: Translation, chip: Chip) -> None:
        """Compile the kernels.

        Raises:
            GraphError: the compiler does not take the whole of it.
            BuildError: a kernel does not compile.
        """
        super().__init__()
        self.name = name
        self.translation = translation
        self.plan: Plan = plan_of(
            translation.graph, chip, tuple(translation.constants), translation.triangles
        )
        self.runner = Runner(self.plan, compile_plan(self.plan, chip))
        self.seconds = 0.0
        self._constants = [
            np.asarray(translation.constants[t.name], order="C") for t in self.plan.constants
        ]
        self._constant_addresses = [array.ctypes.data for array in self._constants]
        examples = [node.meta["val"] for node in translation.outputs]
        self._results = [(tuple(e.shape), _held(e.dtype), e.dtype, _strides(e)) for e in examples]
        self._is_limited = [
            (tensor.name in translation.limited and translation.limit < LARGEST)
            or node.meta["val"].dtype == torch.int64
            for tensor, node in zip(self.plan.inputs, translation.inputs, strict=False)
        ]
        self._is_wide = [tensor.dtype == "int64" for tensor in self.plan.inputs]
        self._narrowed = [translation.narrowed.get(tensor.name, 0) for tensor in self.plan.inputs]
        self._device = examples[0].device
        self._draws = self.plan.draws
        self._arena: torch.Tensor | None = None
        self._lock = threading.Lock()

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Return the sub-graph's results: one tensor, or a tuple."""
        given: list[torch.Tensor] = []
        for tensor, places, is_limited, is_wide in zip(
            tensors, self._narrowed, self._is_limited, self._is_wide, strict=True
        ):
            if isinstance(tensor, FakeTensor):
                return self._by_torch(tensors)
            plain = tensor if tensor.is_contiguous() else tensor.detach().contiguous()
            if places:
                _check_places(plain, places)
            elif is_limited and not _keeps_to(plain, self.translation.limit):
                return self._by_torch(tensors)
            is_cut = plain.dtype == torch.int64 and not is_wide
            given.append(plain.to(torch.int32) if is_cut else plain)
        device = tensors[0].device if tensors else self._device
        results = [
            torch.empty(shape, dtype=held, device=device) for shape, held, _, _ in self._results
        ]
        with self._lock:
            if self._arena is None or self._arena.device != device:
                size = max(1, self.plan.arena_bytes)
                self._arena = torch.empty(size, dtype=torch.uint8, device=device)
            with StreamTime(device):
                self.runner.run(
                    [tensor.data_ptr() for tensor in given],
                    [tensor.data_ptr() for tensor in results],
                    self._constant_addresses,
                    self._arena.data_ptr(),
                    functools.partial(next_random_stream, device) if self._draws else None,
                )
        # Who reads a result by its strides, as views of outputs do, finds those that torch has.
        for index, (shape, held, dtype, strides) in enumerate(self._results):
            if held != dtype:
                results[index] = results[index].to(dtype)
            if strides is not None:
                results[index] = _laid_out(results[index], shape, strides)
        return results[0] if len(results) == 1 else tuple(results)

    __call__ = forward
    """Hooks of modules have no place here, and looking for them takes longer than some kernels."""

    def _by_torch(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Return the results where 32 bits would not hold whole numbers on the way, or where
        tensors have no memory."""
        values: dict[fx.Node, Any] = dict(zip(self.translation.inputs, tensors, strict=True))
        for node, number in self.translation.numbers.items():
            example = node.meta["val"]
            values[node] = torch.full(
                tuple(example.shape), number, dtype=example.dtype, device=example.device
            )
        with torch.no_grad():
            run_nodes(self.translation.nodes, values)
        results = [values[node] for node in self.translation.outputs]
        return results[0] if len(results) == 1 else tuple(results)


def next_random_stream(device: torch.device) -> tuple[int, int]:
    """Return the seed and the stream of the next random numbers, as the device's own operators draw
    them; elsewhere torch's generator gives a seed."""
    if device.type == "npu":
        index = -1 if device.index is None else device.index
        seed, stream = torch.ops.opkit_npu.next_random_stream(index)
        return int(seed), int(stream)
    return int(torch.empty((), dtype=torch.int64).random_().item()), 0


def _strides(example: torch.Tensor) -> tuple[int, ...] | None:
    """Return the strides of a result that is not contiguous; None for one that is, or whose
    elements overlap otherwise than by repeating along axes."""
    if example.is_contiguous():
        return None
    strides = tuple(int(stride) for stride in example.stride())
    reach = 0
    for stride, extent in sorted(zip(strides, map(int, example.shape), strict=True)):
        if stride and extent > 1:
            if stride <= reach:
                return None
            reach += stride * (extent - 1)
    return strides


def _laid_out(
    tensor: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]
) -> torch.Tensor:
    """Return a tensor with other strides; 0 along axes that repeat one element."""
    own = tuple(extent if stride else 1 for extent, stride in zip(shape, strides, strict=True))
    room = torch.empty_strided(own, strides, dtype=tensor.dtype, device=tensor.device)
    return room.copy_(tensor[tuple(slice(extent) for extent in own)]).expand(shape)


def _held(dtype: torch.dtype) -> torch.dtype:
    return torch.int32 if dtype == torch.int64 else dtype


def _elements(tensor: torch.Tensor) -> Any:
    """Return the memory of whole numbers as an array, also on the device."""
    kind = ctypes.c_int64 if tensor.dtype == torch.int64 else ctypes.c_int32
    return np.ctypeslib.as_array((kind * tensor.numel()).from_address(tensor.data_ptr()))


def _check_places(tensor: torch.Tensor, count: int) -> None:
    """Raise IndexError where a place is out of range, as torch says it."""
    if tensor.dtype != torch.int64 or tensor.numel() == 0:
        return
    array, least = _elements(tensor), min(count, 0)
    if array.min() < least or array.max() >= abs(count):
        raise IndexError(
            f"index out of range: {array.min()} to {array.max()} in a table of {abs(count)} rows"
        )


def _keeps_to(tensor: torch.Tensor, limit: int) -> bool:
    if tensor.numel() == 0:
        return True
    array = _elements(tensor)
    return bool(array.min() >= -limit and array.max() <= limit)


def run_nodes(nodes: Sequence[fx.Node], values: dict[fx.Node, Any]) -> None:
    """Run nodes one by one with torch; their results appear in `values`."""
    for node in nodes:
        args = fx.map_arg(node.args, values.__getitem__)
        kwargs = fx.map_arg(node.kwargs, values.__getitem__)
        assert callable(node.target)
        values[node] = node.target(*args, **kwargs)
