"""A compiled sub-graph, called with torch's tensors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from opkit.chips import Chip
from opkit.graph.plan import Plan
from opkit.graph.recording import plan_of
from opkit.graph.running import Runner, compile_plan
from opkit.graph.translation import Translation

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
        self.plan: Plan = plan_of(translation.graph, chip, tuple(translation.constants))
        self.runner = Runner(self.plan, compile_plan(self.plan, chip))
        self.seconds = 0.0
        self._constants = [
            np.ascontiguousarray(translation.constants[t.name]) for t in self.plan.constants
        ]
        self._constant_addresses = [array.ctypes.data for array in self._constants]
        examples = [node.meta["val"] for node in translation.outputs]
        self._results = [(tuple(e.shape), e.dtype, _strides(e)) for e in examples]
        self._narrowed = [translation.narrowed.get(tensor.name, 0) for tensor in self.plan.inputs]
        self._device = examples[0].device
        self._arena: torch.Tensor | None = None
        self._lock = threading.Lock()

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Return the sub-graph's results: one tensor, or a tuple."""
        given = [
            _narrow(tensor, rows) if rows else tensor.detach().contiguous()
            for tensor, rows in zip(tensors, self._narrowed, strict=True)
        ]
        device = tensors[0].device if tensors else self._device
        results = [torch.empty(shape, dtype=t, device=device) for shape, t, _ in self._results]
        with self._lock:
            if self._arena is None or self._arena.device != device:
                size = max(1, self.plan.arena_bytes)
                self._arena = torch.empty(size, dtype=torch.uint8, device=device)
            self.runner.run(
                [tensor.data_ptr() for tensor in given],
                [tensor.data_ptr() for tensor in results],
                self._constant_addresses,
                self._arena.data_ptr(),
            )
        # Who reads a result by its strides, as views of outputs do, finds those that torch has.
        for index, (shape, dtype, strides) in enumerate(self._results):
            if strides is not None:
                laid_out = torch.empty_strided(shape, strides, dtype=dtype, device=device)
                results[index] = laid_out.copy_(results[index])
        return results[0] if len(results) == 1 else tuple(results)


def _strides(example: torch.Tensor) -> tuple[int, ...] | None:
    """Return the strides of a result that is not contiguous; None for one that is."""
    if example.is_contiguous():
        return None
    return tuple(int(stride) for stride in example.stride())


def _narrow(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """Return indices in 32 bits.

    Raises:
        IndexError: one is out of range, as torch says it.
    """
    wide = tensor.detach().contiguous()
    if tensor.dtype == torch.int64:
        memory = (ctypes.c_int64 * wide.numel()).from_address(wide.data_ptr())
        array = np.ctypeslib.as_array(memory)
        if array.min() < 0 or array.max() >= rows:
            raise IndexError(
                f"index out of range: {array.min()} to {array.max()} in a table of {rows} rows"
            )
    return wide.to(torch.int32)


def run_nodes(nodes: Sequence[fx.Node], values: dict[fx.Node, Any]) -> None:
    """Run nodes one by one with torch; their results appear in `values`."""
    for node in nodes:
        args = fx.map_arg(node.args, values.__getitem__)
        kwargs = fx.map_arg(node.kwargs, values.__getitem__)
        assert callable(node.target)
        values[node] = node.target(*args, **kwargs)
